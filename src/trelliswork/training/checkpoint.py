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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from trelliswork.data.json_values import BadJSONError, Json, JsonObject, parse_json
from trelliswork.data.weight_files import read_arrays, with_checksum
from trelliswork.errors import ModelError, OutputError
from trelliswork.training.exclusive import STATE, CheckpointFolder
from trelliswork.training.objectives import TextReader
from trelliswork.training.progress import EpochRecord
from trelliswork.writing import PART

if TYPE_CHECKING:
    from trelliswork.training.run import Run


class Checkpoint(CheckpointFolder):
    """The checkpoint of one output folder, to write and to read."""

    def write(self, tensors: Mapping[str, Tensor], state: Mapping[str, Json]) -> None:
        """Replace the state; bests other than `state["best_epoch"]` are no longer needed."""
        self._write(STATE, tensors, {"state": json.dumps(state)})
        for path in self.folder.glob("best-*.safetensors"):
            if path.name != _best_name(state["best_epoch"]):
                path.unlink(missing_ok=True)

    def write_best(self, epoch: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights of the best epoch; call `write` after it."""
        self._write(_best_name(epoch), weights, {})

    def read(self) -> tuple[dict[str, Tensor], JsonObject]:
        """Return the tensors and values that `write` was given last."""
        path = self.folder / STATE
        tensors, header = _read(path, ("state",))
        try:
            return tensors, parse_json(header["state"])
        except (BadJSONError, KeyError) as error:
            raise ModelError(_damaged(path)) from error

    def read_best(self, epoch: int) -> dict[str, Tensor]:
        """Return the weights that `write_best` was given for this epoch."""
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
    """Return tensors as the format wants them: in memory, in order, none a part of another (weights may be tied)."""
    plain: dict[str, Tensor] = {}
    memory: set[int] = set()
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        place = own.untyped_storage().data_ptr()
        plain[name] = own.clone() if place in memory else own
        memory.add(place)
    return plain


def _read(path: Path, known: tuple[str, ...] = ()) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        arrays, header = read_arrays(path, known)
    except ModelError as error:
        raise ModelError(_damaged(path)) from error
    return {name: torch.tensor(array) for name, array in arrays.items()}, header


def _damaged(path: Path) -> str:
    return f"{path}: expected a checkpoint, got a missing or damaged file; train again without --resume"


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# From a run to the tensors and plain values of its checkpoint, and back: bit for bit on the CPU.


@dataclass
class Position:
    """Position of a run: steps done of an epoch, with the loss, tokens and seconds that they took."""

    epoch: int = 1
    steps: int = 0
    loss: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def mean_loss(self) -> float:
        """Per token."""
        return self.loss / max(self.tokens, 1)


def random_state() -> dict[str, Tensor]:
    """Return the state of torch's random numbers on every device."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_random_state(states: Mapping[str, Tensor]) -> None:
    """The inverse of `random_state`."""
    torch.set_rng_state(states["cpu"])
    on_devices = [states[f"cuda{i}"] for i in range(len(states) - 1)]
    if on_devices and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(on_devices)


def tensors_of(run: Run) -> dict[str, Tensor]:
    """Return every tensor that the next step depends on; the best weights are kept in a file of their own."""
    tensors = _named("weights", run.module.state_dict()) | _named("random", run.random)
    if run.average is not None:
        tensors |= _named("average", run.average.mean)
    if isinstance(run.model, TextReader):
        tensors |= _named("carried", run.model.carried())
    for index, values in run.optimizer.state_dict()["state"].items():
        tensors |= _named(f"optimizer.{index}", {name: value for name, value in values.items() if value is not None})
    return tensors


def values_of(run: Run) -> JsonObject:
    """Return everything else, fit for JSON."""
    return {
        "position": asdict(run.position),
        "schedule": run.schedule.position,
        "threads": torch.get_num_threads(),
        "batches_per_step": run.batches_per_step,
        "averaged": run.average.n_updates if run.average is not None else 0,
        "best": run.best.state(),
        "best_epoch": run.best.epoch,
        "best_scores": run.model.metrics.get("dev", {}),
        "history": [record.to_dict() for record in run.result.history],
    }


def restore(run: Run, tensors: Mapping[str, Tensor], values: Mapping[str, Json], best: Mapping[str, Tensor]) -> None:
    """Put a run where it was when `tensors_of` and `values_of` were asked.

    Args:
        run: The run, as it was begun.
        tensors: What `tensors_of` gave.
        values: What `values_of` gave.
        best: The weights of the best epoch.
    """
    run.module.load_state_dict(_under("weights", tensors))
    run.random = _under("random", tensors)
    set_random_state(run.random)
    _restore_optimizer(run.optimizer, _under("optimizer", tensors))
    run.position = Position(**values["position"])
    run.schedule.go_to(values["schedule"])
    if run.average is not None:
        run.average.restore(values["averaged"], _under("average", tensors))
    if isinstance(run.model, TextReader):
        run.model.carry(_under("carried", tensors))
    run.best.load(values["best"], best)
    run.result.history = [EpochRecord(**record) for record in values["history"]]
    if run.best.epoch:
        run.result.best_epoch = run.best.epoch
        run.result.best_score = run.result.history[run.best.epoch - 1].score
        run.model.metrics["dev"] = values["best_scores"]


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}."): value for name, value in tensors.items() if name.startswith(f"{prefix}.")}
