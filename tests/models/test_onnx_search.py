"""The searches that go into graphs find what the distributions find."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import LinearChain, SemiMarkov
from trelliswork.models.taggers.networks.onnx_export.graphs import (
    IMPOSSIBLE,
    _arriving,
    _finite,
    best_labels,
    best_segments,
)

INF = float("inf")
SIZES = [(1, 1), (1, 6), (4, 1), (5, 9)]


def drawn(shape: tuple[int, ...], ties: bool, seed: int) -> Tensor:
    """Scores; with `ties` small whole numbers, so that many answers score the same."""
    generator = torch.Generator().manual_seed(seed)
    if ties:
        return torch.randint(0, 2, shape, generator=generator).double()
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def ragged(batch: int, n: int) -> Tensor:
    lengths = torch.arange(batch) % n + 1
    lengths[-1] = n
    return lengths


@pytest.mark.parametrize(("batch", "n"), SIZES)
@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_labels_are_those_of_the_chain(batch: int, n: int, varied: bool, ties: bool) -> None:
    c, lengths = 4, ragged(batch, n)
    mask = torch.arange(n) < lengths[:, None]
    emissions = drawn((batch, n, c), ties, 1)
    transitions = drawn((batch, n - 1, c, c) if varied else (c, c), ties, 2)
    transitions[..., 1, 2] = -INF
    start, end = drawn((c,), ties, 3), drawn((c,), ties, 4)
    start[3] = -INF
    arcs = transitions.transpose(0, 1) if varied else transitions.expand(1, 1, c, c)
    tags, score = best_labels(
        emissions.transpose(0, 1), mask.T, _finite(arcs.transpose(2, 3)), _finite(start), end, int(varied)
    )
    chain = LinearChain(emissions, transitions, start, end, mask=mask)
    assert tags[mask].tolist() == chain.argmax[mask].tolist()
    torch.testing.assert_close(score, chain.score(chain.argmax))


@pytest.mark.parametrize(("batch", "n"), SIZES)
@pytest.mark.parametrize("k", [1, 3, 12])
@pytest.mark.parametrize("ties", [False, True])
def test_segments_are_those_of_the_distribution(batch: int, n: int, k: int, ties: bool) -> None:
    c, lengths = 3, ragged(batch, n)
    segments, transitions = drawn((batch, n, k, c), ties, 1), drawn((c, c), ties, 2)
    start, end = drawn((c,), ties, 3), drawn((c,), ties, 4)
    mask = torch.arange(n) < lengths[:, None]
    kinds, roles, score = best_segments(
        _arriving(segments).transpose(0, 1), mask.T, transitions.T, start, end, IMPOSSIBLE
    )
    found = SemiMarkov(segments, transitions, start, end, lengths=lengths)
    torch.testing.assert_close(score, found.score(found.argmax))
    for row, best in enumerate(found.argmax):
        expected = [(kind, role) for first, past, kind in best for role in _roles(past - first)]
        n_tokens = int(lengths[row])
        assert list(zip(kinds[row, :n_tokens].tolist(), roles[row, :n_tokens].tolist(), strict=True)) == expected


def _roles(length: int) -> list[int]:
    return [3] if length == 1 else [0, *[1] * (length - 2), 2]
