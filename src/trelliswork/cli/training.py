"""The one way in which every model is trained: read, learn, show the dev scores, save."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import typer

from trelliswork import ctrl_c
from trelliswork.cli.compiling import announce_compiling, compile_beside
from trelliswork.cli.config_file import CHOSEN, config_text
from trelliswork.cli.early import check_folder, reserved, seed_folders
from trelliswork.cli.gold_files import GOLD_FILES
from trelliswork.cli.inputs import given_function
from trelliswork.cli.messages import Shown, progress_shown, say, visible
from trelliswork.cli.train_data import config_first, read_data, read_plain_texts, read_texts
from trelliswork.data import Choices
from trelliswork.lazy import named
from trelliswork.models.base import Model
from trelliswork.models.catalogue import entry_of, recipe_of
from trelliswork.models.language.config import PLAIN_TEXT
from trelliswork.models.recipe import Material, Options, Recipe, Result, RunOptions
from trelliswork.runtime.threads import use_threads
from trelliswork.training.exclusive import exclusive
from trelliswork.training.progress import BarProgress, LineProgress, Progress
from trelliswork.training.result import SeedRow, SeedsResult
from trelliswork.training.shares import n_processes
from trelliswork.training.tensorboard import TensorBoardProgress


def train_model(options: Options, choices: Choices) -> None:
    """Train what the options say, once or with several seeds; Ctrl-C keeps what there is."""
    is_first = True
    if n_processes() > 1:
        is_first = named("trelliswork.training.processes:join")().is_first
        options = {**options, "quiet": options["quiet"] or not is_first}
    recipe = make_recipe(options)
    progress_of(options)  # refuses TensorBoard where it is not installed
    use_threads(options["threads"])
    if is_first:
        compile_beside(f"train {options['model']}", quiet=options["quiet"])
    if options["seeds"] > 1:
        _train_seeds(recipe, options, choices)
        return
    out, resume = Path(options["out"]), options["resume"]
    if not is_first:
        prepare(recipe, options, choices)
        learn(recipe, RunOptions(None, options["seed"], progress_of(options)), options)
        return
    with reserved(out, options["force"], resume):
        material = prepare(recipe, options, choices)
        model, result = learn(recipe, RunOptions(out, options["seed"], progress_of(options), resume), options)
    print(f"{result.summary}; on the dev sentences:\n" if material.dev else result.summary)
    if material.dev:
        print(visible(model.report(material.dev).text))
    print(f"\nmodel: {out}\nnext:  trelliswork predict {out} FILE {model.next_options}")
    if result.interrupted:
        raise typer.Exit(ctrl_c.status())


def make_recipe(options: Options) -> Recipe:
    """Make the recipe of the model, with the feature function that the options name."""
    return recipe_of({**options, "function": given_function(options.get("features"))})


def prepare(recipe: Recipe, options: Options, choices: Choices) -> Material:
    """Give a recipe the data to learn from, which are read as its model learns."""

    def note(text: str) -> None:
        say(text, quiet=options["quiet"] and not text.startswith("note: "))  # possible mistakes are always reported

    def read(layout: Choices) -> Material:
        learns_from = entry_of(options["model"]).learns_from
        of_texts = {"text": read_texts, PLAIN_TEXT: read_plain_texts}
        read_files = of_texts.get(learns_from) or partial(read_data, files=GOLD_FILES[learns_from])
        material = read_files(options, layout)
        if options.get(CHOSEN):
            note(options[CHOSEN])
        return material

    material = recipe.prepare(read, choices, note)
    announce_compiling(quiet=options["quiet"])
    return material


def learn(recipe: Recipe, run: RunOptions, options: Options) -> tuple[Model, Result]:
    """Learn, with the settings of the run in its folder from the beginning; the folder must be locked."""
    if run.folder is None:
        return recipe.learn(run)
    settings = {**options, **recipe.settings(), "seed": run.seed, "out": str(run.folder)}
    with config_first(run.folder, config_text(settings)):
        return recipe.learn(run)


def progress_of(options: Options, run: str = "") -> Progress:
    """Return the display of a run, with TensorBoard if that is wanted."""
    shown, folder = progress_for(quiet=options["quiet"]), options.get("tensorboard")
    return shown if folder is None else TensorBoardProgress(shown, Path(folder) / run)


def _train_seeds(recipe: Recipe, options: Options, choices: Choices) -> None:
    out, first = Path(options["out"]), options["seed"]
    folders = seed_folders(out, first, options["seeds"])
    with exclusive(out):
        for folder in folders:
            check_folder(folder, options["force"] or options["resume"])
        prepare(recipe, options, choices)
        result = _all_seeds(recipe, options, folders)
    folder, remark = (out, "   (all together)") if recipe.together() else (out / "seed-N", "")
    print(f"{result.table()}\n\nmodels: {out}/seed-N\nnext:   trelliswork predict {folder} FILE --confidence{remark}")
    if result.interrupted:
        raise typer.Exit(ctrl_c.status())


def _all_seeds(recipe: Recipe, options: Options, folders: Sequence[Path]) -> SeedsResult:
    rows: list[SeedRow] = []
    for seed, folder in enumerate(folders, options["seed"]):
        with exclusive(folder):
            run = RunOptions(folder, seed, progress_of(options, folder.name), options["resume"], of_several=True)
            _, result = learn(recipe, run, options)
        rows.append(SeedRow(seed, result.best_score, None, result.best_epoch, result.seconds))
        if result.interrupted:
            break
    return SeedsResult(result.metric, rows, result.interrupted)


# Progress of training as a command shows it.

SECONDS = 5.0  # between lines about an epoch


def progress_for(*, quiet: bool = False) -> Progress:
    """Return a bar on a terminal, else a message for each epoch, and within it if --progress asks for that."""
    if quiet:
        return Progress()
    how = progress_shown()
    return BarProgress() if how is Shown.bar else LineProgress(within=SECONDS if how is Shown.lines else None)
