"""Calibration: do things said with confidence 0.8 turn out right 80 times in 100?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.errors import TrellisworkError

_ROUNDING = 1e-5  # probabilities computed in single precision may exceed 1 by this much


@dataclass(frozen=True)
class Bin(Rich):
    """The pairs whose confidence lies in (low, high]; the first bin also holds 0."""

    low: float
    high: float
    count: int
    mean_confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration(Rich):
    """Expected and largest calibration error, with the bins to plot. Empty bins have count 0."""

    expected_error: float
    max_error: float
    bins: tuple[Bin, ...]
    count: int

    def _shown(self) -> Sequence[Piece]:
        """For notebooks: both errors, and the bins that are not empty."""
        rows = [
            (f"{each.low:.2g} to {each.high:.2g}", each.count, each.mean_confidence, each.accuracy)
            for each in self.bins
            if each.count
        ]
        header = ("confidence", "count", "mean confidence", "accuracy")
        return [f"expected error {self.expected_error:.4f}, largest {self.max_error:.4f}", Table(rows, header)]


def calibration(pairs: Iterable[tuple[float, bool]], n_bins: int = 10) -> Calibration:
    """Expected calibration error of (confidence, correct) pairs over bins of equal width.

    The error is the mean over all pairs of |accuracy - mean confidence| of the pair's bin.

    >>> round(calibration([(0.75, True), (0.75, False)]).expected_error, 6)
    0.25
    """
    if n_bins < 1:
        raise TrellisworkError(f"the number of bins must be at least 1; got {n_bins}")
    members: list[list[tuple[float, bool]]] = [[] for _ in range(n_bins)]
    count = 0
    for confidence, correct in pairs:
        if not -_ROUNDING <= confidence <= 1 + _ROUNDING:
            raise TrellisworkError(f"a confidence must lie in 0..1; got {confidence} at pair {count}")
        clipped = min(max(float(confidence), 0.0), 1.0)
        members[_bin_of(clipped, n_bins)].append((clipped, bool(correct)))
        count += 1
    bins = tuple(_summary(i, n_bins, inside) for i, inside in enumerate(members))
    gaps = [(bin_.count, abs(bin_.accuracy - bin_.mean_confidence)) for bin_ in bins if bin_.count]
    expected = sum(n * gap for n, gap in gaps) / count if count else 0.0
    return Calibration(expected, max((gap for _, gap in gaps), default=0.0), bins, count)


def _bin_of(confidence: float, n_bins: int) -> int:
    """Return the bin i with i / n < confidence <= (i + 1) / n."""
    i = min(int(confidence * n_bins), n_bins - 1)
    return i - 1 if i > 0 and confidence <= i / n_bins else i


def _summary(i: int, n_bins: int, inside: list[tuple[float, bool]]) -> Bin:
    n = len(inside)
    mean = sum(confidence for confidence, _ in inside) / n if n else 0.0
    accuracy = sum(correct for _, correct in inside) / n if n else 0.0
    return Bin(i / n_bins, (i + 1) / n_bins, n, mean, accuracy)
