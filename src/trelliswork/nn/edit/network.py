"""The network of an edit transducer: an encoder of x, a reader of the prefixes of y, scores of steps in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.distributions.edit_alignment import EditAlignment
from trelliswork.nn.edit.cells import Pairs, edit_scores
from trelliswork.nn.edit.kernels import N_OPERATIONS
from trelliswork.nn.encoders.lstm_ahead import read_forwards
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.nn.inputs.dropout import VariationalDropout
from trelliswork.runtime.shapes import Float, Int


@dataclass(frozen=True)
class Sizes:
    """Sizes of an `EditNetwork`.

    Attributes:
        dim: Dimensions of the vectors of symbols.
        hidden: Dimensions of the states of encoder and reader.
        layers: Layers of the encoder.
        joint: Dimensions of the vectors that are added in a cell.
    """

    dim: int = 128
    hidden: int = 192
    layers: int = 1
    joint: int = 192


class ScriptScores(NamedTuple):
    """p(script, y | x) of a batch: the edit scripts that write y, and log p(end) after the last step."""

    scripts: EditAlignment
    ends: Float[Tensor, "batch"]

    def log_prob(self, *, best: bool = False) -> Float[Tensor, "batch"]:
        """Return log p(y | x), summed over all scripts, or log p of the most probable script if `best`."""
        scripts = self.scripts
        return self.ends + (scripts.score(scripts.argmax) if best else scripts.log_partition)


class EditNetwork(nn.Module):
    """Network that gives p(operation | x, i, y_<j) and p(symbol | x, i, y_<j) in the cells of the edit lattice.

    Args:
        n_sources: Number of symbols of x; numbers n_sources and n_sources + 1 are the unknown symbol and the end.
        n_targets: Number of symbols of y; n_targets and n_targets + 1 are begin and unknown, which are never written.
        sizes: Sizes of the layers.
        dropout: Share of units that are dropped.
    """

    def __init__(self, n_sources: int, n_targets: int, sizes: Sizes, *, dropout: float = 0.3) -> None:
        super().__init__()
        self.n_sources, self.n_targets = n_sources, n_targets
        self.sources = nn.Embedding(n_sources + 2, sizes.dim)
        self.targets = nn.Embedding(n_targets + 2, sizes.dim)
        self.dropout = VariationalDropout(dropout)
        self.encoder = RecurrentEncoder(sizes.dim, hidden=sizes.hidden, layers=sizes.layers, dropout=dropout)
        self.reader = nn.LSTM(sizes.dim, sizes.hidden, batch_first=True)
        self.left = nn.Linear(self.encoder.dim + sizes.dim, sizes.joint)
        self.right = nn.Linear(sizes.hidden + sizes.dim, sizes.joint, bias=False)
        self.outputs = nn.Linear(sizes.joint, N_OPERATIONS + n_targets)

    @property
    def begin(self) -> int:
        return self.n_targets

    def encode(self, sources: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"]) -> Float[Tensor, "batch n+1 d"]:
        """Return the vector that each position of x, and its end, adds in the cells."""
        places = torch.arange(sources.shape[1] + 1, device=sources.device)
        ended = nn.functional.pad(sources, (0, 1)).masked_fill(places == lengths[:, None], self.n_sources + 1)
        vectors = self.dropout(self.sources(ended))
        states = self.dropout(self.encoder(vectors, places <= lengths[:, None]))
        left: Tensor = self.left(torch.cat([states, vectors], -1))
        return left

    def read(self, pairs: Pairs) -> Float[Tensor, "batch m+1 d"]:
        """Return the vector that each prefix of y adds in the cells."""
        places = torch.arange(pairs.targets.shape[1] + 1, device=pairs.targets.device)
        known = torch.where((pairs.targets >= 0) & (pairs.targets < self.n_targets), pairs.targets, self.begin + 1)
        vectors = self.dropout(self.targets(nn.functional.pad(known, (1, 0), value=self.begin)))
        states = self.dropout(read_forwards(self.reader, vectors, places <= pairs.target_lengths[:, None]))
        right: Tensor = self.right(torch.cat([states, vectors], -1))
        return right

    def forward(self, sources: Int[Tensor, "batch n"], pairs: Pairs) -> ScriptScores:
        """Return all scripts that write y, with their probabilities."""
        left, right = self.encode(sources, pairs.lengths), self.read(pairs)
        steps, ends = edit_scores(left, right, self.outputs.weight, self.outputs.bias, pairs)
        scripts = EditAlignment(
            steps, lengths=pairs.lengths, target_lengths=pairs.target_lengths, validate_args=False
        )  # fmt: skip
        return ScriptScores(scripts, ends)

    def read_on(
        self, symbols: Int[Tensor, "h"], state: tuple[Tensor, Tensor]
    ) -> tuple[Float[Tensor, "h d"], tuple[Tensor, Tensor]]:
        """Read one more symbol of each of h prefixes, as `read` does.

        Args:
            symbols: The symbols; -1 begins a prefix.
            state: Hidden vectors and cells of the reader before the symbols.

        Returns:
            The vectors that the longer prefixes add in the cells, and the state of the reader after the symbols.
        """
        known = torch.where(symbols < self.n_targets, symbols, self.begin + 1)
        vectors = self.targets(torch.where(symbols < 0, self.begin, known))
        after = torch.lstm_cell(vectors, state, *self.reader.all_weights[0])
        return self.right(torch.cat([after[0], vectors], -1)), after
