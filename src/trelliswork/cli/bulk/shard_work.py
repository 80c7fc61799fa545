"""One file of a job: its answers, with records that cannot be read set aside."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from trelliswork.cli.bulk.records import BadRecord, records_of
from trelliswork.cli.bulk.shards import Shard
from trelliswork.cli.inputs import kind_of
from trelliswork.cli.predicting import Job, opened, write_answers
from trelliswork.cli.writing_answers import is_binary
from trelliswork.data import atomic_write
from trelliswork.errors import DataError, TrellisworkError

TRIES = 3  # processes that may die on a shard before it is given up
MOST_BAD = 1000  # records of one file; with more, it is not the format that it is taken for


class Outcome(NamedTuple):
    """What became of a shard; without a `problem` it is done."""

    n_sentences: int = 0
    n_bad: int = 0
    problem: str = ""


def annotate_shard(model: Any, shard: Shard, job: Job) -> Outcome:
    """Write the answers of a file; its bad records go to the quarantine, and what cannot be read at all is told."""
    try:
        return _annotated(model, shard, job)
    except (TrellisworkError, OSError) as error:
        return Outcome(problem=str(error))
    except Exception as error:  # a mistake of ours costs this file, not those after it
        return Outcome(problem=f"{shard.source}: {type(error).__name__}: {error}")


def _annotated(model: Any, shard: Shard, job: Job) -> Outcome:
    binary = is_binary(job.output, kind_of(str(shard.source), job.read_as, model))
    try:
        with packed_write(shard.target, binary=binary) as target:
            return Outcome(write_answers(model, str(shard.source), job, target))
    except DataError as error:
        if error.line is None:
            raise
        first = error
    with tempfile.TemporaryDirectory() as work:
        clean, bad = _cleaned(model, shard.source, job, Path(work))
        if not bad:  # it was read, and could not be answered
            raise first
        _set_aside(shard.quarantine, bad)
        with packed_write(shard.target, binary=binary) as target:
            return Outcome(write_answers(model, str(clean), job, target), len(bad))


def _cleaned(model: Any, source: Path, job: Job, work: Path) -> tuple[Path, list[BadRecord]]:
    """A copy without the records that are errors, and these."""
    records = records_of(source, kind_of(str(source), job.read_as, model))
    clean = work / source.name.removesuffix(".gz")
    bad: list[BadRecord] = []
    while len(bad) < MOST_BAD:
        records.write(clean)
        error = _first_error(model, clean, job)
        if error is None:
            return clean, bad
        bad.append(records.take_out(error.line or 1, error.problem))
    problem = f"expected at most {MOST_BAD:,} records that cannot be read, got more; is it in the format of the others?"
    raise DataError(source, f"{problem} The first: line {bad[0].line}: {bad[0].reason}")


def _first_error(model: Any, file: Path, job: Job) -> DataError | None:
    """The first place where a file cannot be read."""
    try:
        for _ in opened(model, str(file), job)[1]:
            pass
    except DataError as error:
        if error.line is None:
            raise
        return error
    return None


def _set_aside(path: Path, bad: Sequence[BadRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.writelines(json.dumps(each._asdict(), ensure_ascii=False) + "\n" for each in bad)


@contextmanager
def packed_write(path: Path, *, binary: bool) -> Iterator[IO[Any]]:
    """`atomic_write`, of text packed by gzip if the name says so, the same bytes every time."""
    if binary or path.suffix != ".gz":
        with atomic_write(path, "wb" if binary else "w") as file:
            yield file
        return
    with (
        atomic_write(path, "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text
