"""The unit of a dependency parser: which words a state shows it, and which earlier steps it is linked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from trelliswork.nn.transitions.unit import TBRU, Cell
from trelliswork.nn.transitions.unrolling import RecurrentSystem, Wiring
from trelliswork.runtime.shapes import Float
from trelliswork.structures.beam.parse_state import SLOTS, DependencySystem, ParseState

N_LINKS = 4  # the step before, and those that last changed s0, s1 and b0
_LINKED = [SLOTS.index(slot) for slot in ("s0", "s1", "b0")]


class ParsingUnit(TBRU):
    """A `TBRU` over the tops of the stack, the next word, and their outermost dependents.

    A feed-forward cell sees the state alone. Others are linked to the step before and to the steps that shifted, or
    last gave a dependent to, the two topmost words of the stack and the next word.
    """

    def __init__(self, dim: int, hidden: int, n_decisions: int, *, cell: Cell = "feed-forward", dropout: float = 0.0):
        n_links = 0 if cell == "feed-forward" else N_LINKS
        super().__init__(
            dim, hidden, n_slots=len(SLOTS), n_decisions=n_decisions, n_links=n_links, cell=cell, dropout=dropout
        )

    def connected(
        self, system: DependencySystem, projected: Float[Tensor, "batch n+2 slots w"]
    ) -> tuple[Any, Callable[[Any], Tensor]]:
        """A system and a scorer for `beam_search`, `beam_log_prob` and so on."""
        if not self.n_links:
            return system, lambda state: self.scores(self(self.read(projected, system.features(state)))[0])
        wiring = Wiring[ParseState](
            system.features, system.made, lambda state: system.features(state)[..., _LINKED], system.longest + 1
        )
        recurrent = RecurrentSystem(system, self, projected, wiring)
        return recurrent, recurrent.score
