"""Shards answered by actors on a Ray cluster: Ray Data gives out the shards, each actor loads the model once.

All nodes must see the files and the model folder under the same paths. An actor that dies is started again by Ray, and
its shard is answered again: results appear under their names only when they are whole.

Moritz et al. (2018), Ray: a distributed framework for emerging AI applications.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trelliswork.cli.bulk.shard_work import Outcome, annotate_shard
from trelliswork.cli.bulk.shards import Shard
from trelliswork.cli.predicting import Job
from trelliswork.cli.tasks import load_reader
from trelliswork.errors import TrellisworkError

try:
    import ray
    import ray.data
except ImportError:
    ray = None


class _Annotator:
    """An actor: the model, and a call for each shard."""

    def __init__(self, folder: str, shards: Sequence[Shard], job: Job) -> None:
        self.model, self.shards, self.job = load_reader(folder, None), shards, job

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        found = annotate_shard(self.model, self.shards[int(row["item"])], self.job)
        return {**row, **found._asdict()}


def annotate_by_ray(shards: Sequence[Shard], folder: str, job: Job, n_workers: int) -> Iterator[tuple[Shard, Outcome]]:
    """Each shard with what became of it, as they are finished."""
    if ray is None:
        raise TrellisworkError('--engine ray needs Ray; install it with pip install "trelliswork[ray]"')
    numbers = ray.data.from_items(list(range(len(shards))), override_num_blocks=len(shards))
    rows = numbers.map(_Annotator, fn_constructor_args=(folder, shards, job), concurrency=n_workers)
    for row in rows.iter_rows():
        yield shards[int(row["item"])], Outcome(int(row["n_sentences"]), int(row["n_bad"]), str(row["problem"]))
