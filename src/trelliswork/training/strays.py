"""What a killed run leaves half-written in its folder, by the names that only this library gives."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from trelliswork.training.folder_names import CheckpointFolder, clear_partial, is_stray


def clear_strays(out: Path) -> None:
    """Remove half-written files of dead runs; only for the one who holds the lock of the folder."""
    clear_partial(out)
    CheckpointFolder(out).clear_partial()
    for path in out.iterdir():
        if is_stray(path.name):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
