"""A unit run through a transition system: its states carry what was computed on the way."""

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
N_OWN = 3  # fields behind those of the system


@dataclass(frozen=True)
class Wiring(Generic[State]):
    """How a unit is connected to a system: m(s), r(s), and where a step is found again.

    `words` names the word in each slot (0: the root, -1: none). What a step computes is kept at the place that `made`
    names after it, 0..n_places-1; `links` names places (-1: none) whose last steps a state is linked to, beside the
    step before.
    """

    words: Callable[[State], Int[Tensor, "batch beam slots"]]
    made: Callable[[State, Tensor], Int[Tensor, "batch beam"]]
    links: Callable[[State], Int[Tensor, "batch beam links"]]
    n_places: int


class RecurrentSystem(Generic[State]):
    """A transition system whose states also hold h, what the cell carries on, and the h of earlier steps by place.

    A step computes the h of the state that it leads to, so greedy and beam search, samples and likelihoods of
    `trelliswork.structures.beam` work with it; the scorer is `score`.
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
        """The state of the system itself."""
        kind: Any = self.kind
        found: State = kind(*state[:-N_OWN])
        return found

    def initial(self) -> AllFields:
        start = self.system.initial()
        zeros = self.projected.new_zeros(len(start[0]), 1, self.unit.hidden)
        memory = zeros[:, :, None].expand(-1, -1, self.wiring.n_places, -1)
        return self._computed(start, zeros, zeros, memory)

    def allowed(self, state: AllFields) -> Bool[Tensor, "batch beam a"]:
        return self.system.allowed(self.inner(state))

    def step(self, state: AllFields, decisions: Int[Tensor, "batch beam"]) -> AllFields:
        hidden, carried, memory = state[-N_OWN:]
        stepped = self.system.step(self.inner(state), decisions)
        place = self.wiring.made(stepped, decisions)[:, :, None, None].expand(-1, -1, 1, self.unit.hidden)
        return self._computed(stepped, hidden, carried, memory.scatter(2, place, hidden[:, :, None]))

    def finished(self, state: AllFields) -> Bool[Tensor, "batch beam"]:
        return self.system.finished(self.inner(state))

    def score(self, state: AllFields) -> Float[Tensor, "batch beam a"]:
        """The scorer of this system."""
        return self.unit.scores(state[-N_OWN])

    def _computed(self, state: State, last: Tensor, carried: Tensor, memory: Tensor) -> AllFields:
        """The state with its own h; `last` and `carried` are those of the step before."""
        read, links = self.unit.read(self.projected, self.wiring.words(state)), None
        if self.unit.n_links:
            places = self.wiring.links(state)
            index = places.clamp(min=0)[..., None].expand(-1, -1, -1, self.unit.hidden)
            earlier = memory.gather(2, index) * (places >= 0)[..., None]
            links = torch.cat([last[:, :, None], earlier], 2)
        hidden, kept = self.unit(read, links, carried)
        return (*state, hidden, carried if kept is None else kept, memory)


class Unrolled(NamedTuple):
    """A run along decisions: h and the scores of each step, -inf where a decision is not allowed; -1 behind the end."""

    hidden: Float[Tensor, "batch steps hidden"]
    scores: Float[Tensor, "batch steps a"]
    decisions: Int[Tensor, "batch steps"]

    def log_prob(self, decisions: Int[Tensor, "batch steps"]) -> Float[Tensor, "batch"]:
        """Σ_i ln Pr[d_i | d_1 ... d_{i-1}]."""  # [S4.280]
        taken, inside = decisions.clamp(min=0), decisions != NOTHING
        shares = torch.where(inside[..., None], self.scores, 0.0).log_softmax(-1)
        return torch.where(inside, shares.gather(2, taken[..., None]).squeeze(2), 0.0).sum(1)


def unroll(system: RecurrentSystem[State], decisions: Int[Tensor, "batch steps"] | None = None) -> Unrolled:
    """Run through gold decisions, or through the best of each state.

    `hidden` can be read by another unit, beside or instead of the vectors of words; gradients go back through it.
    """  # [S4.278-279; S4, DRAGNN]
    state, found = system.initial(), list[tuple[Tensor, Tensor, Tensor]]()
    done = system.finished(state)
    while not bool(done.all()):
        scores = decision_scores(system, system.score, state, done, len(found))[:, 0]
        best = scores.argmax(-1) if decisions is None else decisions[:, len(found)]
        taken = torch.where(done[:, 0], NOTHING, best)
        found.append((state[-N_OWN][:, 0], scores, taken))
        state = advance(system, state, taken[:, None], ~done)
        done = system.finished(state)
    hidden, scores, taken = (torch.stack(each, 1) for each in zip(*found, strict=True))
    return Unrolled(hidden, scores, taken)
