"""How a run went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.training.progress import EpochRecord


@dataclass
class TrainingResult(Rich):
    """`history` per epoch, the best epoch and its score, and whether Ctrl-C ended the run."""

    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    best_score: float | None = None
    interrupted: bool = False
    note: str = ""

    def _shown(self) -> Sequence[Piece]:
        """For notebooks: a row for each epoch."""
        rows = [(each.epoch, each.loss, each.score, each.seconds) for each in self.history]
        return [self.summary, Table(rows, ("epoch", "loss", self.metric, "seconds"))]

    @property
    def seconds(self) -> float:
        """Wall-clock time of all epochs."""
        return sum(record.seconds for record in self.history)

    @property
    def metric(self) -> str:
        """What the score is."""
        return self.history[-1].metric if self.history else ""

    @property
    def summary(self) -> str:
        """In a few words."""
        return f"best epoch {self.best_epoch} of {len(self.history)}, {self.seconds:.1f} s"
