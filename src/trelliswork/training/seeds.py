"""The same training with several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.finished import finished_run
from trelliswork.training.loop import train
from trelliswork.training.progress import LineProgress, Progress
from trelliswork.training.seeds_result import SeedRow, SeedsResult


class Parts(NamedTuple):
    """Sentences to train on, to choose the best epoch by (None: the last is the best), and to score in the end."""

    train: Sequence[Sentence]
    dev: Sequence[Sentence] | None = None
    test: Sequence[Sentence] = ()


def train_seeds(
    make_model: Callable[[int], Any],
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
        if result is not None:
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
