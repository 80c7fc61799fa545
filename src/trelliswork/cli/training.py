"""The one way in which every model is trained: read, learn, show the dev scores, save."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trelliswork import ctrl_c
from trelliswork.cli.compiling import announce_compiling, compile_in_background
from trelliswork.cli.config_file import CHOSEN, config_text
from trelliswork.cli.early import check_folder, reserved, seed_folders
from trelliswork.cli.gold_files import GOLD_FILES
from trelliswork.cli.inputs import given_function
from trelliswork.cli.messages import ProgressDisplay, progress_display, say, visible
from trelliswork.cli.train_data import config_first, read_data, read_plain_texts, read_texts
from trelliswork.data import Choices
from trelliswork.errors import ModelError
from trelliswork.lazy import named
from trelliswork.models.base import Model
from trelliswork.models.catalogue import entry_of, recipe_of
from trelliswork.models.language.config import PLAIN_TEXT
from trelliswork.models.recipe import Material, Options, Recipe, Result, RunOptions
from trelliswork.runtime.threads import use_threads
from trelliswork.training.exclusive import HISTORY, exclusive
from trelliswork.training.progress import BarProgress, LineProgress, Progress
from trelliswork.training.result import SeedRow, SeedsResult, read_history
from trelliswork.training.shares import n_processes
from trelliswork.training.tensorboard import TensorBoardProgress
from trelliswork.training.trials import Attempt

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options


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
        compile_in_background(f"train {options['model']}", quiet=options["quiet"])
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
    """Give a recipe the data to learn from, which are read as its model learns.

    Args:
        recipe: The recipe of the model.
        options: Options of the command.
        choices: Columns that the user has named.

    Returns:
        The training material.
    """

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
    """Learn, with the settings of the run in its folder from the beginning; the folder must be locked.

    Args:
        recipe: The recipe, with its data.
        run: Where and how to learn.
        options: Options of the command, which are stored.

    Returns:
        The model, and the record of its training.
    """
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
    how = progress_display()
    return (
        BarProgress()
        if how is ProgressDisplay.bar
        else LineProgress(within=SECONDS if how is ProgressDisplay.lines else None)
    )


# The trials of `trelliswork tune`: train with the settings of a trial, score on the dev sentences.


class Trials:
    """The data, read once, and the model's own settings; with several seeds, the first is kept and watched, and the
    mean of all counts."""

    def __init__(self, options: Options, choices: Choices) -> None:
        use_threads(options["threads"])
        self.options, self.metric = options, "score"
        recipe = make_recipe(options)
        self.steps, self.unpruned_steps = recipe.steps, recipe.unpruned_steps
        self.material = prepare(recipe, options, choices)
        self.own_settings = {**options, **recipe.settings()}

    def size(self) -> dict[str, int]:
        """Of the data."""
        parts = {"train": self.material.train, "dev": self.material.dev}
        return {f"{name}_tokens": sum(map(len, sentences)) for name, sentences in parts.items()}

    def run(self, attempt: Attempt, folder: Path) -> float:
        """Train as a trial says, keep the model in the folder; its dev score."""
        options = {**self.options, **attempt.settings}
        recipe = make_recipe(options)
        recipe.begin(self.material, _silent)
        if attempt.resumed:
            _report_again(attempt, folder)
        scores = []
        for i in range(options["seeds"]):
            own = folder if i == 0 else None
            on_score = attempt.report if i == 0 else None
            run = RunOptions(own, options["seed"] + i, self._progress(attempt), attempt.resumed and i == 0, on_score)
            with exclusive(own):
                _, result = learn(recipe, run, options)
            if result.interrupted:
                raise KeyboardInterrupt
            self.metric = result.metric
            scores.append(result.best_score or 0.0)
        return sum(scores) / len(scores)

    def _progress(self, attempt: Attempt) -> Progress:
        if progress_display() is not ProgressDisplay.bar or self.options["quiet"]:
            return Progress()
        return TrialBar(f"trial {attempt.number} ({attempt.number + 1} of {self.options['trials']})")


def _silent(text: str) -> None:
    """Nothing new is to be said about data that were described before."""


def _report_again(attempt: Attempt, folder: Path) -> None:
    """Report the scores of a trial that was stopped, as far as they were not reported."""
    with suppress(FileNotFoundError, ModelError):  # killed before the first line, or within one
        for record in read_history(folder / HISTORY):
            attempt.report(record.epoch, record.score)


class TrialBar(BarProgress):
    """A bar for each epoch of a trial, or over its iterations; no line stays."""

    def __init__(self, trial: str) -> None:
        super().__init__()
        self.trial = trial

    def title(self, text: str) -> str:
        return f"{self.trial}, {text}"

    def note(self, text: str, **fields: object) -> None:
        """Report nothing of a trial but its end."""
