"""Explanations of pair n-grams: the alignment of a source with its best target, and other targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import ClassVar

from trelliswork.models.transducers.transducer import NOTHING


@dataclass(frozen=True)
class AlignedChunk:
    """A piece of the source, what it becomes, and the probability that it does, given both strings."""

    source: str
    target: str
    probability: float


@dataclass(frozen=True)
class StringExplanation:
    """The chunks of the best alignment, and the best targets; prints as text and shows as a table."""

    title: ClassVar[str] = "Alignments"
    lead: ClassVar[str] = (
        "For each source the pieces that become a piece of the best target, each with the probability that they belong "
        "together given both strings, and the best targets with their probabilities, summed over all alignments."
    )
    legend: ClassVar[str] = '<p class="note">All probabilities are exact.</p>\n'

    words: tuple[str, ...]
    chunks: tuple[AlignedChunk, ...]
    targets: tuple[tuple[str, float], ...]
    unknown: Mapping[str, str | None] = field(default_factory=dict)  # symbols never seen, and what is read for them

    @property
    def remark(self) -> str:
        """Remark about symbols that were never seen; empty if all were."""
        parts = [
            f"{symbol!r} was never seen and is {'passed over' if twin is None else f'read as {twin!r}'}"
            for symbol, twin in self.unknown.items()
        ]
        return "; ".join(parts)

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` best targets."""
        targets = [{"value": y, "probability": p} for y, p in self.targets[:most]]
        return {"chunks": [asdict(each) for each in self.chunks], "targets": targets}

    def __str__(self) -> str:
        width = max((len(each.source) for each in self.chunks), default=0)
        wide = max((len(each.target or NOTHING) for each in self.chunks), default=0)
        lines = [
            f"  {each.source:{width}}  {each.target or NOTHING:{wide}}  {100 * each.probability:5.1f}%"
            for each in self.chunks
        ]
        ranked = [f"{i:3d}. {100 * p:5.1f}%  {target}" for i, (target, p) in enumerate(self.targets, 1)]
        return "\n".join(["".join(self.words), *lines, *ranked, *([f"  {self.remark}"] if self.remark else [])])

    def _repr_html_(self) -> str:
        """Return two tables: the chunks, and the targets."""
        chunks = "".join(
            f"<tr><td><b>{escape(each.source)}</b></td><td>{escape(each.target or NOTHING)}</td>"
            f"<td>{100 * each.probability:.1f}%</td></tr>"
            for each in self.chunks
        )
        targets = "".join(f"<tr><td>{escape(y)}</td><td>{100 * p:.1f}%</td></tr>" for y, p in self.targets)
        first = f"<tr><th>source</th><th>target</th><th>together</th></tr>{chunks}"
        second = f"<tr><th>target</th><th>probability</th></tr>{targets}"
        remark = f'<p class="note">{escape(self.remark)}</p>' if self.remark else ""
        return f'<table class="arcs">{first}</table><table class="arcs">{second}</table>{remark}'
