"""What a run leaves in the folder of its model, by the names that only this library gives."""

from __future__ import annotations

import shutil
from pathlib import Path

from trelliswork.writing import is_part_of

LOCK = ".trelliswork.lock"  # of the run that trains there
SETTINGS = "config.toml"
CHECKPOINT = "checkpoint"
HISTORY = "history.jsonl"
OF_TRAINING = {CHECKPOINT, HISTORY, SETTINGS, LOCK}  # what a run leaves in a folder before there is a model


def is_stray(name: str) -> bool:
    """Whether a file in a model folder has the temporary name of the settings, which a kill may leave."""
    return is_part_of(name, Path(SETTINGS))


def clear_partial(directory: str | Path) -> None:
    """Remove what a process that was killed while it wrote this folder has left beside it."""
    target = Path(directory)
    for path in target.parent.iterdir():
        if is_part_of(path.name, target):
            shutil.rmtree(path, ignore_errors=True)
