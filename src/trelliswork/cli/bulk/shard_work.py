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

from trelliswork.cli.bulk.shards import Shard
from trelliswork.cli.inputs import kind_of
from trelliswork.cli.predicting import Job, opened, write_answers
from trelliswork.data import atomic_write
from trelliswork.data.files import read_bytes
from trelliswork.errors import DataError, OutputError

MOST_BAD = 1000  # records of one file; with more, it is not the format that it is taken for
BLOCKS = ("conll", "brackets")  # formats whose records are blocks of lines between blank ones


class Outcome(NamedTuple):
    """What became of a shard; without a `problem` it is done."""

    n_sentences: int = 0
    n_bad: int = 0
    problem: str = ""


class BadRecord(NamedTuple):
    """A record that could not be read: the number of its first line, why, and its text."""

    line: int
    reason: str
    record: str


Line = tuple[int, bytes]  # its number in the file, and its bytes with the line end


def annotate_shard(model: Any, shard: Shard, job: Job) -> Outcome:
    """Write the answers of a file; its bad records go to the quarantine, and what cannot be read at all is told."""
    try:
        return _annotated(model, shard, job)
    except (DataError, OutputError, OSError) as error:
        return Outcome(problem=str(error))


def _annotated(model: Any, shard: Shard, job: Job) -> Outcome:
    try:
        with packed_write(shard.target) as target:
            return Outcome(write_answers(model, str(shard.source), job, target))
    except DataError as error:
        if error.line is None:
            raise
    with tempfile.TemporaryDirectory() as work:
        clean, bad = _cleaned(model, shard.source, job, Path(work))
        _set_aside(shard.quarantine, bad)
        with packed_write(shard.target) as target:
            return Outcome(write_answers(model, str(clean), job, target), len(bad))


def _cleaned(model: Any, source: Path, job: Job, work: Path) -> tuple[Path, list[BadRecord]]:
    """A copy without the records that are errors, and these."""
    lines: list[Line] = list(enumerate(io.BytesIO(read_bytes(source)), 1))
    clean = work / source.name.removesuffix(".gz")
    bad: list[BadRecord] = []
    in_blocks = kind_of(str(source), job.read_as, model) in BLOCKS
    while len(bad) < MOST_BAD:
        clean.write_bytes(b"".join(content for _, content in lines))
        error = _first_error(model, clean, job)
        if error is None:
            return clean, bad
        first, last = _record_at(lines, error.line or 1, in_blocks)
        record = b"".join(content for _, content in lines[first:last]).decode("utf-8", "replace")
        bad.append(BadRecord(lines[first][0], error.problem, record))
        del lines[first:last]
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


def _record_at(lines: Sequence[Line], number: int, in_blocks: bool) -> tuple[int, int]:
    """The lines [first, last) of the record that has the line of this number, counted from 1."""
    at = min(number, len(lines)) - 1
    if not in_blocks or not lines[at][1].strip():
        return at, at + 1
    first, last = at, at + 1
    while first > 0 and lines[first - 1][1].strip():
        first -= 1
    while last < len(lines) and lines[last][1].strip():
        last += 1
    return first, min(last + 1, len(lines))  # the blank line after it goes too


def _set_aside(path: Path, bad: Sequence[BadRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.writelines(json.dumps(each._asdict(), ensure_ascii=False) + "\n" for each in bad)


@contextmanager
def packed_write(path: Path) -> Iterator[IO[Any]]:
    """`atomic_write` of text, packed by gzip if the name says so, the same bytes every time."""
    if path.suffix != ".gz":
        with atomic_write(path) as file:
            yield file
        return
    with (
        atomic_write(path, "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text
