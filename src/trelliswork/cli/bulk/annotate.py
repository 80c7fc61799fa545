"""A whole job: shards that are not done yet, progress with the time left, and what to tell in the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import typer

from trelliswork.cli.bulk.shard_work import Outcome
from trelliswork.cli.bulk.shards import Shard, clear_parts
from trelliswork.cli.messages import Shown, progress_shown, say
from trelliswork.lazy import lazy_module
from trelliswork.logs import tell
from trelliswork.models.base import count
from trelliswork.training.exclusive import exclusive

FAILED = 1
rich_console, rich_progress = lazy_module("rich.console"), lazy_module("rich.progress")
Engine = Callable[[Sequence[Shard]], Generator[tuple[Shard, Outcome], None, None]]


def annotate_all(shards: Sequence[Shard], target: Path, engine: Engine) -> None:
    """Answer every file that is not answered yet; the exit status is 1 if some could not be."""
    with exclusive(target, "predicting"):
        clear_parts(shards)
        todo = [shard for shard in shards if not shard.is_done]
        if len(todo) < len(shards):
            say(f"{count(len(shards) - len(todo), 'file')} of {len(shards)} done before")
        try:
            with closing(engine(todo)) as outcomes:
                told = _told(outcomes, todo)
        except KeyboardInterrupt:
            n_done = sum(shard.is_done for shard in shards)
            say(f"{n_done} of {count(len(shards), 'file')} done; run the same command again to continue")
            raise
        finally:
            clear_parts(todo)  # of processes that have ended on the way
    _summarise(told, target, len(todo))


def _told(outcomes: Iterator[tuple[Shard, Outcome]], todo: Sequence[Shard]) -> list[tuple[Shard, Outcome]]:
    """All outcomes, with a message for each as it comes, and a bar on a terminal."""
    began, n_bytes, total = time.monotonic(), 0, sum(shard.size for shard in todo)
    told: list[tuple[Shard, Outcome]] = []
    with _Bar(total) if progress_shown() is Shown.bar else nullcontext() as bar:
        for shard, outcome in outcomes:
            told.append((shard, outcome))
            n_bytes += shard.size
            seconds = time.monotonic() - began
            left = seconds * (total - n_bytes) / max(n_bytes, 1)
            _tell_one(shard, outcome, f"{len(told)}/{len(todo)}", left)
            if bar is not None:
                bar.show(n_bytes, f"{len(told)}/{len(todo)} files, {_duration(left)} left")
    return told


def _tell_one(shard: Shard, outcome: Outcome, place: str, left: float) -> None:
    what = outcome.problem or f"{count(outcome.n_sentences, 'sentence')}{_bad(outcome)}"
    say(
        f"{place} {shard.target.name}: {what}; {_duration(left)} left",
        event="file", file=str(shard.source), seconds_left=left, **outcome._asdict(),
    )  # fmt: skip


class _Bar:
    """How much of all files is done; messages appear above it."""

    def __init__(self, n_bytes: int) -> None:
        parts = rich_progress.BarColumn(), rich_progress.TaskProgressColumn()
        described = rich_progress.TextColumn("{task.description}")
        console = rich_console.Console(stderr=True)
        self._bar = rich_progress.Progress(*parts, described, console=console, transient=True)
        self._task = self._bar.add_task("", total=n_bytes)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def show(self, n_bytes: int, text: str) -> None:
        self._bar.update(self._task, completed=n_bytes, description=text)


def _bad(outcome: Outcome) -> str:
    return f", {count(outcome.n_bad, 'bad record')} set aside" if outcome.n_bad else ""


def _duration(seconds: float) -> str:
    """
    >>> _duration(42), _duration(170), _duration(7300)
    ('42 s', '3 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _summarise(told: Sequence[tuple[Shard, Outcome]], target: Path, n: int) -> None:
    failed = [outcome.problem for _, outcome in told if outcome.problem]
    n_sentences, n_bad = sum(each.n_sentences for _, each in told), sum(each.n_bad for _, each in told)
    print(f"{count(len(told) - len(failed), 'file')} written to {target}: {count(n_sentences, 'sentence')}")
    if n_bad:
        quarantine = told[0][0].quarantine.parent
        print(f"{count(n_bad, 'bad record')} set aside, with the reasons, in {quarantine}")
    if failed:
        tell(f"{count(len(failed), 'file')} of {n} could not be annotated:", level=logging.ERROR)
        for problem in failed:
            tell(problem, level=logging.ERROR)
        raise typer.Exit(FAILED)
