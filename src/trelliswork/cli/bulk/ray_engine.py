"""Shards answered by actors on a Ray cluster: Ray Data gives out the shards, each actor loads the model once.

All nodes must see the files and the model folder under the same paths. An actor that dies is started again by Ray, and
its shard is answered again: results appear under their names only when they are whole. Ray would do so for ever, so a
file next to the result counts, and a shard on which actors die again and again is given up.

Moritz et al. (2018), Ray: a distributed framework for emerging AI applications.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Generator, Sequence
from pathlib import Path

from trelliswork.cli.answering import Job
from trelliswork.cli.bulk.shards import TRIES, Outcome, Shard, annotate_shard
from trelliswork.cli.inputs import given_function, load_reader
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Model
from trelliswork.runtime.threads import use_threads

try:
    import ray
    import ray.data
    import ray.exceptions
except ImportError:
    ray = None


class _Annotator:
    """An actor: the model, and a call for each shard."""

    def __init__(self, folder: str, features: str | None, job: Job) -> None:
        use_threads(1)
        self.model, self.job = load_reader(folder, given_function(features)), job

    def __call__(self, row: dict[str, object]) -> dict[str, object]:
        shard = Shard(*(Path(str(row[name])) for name in Shard._fields))
        return {"number": row["number"], **annotate_or_give_up(self.model, shard, self.job)._asdict()}


def annotate_or_give_up(model: Model, shard: Shard, job: Job) -> Outcome:
    """Annotate a shard that other processes may have died on; return what became of it.

    Args:
        model: The model.
        shard: The file.
        job: What is asked for.

    Returns:
        What became of the shard.
    """
    try:
        with open(shard.attempts, "ab", opener=_without_links) as attempts:
            attempts.write(b".")
            n_begun = attempts.tell()
        if n_begun > TRIES:
            return Outcome(problem=f"{shard.source}: {TRIES} processes died on it; is memory short?")
        outcome = annotate_shard(model, shard, job)
        shard.attempts.unlink(missing_ok=True)
        return outcome
    except OSError as error:
        return Outcome(problem=f"{shard.source}: {error.strerror or error}")


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def annotate_by_ray(
    shards: Sequence[Shard], folder: str, features: str | None, job: Job, n_workers: int
) -> Generator[tuple[Shard, Outcome], None, None]:
    """Yield each shard with what became of it, as they are finished; `features` is what --features names.

    Args:
        shards: Files that are not answered yet.
        folder: Folder of the model, which every actor loads.
        features: What --features names; None for nothing.
        job: What is asked for.
        n_workers: Number of actors.

    Returns:
        An iterator over shards with their outcomes.
    """
    if ray is None:
        raise TrellisworkError('--engine ray needs Ray; install it with pip install "trelliswork[ray]"')
    if not shards:
        return
    _connect()
    actors = ray.data.ActorPoolStrategy(size=min(n_workers, len(shards)))
    annotated = ray.data.from_items(_rows(shards), override_num_blocks=len(shards)).map(
        _Annotator, fn_constructor_args=(str(Path(folder).resolve()), features, job), compute=actors
    )
    try:
        for row in annotated.iter_rows():
            outcome = Outcome(int(row["n_sentences"]), int(row["n_bad"]), str(row["problem"]))
            yield shards[int(row["number"])], outcome
    except ray.exceptions.RayError as error:
        why = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise TrellisworkError(f"--engine ray: the job failed: {why.strip()}; run it again to continue") from error


def _connect() -> None:
    """Use the cluster that RAY_ADDRESS names, or one of this machine alone; Ray says nothing but errors."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if not ray.is_initialized():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        ray.init(logging_level=logging.ERROR, log_to_driver=False)
        for number, handler in handlers.items():  # Ray's own would end the process with a dump of its stack
            signal.signal(number, handler)
    ray.data.DataContext.get_current().enable_progress_bars = False  # each shard has a line of ours


def _rows(shards: Sequence[Shard]) -> list[dict[str, object]]:
    paths = [{name: os.path.abspath(path) for name, path in shard._asdict().items()} for shard in shards]
    return [{"number": i, **each} for i, each in enumerate(paths)]
