"""Every structured layer reads masks, lengths and reductions alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import ProjectiveTree, SpanTree
from trelliswork.errors import ScoreError
from trelliswork.nn import CRF, DependencyCRF, SemiCRF, TreeCRF

BATCH, N, C = 3, 5, 2
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(N) < LENGTHS[:, None]
Ask = Callable[..., Any]


def scores(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def layer(kind: str) -> tuple[torch.nn.Module, Tensor, Any]:
    """A layer, its scores, and gold values."""
    torch.manual_seed(0)
    if kind in ("CRF", "CRF, batch first"):
        crf, tags = CRF(C, batch_first=kind != "CRF").double(), torch.ones(BATCH, N, dtype=torch.long)
        return crf, scores(BATCH, N, C) if crf.batch_first else scores(N, BATCH, C), tags if crf.batch_first else tags.T
    if kind == "SemiCRF":
        return (
            SemiCRF(C, 2).double(),
            scores(BATCH, N, 2, C),
            [[(i, i + 1, 0) for i in range(n)] for n in LENGTHS.tolist()],
        )
    if kind == "TreeCRF":
        spans = scores(BATCH, N, N, C)
        return TreeCRF(C), spans, SpanTree(spans, lengths=LENGTHS).argmax
    arcs = scores(BATCH, N + 1, N + 1)
    return DependencyCRF(), arcs, ProjectiveTree(arcs, lengths=LENGTHS).argmax


every_layer = pytest.mark.parametrize("kind", ["CRF", "CRF, batch first", "SemiCRF", "TreeCRF", "DependencyCRF"])


def mask_for(kind: str, mask: Tensor = MASK) -> Tensor:
    return mask.T if kind == "CRF" else mask


@every_layer
def test_lengths_and_masks_say_the_same(kind: str) -> None:
    crf, given, gold = layer(kind)
    mask = mask_for(kind)
    torch.testing.assert_close(crf(given, gold, lengths=LENGTHS), crf(given, gold, mask=mask))
    assert crf.decode(given, lengths=LENGTHS) == crf.decode(given, mask=mask)
    assert torch.equal(crf.marginals(given, lengths=LENGTHS), crf.marginals(given, mask=mask))


@every_layer
def test_reductions(kind: str) -> None:
    crf, given, gold = layer(kind)
    each = crf(given, gold, lengths=LENGTHS, reduction="none")
    assert each.shape == (BATCH,) and bool((each <= 0).all())
    torch.testing.assert_close(crf(given, gold, lengths=LENGTHS), each.sum())
    torch.testing.assert_close(crf(given, gold, lengths=LENGTHS, reduction="mean"), each.mean())
    torch.testing.assert_close(crf(given, gold, lengths=LENGTHS, reduction="token_mean"), each.sum() / LENGTHS.sum())
    with pytest.raises(ScoreError, match="reduction must be one of none, sum, mean, token_mean"):
        crf(given, gold, lengths=LENGTHS, reduction="average")


@every_layer
def test_wrong_lengths_and_masks_are_named(kind: str) -> None:
    crf, given, gold = layer(kind)
    with pytest.raises(ScoreError, match="lengths or a mask, not both"):
        crf(given, gold, lengths=LENGTHS, mask=mask_for(kind))
    with pytest.raises(ScoreError, match=r"lengths must lie in 1\.\.5; got 6 at row 1"):
        crf(given, gold, lengths=torch.tensor([5, 6, 1]))
    with pytest.raises(ScoreError, match="mask"):
        crf(given, gold, mask=mask_for(kind)[:2])


@pytest.mark.parametrize("kind", ["SemiCRF", "TreeCRF", "DependencyCRF"])
def test_a_hole_is_named_where_rows_are_padded_on_the_right(kind: str) -> None:
    crf, given, gold = layer(kind)
    mask = MASK.clone()
    mask[0, 1] = False
    with pytest.raises(ScoreError, match="the mask of row 0 has a hole"):
        crf(given, gold, mask=mask)
