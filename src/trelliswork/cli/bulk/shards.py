"""The files of a job: what is read, written and done already; and one of them: its answers and its bad records."""

from __future__ import annotations

import glob
import io
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trelliswork.cli.answering import Job, input_of, open_input, write_answers
from trelliswork.cli.inputs import expanded, require_different
from trelliswork.cli.writing_answers import Inputs, Output, is_binary
from trelliswork.data import Sentence, atomic_write
from trelliswork.data.brat import ANNOTATIONS, is_annotation_of, is_brat
from trelliswork.data.readers import InputKind
from trelliswork.errors import DataError, OutputError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import Model
from trelliswork.reading import read_bytes
from trelliswork.writing import PART, is_part_of, part_prefix, write_packed

QUARANTINE = "quarantine"  # the folder, in that of the results, of records that could not be read; see `_quarantine_in`
_SUFFIX = {Output.brackets: ".mrg", Output.lexicon: ".dict", Output.pretty: ".txt"}
_READ_SUFFIXES = (
    ".conllu", ".conll", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".mrg", ".crfsuite", ".parquet", ".pq",
    ANNOTATIONS,
)  # fmt: skip


class Shard(NamedTuple):
    """One file of a job. It is done when `target` exists: results appear under their names only when they are whole."""

    source: Path
    target: Path
    quarantine: Path

    @property
    def is_done(self) -> bool:
        return self.target.exists()

    @property
    def attempts(self) -> Path:
        """A byte for each time that it was begun and not ended, for processes that know nothing of each other.

        It has a temporary name of the result, so that it is cleared away with the others.
        """
        return self.target.with_name(f"{part_prefix(self.target)}attempts{PART}")

    @property
    def size(self) -> int:
        """Bytes to read."""
        return self.source.stat().st_size


def is_bulk(given: Sequence[str], out: str | None) -> bool:
    """Return whether several files are meant: several, a pattern or a folder are given, or a folder to write to."""
    to_folder = out is not None and (out.endswith(os.sep) or Path(out).is_dir())
    if not to_folder and len(given) == 1 and Path(given[0]).is_dir() and is_brat(given[0]):
        return False  # its documents are read one after another
    return to_folder or len(given) > 1 or any(_stands_for_several(each) for each in given)


def _stands_for_several(file: str) -> bool:
    return file != "-" and not Path(file).is_file() and (glob.has_magic(file) or Path(file).is_dir())


def shards_of(given: Sequence[str], out: str | None, output: Output | None) -> list[Shard]:
    """Return the files that some arguments stand for, those of a pattern or a folder in order of their names.

    Args:
        given: Files, patterns and folders of the command line.
        out: Folder to write to; None is an error.
        output: Format of the answers; None for that of each file.

    Returns:
        A shard for each file.
    """
    files = expanded([_in_folder(each) if Path(each).is_dir() else each for each in given])
    files = [file for file in files if not is_annotation_of(file, files)]
    if "-" in files:
        raise TrellisworkError("- (standard input) gives no name to its result in a folder; give it alone, without one")
    require_different(files)
    for file in files:
        if not Path(file).exists():
            raise DataError(file, "no such file; check the path")
    folder = _folder_for_results(out)
    names = [_target_name(Path(file).name, output or (Output.jsonl if is_brat(file) else None)) for file in files]
    quarantine = _quarantine_in(folder, names)
    named = zip(files, names, strict=True)
    shards = [Shard(Path(file), folder / name, quarantine / f"{name}.jsonl") for file, name in named]
    _refuse_collisions(shards)
    return shards


def _in_folder(folder: str) -> str:
    """Return the pattern of all files in a folder."""
    pattern = f"{glob.escape(folder)}/*"
    if not any(Path(path).is_file() for path in glob.iglob(pattern)):
        raise TrellisworkError(f"{folder}: expected files in the folder, got none; name another")
    return pattern


def _folder_for_results(out: str | None) -> Path:
    if out is None:
        raise TrellisworkError("expected --out DIR/ for the results of several files, got none; add it")
    folder, expected = Path(out), f"{out}: expected a folder for the results of several files"
    if folder.exists() and not folder.is_dir():
        raise TrellisworkError(f"{expected}, got a file; choose another")
    if folder.suffix and not folder.is_dir() and not out.endswith(os.sep):
        raise TrellisworkError(f"{expected}, got the name of a file; add {os.sep} if it is to be a folder")
    return folder


def _quarantine_in(folder: Path, names: Sequence[str]) -> Path:
    """Return the folder for bad records: no result has its name, and no file or link is in its place."""
    for number in itertools.count(1):
        path = folder / (QUARANTINE if number == 1 else f"{QUARANTINE}-{number}")
        is_free = not os.path.lexists(path) or (path.is_dir() and not path.is_symlink())
        if is_free and path.name not in map(str.lower, names):
            break
    return path


def _target_name(name: str, output: Output | None) -> str:
    """Return the name of a result; it is packed if its source is.

    >>> _target_name("a.txt.gz", Output.jsonl), _target_name("part-0.conll", None)
    ('a.jsonl.gz', 'part-0.conll')
    >>> _target_name("a.jsonl.gz", Output.parquet)
    'a.parquet'
    """
    if output is None:
        return name
    if output is Output.parquet:  # compressed already
        name = name.removesuffix(".gz")
    plain, packed = (name[:-3], ".gz") if name.endswith(".gz") else (name, "")
    stem, suffix = os.path.splitext(plain)
    return f"{stem if suffix in _READ_SUFFIXES else plain}{_SUFFIX.get(output, f'.{output.value}')}{packed}"


def _refuse_collisions(shards: Sequence[Shard]) -> None:
    seen: dict[Path, Path] = {}
    for shard in shards:
        if shard.target.is_dir():
            problem = f"{shard.target}: expected a file for the result of {shard.source}, got a folder"
            raise TrellisworkError(f"{problem}; rename the file, or choose another folder for --out")
        if shard.target in seen:
            problem = f"{seen[shard.target]} and {shard.source} would both be written to {shard.target}"
            raise TrellisworkError(f"{problem}; rename one of them, or annotate them into different folders")
        if shard.target.resolve() == shard.source.resolve():
            raise TrellisworkError(f"{shard.source}: its result would replace it; choose another folder for --out")
        seen[shard.target] = shard.source


def clear_parts(shards: Sequence[Shard]) -> None:
    """Remove the half-written results that dead processes have left; only for the one who holds the folder."""
    by_folder: dict[Path, list[Path]] = {}
    for shard in shards:
        by_folder.setdefault(shard.target.parent, []).append(shard.target)
    for folder, targets in by_folder.items():
        parts = [path for path in folder.iterdir() if path.name.startswith(".") and path.name.endswith(".part")]
        for path in parts:
            if any(is_part_of(path.name, target) for target in targets):
                path.unlink(missing_ok=True)


# One file of a job: its answers, with records that cannot be read set aside.

TRIES = 3  # processes that may die on a shard before it is given up
MOST_BAD = 1000  # records of one file; with more, it is not the format that it is taken for


class Outcome(NamedTuple):
    """Result of annotating a shard; without a `problem` it is done."""

    n_sentences: int = 0
    n_bad: int = 0
    problem: str = ""


def annotate_shard(model: Model, shard: Shard, job: Job) -> Outcome:
    """Write the answers of a file; its bad records go to the quarantine. What cannot be read at all is reported.

    Args:
        model: The model.
        shard: The file, and where its answers go.
        job: What is asked for.

    Returns:
        What became of it.
    """
    try:
        return _annotate(model, shard, job)
    except TrellisworkError as error:
        return Outcome(problem=str(error))
    except OSError as error:  # its file may be a temporary one, of which the user knows nothing
        return Outcome(problem=f"{shard.source}: {error.strerror or error}")
    except Exception as error:  # a mistake of ours costs this file, not those after it
        return Outcome(problem=f"{shard.source}: {type(error).__name__}: {error}")


def _annotate(model: Model, shard: Shard, job: Job) -> Outcome:
    given = input_of(model, str(shard.source), job.layout, job.read_as)
    binary = is_binary(job.output, given.kind)
    try:
        with write_packed(shard.target, binary=binary, follow=False) as target:
            return Outcome(write_answers(model, given, job, target))
    except DataError as error:
        if error.line is None:
            raise
        first = error
    with tempfile.TemporaryDirectory() as work:
        copy = _Copy(given, Path(work), records_of(shard.source, given.kind))
        with copy.errors_of_original():
            bad = copy.clean(model, job)
            if not bad:  # it was read, and could not be answered
                raise first
            _set_aside(shard.quarantine, bad)
            with write_packed(shard.target, binary=binary, follow=False) as target:
                return Outcome(write_answers(model, copy.given, job, target, rename=copy.renamed), len(bad))


class _Copy:
    """A copy of a file, to be left without its bad records."""

    def __init__(self, original: Inputs, folder: Path, records: Records) -> None:
        self.source, self.records = Path(original.file), records
        self.path = folder / self.source.name.removesuffix(".gz")
        self.given = replace(original, file=str(self.path))

    def clean(self, model: Model, job: Job) -> list[BadRecord]:
        """Write the copy, and take out the records that are errors; return these."""
        bad: list[BadRecord] = []
        while len(bad) < MOST_BAD:
            self.records.write(self.path)
            try:
                error = _first_error(model, self.given, job)
            except DataError as whole:  # about no record
                raise DataError(self.source, whole.problem + _after(bad)) from whole
            if error is None:
                return bad
            bad.append(self.records.take_out(error.line or 1, error.problem))
        problem = f"expected at most {MOST_BAD:,} records that cannot be read, got more"
        raise DataError(self.source, f"{problem}; is it in the format of the others?{_after(bad)}")

    def renamed(self, sentence: Sentence) -> Sentence:
        """Return a sentence of the copy with its place in the original."""
        return replace(sentence, file=str(self.source), line=self.records.number(sentence.line))

    @contextmanager
    def errors_of_original(self) -> Iterator[None]:
        """Let errors name the original file and its lines: the user knows nothing of a copy."""
        try:
            yield
        except DataError as error:
            if error.file != str(self.path):
                raise
            line = None if error.line is None else self.records.number(error.line)
            raise DataError(self.source, error.problem, line=line, column=error.column) from error
        except TrellisworkError as error:
            raise TrellisworkError(str(error).replace(str(self.path), str(self.source))) from error


def _after(bad: Sequence[BadRecord]) -> str:
    return f" (without bad records; the first is line {bad[0].line}: {bad[0].reason})" if bad else ""


def _first_error(model: Model, given: Inputs, job: Job) -> DataError | None:
    """Return the first place where a file cannot be read; an error of no place is raised."""
    try:
        for _ in open_input(model, given, job)[1]:
            pass
    except DataError as error:
        if error.line is None:
            raise
        return error
    return None


def _set_aside(path: Path, bad: Sequence[BadRecord]) -> None:
    if path.parent.is_symlink():
        raise OutputError(f"{path.parent}: expected a folder for bad records, got a link; remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, follow=False) as file:
        file.writelines(json.dumps(each._asdict(), ensure_ascii=False) + "\n" for each in bad)


# The records of a file that has bad ones, to be taken out one by one: blocks of lines, lines, or rows of Parquet.

BLOCKS = ("conll", "brackets")  # formats whose records are blocks of lines between blank ones


class BadRecord(NamedTuple):
    """A record that could not be read: the number of its first line, or of its row, why, and its text."""

    line: int
    reason: str
    record: str


class Records(Protocol):
    """All records of a file that have not been taken out."""

    def write(self, path: Path) -> None:
        """Write the records to a file of the same format."""

    def take_out(self, number: int, reason: str) -> BadRecord:
        """Take out the record that has the line, or is the row, of this number in the file as `write` writes it."""

    def number(self, number: int) -> int:
        """Return the number that a line or row, which `write` writes as this one, has in the original file."""


def records_of(source: Path, kind: InputKind) -> Records:
    """Return the records of a file of this kind."""
    return RowRecords(source) if kind == "parquet" else LineRecords(source, in_blocks=kind in BLOCKS)


class LineRecords:
    """Lines with their numbers in the file; a record is a line, or all lines between two blank ones."""

    def __init__(self, source: Path, *, in_blocks: bool) -> None:
        self.lines = list(enumerate(io.BytesIO(read_bytes(source)), 1))
        self.in_blocks = in_blocks

    def write(self, path: Path) -> None:
        path.write_bytes(b"".join(content for _, content in self.lines))

    def take_out(self, number: int, reason: str) -> BadRecord:
        first, last = self._record_at(number)
        text = b"".join(content for _, content in self.lines[first:last]).decode("utf-8", "replace")
        bad = BadRecord(self.lines[first][0], reason, text)
        del self.lines[first:last]
        return bad

    def number(self, number: int) -> int:
        return self.lines[min(number, len(self.lines)) - 1][0]

    def _record_at(self, number: int) -> tuple[int, int]:
        """Return the lines [first, last) of the record that has the line of this number, counted from 1."""
        lines, at = self.lines, min(number, len(self.lines)) - 1
        if not self.in_blocks or not lines[at][1].strip():
            return at, at + 1
        first, last = at, at + 1
        while first > 0 and lines[first - 1][1].strip():
            first -= 1
        while last < len(lines) and lines[last][1].strip():
            last += 1
        return first, min(last + 1, len(lines))  # the blank line after it goes too


class RowRecords:
    """Rows of a Parquet file."""

    def __init__(self, source: Path) -> None:
        with named("trelliswork.data.parquet:opened_parquet")(source) as file:
            self.table: Any = file.read()
        self.numbers = list(range(1, self.table.num_rows + 1))

    def write(self, path: Path) -> None:
        with atomic_write(path, "wb") as file:
            named("trelliswork.data.parquet:pq").write_table(self.table, file)

    def take_out(self, number: int, reason: str) -> BadRecord:
        at = min(number, len(self.numbers)) - 1
        (row,) = self.table.slice(at, 1).to_pylist()
        bad = BadRecord(self.numbers.pop(at), reason, json.dumps(row, ensure_ascii=False, default=str))
        kept = [i for i in range(self.table.num_rows) if i != at]
        self.table = self.table.take(kept)
        return bad

    def number(self, number: int) -> int:
        return self.numbers[min(number, len(self.numbers)) - 1]
