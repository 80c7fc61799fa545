"""A unit that runs through a transition system, whose states carry what was computed on the way.

Kong, Alberti, Andor, Bogatyy and Weiss (2017), DRAGNN: A transition-based framework for dynamically connected neural
networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import torch
from torch import Tensor

from trelliswork.nn.transitions.unit import TBRU
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.beam.search import NOTHING
from trelliswork.structures.beam.system import State, TransitionSystem, advance, decision_scores

AllFields = tuple[Tensor, ...]
N_OWN = 3  # fields of a state after those of the system: h, the cell of an LSTM, and the memory of earlier h


@dataclass(frozen=True)
class Wiring(Generic[State]):
    """The connection of a unit to a transition system: m(s), r(s), and where the output of a step is stored.

    Attributes:
        words: Returns the word in each slot of a state (0: the root, -1: none), m(s).
        place_of_step: Returns, from the state after a step and its decision, the place 0..n_places-1 where the h of the
            step is stored; later steps overwrite it.
        links: Returns the places (-1: none) whose h a state is linked to, in addition to that of the previous step.
        n_places: Number of places.
    """

    words: Callable[[State], Int[Tensor, "batch beam slots"]]
    place_of_step: Callable[[State, Tensor], Int[Tensor, "batch beam"]]
    links: Callable[[State], Int[Tensor, "batch beam links"]]
    n_places: int


class RecurrentSystem(Generic[State]):
    """A transition system whose states also hold h, the cell of an LSTM, and the h of earlier steps by place.

    A step computes the h of the state that it leads to, so that greedy and beam search, samples and likelihoods of
    `trelliswork.structures.beam` work with it, with `score` as the scorer.

    Args:
        system: The transition system.
        unit: The unit.
        projected: Result of `unit.project`.
        wiring: The words and earlier steps that the unit reads in each state.
    """  # [S4, TBRU; S4.278-279]

    def __init__(
        self,
        system: TransitionSystem[State],
        unit: TBRU,
        projected: Float[Tensor, "batch n+2 slots w"],
        wiring: Wiring[State],
    ):
        self.system, self.unit, self.projected, self.wiring = system, unit, projected, wiring
        self.n_decisions, self.kind = system.n_decisions, type(system.initial())

    def inner(self, state: AllFields) -> State:
        """Return the state of the system itself."""
        kind: Any = self.kind
        inner: State = kind(*state[:-N_OWN])
        return inner

    def initial(self) -> AllFields:
        start = self.system.initial()
        zeros = self.projected.new_zeros(len(start[0]), 1, self.unit.hidden)
        memory = zeros[:, :, None].expand(-1, -1, self.wiring.n_places, -1)
        return self._with_hidden(start, zeros, zeros, memory)

    def allowed(self, state: AllFields) -> Bool[Tensor, "batch beam a"]:
        return self.system.allowed(self.inner(state))

    def step(self, state: AllFields, decisions: Int[Tensor, "batch beam"]) -> AllFields:
        hidden, carried, memory = state[-N_OWN:]
        # h of the state in which the decision was taken is stored at the place of this step.
        stepped = self.system.step(self.inner(state), decisions)
        place = self.wiring.place_of_step(stepped, decisions)[:, :, None, None].expand(-1, -1, 1, self.unit.hidden)
        return self._with_hidden(stepped, hidden, carried, memory.scatter(2, place, hidden[:, :, None]))

    def finished(self, state: AllFields) -> Bool[Tensor, "batch beam"]:
        return self.system.finished(self.inner(state))

    def score(self, state: AllFields) -> Float[Tensor, "batch beam a"]:
        """Return the scores of all decisions, for searches and likelihoods."""
        return self.unit.scores(state[-N_OWN])

    def _with_hidden(self, state: State, last: Tensor, carried: Tensor, memory: Tensor) -> AllFields:
        """Compute h of a state and add it; `last` and `carried` are h and the cell of the previous step."""
        read, links = self.unit.read(self.projected, self.wiring.words(state)), None
        if self.unit.n_links:
            places = self.wiring.links(state)
            index = places.clamp(min=0)[..., None].expand(-1, -1, -1, self.unit.hidden)
            earlier = memory.gather(2, index) * (places >= 0)[..., None]
            links = torch.cat([last[:, :, None], earlier], 2)
        hidden, kept = self.unit(read, links, carried)
        return (*state, hidden, carried if kept is None else kept, memory)


class Trajectory(NamedTuple):
    """A run along decisions: h and scores of each step, -inf for decisions that are not allowed; -1 after the end."""

    hidden: Float[Tensor, "batch steps hidden"]
    scores: Float[Tensor, "batch steps a"]
    decisions: Int[Tensor, "batch steps"]

    def log_prob(self, decisions: Int[Tensor, "batch steps"]) -> Float[Tensor, "batch"]:
        """Return Σ_i ln Pr[d_i | d_1 ... d_{i-1}]."""  # [S4.280]
        index, inside = decisions.clamp(min=0), decisions != NOTHING
        log_probs = torch.where(inside[..., None], self.scores, 0.0).log_softmax(-1)
        return torch.where(inside, log_probs.gather(2, index[..., None]).squeeze(2), 0.0).sum(1)


def unroll(system: RecurrentSystem[State], decisions: Int[Tensor, "batch steps"] | None = None) -> Trajectory:
    """Run through gold decisions, or through the best decision of each state if None.

    Another unit can read `hidden` together with or instead of the vectors of words; gradients flow back through it.
    """  # [S4.278-279; S4, DRAGNN]
    state, steps = system.initial(), list[tuple[Tensor, Tensor, Tensor]]()
    done = system.finished(state)
    while not bool(done.all()):
        scores = decision_scores(system, system.score, state, done, len(steps))[:, 0]
        best = scores.argmax(-1) if decisions is None else decisions[:, len(steps)]
        taken = torch.where(done[:, 0], NOTHING, best)
        steps.append((state[-N_OWN][:, 0], scores, taken))
        state = advance(system, state, taken[:, None], ~done)
        done = system.finished(state)
    hidden, scores, taken = (torch.stack(parts, 1) for parts in zip(*steps, strict=True))
    return Trajectory(hidden, scores, taken)
