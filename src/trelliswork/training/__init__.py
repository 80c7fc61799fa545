"""Training: the common loop, its settings, optimizers and progress."""

from __future__ import annotations

from trelliswork.training.config import TrainingConfig
from trelliswork.training.loop import TrainingResult, train
from trelliswork.training.progress import EpochRecord, make_progress

__all__ = ["EpochRecord", "TrainingConfig", "TrainingResult", "make_progress", "train"]
