"""The transition-based recurrent unit: a cell that reads words selected by a state, and its own output in earlier ones.

Kong, Alberti, Andor, Bogatyy and Weiss (2017), DRAGNN: A transition-based framework for dynamically connected neural
networks.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.runtime.shapes import Float, Int

Cell = Literal["feed-forward", "lstm", "gru"]
_GATES = {"feed-forward": 1, "gru": 3, "lstm": 4}


class TBRU(nn.Module):
    """Transition-based recurrent unit: h = cell(m(s), {h_j : j in r(s)}), and scores of decisions w_d · h + b_d.

    m(s) are the vectors of some words, r(s) earlier steps. What a word adds in a slot does not depend on the state:
    `project` computes it once for a batch, and a state only sums rows of it. Word 0 is the root, and -1 is no word.

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
            words: Words of each state; -1 is no word.
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
