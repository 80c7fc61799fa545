"""How training with several seeds went: how much of a score is luck.

>>> result = SeedsResult("f1", [SeedRow(0, 0.93, None, 5, 10.0), SeedRow(1, 0.95, None, 4, 9.0)])
>>> print(result.table())
seed   dev f1  best epoch  seconds
   0    93.00           5     10.0
   1    95.00           4      9.0
mean    94.00
 +/-     1.41
"""

from __future__ import annotations

from dataclasses import dataclass

from trelliswork.lazy import lazy_module

statistics = lazy_module("statistics")


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
