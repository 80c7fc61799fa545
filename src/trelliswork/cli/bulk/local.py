"""Shards answered by several processes of this machine, which share the memory of one model.

The processes are forked after the model is loaded, so that its weights are in memory once. One that dies, killed or out
of memory, is replaced, and its shard is tried again; a shard on which processes die again and again is given up.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from trelliswork.cli.bulk.shard_work import TRIES, Outcome, annotate_shard
from trelliswork.cli.bulk.shards import Shard, clear_parts
from trelliswork.cli.predicting import Job
from trelliswork.runtime.threads import use_threads


class _Worker:
    """A process, and the shard that it has."""

    def __init__(self, context: Any, model: Any, job: Job) -> None:
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, model, job), daemon=True)
        self.process.start()
        other.close()
        self.shard: Shard | None = None

    def give(self, shard: Shard) -> None:
        self.shard = shard
        self.pipe.send(shard)

    def result(self) -> Outcome | None:
        """What became of its shard; None if the process is dead."""
        try:
            found: Outcome = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return found

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _serve(pipe: Connection, model: Any, job: Job) -> None:
    """Answer shards until there are no more."""
    use_threads(1)
    while True:
        try:
            shard = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(annotate_shard(model, shard, job))


def annotate_locally(shards: Sequence[Shard], model: Any, job: Job, n_workers: int) -> Iterator[tuple[Shard, Outcome]]:
    """Each shard with what became of it, as they are finished."""
    if n_workers == 1:
        yield from ((shard, annotate_shard(model, shard, job)) for shard in shards)
        return
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    waiting, tries = deque(shards), Counter[Shard]()
    workers = [_Worker(context, model, job) for _ in range(min(n_workers, len(shards)))]
    try:
        for worker in workers:
            worker.give(waiting.popleft())
        while busy := [worker for worker in workers if worker.shard is not None]:
            for pipe in wait([worker.pipe for worker in busy]):
                at = next(i for i, worker in enumerate(workers) if worker.pipe is pipe)
                shard, outcome = workers[at].shard, workers[at].result()
                assert shard is not None
                if outcome is None:
                    outcome = _after_death(workers[at], shard, tries, waiting)
                    workers[at] = _Worker(context, model, job)
                workers[at].shard = None
                if waiting:
                    workers[at].give(waiting.popleft())
                if outcome is not None:
                    yield shard, outcome
    finally:
        for worker in workers:
            worker.end()


def _after_death(worker: _Worker, shard: Shard, tries: Counter[Shard], waiting: deque[Shard]) -> Outcome | None:
    """Try the shard of a dead process again, or give it up."""
    worker.end()
    clear_parts([shard])
    tries[shard] += 1
    if tries[shard] < TRIES:
        waiting.append(shard)
        return None
    code = worker.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
    return Outcome(problem=f"{shard.source}: {TRIES} processes died on it, the last with {how}; is memory short?")
