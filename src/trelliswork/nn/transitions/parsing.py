"""The unit of a dependency parser, which reads words of a state and earlier steps.

Andor et al. (2016), Globally normalized transition-based neural networks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.nn.transitions.unit import N_OWN, TBRU, Cell, RecurrentSystem, Wiring
from trelliswork.runtime.arrays import Float
from trelliswork.structures.beam.likelihood import locally_normalised
from trelliswork.structures.beam.parse_state import SLOTS, DependencySystem, ParseState

N_LINKS = 4  # the previous step, and the last steps that changed s0, s1 and b0
_LINKED = [SLOTS.index(slot) for slot in ("s0", "s1", "b0")]

# A transition system and its scorer, over states with or without hidden units.
Connected = tuple[Any, Callable[[Any], Tensor]]


class ParsingUnit(TBRU):
    """A `TBRU` over the top words of the stack, the next word, and their outermost dependents.

    A feed-forward cell reads the state only. Others are linked to the previous step and to the steps that shifted, or
    last added a dependent to, the two top words of the stack and the next word.

    The global score of a decision is ln p(decision | state) plus the value of the state, v · h + b. Values are 0 before
    global training, which therefore starts from the local model and can then move mass between paths at any step.

    Args:
        dim: Width of the vectors of words.
        hidden: Units of the cell.
        n_decisions: Number of decisions.
        cell: "feed-forward", "lstm" or "gru".
        dropout: Share of units that are dropped.
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
        """Return the value of each state, which is added to the global scores of its decisions."""
        values: Tensor = self.value(self.dropout(hidden))[..., 0]
        return values

    def connect(self, system: DependencySystem, projected: Float[Tensor, "batch n+2 slots w"]) -> Connected:
        """Return a transition system and a scorer, the arguments of `beam_search`, `beam_log_prob` and so on."""
        if not self.n_links:
            return system, lambda state: self.scores(self._hidden(system, projected, state))
        wiring = Wiring[ParseState](
            system.features, system.made, lambda state: system.features(state)[..., _LINKED], system.longest + 1
        )
        recurrent = RecurrentSystem(system, self, projected, wiring)
        return recurrent, recurrent.score

    def connect_global(self, system: DependencySystem, projected: Float[Tensor, "batch n+2 slots w"]) -> Connected:
        """Return a transition system and a scorer with global scores."""  # [S4.293-294]
        connected, scorer = self.connect(system, projected)
        log_probs = locally_normalised(connected, scorer)

        def scores(state: Any) -> Tensor:
            hidden = state[-N_OWN] if self.n_links else self._hidden(system, projected, state)
            return log_probs(state) + self.values(hidden)[..., None]

        return connected, scores

    def _hidden(self, system: DependencySystem, projected: Tensor, state: ParseState) -> Tensor:
        hidden: Tensor = self(self.read(projected, system.features(state)))[0]
        return hidden


# The unit of a tagger, whose states another unit can read (stack-propagation).


class TaggingUnit(nn.Module):
    """A feed-forward unit (`TBRU`) over the word at each position, all of whose states are computed at once.

    Both the scorers of tags and the next unit, for example of a parser, read its states.

    Args:
        dim: Width of the vectors of words.
        hidden: Number of units.
        dropout: Share of units that are dropped.

        >>> import torch
        >>> TaggingUnit(20, 8)(torch.zeros(2, 7, 20)).shape
        torch.Size([2, 7, 8])

    Zhang and Weiss (2016), Stack-propagation: Improved representation learning for syntax.
    """  # [S4, DRAGNN]

    def __init__(self, dim: int, hidden: int, *, dropout: float = 0.0):
        super().__init__()
        self.word, self.dropout = nn.Linear(dim, hidden), Dropout(dropout)
        initialize_fan_in(self)

    def forward(self, vectors: Float[Tensor, "*words d"]) -> Float[Tensor, "*words hidden"]:
        """Return h of each word."""
        hidden: Tensor = self.dropout(self.word(vectors).relu())
        return hidden
