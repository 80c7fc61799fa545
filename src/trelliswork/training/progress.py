"""Telling how training goes: messages to the log, one for each epoch, and a bar on a terminal that asks for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TextIO

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.lazy import lazy_module
from trelliswork.logs import tell

rich_console, rich_progress = lazy_module("rich.console"), lazy_module("rich.progress")


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: mean loss per token, the dev score (None without dev data), speed and time.

    `metric` says what the score is: "f1" of spans, or "accuracy" of plain tags. `seconds` covers the epoch with its
    evaluation, `tokens_per_second` training alone.
    """

    epoch: int
    loss: float
    score: float | None
    metric: str
    tokens_per_second: float
    seconds: float

    def line(self) -> str:
        """Describe the epoch in one line.

        >>> EpochRecord(3, 0.1372, 0.9345, "f1", 19000.0, 10.6).line()
        'epoch 3: loss 0.1372, dev f1 93.45, 19,000 tokens/s, 10.6 s'
        """
        score = "" if self.score is None else f" dev {score_text(self.metric, self.score)},"
        speed = f"{self.tokens_per_second:,.0f} tokens/s, {self.seconds:.1f} s"
        return f"epoch {self.epoch}: loss {self.loss:.4f},{score} {speed}"

    def to_dict(self) -> JsonObject:
        """Return the record as it is written to history.jsonl."""
        return asdict(self)


def score_text(metric: str, score: float) -> str:
    """Return a score with its name: shares are shown in per cent, a log probability for each unit as perplexity.

    >>> score_text("f1", 0.9345), score_text("log2 p per unit", -7.0)
    ('f1 93.45', 'perplexity 128.00')
    """
    return f"perplexity {2**-score:.2f}" if metric.startswith("log2 p") else f"{metric} {100 * score:.2f}"


class Progress:
    """Says nothing; the base of those that do. Used as a context manager around a run."""

    shows = False  # whether anybody reads it

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the screen tidy."""

    def start_epoch(self, epoch: int, n_epochs: int, n_tokens: int) -> None:
        """An epoch of `n_tokens` begins.

        Args:
            epoch: The number of the epoch, from 1.
            n_epochs: The number of epochs.
            n_tokens: The number of tokens of an epoch.
        """

    def batch(self, n_tokens: int, loss: float) -> None:
        """A batch of `n_tokens` is done; `loss` is the mean per token so far in this epoch."""

    def epoch(self, record: EpochRecord) -> None:
        """An epoch is done and evaluated."""

    def iteration(
        self, number: int, text: str, *, most: int | None = None, stays: bool = False, **fields: Json
    ) -> None:
        """An iteration of a learner without epochs is done, of `most` at most; what `stays` is worth keeping.

        `fields` are the numbers that the text tells, for the log.

        Args:
            number: The number of the iteration, from 1.
            text: What to say of it.
            most: The largest number of iterations.
            stays: Whether the line is worth keeping.
            fields: The fields of the event.
        """

    def note(self, text: str, **fields: Json) -> None:
        """Something happened that the user should know."""


class LineProgress(Progress):
    """One line per epoch or iteration: a message to the logger `trelliswork`, or a plain line to a stream.

    With `within`, also how far an epoch is, at most once in that many seconds.
    """

    shows = True

    def __init__(self, stream: TextIO | None = None, *, within: float | None = None):
        self.stream, self.within, self._last = stream, within, 0

    def start_epoch(self, epoch: int, n_epochs: int, n_tokens: int) -> None:
        self._epoch, self._n_epochs, self._n_tokens = epoch, n_epochs, n_tokens
        self._n_done, self._began = 0, time.monotonic()
        self._told = self._began

    def batch(self, n_tokens: int, loss: float) -> None:
        self._n_done += n_tokens
        now = time.monotonic()
        if self.within is None or now - self._told < self.within or not self._n_done:
            return
        self._told, share = now, self._n_done / max(self._n_tokens, 1)
        left = (now - self._began) * max(1 - share, 0.0) / share
        text = f"epoch {self._epoch}/{self._n_epochs}: {100 * share:.0f}%, loss {loss:.4f}, {left:.0f} s left"
        self.note(text, event="progress", epoch=self._epoch, share=share, loss=loss, seconds_left=left)

    def epoch(self, record: EpochRecord) -> None:
        self.note(record.line(), event="epoch", **record.to_dict())

    def iteration(
        self, number: int, text: str, *, most: int | None = None, stays: bool = False, **fields: Json
    ) -> None:
        if number != self._last:  # the last one may come again, with the weights that are kept
            self.note(text, event="iteration", iteration=number, **fields)
        self._last = number

    def note(self, text: str, **fields: Json) -> None:
        if self.stream is None:
            tell(text, **fields)
        else:
            print(text, file=self.stream, flush=True)


class BarProgress(Progress):
    """A bar that fills in each epoch, with loss, last dev score and speed, or over iterations; what is done and scored
    has a line that stays."""

    shows = True

    def __init__(self) -> None:
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.TextColumn("{task.fields[text]}"),
            rich_progress.TimeRemainingColumn(),
            console=rich_console.Console(stderr=True),
            transient=True,
        )
        self._dev = ""
        self._task = self._bar.add_task("training", total=None, text="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def start_epoch(self, epoch: int, n_epochs: int, n_tokens: int) -> None:
        name = self.title(f"epoch {epoch}/{n_epochs}")
        self._bar.reset(self._task, total=n_tokens, description=name, text=self._text(float("nan"), 0.0))

    def title(self, text: str) -> str:
        """Text before the bar."""
        return text

    def _text(self, loss: float, rate: float) -> str:
        return f"loss {loss:.4f}{self._dev}  {rate:,.0f} tokens/s"

    def batch(self, n_tokens: int, loss: float) -> None:
        task = self._bar.tasks[0]
        rate = (task.completed + n_tokens) / (task.elapsed or 1e-9)
        self._bar.update(self._task, advance=n_tokens, text=self._text(loss, rate))

    def epoch(self, record: EpochRecord) -> None:
        if record.score is not None:
            self._dev = f", dev {score_text(record.metric, record.score)}"
        self.note(record.line(), event="epoch", **record.to_dict())

    def iteration(
        self, number: int, text: str, *, most: int | None = None, stays: bool = False, **fields: Json
    ) -> None:
        self._bar.update(self._task, completed=number, total=most, description=self.title("learning"), text=text)
        if stays:
            self.note(text, event="iteration", iteration=number, **fields)

    def note(self, text: str, **fields: Json) -> None:
        self._bar.console.print(text, highlight=False, markup=False)
        tell(text, shown=True, **fields)


class Relay(Progress):
    """Hands everything on to `shown`; the base of those that do something in addition."""

    def __init__(self, shown: Progress) -> None:
        self.shown, self.shows = shown, shown.shows

    def __enter__(self) -> Progress:
        self.shown.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shown.__exit__(*exception)

    def start_epoch(self, epoch: int, n_epochs: int, n_tokens: int) -> None:
        self.shown.start_epoch(epoch, n_epochs, n_tokens)

    def batch(self, n_tokens: int, loss: float) -> None:
        self.shown.batch(n_tokens, loss)

    def epoch(self, record: EpochRecord) -> None:
        self.shown.epoch(record)

    def iteration(
        self, number: int, text: str, *, most: int | None = None, stays: bool = False, **fields: Json
    ) -> None:
        self.shown.iteration(number, text, most=most, stays=stays, **fields)

    def note(self, text: str, **fields: Json) -> None:
        self.shown.note(text, **fields)


class OnEpoch(Relay):
    """Calls `on_epoch` with the record of each epoch, after it is shown."""

    def __init__(self, shown: Progress, on_epoch: Callable[[EpochRecord], object]) -> None:
        super().__init__(shown)
        self._on_epoch = on_epoch

    def epoch(self, record: EpochRecord) -> None:
        self.shown.epoch(record)
        self._on_epoch(record)


def make_progress(
    show: bool = True, stream: TextIO | None = None, *, on_epoch: Callable[[EpochRecord], object] | None = None
) -> Progress:
    """Return a bar when standard error is a terminal, messages to the log when it is not, silence when `show` is false.

    Args:
        show: Whether anything is shown.
        stream: Where plain lines go instead of to the log; None for the log, or a bar on a terminal.
        on_epoch: Called with the record of each epoch; raising `KeyboardInterrupt` there ends the run like Ctrl-C.

    Returns:
        What a training run reports to.
    """
    shown = Progress() if not show else LineProgress(stream) if stream or not sys.stderr.isatty() else BarProgress()
    return shown if on_epoch is None else OnEpoch(shown, on_epoch)
