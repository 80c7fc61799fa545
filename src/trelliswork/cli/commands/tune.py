"""`trelliswork tune`: search for the settings of a model that do best on the dev sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trelliswork import ctrl_c
from trelliswork.cli.commands.train import (
    ConfigFile,
    DevFile,
    ModelName,
    TrainFile,
    choices_in,
    given_in,
    resolve,
    settings_file,
)
from trelliswork.cli.config_file import CHOSEN, read_config
from trelliswork.cli.early import AUTO, check_files
from trelliswork.cli.messages import say
from trelliswork.cli.model_help import OF_MODELS, ModelCommand
from trelliswork.cli.options import COLUMNS, SEEDS, Quiet, Threads, with_options
from trelliswork.cli.tune_folder import default_space, publish_best, read_space, reserved_search
from trelliswork.data.settings import Space
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.training.result import SearchResult, TrialRow, shown
from trelliswork.training.trials import SearchConfig, require_optuna, search

if TYPE_CHECKING:
    from trelliswork.cli.training import Trials
    from trelliswork.models.recipe import Options

SPACE = "space"
TRIALS = "trelliswork.cli.training:Trials"  # imports numba
NO_MATTER = (CHOSEN, "out", "resume", "force", "quiet", "trials", "threads", "config", "checkpoint_every")


@with_options(COLUMNS, SEEDS, OF_MODELS)
def tune(
    ctx: typer.Context,
    train: TrainFile = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Directory for the search.", show_default=False)
    ] = None,
    dev: DevFile = None,
    model: ModelName = None,
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials, including those before --resume.")] = 20,
    config: ConfigFile = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a search that already exists in DIR.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the search in DIR.")] = False,
    threads: Threads = 1,
    quiet: Quiet = False,
    **settings: object,
) -> None:
    """Search for the settings with the best validation score.

    Each trial trains the model with different settings: the first with the
    defaults, the next ones at random, later ones near the best so far
    (Optuna's TPE). A trial below the median of the others at the same epoch
    is stopped. Settings given as options stay fixed. The search space can be
    set in a section \\[space] of the TOML file:

    \b
      \\[space]
      lr = {low = 1e-4, high = 1e-2, log = true}
      hidden = {low = 50, high = 300, step = 50}
      encoder = ["lstm", "gru"]

    DIR/best.toml has the best settings and DIR/best the best model; the same
    command with --resume continues. With --seeds, the score of a trial is the
    mean over the seeds. Extra: pip install "trelliswork\\[tune]".
    """
    options = resolve(ctx, (SPACE,))
    check_files(options)
    require_optuna()
    folder = Path(options["out"])
    with reserved_search(folder, force=force, resume=resume):
        space = space_of(ctx, options)
        runner = named(TRIALS)({"tokeniser": AUTO, **options, "resume": False}, choices_in(options))
        _announce(space, quiet)
        result = _search(folder, space, runner, options)
    _show(folder, result, runner)
    if result.interrupted:
        raise typer.Exit(ctrl_c.status())


class TuneCommand(ModelCommand):
    """`tune` with its help."""

    n_first = 2
    examples = (
        "trelliswork tune train.conll --dev dev.conll --out search",
        "trelliswork tune train.conll --dev dev.conll --model bilstm-crf --trials 20 --out search",
        "trelliswork tune train.conll --dev dev.conll --model bilstm-crf --trials 40 --out search --resume",
        "trelliswork tune train.conll --dev dev.conll --config space.toml --out search",
        "trelliswork train search/best.toml",
    )


tune.command_class = TuneCommand  # type: ignore[attr-defined]


def _search(folder: Path, space: Space, trials: Trials, options: Options) -> SearchResult:
    first = {name: value for name, value in trials.own_settings.items() if name in space}
    result = search(
        lambda attempt: trials.run(attempt, folder / "trials" / str(attempt.number)),
        space,
        SearchConfig(options["trials"], options["seed"], first, trials.unpruned_steps),
        out=folder,
        resume=options["resume"],
        purpose={**_purpose(options, space), **trials.size()},
        on_trial=lambda so_far, row: _end_of_trial(folder, so_far, row, trials, options["quiet"]),
    )
    publish_best(folder, result)
    return result


def space_of(ctx: typer.Context, options: Options) -> Space:
    """Return the space of choices: as in the file, else by the model, without the settings that are given."""
    given, file = set(given_in(ctx)), settings_file(ctx)
    space = None if file is None else read_space(file, options["model"])
    if space is None:
        space = default_space(options)
        given |= set() if file is None else set(read_config(file, options["model"], (SPACE,)))
    left = {name: choice for name, choice in space.items() if name not in given}
    if not space:
        problem = f"expected settings to choose, got none: {options['model']} has no usual ones"
        raise TrellisworkError(f"{problem}; name some in a section [space] of the file of settings")
    if not left:
        raise TrellisworkError(
            f"expected settings to choose, got all of {', '.join(space)} as given; leave some out, "
            "or name others in a section [space] of the file of settings"
        )
    return left


def _purpose(options: Options, space: Space) -> dict[str, object]:
    left_out = {*NO_MATTER, *space}
    return {name: value for name, value in options.items() if value is not None and name not in left_out}


def _announce(space: Space, quiet: bool) -> None:
    say("searching among", quiet=quiet)
    for name, choice in space.items():
        say(f"  {name:<16}{choice}", quiet=quiet)


def _end_of_trial(folder: Path, so_far: SearchResult, row: TrialRow, trials: Trials, quiet: bool) -> None:
    publish_best(folder, so_far)
    settings = ", ".join(f"{name} {shown(value)}" for name, value in row.settings.items())
    score = "" if row.score is None else f"dev {trials.metric} {100 * row.score:.2f}, "
    ended = {"pruned": f"ended after {row.steps} {trials.steps}, ", "failed": f"failed ({row.problem}), "}
    best = " (the best so far)" if so_far.best is row else ""
    text = f"trial {row.number}: {ended.get(row.state, '')}{score}{row.seconds:.1f} s{best}; {settings}"
    say(text, quiet=quiet, event="trial", trial=row.number, state=row.state, score=row.score, seconds=row.seconds)


def _show(folder: Path, result: SearchResult, trials: Trials) -> None:
    if result.rows:
        print(result.table(trials.metric, trials.steps))
    if result.best is None:
        print("\nno trial is finished yet; run the same command with --resume to continue")
        return
    print(f"\nbest:  trial {result.best.number}, {folder / 'best.toml'}\nmodel: {folder / 'best'}")
    print(f"next:  trelliswork evaluate {folder / 'best'} FILE")
