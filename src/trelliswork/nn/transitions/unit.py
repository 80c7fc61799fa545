"""The transition-based recurrent unit: a cell that reads words named by a state, and what it computed in earlier ones.

Kong, Alberti, Andor, Bogatyy and Weiss (2017), DRAGNN: A transition-based framework for dynamically connected neural
networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.beam.search import NOTHING
from trelliswork.structures.beam.system import State, TransitionSystem, advance, decision_scores

Cell = Literal["feed-forward", "lstm", "gru"]
_GATES = {"feed-forward": 1, "gru": 3, "lstm": 4}


class TBRU(nn.Module):
    """h = cell(m(s), {h_j : j in r(s)}) and the scores of decisions, w_d · h + b_d.

    m(s) are the vectors of `n_slots` words, r(s) `n_links` earlier steps, the first of them the step before; a
    feed-forward cell may have no links. What a word adds in a slot does not depend on the state: `projected` computes
    it once for a batch, and a state only adds up rows of it (Chen and Manning 2014, A fast and accurate dependency
    parser using neural networks). Word 0 is the root; -1 is no word.

        >>> unit = TBRU(20, 8, n_slots=3, n_decisions=5)
        >>> table = unit.projected(torch.zeros(2, 7, 20))              # 2 sentences of 7 words
        >>> unit.read(table, torch.tensor([[[0, 3, -1]], [[1, 2, 7]]])).shape
        torch.Size([2, 1, 8])
    """  # [S4, TBRU]

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        n_slots: int,
        n_decisions: int,
        n_links: int = 0,
        cell: Cell = "feed-forward",
        dropout: float = 0.0,
    ):
        super().__init__()
        if cell not in get_args(Cell):
            raise ScoreError(f"cell must be one of {', '.join(get_args(Cell))}; got {cell!r}")
        if n_links < (cell != "feed-forward"):
            raise ScoreError(f"a {cell} cell needs a link to the step before; got n_links {n_links}; give at least 1")
        self.hidden, self.n_slots, self.n_links, self.cell = hidden, n_slots, n_links, cell
        width = _GATES[cell] * hidden
        self.borders = nn.Parameter(torch.zeros(2, dim))  # the root, and no word
        self.slots = nn.Linear(dim, n_slots * width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.linked = nn.Linear(max(0, n_links - 1) * hidden, width, bias=False) if n_links > 1 else None
        self.before = nn.Linear(hidden, width, bias=False) if n_links else None
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(hidden, n_decisions)
        initialize_fan_in(self)
        nn.init.normal_(self.borders)

    def projected(self, vectors: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n+2 slots w"]:
        """What each word adds in each slot: the root, the words, and no word."""
        root, none = (each.expand(len(vectors), 1, -1) for each in self.borders)
        return self.slots(torch.cat([root, vectors, none], 1)).unflatten(-1, (self.n_slots, -1))

    def gathered(
        self, projected: Float[Tensor, "batch n+2 slots w"], rows: Int[Tensor, "m"], words: Int[Tensor, "m slots"]
    ) -> Float[Tensor, "m w"]:
        """m(s): the sum of what the words of each state add; state i belongs to sentence rows[i]."""
        _, n, slots, width = projected.shape
        places = (rows[:, None] * n + words % n) * slots + torch.arange(slots, device=words.device)
        return F.embedding_bag(places, projected.reshape(-1, width), mode="sum") + self.bias

    def read(
        self, projected: Float[Tensor, "batch n+2 slots w"], words: Int[Tensor, "batch beam slots"]
    ) -> Float[Tensor, "batch beam w"]:
        """The same for a batch of beams."""
        batch, beam, _ = words.shape
        rows = torch.arange(batch, device=words.device).repeat_interleave(beam)
        return self.gathered(projected, rows, words.flatten(0, 1)).unflatten(0, (batch, beam))

    def forward(
        self,
        read: Float[Tensor, "*states w"],
        links: Float[Tensor, "*states links hidden"] | None = None,
        carried: Float[Tensor, "*states hidden"] | None = None,
    ) -> tuple[Float[Tensor, "*states hidden"], Float[Tensor, "*states hidden"] | None]:
        """h, and what an LSTM carries on; `carried` is that of the step before."""
        if links is None or self.before is None:
            return read.relu(), carried
        read = read if self.linked is None else read + self.linked(links[..., 1:, :].flatten(-2))
        last = links[..., 0, :]
        recurrent = self.before(last)
        if self.cell == "feed-forward":
            return (read + recurrent).relu(), carried
        return _lstm(read + recurrent, carried) if self.cell == "lstm" else (_gru(read, recurrent, last), carried)

    def scores(self, hidden: Float[Tensor, "*states hidden"]) -> Float[Tensor, "*states a"]:
        """w_d · h + b_d."""  # [S4.278, 290]
        found: Tensor = self.output(self.dropout(hidden))
        return found


def _lstm(gates: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, -1)
    kept = 0.0 if carried is None else f.sigmoid() * carried
    cell = kept + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(read: Tensor, recurrent: Tensor, last: Tensor) -> Tensor:
    (r, z, n), (r_on, z_on, n_on) = read.chunk(3, -1), recurrent.chunk(3, -1)
    keep = (z + z_on).sigmoid()
    return (1 - keep) * (n + (r + r_on).sigmoid() * n_on).tanh() + keep * last


# A unit run through a transition system: its states carry what was computed on the way.

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
