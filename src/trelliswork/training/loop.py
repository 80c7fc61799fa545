"""The training loop that every model shares.

    >>> tagger = Tagger.from_data(train_sentences)                                            # doctest: +SKIP
    >>> result = train(tagger, train_sentences, dev_sentences, TrainingConfig(epochs=5), out="model")  # doctest: +SKIP
    epoch 1: loss 0.5525, dev f1 89.84, 19,300 tokens/s, 11.0 s
    ...

A model offers `encode`, `loss`, `evaluate`, `save` and `metrics` (see `Trainable`); the loop does the rest:
batches by token budget, seeds, clipping, schedules, early stopping, the best weights kept, checkpoints, and a clean
end on Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.exclusive import exclusive
from trelliswork.training.failures import BadBatchError
from trelliswork.training.objectives import Trainable
from trelliswork.training.processes import SharedInterrupts
from trelliswork.training.progress import LineProgress, Progress
from trelliswork.training.result import SeedRow, SeedsResult, TrainingResult, finished_run
from trelliswork.training.run import Run


def train(
    model: Trainable,
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    config: TrainingConfig | None = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train `model` in place and leave it with its best weights, saved in `out` if given.

    Without `dev` the last epoch counts as the best. The same model, data and `config` give the same weights, bit for
    bit, on one machine's CPU. `progress` gets each event: `make_progress(on_epoch=...)` calls a function after each
    epoch, `TensorBoardProgress` also writes loss, score and speed for TensorBoard. Ctrl-C (or `KeyboardInterrupt` from
    such a function) ends the run with the best model so far; a loss that is not finite ends it with an error that names
    the batch.

    With `out`, a run that was killed or interrupted has left a checkpoint there: `resume=True`, with the model made
    again from the same data, goes on from it to the weights that the whole run would have given. A second run into the
    same folder is refused while one is going on.

    Started by torchrun, all processes train one model together: see `training.processes`.

    Args:
        model: The model to train; see `Trainable`.
        train: Sentences to train on.
        dev: Sentences to choose the best epoch by.
        config: Settings of training.
        out: The folder for the model and the checkpoints.
        resume: Whether to go on from the checkpoint in `out`.
        progress: Receives epochs and batches; None prints a line for each epoch.

    Returns:
        The history, the best epoch and its score.
    """
    run = Run(model, train, dev, config or TrainingConfig(), out)
    with exclusive(run.out):
        return carry_out(run, progress or LineProgress(), resume=resume)


def carry_out(run: Run, progress: Progress, *, resume: bool = False) -> TrainingResult:
    """Carry out all epochs of a run, for a caller who has locked its folder (see `exclusive`).

    Args:
        run: The run.
        progress: Receives epochs and batches.
        resume: Whether to go on from the checkpoint.

    Returns:
        The history, the best epoch and its score.
    """
    shown_by = progress if run.processes.is_first else Progress()
    with shown_by as shown, torch.random.fork_rng(devices=[]), SharedInterrupts(run.processes) as interrupts:
        torch.manual_seed(run.config.seed)
        run.begin(shown, resume)
        try:
            run.all_epochs(shown, interrupts)
        except KeyboardInterrupt:
            run.interrupted()
        except BadBatchError as error:
            raise type(error)(f"{error}{run.rescue(error)}") from error.__cause__
        run.finish()
        if run.result.interrupted:
            shown.note(run.result.note)
    return run.result


# The same training with several seeds.


class Parts(NamedTuple):
    """Sentences to train on, to choose the best epoch by (None: the last is the best), and to score in the end."""

    train: Sequence[Sentence]
    dev: Sequence[Sentence] | None = None
    test: Sequence[Sentence] = ()


def train_seeds(
    make_model: Callable[[int], Trainable],
    parts: Parts,
    config: TrainingConfig | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[], Progress] = LineProgress,
) -> SeedsResult:
    """Train `make_model(seed)` for each seed and score it; `seeds=3` means those from `config.seed` on.

    The model of a seed is saved in `out`/seed-N. `resume` goes on with a seed that was stopped, and takes those that
    are finished from there.

    Args:
        make_model: Makes the model of a seed.
        parts: Sentences to train on, to choose by, and to score.
        config: Settings of training.
        seeds: The number of seeds, or the seeds.
        out: The folder for the folders of all seeds.
        resume: Whether to go on with what is there.
        progress: Makes the progress of a seed.

    Returns:
        A row for each seed.
    """
    config = config or TrainingConfig()
    chosen = range(config.seed, config.seed + seeds) if isinstance(seeds, int) else list(seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise TrellisworkError(f"expected one seed or more, all different; got {seeds}")
    rows, metric = [], ""
    for seed in chosen:
        model, folder = make_model(seed), None if out is None else Path(out) / f"seed-{seed}"
        own, shown = replace(config, seed=seed), progress()
        result = finished_run(folder, model, own) if resume and folder is not None else None
        if result is not None and folder is not None:
            shown.note(f"seed {seed}: finished already")
            model = type(model).load(folder) if parts.test else model
        else:
            result = train(model, parts.train, parts.dev, own, out=folder, resume=resume, progress=shown)
        scores = model.evaluate(parts.test) if parts.test else {}
        metric = scores.get("metric") or (result.history[-1].metric if result.history else metric)
        rows.append(SeedRow(seed, result.best_score, scores.get("score"), result.best_epoch, result.seconds))
        if result.interrupted:
            return SeedsResult(metric, rows, interrupted=True)
    return SeedsResult(metric, rows)
