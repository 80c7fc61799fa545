"""What a run leaves in the folder of its model, by the names that only this library gives."""

from __future__ import annotations

import shutil
from pathlib import Path

from trelliswork.writing import PART, is_part_of

LOCK = ".trelliswork.lock"  # of the run that trains there
SETTINGS = "config.toml"
CHECKPOINT = "checkpoint"
STATE = "state.safetensors"  # in the checkpoint
HISTORY = "history.jsonl"
TOKENISER = "tokeniser"  # the folder of the tokeniser that a model reads raw text with
COLUMNS = "columns"  # the folder of the taggers for columns that new text may lack
LEMMAS = "lemmas"  # the folder of the lemmatiser that fills the column LEMMA
KEPT = (TOKENISER, COLUMNS, LEMMAS)
# What a run leaves in a folder before there is a model.
OF_TRAINING = {CHECKPOINT, HISTORY, SETTINGS, LOCK, *KEPT}


def is_stray(name: str) -> bool:
    """Whether a name in a model folder is temporary, of the settings or the tokeniser, which a kill may leave."""
    return is_part_of(name, Path(SETTINGS)) or is_part_of(name, Path(TOKENISER))


def clear_partial(directory: str | Path) -> None:
    """Remove what a process that was killed while it wrote this folder has left beside it."""
    target = Path(directory)
    for path in target.parent.iterdir():
        if is_part_of(path.name, target):
            shutil.rmtree(path, ignore_errors=True)


class CheckpointFolder:
    """Where the checkpoint of one output folder is."""

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out)
        self.folder = self.out / CHECKPOINT

    @property
    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return (self.folder / STATE).is_file()

    def clear(self) -> None:
        """Remove the checkpoint; the state goes first, so that no half of one is left to go on from."""
        (self.folder / STATE).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear_partial(self) -> None:
        """Remove what a killed run has left half-written; without a state, the whole folder is that."""
        if self.folder.is_dir() and not self.exists:
            self.clear()
        for path in self.folder.glob(f".*.safetensors{PART}"):
            path.unlink(missing_ok=True)
