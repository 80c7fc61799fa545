"""Training: the common loop, its settings, objectives, optimizers, schedules, checkpoints and progress."""

from __future__ import annotations

from trelliswork.training.config import TrainingConfig
from trelliswork.training.loop import train
from trelliswork.training.progress import EpochRecord, make_progress
from trelliswork.training.result import TrainingResult
from trelliswork.training.seeds import SeedsResult, train_seeds

__all__ = [
    "EpochRecord",
    "SeedsResult",
    "TrainingConfig",
    "TrainingResult",
    "make_progress",
    "train",
    "train_seeds",
]
