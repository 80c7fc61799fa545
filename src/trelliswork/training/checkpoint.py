"""The state of a run on disk: `checkpoint/` in the output folder, plain tensors and JSON, never half-written.

state.safetensors     weights, optimizer, averages and random numbers; position and history as JSON in its header
best-N.safetensors    the weights of the best epoch so far, N

Both hold a checksum of their content.
Each file is written under another name, forced to disk and renamed, and `state` names the `best` that belongs to it:
a run killed at any moment leaves the last whole checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from trelliswork.data.json_values import BadJSONError, parse_json
from trelliswork.data.weight_files import read_arrays, with_checksum
from trelliswork.errors import ModelError, OutputError
from trelliswork.training.folder_names import STATE, CheckpointFolder
from trelliswork.writing import PART


class Checkpoint(CheckpointFolder):
    """The checkpoint of one output folder, to write and to read."""

    def write(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Replace the state; bests other than `state["best_epoch"]` are no longer needed."""
        self._write(STATE, tensors, {"state": json.dumps(state)})
        for path in self.folder.glob("best-*.safetensors"):
            if path.name != _best_name(state["best_epoch"]):
                path.unlink(missing_ok=True)

    def write_best(self, epoch: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights of the best epoch; call `write` after it."""
        self._write(_best_name(epoch), weights, {})

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `write` was given last."""
        path = self.folder / STATE
        tensors, header = _read(path, ("state",))
        try:
            return tensors, parse_json(header["state"])
        except (BadJSONError, KeyError) as error:
            raise ModelError(_damaged(path)) from error

    def read_best(self, epoch: int) -> dict[str, Tensor]:
        """What `write_best` was given for this epoch."""
        return _read(self.folder / _best_name(epoch))[0]

    def _write(self, name: str, tensors: Mapping[str, Tensor], header: dict[str, str]) -> None:
        path = self.folder / name
        partial = path.with_name(f".{name}{PART}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            plain = _plain(tensors)
            safetensors.torch.save_file(plain, partial, with_checksum(plain, header))
            _force_to_disk(partial)
            os.replace(partial, path)
            if os.name == "posix":  # elsewhere a folder cannot be opened
                _force_to_disk(self.folder)
        except (OSError, safetensors.SafetensorError) as error:
            partial.unlink(missing_ok=True)
            with suppress(OSError):  # what is empty was made in vain
                self.folder.rmdir()
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{path}: cannot be written: {reason}; free space, then train with --resume") from error


def _best_name(epoch: int) -> str:
    return f"best-{epoch}.safetensors"


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as the format wants them: in memory, in order, none a part of another (weights may be tied)."""
    found: dict[str, Tensor] = {}
    memory: set[int] = set()
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        place = own.untyped_storage().data_ptr()
        found[name] = own.clone() if place in memory else own
        memory.add(place)
    return found


def _read(path: Path, known: tuple[str, ...] = ()) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        arrays, header = read_arrays(path, known)
    except ModelError as error:
        raise ModelError(_damaged(path)) from error
    return {name: torch.tensor(array) for name, array in arrays.items()}, header


def _damaged(path: Path) -> str:
    return f"{path}: expected a checkpoint, got a missing or damaged file; train anew without --resume"


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
