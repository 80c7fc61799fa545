"""Training: the common loop, its settings, objectives, optimizers, schedules, checkpoints and progress.

loop.py, run.py                            the loop, its steps, and all that the next step depends on
config.py, objectives.py                   settings, and what is minimized
schedules.py, averaging.py                 optimizers and their rates; averaged and best weights
checkpoint.py                              runs that are killed go on bit for bit
exclusive.py                               one run at a time in a folder
interrupts.py, failures.py                 Ctrl-C between steps; batches that cannot be learned from
progress.py, tensorboard.py, result.py     what is shown, and what a run, several seeds or a search return
trials.py                                  the search for settings
lbfgs.py, vector_kernels.py                L-BFGS and OWL-QN over numpy arrays
processes.py, shares.py                    several processes train one network
together.py, process_arrays.py             the same over numpy arrays, for models without a network

What needs torch is imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.data.settings import Numbers, OneOf
    from trelliswork.training.config import TrainingConfig
    from trelliswork.training.loop import Parts, train, train_seeds
    from trelliswork.training.progress import EpochRecord, make_progress
    from trelliswork.training.result import SeedsResult, TrainingResult
    from trelliswork.training.trials import SearchConfig, search

__all__ = [
    "EpochRecord",
    "Numbers",
    "OneOf",
    "Parts",
    "SearchConfig",
    "SeedsResult",
    "TrainingConfig",
    "TrainingResult",
    "make_progress",
    "search",
    "train",
    "train_seeds",
]
_HOMES = {
    "config": "TrainingConfig",
    "loop": "Parts train train_seeds",
    "progress": "EpochRecord make_progress",
    "result": "SeedsResult TrainingResult",
    "trials": "Numbers OneOf SearchConfig search",
}
__getattr__ = lazy_names(__name__, _HOMES)
