"""The same training with several seeds: how much of a score is luck.

>>> result = SeedsResult("f1", [SeedRow(0, 0.93, None, 5, 10.0), SeedRow(1, 0.95, None, 4, 9.0)])
>>> print(result.table())
seed   dev f1  best epoch  seconds
   0    93.00           5     10.0
   1    95.00           4      9.0
mean    94.00
 +/-     1.41
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.training.config import TrainingConfig
from trelliswork.training.finished import finished_run
from trelliswork.training.loop import train as train_once
from trelliswork.training.progress import Progress, make_progress


@dataclass(frozen=True)
class SeedRow:
    """The scores of one seed; `test` is None without test data, `dev` without dev data."""

    seed: int
    dev: float | None
    test: float | None
    best_epoch: int
    seconds: float


@dataclass(frozen=True)
class SeedsResult:
    """One row a seed; the deviation is that of a sample, 0 for a single seed."""

    metric: str
    rows: list[SeedRow]
    interrupted: bool = False

    def scores(self, part: str) -> list[float]:
        """The scores of all seeds on "dev" or "test", where there are any."""
        return [getattr(row, part) for row in self.rows if getattr(row, part) is not None]

    def mean(self, part: str) -> float:
        """Of the scores on "dev" or "test"."""
        return statistics.fmean(self.scores(part))

    def deviation(self, part: str) -> float:
        """Of the scores on "dev" or "test"."""
        return statistics.stdev(self.scores(part)) if len(self.scores(part)) > 1 else 0.0

    @property
    def parts(self) -> list[str]:
        """ "dev" and "test", as far as they were scored."""
        return [part for part in ("dev", "test") if self.scores(part)]

    def table(self) -> str:
        """For people: a line for each seed, the mean and the deviation, in percent."""
        heads = "".join(f"{part + ' ' + self.metric:>9}" for part in self.parts)
        lines = [f"seed{heads}  best epoch  seconds"]
        for row in self.rows:
            found = "".join(f"{100 * getattr(row, part):>9.2f}" for part in self.parts)
            lines.append(f"{row.seed:>4}{found}{row.best_epoch:>12}{row.seconds:>9.1f}")
        for name, value in (("mean", self.mean), ("+/-", self.deviation)):
            lines.append(f"{name:>4}" + "".join(f"{100 * value(part):>9.2f}" for part in self.parts))
        return "\n".join(lines)


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
