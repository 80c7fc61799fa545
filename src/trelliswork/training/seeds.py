"""The same training with several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.finished import finished_run
from trelliswork.training.loop import train as train_once
from trelliswork.training.progress import Progress, make_progress
from trelliswork.training.seeds_result import SeedRow, SeedsResult


def train_seeds(
    make_model: Callable[[int], Any],
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    config: TrainingConfig | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    test: Sequence[Sentence] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[], Progress] | None = None,
    locked: bool = False,
) -> SeedsResult:
    """Train `make_model(seed)` for each seed and score it; `seeds=3` means those from `config.seed` on.

    The model of a seed is saved in `out`/seed-N. `resume` goes on with a seed that was stopped, and takes those that
    are finished from there. `locked` as for `train`.
    """
    config = config or TrainingConfig()
    chosen = range(config.seed, config.seed + seeds) if isinstance(seeds, int) else list(seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise TrellisworkError(f"expected one seed or more, all different; got {seeds}")
    rows, metric = [], ""
    for seed in chosen:
        model, folder = make_model(seed), None if out is None else Path(out) / f"seed-{seed}"
        own, shown = replace(config, seed=seed), progress() if progress is not None else make_progress()
        result = finished_run(folder, model, own) if resume and folder is not None else None
        if result is not None:
            shown.note(f"seed {seed}: finished already")
            model = type(model).load(folder) if test else model
        else:
            result = train_once(model, train, dev, own, out=folder, resume=resume, progress=shown, locked=locked)
        scores = model.evaluate(test) if test else {}
        metric = scores.get("metric") or (result.history[-1].metric if result.history else metric)
        rows.append(SeedRow(seed, result.best_score, scores.get("score"), result.best_epoch, result.seconds))
        if result.interrupted:
            return SeedsResult(metric, rows, interrupted=True)
    return SeedsResult(metric, rows)
