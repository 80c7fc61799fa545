"""A decoder of trees: each bracket is a sequence of its own, read from the state of the symbol that opens it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.attention import Memory, Scoring, align, attend, final_states, make_score
from trelliswork.nn.decoders.base import Decoder, State, Step, Unrolled
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders import lstm_kernels as kernels
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.runtime.autograd import fused

N_FLAGS = 2  # last numbers of the vector of a symbol: 1 if it opens a subtree, 1 if it closes one


class TreeState(NamedTuple):
    """Hidden vector and cell of the open sequence at each level, and the number of levels open below the root."""

    levels: Float[Tensor, "batch beam deepest 2 h"]
    depth: Int[Tensor, "batch beam"]


class TreeDecoder(Decoder):
    """Decoder of trees in brackets, in which each bracket is a sequence of its own.

    A symbol that opens a subtree stands for a nonterminal: the outer sequence reads it and waits. The inner sequence
    starts from that state and reads, with each symbol, the hidden vector of the nonterminal (parent feeding). The
    symbol that closes the subtree ends it, and the outer sequence continues from where it was, so that p(tree) is the
    product of the probabilities of its sequences.

    Args:
        symbol_dim: Width of the vectors of symbols, without their last two numbers, which are 1 if the symbol opens or
            closes a subtree.
        source_dim: Width of the encoded positions.
        hidden: Width of states and output.
        score: Attention score: "dot", "general" or "concat".
        deepest: Number of levels, including the root: subtrees can be nested `deepest` - 1 times.
        dropout: Share of output units that are dropped.

        >>> decoder = TreeDecoder(32, 64, hidden=48, deepest=8)
        >>> memory = decoder.remember(torch.zeros(2, 7, 64), torch.ones(2, 7, dtype=torch.bool))
        >>> decoder(memory, torch.zeros(2, 5, 32 + 2)).hidden.shape
        torch.Size([2, 5, 48])

    Dong and Lapata (2016), Language to logical form with neural attention.
    """

    # [S4.246]

    def __init__(
        self, symbol_dim: int, source_dim: int, *, hidden: int = 200, score: Scoring = "general", deepest: int = 32,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if deepest < 1:
            raise ScoreError(f"deepest must be at least 1 level; got {deepest}")
        self.dim, self.deepest = hidden, deepest
        self.start = nn.Linear(source_dim, 2 * hidden)
        self.begin = nn.Parameter(torch.randn(symbol_dim) * 0.1)  # the first input of a subtree
        self.cell = nn.LSTMCell(symbol_dim + hidden, hidden)
        self.score = make_score(score, hidden, source_dim)
        self.output = nn.Linear(source_dim + hidden, hidden)
        self.dropout = Dropout(dropout)

    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Memory:
        return Memory(encoded, self.score.keys(encoded), mask)  # type: ignore[operator]

    def initial(self, memory: Memory, room: int = 1) -> TreeState:
        root = self._root(memory)
        levels = root.new_zeros(len(root), 1, min(self.deepest, room), 2, self.dim)
        levels[:, 0, 0] = root
        return TreeState(levels, torch.zeros(len(root), 1, dtype=torch.long, device=root.device))

    def _root(self, memory: Memory) -> Float[Tensor, "batch 2 h"]:
        return self.start(final_states(memory.values, memory.mask)).tanh().view(-1, 2, self.dim)

    def step(self, memory: Memory, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        levels, depth = state
        vectors, opens, closes = _parts(symbols)
        parent = _at(levels, depth - 1)[..., 0, :] * (depth > 0)[..., None]
        read = self._read(vectors, parent, _at(levels, depth))
        # The closing symbol is not read: the state of the outer sequence stays as it was.
        levels = levels.index_put(
            (*_grid(depth), depth), torch.where(closes[..., None, None], _at(levels, depth), read)
        )
        if bool(opens.any()):  # the sequence of each new subtree reads `begin` from the state of its nonterminal
            above = read[opens]
            below = ((depth[opens] + 1).clamp(max=levels.shape[2] - 1),)
            levels = levels.index_put(
                opens.nonzero(as_tuple=True) + below, self._read(self.begin.expand(len(above), -1), above[:, 0], above)
            )
        depth = (depth + opens.long() - closes.long()).clamp(0, levels.shape[2] - 1)
        output, weights = self._attend(memory, _at(levels, depth)[..., 0, :])
        return Step(output, weights, TreeState(levels, depth))

    def _read(
        self, vectors: Float[Tensor, "*rows e"], parent: Float[Tensor, "*rows h"], state: Float[Tensor, "*rows 2 h"]
    ) -> Float[Tensor, "*rows 2 h"]:
        """Return the state of a sequence after one more symbol."""
        inputs = torch.cat([vectors, parent], -1).flatten(0, -2)
        hidden, cell = state.flatten(0, -3).unbind(1)
        return torch.stack(self.cell(inputs, (hidden, cell)), 1).view_as(state)

    def _attend(
        self, memory: Memory, hidden: Float[Tensor, "batch m h"]
    ) -> tuple[Float[Tensor, "batch m h"], Float[Tensor, "batch m n"]]:
        weights = align(self.score(hidden, memory.keys), memory.mask)
        read = torch.cat([attend(weights, memory.values), hidden], -1)
        return self.dropout(self.output(read).tanh()), weights

    # All symbols known

    def forward(self, memory: Memory, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """Read given symbols level by level; the sequences of one level, of all trees, are read together."""
        vectors, opens, closes = _parts(symbols)
        places = TreePlaces(opens.tolist(), closes.tolist(), self.deepest)
        table = torch.cat([self.begin[None], vectors.flatten(0, 1)])  # row 0 is the first input of subtrees
        inputs = F.linear(table, self.cell.weight_ih[:, : vectors.shape[-1]], self.cell.bias_ih + self.cell.bias_hh)
        states = self._root(memory)  # of all sequences so far, by number
        for number, level in enumerate(places.levels):
            start = states[_index(level.openers, states)]
            parents = start[:, 0] if number else torch.zeros_like(start[:, 0])
            states = torch.cat(
                [states, self._level(inputs[_index(level.inputs, states)], level.widths, start, parents)]
            )
        tops = states[_index(places.tops, states)][..., 0, :]
        return Unrolled(*self._attend(memory, tops))

    def _level(
        self,
        inputs: Float[Tensor, "symbols gates"],
        widths: Sequence[int],
        state: Float[Tensor, "sequences 2 h"],
        parents: Float[Tensor, "sequences h"],
    ) -> Float[Tensor, "symbols 2 h"]:
        """Return the states after each symbol of the sequences of one level.

        Args:
            inputs: Gates from the symbols, step by step.
            widths: How many sequences read a symbol at each step.
            state: The state that each sequence starts from.
            parents: Hidden vectors of the nonterminals of the sequences.
        """
        fed = F.linear(parents, self.cell.weight_ih[:, -self.dim :])
        reading = torch.cat([torch.arange(width, device=state.device) for width in widths])
        gates = inputs + fed.index_select(0, reading)
        return torch.stack(read_sequences(gates, widths, self.cell.weight_hh.T, *state.unbind(1)), 1)


def _parts(symbols: Float[Tensor, "batch t e"]) -> tuple[Tensor, Bool[Tensor, "batch t"], Bool[Tensor, "batch t"]]:
    """Return the vectors of symbols, and which of them open and close subtrees."""
    vectors, flags = symbols[..., :-N_FLAGS], symbols[..., -N_FLAGS:].detach() > 0
    return vectors, flags[..., 0], flags[..., 1]


def _at(levels: Float[Tensor, "batch beam deepest 2 h"], depth: Int[Tensor, "batch beam"]) -> Tensor:
    """Return the state of each hypothesis at its own level `depth`."""
    return levels[(*_grid(depth), depth.clamp(min=0))]


def _grid(depth: Int[Tensor, "batch beam"]) -> tuple[Tensor, Tensor]:
    rows, places = (torch.arange(n, device=depth.device) for n in depth.shape)
    return rows[:, None], places


def _index(places: Sequence[Any], like: Tensor) -> Int[Tensor, "..."]:
    return torch.tensor(places, dtype=torch.long, device=like.device)


class Level(NamedTuple):
    """The sequences of one level, the longest first.

    Attributes:
        inputs: Numbers of the symbols that are read, step by step, counted from 1 over all trees; 0 begins a sequence.
        widths: How many sequences read a symbol at each step.
        openers: Numbers of the states that the sequences start from.
    """

    inputs: list[int]
    widths: list[int]
    openers: list[int]


class _Sequence(NamedTuple):
    """A bracket: the numbers of its symbols, and the sequence and step on the level above that opened it."""

    symbols: list[int]
    parent: int
    step: int


class TreePlaces:
    """The sequences of some trees by level, and the numbers of all states.

    States are numbered in the order of their computation: the initial states of the roots, then those of each level,
    step by step. `tops` [tree, symbol] is the number of the state after each symbol.

    Args:
        opens: Whether each symbol of each tree opens a subtree.
        closes: Whether it closes one.
        deepest: Number of levels, including the root.

    >>> places = TreePlaces([[False, True, False, False]], [[False, False, False, True]], 8)   # a ( b )
    >>> places.levels[1], places.tops
    (Level(inputs=[0, 3], widths=[1, 1], openers=[2]), [[1, 3, 4, 2]])
    """

    def __init__(self, opens: Sequence[Sequence[bool]], closes: Sequence[Sequence[bool]], deepest: int) -> None:
        self._sequences: list[list[_Sequence]] = [[]]
        positions: list[list[tuple[int, int, int]]] = []  # level, sequence, step of the state after each symbol
        n = len(opens[0])
        for tree, flags in enumerate(zip(opens, closes, strict=True)):
            self._sequences[0].append(_Sequence([], tree, -1))
            positions.append(list(self._walk(tree * n + 1, zip(*flags, strict=True), deepest)))
        self.levels: list[Level] = []
        numbers = [[[tree] for tree in range(len(opens))]]  # of states, by level, sequence and step
        for level, sequences in enumerate(self._sequences):
            above = numbers[0] if level == 0 else numbers[level]
            self.levels.append(self._level(sequences, above, numbers))
        self.tops = [[numbers[level + 1][number][step] for level, number, step in tree] for tree in positions]

    def _walk(self, first: int, flags: Iterable[tuple[bool, bool]], deepest: int) -> Iterator[tuple[int, int, int]]:
        """Add the sequences of one tree, and yield (level, sequence, step) of the state after each symbol."""
        path = [len(self._sequences[0]) - 1]  # numbers of the open sequences
        for place, (opens, closes) in enumerate(flags):
            if closes:
                path = path[:-1] if len(path) > 1 else path
            else:
                self._sequences[len(path) - 1][path[-1]].symbols.append(first + place)
            if opens and len(path) < deepest:
                step = len(self._sequences[len(path) - 1][path[-1]].symbols) - 1
                if len(path) == len(self._sequences):
                    self._sequences.append([])
                self._sequences[len(path)].append(_Sequence([0], path[-1], step))
                path = [*path, len(self._sequences[len(path)]) - 1]
            yield len(path) - 1, path[-1], len(self._sequences[len(path) - 1][path[-1]].symbols) - 1

    def _level(
        self, sequences: Sequence[_Sequence], above: Sequence[Sequence[int]], numbers: list[list[list[int]]]
    ) -> Level:
        """Return a level, and add the numbers of its states to `numbers`."""
        order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i].symbols))
        first = 1 + max(number for level in numbers for sequence in level for number in sequence)
        numbers_here: list[list[int]] = [[] for _ in sequences]
        inputs, widths = list[int](), list[int]()
        for step in range(len(sequences[order[0]].symbols)):
            reading = [i for i in order if len(sequences[i].symbols) > step]
            for i in reading:
                numbers_here[i].append(first + len(inputs))
                inputs.append(sequences[i].symbols[step])
            widths.append(len(reading))
        numbers.append(numbers_here)
        return Level(inputs, widths, [above[sequences[i].parent][sequences[i].step] for i in order])


# An LSTM over several sequences side by side, each from a state of its own; on the CPU as one step of autograd.

States = tuple[Float[Tensor, "symbols h"], Float[Tensor, "symbols h"]]


def read_sequences(
    gates: Float[Tensor, "symbols 4h"],
    widths: Sequence[int],
    w_on: Float[Tensor, "h 4h"],
    hidden: Float[Tensor, "sequences h"],
    cell: Float[Tensor, "sequences h"],
) -> States:
    """Run an LSTM over sequences, which are sorted from the longest to the shortest.

    Args:
        gates: The part of the gates i, f, g and o of `nn.LSTM` that does not depend on the state, for each symbol; the
            first symbols of all sequences come first, then the second ones, and so on.
        widths: How many sequences have a symbol at each step; all of them at the first.
        w_on: Weights from the hidden vectors to the gates.
        hidden: Hidden vectors that the sequences start from.
        cell: Cells that they start from.

    Returns:
        Hidden vectors and cells after each symbol, in the order of `gates`.
    """
    layer, tensors = Sequences(tuple(widths)), (gates, w_on, hidden, cell)
    if torch.is_grad_enabled() and can_fuse(*tensors):
        states: States = fused(layer, *tensors)
        return states
    return layer.reference(*tensors)


@dataclass(frozen=True)
class Sequences:
    """`read_sequences` as one step of autograd; kept states are the initial ones, then those after each symbol."""

    widths: tuple[int, ...]

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each step its first symbol, the row of the state before that, and the number of sequences."""
        starts = (0, *accumulate(self.widths))
        rows = (0, *(self.widths[0] + start for start in starts[:-2]))
        yield from zip(starts, rows, self.widths, strict=False)

    def forward(self, gates: Tensor, w_on: Tensor, hidden: Tensor, cell: Tensor) -> tuple[States, tuple[Tensor, ...]]:
        """Read the sequences, one symbol after the other.

        Args:
            gates: Scores of the gates from the symbols.
            w_on: Weights from a state to the gates of the next.
            hidden: Initial states.
            cell: Initial cells.

        Returns:
            The states, and what `backward` needs.
        """
        (first, h), gates = hidden.shape, gates.clone()
        recurrent, bias = gates.new_empty(first * 4 * h), gates.new_zeros(1, 4 * h)
        squashed = gates.new_empty(len(gates), h)
        cells, states = (torch.cat([initial, torch.empty_like(squashed)]) for initial in (cell, hidden))
        tensors = (gates[None], bias, recurrent, cells[None], squashed[None], states[None])
        arrays = [tensor.numpy() for tensor in tensors]
        for start, before, count in self.steps():
            out = recurrent[: count * 4 * h].view(count, 4 * h)
            torch.mm(states[before : before + count], w_on, out=out)
            kernels.advance(*arrays, start, before, count)
        return (states[first:], cells[first:]), (gates, cells, squashed, states)

    def backward(self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: States) -> Any:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Gates, w_on, hidden, cell, as `forward` was given them.
            kept: What `forward` kept: gates, cells and states.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        (_, w_on, hidden, _), (gates, cells, squashed, states) = tensors, kept
        (first, h), by_gates, back, n_next = hidden.shape, torch.empty_like(gates), w_on.T.contiguous(), 0
        by_states, by_cells, by_next = grads[0].clone(), hidden.new_zeros(1, first, h), hidden.new_empty(first * h)
        left = tuple(tensor[None].numpy() for tensor in (gates, cells, squashed))
        arrays = [tensor.numpy() for tensor in (by_states[None], by_cells, by_gates[None], by_next)]
        for start, before, count in reversed(list(self.steps())):
            by_cells[0, :count] += grads[1][start : start + count]
            kernels.retreat(left, *arrays, start, before, count, n_next)
            torch.mm(by_gates[start : start + count], back, out=by_next[: count * h].view(count, h))
            n_next = count
        rows = torch.cat([torch.arange(before, before + count) for _, before, count in self.steps()])
        return by_gates, states.index_select(0, rows).T @ by_gates, by_next.view(first, h), by_cells[0]

    def reference(self, gates: Tensor, w_on: Tensor, hidden: Tensor, cell: Tensor) -> States:
        """Compute the results of `forward` with torch operations.

        Args:
            gates: Scores of the gates from the symbols.
            w_on: Weights from a state to the gates of the next.
            hidden: Initial states.
            cell: Initial cells.

        Returns:
            The results, differentiable by autograd.
        """
        states_by_step = []
        for count, part in zip(self.widths, gates.split(self.widths), strict=True):
            i, f, g, o = (part + hidden[:count] @ w_on).chunk(4, -1)
            cell = f.sigmoid() * cell[:count] + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            states_by_step.append((hidden, cell))
        states, cells = zip(*states_by_step, strict=True)
        return torch.cat(states), torch.cat(cells)
