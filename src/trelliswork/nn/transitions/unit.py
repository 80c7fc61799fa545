"""The transition-based recurrent unit: a cell that reads words named by a state, and what it computed in earlier ones.

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
