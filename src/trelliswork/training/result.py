"""How a run went."""

from __future__ import annotations

from dataclasses import dataclass, field

from trelliswork.training.progress import EpochRecord


@dataclass
class TrainingResult:
    """`history` per epoch, the best epoch and its score, and whether Ctrl-C ended the run."""

    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    best_score: float | None = None
    interrupted: bool = False
    note: str = ""

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
