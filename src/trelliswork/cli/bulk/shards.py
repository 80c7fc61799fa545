"""The files of a job: what is read, what is written, and what is done already."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trelliswork.cli.writing_answers import Output
from trelliswork.errors import TrellisworkError
from trelliswork.writing import PART, is_part_of, part_prefix

QUARANTINE = "quarantine"  # the folder, in that of the results, of records that could not be read
_SUFFIX = {Output.brackets: ".mrg", Output.lexicon: ".dict", Output.pretty: ".txt"}
_READ_SUFFIXES = (
    ".conllu", ".conll", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".mrg", ".crfsuite", ".parquet", ".pq",
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


def is_bulk(file: str, out: str | None) -> bool:
    """Whether several files are meant: a pattern or a folder is given, or a folder to write to."""
    to_folder = out is not None and (out.endswith(os.sep) or Path(out).is_dir())
    return to_folder or (file != "-" and not Path(file).is_file() and (glob.has_magic(file) or Path(file).is_dir()))


def shards_of(pattern: str, out: str | None, output: Output | None) -> list[Shard]:
    """The files that a pattern or a folder stands for, in order of their names."""
    found = sorted(glob.glob(f"{pattern}/*" if Path(pattern).is_dir() else pattern, recursive=True))
    files = [Path(each) for each in found if Path(each).is_file()]
    if not files and Path(pattern).is_dir():
        raise TrellisworkError(f"{pattern}: expected files in the folder, got none; name another")
    if not files:
        raise TrellisworkError(f"expected files to read, got none that match {pattern}; check the pattern")
    if out is None:
        raise TrellisworkError("expected --out DIR/ for the results of several files, got none; add it")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise TrellisworkError(f"{out}: expected a folder for the results of several files, got a file; choose another")
    shards = [_shard(file, folder, output) for file in files]
    _refuse_collisions(shards)
    return shards


def _shard(file: Path, folder: Path, output: Output | None) -> Shard:
    name = _target_name(file.name, output)
    return Shard(file, folder / name, folder / QUARANTINE / f"{name}.jsonl")


def _target_name(name: str, output: Output | None) -> str:
    """The name of a result; it is packed if its source is.

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
