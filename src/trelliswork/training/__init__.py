"""Training: the common loop, its settings, objectives, optimizers, schedules, checkpoints and progress.

What needs torch is imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trelliswork.training.config import TrainingConfig
from trelliswork.training.progress import EpochRecord, make_progress
from trelliswork.training.search_space import Numbers, OneOf

if TYPE_CHECKING:
    from trelliswork.training.loop import train
    from trelliswork.training.result import TrainingResult
    from trelliswork.training.seeds import SeedsResult, train_seeds
    from trelliswork.training.trials import search

_HOME = {
    "SeedsResult": "seeds", "TrainingResult": "result", "search": "trials", "train": "loop", "train_seeds": "seeds",
}  # fmt: skip

__all__ = [
    "EpochRecord",
    "Numbers",
    "OneOf",
    "SeedsResult",
    "TrainingConfig",
    "TrainingResult",
    "make_progress",
    "search",
    "train",
    "train_seeds",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
