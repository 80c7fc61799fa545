"""A whole job: shards that are not done yet, progress with the time left, and what to tell in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer

from trelliswork.cli.bulk.shard_work import Outcome
from trelliswork.cli.bulk.shards import QUARANTINE, Shard, clear_parts
from trelliswork.cli.inputs import say
from trelliswork.models.base import count
from trelliswork.training.exclusive import exclusive

FAILED = 1
Engine = Callable[[Sequence[Shard]], Iterator[tuple[Shard, Outcome]]]


def annotate_all(shards: Sequence[Shard], target: Path, engine: Engine) -> None:
    """Answer every file that is not answered yet; the exit status is 1 if some could not be."""
    with exclusive(target):
        clear_parts(shards)
        todo = [shard for shard in shards if not shard.is_done]
        if len(todo) < len(shards):
            say(f"{count(len(shards) - len(todo), 'file')} of {len(shards)} done before")
        told = _told(engine(todo), todo)
    _summarise(told, target, len(todo))


def _told(outcomes: Iterator[tuple[Shard, Outcome]], todo: Sequence[Shard]) -> list[tuple[Shard, Outcome]]:
    """All outcomes, with a line for each as it comes."""
    began, n_bytes, total = time.monotonic(), 0, sum(shard.size for shard in todo)
    told: list[tuple[Shard, Outcome]] = []
    for shard, outcome in outcomes:
        told.append((shard, outcome))
        n_bytes += shard.size
        seconds = time.monotonic() - began
        left = seconds * (total - n_bytes) / max(n_bytes, 1)
        what = outcome.problem or f"{count(outcome.n_sentences, 'sentence')}{_bad(outcome)}"
        say(f"{len(told)}/{len(todo)} {shard.target.name}: {what}; {_duration(left)} left")
    return told


def _bad(outcome: Outcome) -> str:
    return f", {count(outcome.n_bad, 'bad record')} set aside" if outcome.n_bad else ""


def _duration(seconds: float) -> str:
    """
    >>> _duration(42), _duration(150), _duration(7300)
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
        print(f"{count(n_bad, 'bad record')} set aside, with the reasons, in {target / QUARANTINE}")
    if failed:
        print(f"error: {count(len(failed), 'file')} of {n} could not be annotated:", file=sys.stderr)
        for problem in failed:
            print(f"  {problem}", file=sys.stderr)
        raise typer.Exit(FAILED)
