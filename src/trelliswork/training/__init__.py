"""Training: the common loop, its settings, objectives, optimizers, schedules, checkpoints and progress.

loop.py, run.py, state.py                          the loop, its steps, and all that the next step depends on
config.py, objectives.py, optimizers.py,           what is minimized and how
schedules.py, averaging.py, early_stopping.py
checkpoint.py, fingerprint.py, finished.py         runs that are killed go on bit for bit
exclusive.py, folder_names.py, strays.py           one run at a time in a folder
interrupts.py, failures.py                         Ctrl-C between steps; batches that cannot be learned from
progress.py, tensorboard.py, result.py,            what is shown and told
seeds_result.py, search_result.py
seeds.py, trials.py, search_space.py               several seeds, the search for settings
lbfgs.py, vector_kernels.py                        L-BFGS and OWL-QN over numpy arrays
processes.py, shares.py                            several processes train one network
together.py, process_arrays.py                     the same over numpy arrays, for models without a network
shared_memory.py                                   memory that the processes of one machine share
trainable.py                                       what the loop asks of a model

What needs torch is imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.training.config import TrainingConfig
    from trelliswork.training.loop import train
    from trelliswork.training.progress import EpochRecord, make_progress
    from trelliswork.training.result import TrainingResult
    from trelliswork.training.search_space import Numbers, OneOf
    from trelliswork.training.seeds import Parts, train_seeds
    from trelliswork.training.seeds_result import SeedsResult
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
    "loop": "train",
    "progress": "EpochRecord make_progress",
    "result": "TrainingResult",
    "search_space": "Numbers OneOf",
    "seeds": "Parts train_seeds",
    "seeds_result": "SeedsResult",
    "trials": "SearchConfig search",
}
__getattr__ = lazy_names(__name__, _HOMES)
