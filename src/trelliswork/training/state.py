"""From a run to the tensors and plain values of its checkpoint, and back: bit for bit on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from trelliswork.training.progress import EpochRecord

if TYPE_CHECKING:
    from trelliswork.training.run import Run


@dataclass
class Position:
    """Where a run is: steps done of an epoch, with the loss, tokens and seconds that they took."""

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
    """The state of torch's random numbers on every device."""
    found = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return found


def set_random_state(states: Mapping[str, Tensor]) -> None:
    """The inverse of `random_state`."""
    torch.set_rng_state(states["cpu"])
    on_devices = [states[f"cuda{i}"] for i in range(len(states) - 1)]
    if on_devices and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(on_devices)


def tensors_of(run: Run) -> dict[str, Tensor]:
    """Every tensor that the next step depends on; the best weights are kept beside them."""
    found = _named("weights", run.module.state_dict()) | _named("random", run.random)
    if run.average is not None:
        found |= _named("average", run.average.mean)
    for index, values in run.optimizer.state_dict()["state"].items():
        found |= _named(f"optimizer.{index}", {name: value for name, value in values.items() if value is not None})
    return found


def values_of(run: Run) -> dict[str, Any]:
    """Everything else, fit for JSON."""
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


def restore(run: Run, tensors: Mapping[str, Tensor], values: Mapping[str, Any], best: Mapping[str, Tensor]) -> None:
    """Put a run where it was when `tensors_of` and `values_of` were asked."""
    run.module.load_state_dict(_under("weights", tensors))
    run.random = _under("random", tensors)
    set_random_state(run.random)
    _restore_optimizer(run.optimizer, _under("optimizer", tensors))
    run.position = Position(**values["position"])
    run.schedule.go_to(values["schedule"])
    if run.average is not None:
        run.average.restore(values["averaged"], _under("average", tensors))
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
