"""The network of an edit transducer: an encoder of x, a reader of the prefixes of y, scores of steps in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.distributions.edit_alignment import EditAlignment
from trelliswork.nn.edit import kernels
from trelliswork.nn.edit.kernels import COPY, DELETE, INSERT, N_OPERATIONS, SUBSTITUTE
from trelliswork.nn.encoders.lstm_fused import read_forwards
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.nn.inputs.dropout import VariationalDropout
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.arrays import INF, Array, Float, Int
from trelliswork.runtime.autograd import fused
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.threads import over_rows

MOST_CELLS = 1 << 19  # cells whose vectors are in memory at a time, if no gradient is needed


@dataclass(frozen=True)
class Pairs:
    """A batch of pairs of strings (x, y).

    Symbols that the network has no output for are numbered after its outputs and can only be copied.

    Attributes:
        copies: The symbol that copying x_i writes, -1 if none.
        targets: The symbols of y.
        lengths: The length of each x.
        target_lengths: The length of each y.
    """

    copies: Int[Tensor, "batch n"]
    targets: Int[Tensor, "batch m"]
    lengths: Int[Tensor, "batch"]
    target_lengths: Int[Tensor, "batch"]

    def arrays(self) -> tuple[Array, ...]:
        """Return what kernels read: the first cell of each row, lengths, target lengths, copies and targets."""
        lengths, target_lengths = self.lengths.numpy(), self.target_lengths.numpy()
        sizes = (lengths + 1) * (target_lengths + 1)
        offsets = np.cumsum(sizes) - sizes
        return offsets, lengths, target_lengths, self.copies.numpy(), self.targets.numpy()


def edit_scores(left: Tensor, right: Tensor, weight: Tensor, bias: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Score the edit steps of a batch.

    In cell (i, j) the outputs of the network are W tanh(left(i) + right(j)) + b: the first four are scores of the
    operations delete, insert, substitute and copy, the others of the symbols to write.

    Args:
        left: Vectors of the places of x, [batch, n+1, d].
        right: Vectors of the prefixes of y, [batch, m+1, d].
        weight: W, [4 + number of symbols, d].
        bias: b, [4 + number of symbols].
        pairs: The strings.

    Returns:
        log p of the step into each cell [batch, n+1, m+1, 3], as `EditAlignment` takes them, and of the end [batch].
    """
    if can_fuse(left, right, weight, bias) and not torch.is_grad_enabled():
        return _block_by_block(left, right, weight, bias, pairs)
    if can_fuse(left, right, weight, bias):
        scores: tuple[Tensor, Tensor] = fused(EditScores(pairs), left, right, weight, bias)
        return scores
    return plain_scores(left, right, weight, bias, pairs)


@dataclass(frozen=True)
class EditScores:
    """`edit_scores` as one step of autograd; `kept` between the passes are hidden vectors, probabilities and steps."""

    pairs: Pairs

    def forward(
        self,
        left: Float[Tensor, "batch n+1 d"],
        right: Float[Tensor, "batch m+1 d"],
        weight: Float[Tensor, "o d"],
        bias: Float[Tensor, "o"],
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, ...]]:
        """Compute the scores of the steps into each cell, and of the end of each row.

        Args:
            left: Vectors of what is read [batch, n+1, d].
            right: Vectors of what is written [batch, m+1, d].
            weight: Of the output layer [o, d].
            bias: Of the output layer [o].

        Returns:
            Steps [batch, n+1, m+1, 3] and ends [batch] in float64, and what `backward` needs.
        """
        arrays = self.pairs.arrays()
        offsets, lengths, target_lengths = arrays[:3]
        n_cells, batch = int(((lengths + 1) * (target_lengths + 1)).sum()), len(lengths)
        hidden = left.new_empty(n_cells, left.shape[2])
        rows = batch, n_cells * left.shape[2] * 4  # the number of rows, and the work that decides about threads
        vectors = as_array(left), as_array(right)
        over_rows(kernels.meet, *rows, *vectors, offsets, lengths, target_lengths, hidden.numpy())
        outputs = torch.addmm(bias, hidden, weight.T)
        steps = left.new_full((batch, left.shape[1], right.shape[1], 3), -INF, dtype=torch.float64)
        ends = steps.new_empty(batch)
        over_rows(kernels.score, *rows, outputs.numpy(), *arrays, steps.numpy(), ends.numpy())
        return (steps, ends), (hidden, outputs, steps)

    def backward(
        self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, ...]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Left, right, weight, bias, as `forward` was given them.
            kept: Hidden vectors, probabilities and steps.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        (left, right, weight, _), (hidden, outputs, steps) = tensors, kept
        arrays, by_outputs = self.pairs.arrays(), torch.empty_like(outputs)
        rows = len(left), hidden.numel() * 4
        read_arrays = outputs.numpy(), arrays, steps.numpy(), *map(as_array, grads)
        over_rows(kernels.unscore, *rows, *read_arrays, by_outputs.numpy())
        by_weight, by_bias, by_hidden = by_outputs.T @ hidden, by_outputs.sum(0), by_outputs @ weight
        by_left, by_right = left.new_zeros(left.shape), right.new_zeros(right.shape)
        cells = hidden.numpy(), by_hidden.numpy(), *arrays[:3]
        over_rows(kernels.part, *rows, *cells, by_left.numpy(), by_right.numpy())
        return by_left, by_right, by_weight, by_bias

    def reference(self, left: Tensor, right: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the results of `forward` with torch operations.

        Args:
            left: Vectors of what is read [batch, n+1, d].
            right: Vectors of what is written [batch, m+1, d].
            weight: Of the output layer [o, d].
            bias: Of the output layer [o].

        Returns:
            The results, differentiable by autograd.
        """
        return plain_scores(left, right, weight, bias, self.pairs)


def _block_by_block(left: Tensor, right: Tensor, weight: Tensor, bias: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Score edit steps without a gradient, some columns of the lattices at a time to save memory."""
    n, m = left.shape[1] - 1, right.shape[1] - 1
    width = max(1, MOST_CELLS // (len(left) * (n + 1)))
    steps = left.new_full((len(left), n + 1, m + 1, 3), -INF, dtype=torch.float64)
    ends = steps.new_empty(len(left))
    for first in range(0, max(m, 1), width):
        last, rest = min(first + width, m), pairs.target_lengths - first
        targets = pairs.targets[:, first:last].contiguous()
        block = Pairs(pairs.copies, targets, pairs.lengths, rest.clamp(0, last - first))
        (block_steps, block_ends), _ = EditScores(block).forward(left, right[:, first : last + 1], weight, bias)
        steps[:, :, first + 1 : last + 1] = block_steps[:, :, 1:]
        # The first column of a block is the last one of the block before; here it has its deletions.
        steps[:, :, first, kernels.BY_DELETION] = block_steps[:, :, 0, kernels.BY_DELETION]
        ends = torch.where((rest >= 0) & (rest <= last - first), block_ends, ends)
    return steps, ends


def plain_scores(left: Tensor, right: Tensor, weight: Tensor, bias: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Compute `EditScores` with torch operations, for all cells of the padded batch; the reference of the kernels.

    Args:
        left: Vectors of the places of x, [batch, n + 1, d].
        right: Vectors of the prefixes of y, [batch, m + 1, d].
        weight: W, [4 + number of symbols, d].
        bias: b, [4 + number of symbols].
        pairs: The strings.

    Returns:
        The scores that `edit_scores` returns.
    """
    outputs = F.linear(torch.tanh(left[:, :, None] + right[:, None]), weight, bias).double()
    n, m, v = left.shape[1] - 1, right.shape[1] - 1, len(weight) - N_OPERATIONS
    allowed = _allowed_operations(pairs, n)
    operations = outputs[..., :N_OPERATIONS].masked_fill(~allowed[:, :, None], -INF).log_softmax(-1)
    known = ((pairs.targets >= 0) & (pairs.targets < v))[:, None]
    chosen = torch.where(known, pairs.targets[:, None], 0).expand(-1, n + 1, -1)[..., None]
    symbols = outputs[:, :, :m, N_OPERATIONS:].log_softmax(-1).gather(-1, chosen).squeeze(-1)
    symbols = torch.where(known, symbols, -INF)
    insert = operations[:, :, :m, INSERT] + symbols
    same = (pairs.copies[:, :, None] == pairs.targets[:, None]) & (pairs.copies[:, :, None] >= 0)
    substitute, copy = operations[:, :n, :m, SUBSTITUTE] + symbols[:, :n], operations[:, :n, :m, COPY]
    both = same & known  # elsewhere logaddexp of two -inf would have a NaN gradient
    either = torch.logaddexp(torch.where(both, substitute, 0.0), torch.where(both, copy, 0.0))
    written = torch.where(both, either, torch.where(same, copy, substitute))
    steps = torch.stack([
        F.pad(written, (1, 0, 1, 0), value=-INF),
        F.pad(operations[:, :n, :, DELETE], (0, 0, 1, 0), value=-INF),
        F.pad(insert, (1, 0), value=-INF),
    ], -1)  # fmt: skip
    rows = torch.arange(len(left), device=left.device)
    return steps, operations[rows, pairs.lengths, pairs.target_lengths, DELETE]


def _allowed_operations(pairs: Pairs, n: int) -> Tensor:
    """Return [batch, n+1, 4]: nothing can be substituted or copied at the end of x, and only some symbols be copied."""
    inside = torch.arange(n + 1, device=pairs.lengths.device) < pairs.lengths[:, None]
    copies = inside & F.pad(pairs.copies >= 0, (0, 1))
    always = torch.ones_like(inside)
    return torch.stack([always, always, inside, copies], -1)


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
