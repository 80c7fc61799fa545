"""Results of training, of several seeds and of searches, also of runs that ended before.

>>> result = SeedsResult("f1", [SeedRow(0, 0.93, None, 5, 10.0), SeedRow(1, 0.95, None, 4, 9.0)])
>>> print(result.table())
seed   dev f1  best epoch  seconds
   0    93.00           5     10.0
   1    95.00           4      9.0
mean    94.00
 +/-     1.41

>>> rows = [TrialRow(0, "finished", 0.91, {"lr": 0.002}, 5, 10.0), TrialRow(1, "pruned", 0.4, {"lr": 0.3}, 3, 6.0)]
>>> print(SearchResult(rows).table("f1"))
rank  trial  dev f1  epochs  seconds     lr
   1      0   91.00       5     10.0  0.002
   -      1   40.00       3      6.0    0.3  pruned
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.data import Sentence
from trelliswork.data.folder_files import read_object, read_regular
from trelliswork.data.json_values import BadJSONError, Json, JsonObject, parse_json
from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.lazy import lazy_module
from trelliswork.training.config import TrainingConfig
from trelliswork.training.exclusive import HISTORY, CheckpointFolder
from trelliswork.training.progress import EpochRecord, score_text

if TYPE_CHECKING:
    from torch import nn


@dataclass
class TrainingResult(Rich):
    """`history` per epoch, the best epoch and its score, and whether Ctrl-C ended the run."""

    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    best_score: float | None = None
    interrupted: bool = False
    note: str = ""

    def _shown(self) -> Sequence[Piece]:
        """Return a table for notebooks, with a row for each epoch."""
        rows = [(each.epoch, each.loss, each.score, each.seconds) for each in self.history]
        return [self.summary, Table(rows, ("epoch", "loss", self.metric, "seconds"))]

    @property
    def seconds(self) -> float:
        """Wall-clock time of all epochs."""
        return sum(record.seconds for record in self.history)

    @property
    def metric(self) -> str:
        """Name of the score."""
        return self.history[-1].metric if self.history else ""

    @property
    def summary(self) -> str:
        """In a few words."""
        return f"best epoch {self.best_epoch} of {len(self.history)}, {self.seconds:.1f} s"


# How training with several seeds went: how much of a score is luck.

statistics = lazy_module("statistics")


@dataclass(frozen=True)
class SeedRow:
    """The scores of one seed; `test` is None without test data, `dev` without dev data."""

    seed: int
    dev: float | None
    test: float | None
    best_epoch: int
    seconds: float


@dataclass(frozen=True)
class SeedsResult:
    """One row a seed; the deviation is that of a sample, 0 for a single seed."""

    metric: str
    rows: list[SeedRow]
    interrupted: bool = False

    def scores(self, part: str) -> list[float]:
        """Return the scores of all seeds on "dev" or "test", where there are any."""
        return [getattr(row, part) for row in self.rows if getattr(row, part) is not None]

    def mean(self, part: str) -> float:
        """Return the mean of the scores on "dev" or "test"."""
        return statistics.fmean(self.scores(part))

    def deviation(self, part: str) -> float:
        """Return the standard deviation of the scores on "dev" or "test"."""
        return statistics.stdev(self.scores(part)) if len(self.scores(part)) > 1 else 0.0

    @property
    def parts(self) -> list[str]:
        """ "dev" and "test", as far as they were scored."""
        return [part for part in ("dev", "test") if self.scores(part)]

    def table(self) -> str:
        """Return a table with a line for each seed, the mean and the deviation, in percent."""
        heads = "".join(f"{part + ' ' + self.metric:>9}" for part in self.parts)
        lines = [f"seed{heads}  best epoch  seconds"]
        for row in self.rows:
            cells = "".join(f"{100 * getattr(row, part):>9.2f}" for part in self.parts)
            lines.append(f"{row.seed:>4}{cells}{row.best_epoch:>12}{row.seconds:>9.1f}")
        for name, value in (("mean", self.mean), ("+/-", self.deviation)):
            lines.append(f"{name:>4}" + "".join(f"{100 * value(part):>9.2f}" for part in self.parts))
        return "\n".join(lines)


# How a search went.


@dataclass(frozen=True)
class TrialRow:
    """One trial; `state` is finished, pruned, failed or stopped, and `score` the best so far of one not finished."""

    number: int
    state: str
    score: float | None
    settings: Mapping[str, Json]
    steps: int = 0
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True)
class SearchResult:
    """All trials in their order, and whether Ctrl-C ended the search."""

    rows: list[TrialRow] = field(default_factory=list)
    interrupted: bool = False

    def row(self, number: int) -> TrialRow:
        """Return the trial of that number."""
        return next(row for row in self.rows if row.number == number)

    @property
    def ranked(self) -> list[TrialRow]:
        """Finished trials, the best first."""
        finished = [row for row in self.rows if row.state == "finished"]
        return sorted(finished, key=lambda row: (math.inf if row.score is None else -row.score, row.number))

    @property
    def best(self) -> TrialRow | None:
        """The finished trial with the highest score, the earliest of several."""
        return next(iter(self.ranked), None)

    def table(self, metric: str, steps: str = "epochs") -> str:
        """Return a table of the finished trials by rank, then the others."""
        others = [row for row in self.rows if row.state != "finished"]
        names = list(dict.fromkeys(name for row in self.rows for name in row.settings))
        title = score_text(metric, 0.0).rpartition(" ")[0]
        table = [["rank", "trial", f"dev {title}", steps, "seconds", *names, ""]]
        for rank, row in enumerate([*self.ranked, *others], start=1):
            score = "" if row.score is None else score_text(metric, row.score).rpartition(" ")[2]
            place, note = (str(rank), "") if row.state == "finished" else ("-", row.state)
            values = [shown(row.settings.get(name)) for name in names]
            table.append([place, str(row.number), score, str(row.steps), f"{row.seconds:.1f}", *values, note])
        return _aligned(table)


def shown(value: object) -> str:
    """Return a setting in a few characters.

    >>> shown(0.00123456), shown("lstm"), shown((2, 3)), shown(True)
    ('0.00123', 'lstm', '2,3', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def _aligned(table: list[list[str]]) -> str:
    """Return columns to the right, the last one, a remark, to the left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for *cells, remark in table:
        line = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[:-1], strict=True))
        lines.append(f"{line}  {remark}".rstrip())
    return "\n".join(lines)


# Runs that were trained to their end, as their folder tells.

NO_MATTER = ("checkpoint_every",)  # settings that may change between one start and the next


def fingerprint(
    model: nn.Module, train: Sequence[Sentence], dev: Sequence[Sentence] | None, config: TrainingConfig
) -> JsonObject:
    """Return settings, model and data as plain values.

    Args:
        model: The model before training.
        train: Sentences to train on.
        dev: Sentences to choose the best epoch by.
        config: Settings of training.

    Returns:
        A JSON object that is the same for the same run.
    """
    settings = getattr(getattr(model, "config", None), "to_dict", dict)
    description = {
        "settings": {name: value for name, value in config.to_dict().items() if name not in NO_MATTER},
        "model": {"kind": type(model).__name__, **settings()},
        "training data": _of_data(train),
        "dev data": _of_data(dev or ()),
        "shapes": {name: list(tensor.shape) for name, tensor in model.state_dict().items()},
    }
    return json.loads(json.dumps(description))


def _of_data(sentences: Sequence[Sentence]) -> JsonObject:
    digest = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        answers = (each for each in (sentence.heads, sentence.brackets, sentence.target) if each is not None)
        digest.update(json.dumps([sentence.words, sentence.tags, sentence.features, *answers]).encode())
    return {"sentences": len(sentences), "tokens": sum(map(len, sentences)), "content": digest.hexdigest()}


def refuse_differences(
    then: Mapping[str, Json], now: Mapping[str, Json], place: str, kind: str = "interrupted"
) -> None:
    """Raise an error that says what differs between the run that left something there and this one.

    Args:
        then: The fingerprint that was stored.
        now: The fingerprint of this run.
        place: The folder, for the message.
        kind: Which run it was, interrupted or finished.
    """
    differences = [text for part in now for text in _differences(part, then.get(part, {}), now[part])]
    if differences:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise TrellisworkError(
            f"{place}: expected the settings and data of the {kind} run; {'; '.join(differences[:3])}{more}; "
            "give the same again, or train again without --resume"
        )


def _differences(part: str, then: Mapping[str, Json], now: Mapping[str, Json]) -> list[str]:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if part.endswith("data"):
        sizes = [f"{each.get('sentences', 0):,} sentences of {each.get('tokens', 0):,} tokens" for each in (then, now)]
        same_size = "content" if sizes[0] == sizes[1] else f"it had {sizes[0]}, and has {sizes[1]}"
        return [f"the {part} differs ({same_size})"] if names else []
    where = "the shape of " if part == "shapes" else ""
    return [f"{where}{name} was {then.get(name)!r} and is {now.get(name)!r}" for name in names]


METRICS = "metrics.json"
LONGER = ("epochs", "patience")  # settings that a finished run may go on with


def finished_run(folder: Path, model: object, config: TrainingConfig) -> TrainingResult | None:
    """Return the result of the run in a folder, if its history ends with the last epoch or without patience.

    Args:
        folder: The folder of the run.
        model: The model as it was made for this run.
        config: Settings of this run.

    Returns:
        The result, or None if the run has not ended.
    """
    result = earlier_run(folder, model, config)
    if result is None:
        return None
    n_epochs = len(result.history)
    return result if n_epochs >= config.epochs or n_epochs - result.best_epoch >= config.patience else None


def earlier_run(folder: Path, model: object, config: TrainingConfig) -> TrainingResult | None:
    """Return the result of a run that has left a model, a history and no checkpoint in a folder.

    That it was made with other settings is an error; more epochs or patience are what it may go on with, and the
    settings that those of the model list as `LATER`.

    Args:
        folder: The folder of the run.
        model: The model as it was made for this run.
        config: Settings of this run.

    Returns:
        The result, or None if there is no such run.
    """
    if CheckpointFolder(folder).folder.exists() or not (folder / HISTORY).is_file():
        return None
    stored, metrics = (_object_in(folder / name) for name in ("config.json", METRICS))
    if not stored or not metrics:
        return None
    training = _section(metrics, "training", folder)
    history, best = read_history(folder / HISTORY), training.get("best_epoch", 0)
    if not isinstance(best, int):
        raise ModelError(f"{folder / METRICS}: expected a whole number under 'best_epoch', got {best!r}; train again")
    settings = getattr(model, "config", None)
    network: JsonObject = getattr(settings, "to_dict", dict)()
    later: Sequence[str] = getattr(settings, "LATER", ())
    then = {
        "settings": _plain(_section(training, "settings", folder)),
        "model": _plain(_section(stored, "settings", folder), later) if network else {},
    }
    now = {"settings": _plain(config.to_dict()), "model": _plain(json.loads(json.dumps(network)), later)}
    refuse_differences(then, now, str(folder), "finished")
    score = next((record.score for record in history if record.epoch == best), None)
    return TrainingResult(history, best, score)


def _section(holder: Mapping[str, Json], name: str, folder: Path) -> Mapping[str, Json]:
    section = holder.get(name, {})
    if not isinstance(section, dict):
        raise ModelError(f"{folder}: expected an object under {name!r}, got {type(section).__name__}; train again")
    return section


def _plain(settings: Mapping[str, Json], may_differ: Sequence[str] = (*NO_MATTER, *LONGER)) -> JsonObject:
    return {name: value for name, value in settings.items() if name not in may_differ}


def read_history(path: Path) -> list[EpochRecord]:
    """Return the epochs in a file."""
    try:
        return [EpochRecord(**parse_json(line)) for line in read_regular(path).decode("utf-8").splitlines()]
    except (UnicodeDecodeError, BadJSONError, TypeError) as error:
        raise ModelError(f"{path}: expected a line of JSON for each epoch, got something else; train again") from error


def _object_in(path: Path) -> JsonObject:
    """Return the object in a file of JSON; an empty one if there is no file."""
    return read_object(path) if path.exists() else {}
