"""Exports for other programs: folders that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trelliswork.errors import OutputError
from trelliswork.writing import PART, exchanged, part_prefix


def check_folder(directory: str | Path, names: set[str], *, force: bool = False) -> None:
    """Refuse a folder that has other files than an export of these, or one already, unless it is to be replaced."""
    target = Path(directory)
    if target.is_file():
        raise OutputError(f"{target}: expected a folder to export to, got a file; name a folder")
    found = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if found - names - {"__pycache__"}:
        raise OutputError(f"{target}: expected an empty folder or an earlier export, got other files; name another")
    if found and not force:
        raise OutputError(f"{target}: there is an export already; name another folder, or replace it with --force")


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A new folder that takes the place of `target` when the block ends without error."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=part_prefix(target), suffix=PART, dir=target.parent) as name:
            made = Path(name) / target.name
            made.mkdir()
            yield made
            _put(made, target, Path(name) / "earlier")
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{target}: cannot be written: {reason}; free space or choose another folder") from error


def _put(made: Path, target: Path, earlier: Path) -> None:
    """Put `made` in the place of `target`, which stays if that fails; at once, where the system can exchange names."""
    if not target.exists():
        made.rename(target)
        return
    if exchanged(made, target):
        return
    target.rename(earlier)
    try:
        made.rename(target)
    except OSError:
        os.replace(earlier, target)
        raise
