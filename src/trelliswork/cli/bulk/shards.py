"""The files of a job: what is read, what is written, and what is done already."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trelliswork.cli.inputs import expanded, require_different
from trelliswork.cli.writing_answers import Output
from trelliswork.data.brat import ANNOTATIONS, is_annotation_of, is_brat
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.writing import PART, is_part_of, part_prefix

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
    """Return the files that some arguments stand for, those of a pattern or a folder in order of their names."""
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
    if output is Output.parquet:  # packed in itself
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
