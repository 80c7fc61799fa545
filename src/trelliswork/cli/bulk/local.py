"""Shards answered by several processes of this machine, which share the memory of one model.

The processes are forked after the model is loaded, so that its weights are in memory once. One that dies, killed or out
of memory, is replaced, and its shard is tried again; a shard on which processes die again and again is given up. None
outlives this process, however that ends.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import typer

from trelliswork.cli.answering import Job
from trelliswork.cli.bulk.shards import TRIES, Outcome, Shard, annotate_shard, clear_parts
from trelliswork.cli.messages import ProgressDisplay, progress_display, say
from trelliswork.lazy import lazy_module
from trelliswork.logs import count, tell
from trelliswork.models.base import Model
from trelliswork.runtime.parents import end_with_parent
from trelliswork.runtime.threads import use_threads
from trelliswork.training.exclusive import exclusive

PATIENCE = 1.0  # seconds for a process to end
SIGNALS = (signal.SIGINT, signal.SIGTERM)
CONTEXT: Any = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")


class _Worker:
    """A process, and the shard that it has."""

    def __init__(self, others: Sequence[_Worker], model: Model, job: Job) -> None:
        self.pipe, end = CONTEXT.Pipe()
        is_forked = CONTEXT.get_start_method() == "fork"
        inherited = [self.pipe, *(other.pipe for other in others)] if is_forked else []
        arguments = (end, inherited, os.getpid(), model, job)
        self.process = CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        with _signals_later():  # until it handles them in its own way
            self.process.start()
        end.close()
        self.shard: Shard | None = None

    def give(self, shard: Shard) -> None:
        self.shard = shard
        with suppress(OSError):  # a dead process is noticed when its result is read
            self.pipe.send(shard)

    def result(self) -> Outcome | None:
        """Return what became of its shard; None if the process is dead."""
        try:
            outcome: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return outcome

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()

    def join(self) -> None:
        """Wait for the end of a process that was stopped, not for long."""
        self.process.join(PATIENCE)
        self.process.kill()
        self.process.join()


@contextmanager
def _signals_later() -> Iterator[None]:
    """Inside, signals wait; a process that is forked here lets them in when it is ready."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_signals() -> None:
    """Ignore Ctrl-C, which the parent answers by ending this process; end quietly when it does.

    An exception would be printed and lost where a destructor happens to run. The parent removes what was half-written.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _serve(pipe: Connection, inherited: Sequence[Connection], parent: int, model: Model, job: Job) -> None:
    """Answer shards until there are no more. `inherited` are the ends of pipes that belong to the parent."""
    end_with_parent(parent)
    _take_signals()
    for each in inherited:
        each.close()
    use_threads(1)
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            pipe.send(annotate_shard(model, pipe.recv(), job))


def annotate_locally(
    shards: Sequence[Shard], model: Model, job: Job, n_workers: int
) -> Generator[tuple[Shard, Outcome], None, None]:
    """Yield each shard with what became of it, as they are finished.

    Args:
        shards: Files that are not answered yet.
        model: The model, loaded once for all processes.
        job: What is asked for.
        n_workers: Number of processes.

    Returns:
        An iterator over shards with their outcomes.
    """
    if n_workers == 1:
        yield from ((shard, annotate_shard(model, shard, job)) for shard in shards)
        return
    waiting, tries = deque(shards), Counter[Shard]()
    workers: list[_Worker] = []
    try:
        for _ in range(min(n_workers, len(shards))):
            workers.append(_Worker(workers, model, job))
            workers[-1].give(waiting.popleft())
        while busy := [worker for worker in workers if worker.shard is not None]:
            for pipe in wait([worker.pipe for worker in busy]):
                at = next(i for i, worker in enumerate(workers) if worker.pipe is pipe)
                shard, outcome = workers[at].shard, workers[at].result()
                assert shard is not None
                if outcome is None:
                    outcome = _after_death(workers[at], shard, tries, waiting)
                    workers[at] = _Worker(workers, model, job)
                workers[at].shard = None
                if waiting:
                    workers[at].give(waiting.popleft())
                if outcome is not None:
                    yield shard, outcome
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def _after_death(worker: _Worker, shard: Shard, tries: Counter[Shard], waiting: deque[Shard]) -> Outcome | None:
    """Try the shard of a dead process again, or give it up."""
    worker.stop()
    worker.join()
    clear_parts([shard])
    tries[shard] += 1
    if tries[shard] < TRIES:
        waiting.append(shard)
        return None
    code = worker.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
    return Outcome(problem=f"{shard.source}: {TRIES} processes died on it, the last with {how}; is memory short?")


# A whole job: shards that are not done yet, progress with the time left, and what to tell in the end.

FAILED = 1
rich_console, rich_progress = lazy_module("rich.console"), lazy_module("rich.progress")
Engine = Callable[[Sequence[Shard]], Generator[tuple[Shard, Outcome], None, None]]


def annotate_all(shards: Sequence[Shard], target: Path, engine: Engine) -> None:
    """Answer every file that is not answered yet; the exit status is 1 if some could not be.

    Args:
        shards: Files of the job.
        target: Folder to write to.
        engine: What divides the work: this machine or a cluster.
    """
    with exclusive(target, "predicting"):
        clear_parts(shards)
        todo = [shard for shard in shards if not shard.is_done]
        if len(todo) < len(shards):
            say(f"{count(len(shards) - len(todo), 'file')} of {len(shards)} done before")
        try:
            with closing(engine(todo)) as outcomes:
                reports = _report_outcomes(outcomes, todo)
        except KeyboardInterrupt:
            n_done = sum(shard.is_done for shard in shards)
            say(f"{n_done} of {count(len(shards), 'file')} done; run the same command again to continue")
            raise
        finally:
            clear_parts(todo)  # of processes that have ended on the way
    _print_summary(reports, target, len(todo))


def _report_outcomes(outcomes: Iterator[tuple[Shard, Outcome]], todo: Sequence[Shard]) -> list[tuple[Shard, Outcome]]:
    """Return all outcomes, with a message for each as it comes, and a bar on a terminal."""
    began, n_bytes, total = time.monotonic(), 0, sum(shard.size for shard in todo)
    reports: list[tuple[Shard, Outcome]] = []
    with _Bar(total) if progress_display() is ProgressDisplay.bar else nullcontext() as bar:
        for shard, outcome in outcomes:
            reports.append((shard, outcome))
            n_bytes += shard.size
            seconds = time.monotonic() - began
            left = seconds * (total - n_bytes) / max(n_bytes, 1)
            _report_one(shard, outcome, f"{len(reports)}/{len(todo)}", left)
            if bar is not None:
                bar.show(n_bytes, f"{len(reports)}/{len(todo)} files, {_duration(left)} left")
    return reports


def _report_one(shard: Shard, outcome: Outcome, place: str, left: float) -> None:
    what = outcome.problem or f"{count(outcome.n_sentences, 'sentence')}{_bad(outcome)}"
    say(
        f"{place} {shard.target.name}: {what}; {_duration(left)} left",
        event="file", file=str(shard.source), seconds_left=left, **outcome._asdict(),
    )  # fmt: skip


class _Bar:
    """Progress bar over all files; messages appear above it."""

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


def _print_summary(reports: Sequence[tuple[Shard, Outcome]], target: Path, n: int) -> None:
    failed = [outcome.problem for _, outcome in reports if outcome.problem]
    n_sentences, n_bad = sum(each.n_sentences for _, each in reports), sum(each.n_bad for _, each in reports)
    print(f"{count(len(reports) - len(failed), 'file')} written to {target}: {count(n_sentences, 'sentence')}")
    if n_bad:
        quarantine = reports[0][0].quarantine.parent
        print(f"{count(n_bad, 'bad record')} set aside, with the reasons, in {quarantine}")
    if failed:
        tell(f"{count(len(failed), 'file')} of {n} could not be annotated:", level=logging.ERROR)
        for problem in failed:
            tell(problem, level=logging.ERROR)
        raise typer.Exit(FAILED)
