"""The transition-based recurrent unit: a cell that reads words selected by a state, and its own output in earlier ones.

Kong, Alberti, Andor, Bogatyy and Weiss (2017), DRAGNN: A transition-based framework for dynamically connected neural
networks.

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
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.structures.beam.system import State, TransitionSystem, advance, decision_scores
from trelliswork.structures.frontier_kernels import NOTHING

Cell = Literal["feed-forward", "lstm", "gru"]
_GATES = {"feed-forward": 1, "gru": 3, "lstm": 4}


class TBRU(nn.Module):
    """Transition-based recurrent unit: h = cell(m(s), {h_j : j in r(s)}), and scores of decisions w_d · h + b_d.

    m(s) are the vectors of some words, r(s) earlier steps. What a word adds in a slot does not depend on the state:
    `project` computes it once for a batch, and a state only sums rows of it. Word 0 is the root, and -1 is not a word.

    Args:
        dim: Width of the vectors of words.
        hidden: Units of the cell.
        n_slots: Number of words in m(s).
        n_decisions: Number of decisions.
        n_links: Number of steps in r(s), the first of which is the previous step; 0 only for feed-forward cells.
        cell: "feed-forward", "lstm" or "gru".
        dropout: Share of units that are dropped.

        >>> unit = TBRU(20, 8, n_slots=3, n_decisions=5)
        >>> table = unit.project(torch.zeros(2, 7, 20))              # 2 sentences of 7 words
        >>> unit.read(table, torch.tensor([[[0, 3, -1]], [[1, 2, 7]]])).shape
        torch.Size([2, 1, 8])

    Chen and Manning (2014), A fast and accurate dependency parser using neural networks, for the precomputed table.
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
            raise ScoreError(f"a {cell} cell needs a link to the previous step; got n_links={n_links}; use at least 1")
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

    def project(self, vectors: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n+2 slots w"]:
        """Return what each word adds in each slot: the root, then the words, then no word."""
        root, none = (border.expand(len(vectors), 1, -1) for border in self.borders)
        return self.slots(torch.cat([root, vectors, none], 1)).unflatten(-1, (self.n_slots, -1))

    def gather(
        self, projected: Float[Tensor, "batch n+2 slots w"], rows: Int[Tensor, "m"], words: Int[Tensor, "m slots"]
    ) -> Float[Tensor, "m w"]:
        """Return m(s) of m states, the sum of what their words add.

        Args:
            projected: Result of `project`.
            rows: Sentence of each state.
            words: Words of each state; -1 is not a word.
        """
        _, n, slots, width = projected.shape
        # word % n: word -1, no word, is the last row of a sentence
        places = (rows[:, None] * n + words % n) * slots + torch.arange(slots, device=words.device)
        return F.embedding_bag(places, projected.reshape(-1, width), mode="sum") + self.bias

    def read(
        self, projected: Float[Tensor, "batch n+2 slots w"], words: Int[Tensor, "batch beam slots"]
    ) -> Float[Tensor, "batch beam w"]:
        """Return m(s) of a batch of beams; see `gather`."""
        batch, beam, _ = words.shape
        rows = torch.arange(batch, device=words.device).repeat_interleave(beam)
        return self.gather(projected, rows, words.flatten(0, 1)).unflatten(0, (batch, beam))

    def forward(
        self,
        read: Float[Tensor, "*states w"],
        links: Float[Tensor, "*states links hidden"] | None = None,
        carried: Float[Tensor, "*states hidden"] | None = None,
    ) -> tuple[Float[Tensor, "*states hidden"], Float[Tensor, "*states hidden"] | None]:
        """Compute h of some states.

        Args:
            read: m(s).
            links: h of the linked steps.
            carried: The LSTM cell of the previous step.

        Returns:
            h, and the LSTM cell of this step (`carried` for other cells).
        """
        if links is None or self.before is None:
            return read.relu(), carried
        read = read if self.linked is None else read + self.linked(links[..., 1:, :].flatten(-2))
        last = links[..., 0, :]
        recurrent = self.before(last)
        if self.cell == "feed-forward":
            return (read + recurrent).relu(), carried
        return _lstm(read + recurrent, carried) if self.cell == "lstm" else (_gru(read, recurrent, last), carried)

    def scores(self, hidden: Float[Tensor, "*states hidden"]) -> Float[Tensor, "*states a"]:
        """Return the scores of decisions, w_d · h + b_d."""  # [S4.278, 290]
        scores: Tensor = self.output(self.dropout(hidden))
        return scores


def _lstm(gates: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, -1)
    kept = 0.0 if carried is None else f.sigmoid() * carried
    cell = kept + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(read: Tensor, recurrent: Tensor, last: Tensor) -> Tensor:
    (r, z, n), (r_on, z_on, n_on) = read.chunk(3, -1), recurrent.chunk(3, -1)
    keep = (z + z_on).sigmoid()
    return (1 - keep) * (n + (r + r_on).sigmoid() * n_on).tanh() + keep * last


# A unit that runs through a transition system, whose states carry what was computed on the way.

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
