"""The decoder of trees against a plain recursion over brackets, and level by level against step by step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.attention import Memory
from trelliswork.nn.decoders.base import Decoder
from trelliswork.nn.decoders.tree import TreeDecoder, TreePlaces

DIM = 5


def decoder_of(seed: int = 0, deepest: int = 6) -> TreeDecoder:
    torch.manual_seed(seed)
    return TreeDecoder(DIM, 6, hidden=4, deepest=deepest).double()


def memory_of(decoder: TreeDecoder, batch: int) -> Memory:
    encoded = torch.randn(batch, 7, 6, dtype=torch.double)
    mask = torch.arange(7) < torch.arange(7, 7 - batch, -1)[:, None]
    return decoder.remember(encoded * mask[..., None], mask)


def symbols_of(texts: list[str]) -> Tensor:
    """A vector for each character, the same for equal ones; brackets are flagged."""
    table = torch.randn(128, DIM, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    rows = [
        torch.stack([torch.cat([table[ord(c)], torch.tensor([c == "(", c == ")"]).double()]) for c in text])
        for text in texts
    ]
    return torch.stack(rows)


TEXTS = ["bx(x(y)z)(w)", "b((()))xxxxx", "bxx(x)xxxxxx", "b(((x(y)))zz"]


def recursive(decoder: TreeDecoder, memory: Memory, row: int, text: str) -> list[Tensor]:
    """The hidden vector of the open sequence after each character: a bracket is a call, and its state is kept."""
    vectors = symbols_of([text])[0, :, :-2]
    states: list[Tensor] = []

    def cell(vector: Tensor, parent: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        hidden, kept = decoder.cell(torch.cat([vector, parent])[None], (state[0][None], state[1][None]))
        return hidden[0], kept[0]

    def sequence(at: int, state: tuple[Tensor, Tensor], parent: Tensor) -> int:
        """Read from `at` to the bracket that closes the sequence; the place behind it."""
        while at < len(text):
            if text[at] == ")":
                return at + 1
            state = cell(vectors[at], parent, state)
            if text[at] == "(":
                inner = cell(decoder.begin, state[0], state)
                states.append(inner[0])
                at = sequence(at + 1, inner, state[0])
                if text[at - 1] == ")":
                    states.append(state[0])
            else:
                states.append(state[0])
                at += 1
        return at

    root = decoder._root(memory)[row]
    sequence(0, (root[0], root[1]), torch.zeros(decoder.dim, dtype=torch.double))
    return states


@pytest.mark.parametrize("row", range(4))
def test_states_are_those_of_a_recursion_over_brackets(row: int) -> None:
    decoder = decoder_of()
    memory = memory_of(decoder, 4)
    hidden = torch.stack(recursive(decoder, memory, row, TEXTS[row]))
    one = Memory(*(part[row : row + 1] for part in memory))
    expected, weights = decoder._attend(one, hidden[None])
    unrolled = decoder(memory, symbols_of(TEXTS))
    torch.testing.assert_close(unrolled.hidden[row], expected[0])
    torch.testing.assert_close(unrolled.weights[row], weights[0])


def test_level_by_level_is_step_by_step_and_so_are_gradients() -> None:
    decoder = decoder_of()
    memory = memory_of(decoder, 4)
    grads = []
    for forward in (TreeDecoder.forward, Decoder.forward):
        symbols = symbols_of(TEXTS).requires_grad_()
        unrolled = forward(decoder, memory, symbols)
        weight = torch.linspace(-1, 1, unrolled.hidden.numel(), dtype=torch.double).view_as(unrolled.hidden)
        loss = (unrolled.hidden * weight).sum()
        grads.append([unrolled.hidden, *torch.autograd.grad(loss, [symbols, *decoder.parameters()], retain_graph=True)])
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_inside_a_bracket_does_not_change_what_follows_it() -> None:
    decoder = decoder_of()
    memory = memory_of(decoder, 2)
    memory = Memory(*(part[:1].expand_as(part) for part in memory))
    same = decoder(memory, symbols_of(["bx(yy)z", "bx(wv)z"])).hidden
    torch.testing.assert_close(same[0, 5:], same[1, 5:])
    assert not torch.allclose(same[0, 3:5], same[1, 3:5])


def test_places_of_states() -> None:
    opens = [[False, True, False, False], [False, False, False, False]]
    closes = [[False, False, False, True], [False, False, False, False]]
    places = TreePlaces(opens, closes, 8)  # a ( b ) beside four symbols without brackets
    assert [level.widths for level in places.levels] == [[2, 2, 1, 1], [1, 1]]
    assert places.levels[0].openers == [1, 0]  # the longer one first
    assert places.levels[1].inputs == [0, 3]  # a begin, and the third symbol of the first tree
    assert places.tops[0][3] == places.levels[1].openers[0]  # behind the bracket, the state that opened it


def test_a_tree_needs_a_level() -> None:
    with pytest.raises(ScoreError, match="at least 1 level"):
        TreeDecoder(3, 4, deepest=0)
