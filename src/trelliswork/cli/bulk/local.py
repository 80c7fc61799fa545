"""Shards answered by several processes of this machine, which share the memory of one model.

The processes are forked after the model is loaded, so that its weights are in memory once. One that dies, killed or out
of memory, is replaced, and its shard is tried again; a shard on which processes die again and again is given up. None
outlives this process, however that ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from trelliswork.cli.bulk.shard_work import TRIES, Outcome, annotate_shard
from trelliswork.cli.bulk.shards import Shard, clear_parts
from trelliswork.cli.predicting import Job
from trelliswork.runtime.parents import end_with_parent
from trelliswork.runtime.threads import use_threads

PATIENCE = 1.0  # seconds for a process to remove its temporary files
SIGNALS = (signal.SIGINT, signal.SIGTERM)
CONTEXT: Any = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")


class _Worker:
    """A process, and the shard that it has."""

    def __init__(self, others: Sequence[_Worker], model: Any, job: Job) -> None:
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
    """Ignore Ctrl-C, which the parent answers by ending this process; end quietly when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _serve(pipe: Connection, inherited: Sequence[Connection], parent: int, model: Any, job: Job) -> None:
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
    shards: Sequence[Shard], model: Any, job: Job, n_workers: int
) -> Generator[tuple[Shard, Outcome], None, None]:
    """Each shard with what became of it, as they are finished."""
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
