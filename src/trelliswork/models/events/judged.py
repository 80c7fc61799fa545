"""From the graph of a record to entities, events and their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from trelliswork.data.events import Event
from trelliswork.distributions import FactorGraph
from trelliswork.models.events.extracted import Extracted
from trelliswork.models.events.inventory import Inventory
from trelliswork.nn.event_factors import Document

Span = tuple[int, int]


@dataclass(frozen=True)
class Judged:
    """The first token of each sentence of a record, its candidates for triggers and entities, and their graph."""

    starts: Sequence[int]
    triggers: Sequence[Sequence[int]]
    spans: Sequence[Sequence[Span]]
    document: Document

    @cached_property
    def graph(self) -> FactorGraph:
        return self.document.graph()

    def extracted(self, inventory: Inventory, top_k: int, *, confidence: bool) -> Extracted:
        """The best assignment that AD3 finds; where the graph is narrow enough, exact probabilities and the k best.

        In a wide graph the whole has no probability, those of parts are the beliefs of loopy propagation, and there is
        one value. If AD3 does not know that its value is the best, a narrow graph is solved exactly.
        """
        if not any(m or k for m, k in self.document.sizes):
            return Extracted(probability=1.0)
        value, search = self._best()
        narrow = (confidence or top_k > 0) and self.graph.is_narrow
        marginals = None
        if confidence:
            marginals = self.graph.marginals if narrow else self.graph.propagate().marginals
        found = self._values(inventory, value, marginals, search)
        if not narrow:
            return found
        values, scores = self.graph.top_k(max(1, top_k))
        shares = (scores - self.graph.log_partition).exp().tolist()
        best = replace(found, probability=float(self.graph.log_prob(value).exp()))
        others = [
            replace(self._values(inventory, each, None, search), probability=share)
            for each, share in zip(values, shares, strict=True) if share > 0.0 and not bool((each == value).all())
        ]  # fmt: skip
        return replace(best, others=[best, *others][: max(1, top_k)])

    def _best(self) -> tuple[Tensor, str]:
        found = self.graph.ad3()
        assert found.value is not None
        if bool(found.certified):
            return found.value, "AD3, certified"
        return (self.graph.argmax, "exact") if self.graph.is_narrow else (found.value, "AD3")

    def _values(self, inventory: Inventory, value: Tensor, marginals: Tensor | None, search: str) -> Extracted:
        """Entities and events of an assignment, by their positions in the record, with probabilities if given."""
        chosen = value.tolist()
        types, roles, kinds = self.document.split(chosen)
        chances = marginals if marginals is not None else torch.ones(len(chosen), max(chosen) + 1)
        sure = self.document.split([float(p[v]) for p, v in zip(chances, chosen, strict=True)])
        found = Extracted(search=search)
        for s, start in enumerate(self.starts):
            there = [j for j, kind in enumerate(kinds[s]) if kind]
            ends = [(start + self.spans[s][j][0], start + self.spans[s][j][1]) for j in there]
            found.entities.extend(
                (*span, inventory.kinds[kinds[s][j] - 1]) for span, j in zip(ends, there, strict=True)
            )
            found.entity_probs.extend(sure[2][s][j] for j in there)
            for i in (i for i, type_ in enumerate(types[s]) if type_):
                taking_part = [(span, j) for span, j in zip(ends, there, strict=True) if roles[s][i][j]]
                arguments = tuple((*span, inventory.roles[roles[s][i][j]]) for span, j in taking_part)
                found.events.append(Event(start + self.triggers[s][i], inventory.types[types[s][i]], arguments))
                found.triggers.append(sure[0][s][i])
                found.arguments.append([sure[1][s][i][j] for _, j in taking_part])
        return found
