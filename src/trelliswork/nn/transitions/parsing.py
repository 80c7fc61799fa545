"""The unit of a dependency parser: which words a state shows it, and which earlier steps it is linked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from trelliswork.nn.transitions.unit import TBRU, Cell
from trelliswork.nn.transitions.unrolling import N_OWN, RecurrentSystem, Wiring
from trelliswork.runtime.shapes import Float
from trelliswork.structures.beam.likelihood import locally_normalised
from trelliswork.structures.beam.parse_state import SLOTS, DependencySystem, ParseState

N_LINKS = 4  # the step before, and those that last changed s0, s1 and b0
_LINKED = [SLOTS.index(slot) for slot in ("s0", "s1", "b0")]


class ParsingUnit(TBRU):
    """A `TBRU` over the tops of the stack, the next word, and their outermost dependents.

    A feed-forward cell sees the state alone. Others are linked to the step before and to the steps that shifted, or
    last gave a dependent to, the two topmost words of the stack and the next word.

    A global score of a decision is ln p(decision | state) and the value of the state, v · h + b, which is 0 before
    global training: that begins with the local model, and can then move mass between paths at any step.
    """

    def __init__(self, dim: int, hidden: int, n_decisions: int, *, cell: Cell = "feed-forward", dropout: float = 0.0):
        n_links = 0 if cell == "feed-forward" else N_LINKS
        super().__init__(
            dim, hidden, n_slots=len(SLOTS), n_decisions=n_decisions, n_links=n_links, cell=cell, dropout=dropout
        )
        self.value = nn.Linear(hidden, 1)
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)

    def values(self, hidden: Float[Tensor, "*states hidden"]) -> Float[Tensor, "*states"]:
        """What each state adds to the global scores of its decisions."""
        found: Tensor = self.value(self.dropout(hidden))[..., 0]
        return found

    def connected(
        self, system: DependencySystem, projected: Float[Tensor, "batch n+2 slots w"]
    ) -> tuple[Any, Callable[[Any], Tensor]]:
        """A system and a scorer for `beam_search`, `beam_log_prob` and so on."""
        if not self.n_links:
            return system, lambda state: self.scores(self._hidden(system, projected, state))
        wiring = Wiring[ParseState](
            system.features, system.made, lambda state: system.features(state)[..., _LINKED], system.longest + 1
        )
        recurrent = RecurrentSystem(system, self, projected, wiring)
        return recurrent, recurrent.score

    def valued(
        self, system: DependencySystem, projected: Float[Tensor, "batch n+2 slots w"]
    ) -> tuple[Any, Callable[[Any], Tensor]]:
        """The same with global scores."""  # [S4.293-294]
        connected, scorer = self.connected(system, projected)
        log_probs = locally_normalised(connected, scorer)

        def scores(state: Any) -> Tensor:
            hidden = state[-N_OWN] if self.n_links else self._hidden(system, projected, state)
            return log_probs(state) + self.values(hidden)[..., None]

        return connected, scores

    def _hidden(self, system: DependencySystem, projected: Tensor, state: ParseState) -> Tensor:
        found: Tensor = self(self.read(projected, system.features(state)))[0]
        return found
