"""A new model in the folder of an earlier one, so that a kill at any moment leaves the one or the other, whole.

The folder stays where it is, for a run has its checkpoint there. The new files come into it together, under one hidden
name: with that rename the model is replaced. Giving them their own names can be done again and again, so whoever reads
the folder next finishes what a killed process began.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from trelliswork.training.folder_names import KEPT

CONFIG = "config.json"
NEW = ".new-model"
LINK = ".link"  # the end of names that are there for a moment


def put_in_place(partial: Path, target: Path) -> None:
    """Replace the model in `target` by that in `partial`, a folder beside it, which is gone then."""
    if not target.exists():
        partial.rename(target)
        return
    _finish(target)
    shutil.rmtree(target / NEW, ignore_errors=True)
    partial.rename(target / NEW)
    _finish(target)


def finish_replacing(directory: str | Path) -> None:
    """Finish what a killed process began, as far as the folder can be written."""
    with suppress(OSError):
        _finish(Path(directory))


def _finish(target: Path) -> None:
    """Several processes may do it at once: each step can be done again, and what is gone was done by another."""
    new = target / NEW
    if not (new / CONFIG).is_file():
        return
    for name in KEPT:
        if not (new / name).exists() and ((target / name / CONFIG).is_file() or any(target.glob(f"{name}/*/{CONFIG}"))):
            shutil.rmtree(target / name, ignore_errors=True)
    try:
        for path in sorted(each for each in new.rglob("*") if each.is_file() and each.suffix != LINK):
            place = target / path.relative_to(new)
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(path, place)
        (new / CONFIG).unlink()  # finished
    except FileNotFoundError:
        if (new / CONFIG).exists():
            raise
    shutil.rmtree(new, ignore_errors=True)


def _link(path: Path, place: Path) -> None:
    """The same file under a further name, which it takes from another."""
    other = path.with_name(f"{path.name}-{uuid4().hex}{LINK}")
    try:
        os.link(path, other)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copy2(path, other)
    os.replace(other, place)
