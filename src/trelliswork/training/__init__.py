"""Training: the common loop, its settings, optimizers and progress. What needs torch is imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trelliswork.training.config import TrainingConfig
from trelliswork.training.progress import EpochRecord, make_progress

if TYPE_CHECKING:
    from trelliswork.training.loop import TrainingResult, train

__all__ = ["EpochRecord", "TrainingConfig", "TrainingResult", "make_progress", "train"]


def __getattr__(name: str) -> Any:
    if name not in ("TrainingResult", "train"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trelliswork.training import loop

    return getattr(loop, name)
