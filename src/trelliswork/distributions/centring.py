"""Scores moved so that their highest are 0, by amounts that every structure of a row shares.

The entropy log Z - E[score] is a difference: of numbers of the size of the scores it would keep few digits. It is the
same for scores that are moved together, and of centred ones nothing cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float

if TYPE_CHECKING:
    from trelliswork.structures.grammar.structure import Productions

INF = float("inf")
SMALL = 1e4  # sums of such numbers keep twelve digits


def level(scores: Tensor, n_axes: int, read: Bool[Tensor, "..."] | None = None) -> Tensor:
    """The highest score above -inf over the last axes, which stay with size 1; of those `read`, and 0 if there is none.

    A constant: nothing is differentiated by it, as no result changes with it.
    """
    kept = scores.detach().double()
    kept = kept if read is None else torch.where(read, kept, -INF)
    highest = kept.amax(tuple(range(-n_axes, 0)), keepdim=True) if kept.numel() else kept
    return torch.where(highest.isfinite(), highest, 0.0)


def centred(scores: Tensor, n_axes: int, read: Bool[Tensor, "..."] | None = None) -> Tensor:
    """Scores in float64 less their level."""
    return scores.double() - level(scores, n_axes, read) if scores.numel() else scores.double()


def centred_segments(segments: Float[Tensor, "*batch n k c"]) -> Float[Tensor, "*batch n k c"]:
    """Less the level of each token's segments of length 1, for every token that a segment covers.

    Small levels stay: long segments may score less than their tokens do alone, and would only move away from 0.
    """
    n, k = segments.shape[-3:-1]
    tokens = level(segments[..., 0, :], 1)[..., 0]  # [*batch, n]
    tokens = torch.where(tokens.abs() > SMALL, tokens, 0.0)
    behind = torch.nn.functional.pad(tokens, (0, k - 1))
    windows = behind.unfold(-1, k, 1)[..., :n, :]  # [*batch, n, k]: the levels of tokens i..i+k-1
    return segments.double() - windows.cumsum(-1)[..., None]


def centred_spans(spans: Float[Tensor, "rows n n c"], mask: Bool[Tensor, "rows n n"]) -> Float[Tensor, "rows n n c"]:
    """Less the level of each token, and of all longer spans together: every binary tree has as many of them."""
    single = torch.eye(spans.shape[1], dtype=torch.bool, device=spans.device)
    longer = level(spans, 3, (mask & ~single)[..., None])
    return spans.double() - torch.where(single[..., None], level(spans, 1), longer)


def centred_by_word(
    labels: Float[Tensor, "rows n+1 n+1 l"], is_arc: Bool[Tensor, "rows n+1 n+1"]
) -> Float[Tensor, "rows n+1 n+1 l"]:
    """Less the level of all arcs into each word: a tree has one of them."""
    into_words = centred(labels.transpose(1, 2), 2, is_arc.transpose(1, 2)[..., None])
    return into_words.transpose(1, 2)


def centred_productions(parts: Productions) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Rules, words, roots and nodes: a derivation has one rule fewer than tokens, and one of each of the others."""
    place = torch.arange(parts.n, device=parts.lengths.device)
    spans = (place[:, None] <= place) & (place < parts.lengths[:, None, None])
    read = (spans & (place[:, None] != place))[..., None] if parts.rules.shape[1] > 1 else None
    if read is not None and len(parts.rules) == 1:
        read = read.any(0, keepdim=True)
    nodes = None if parts.nodes is None else centred_spans(parts.nodes, spans)
    return centred(parts.rules, 3, read), centred(parts.lexical, 1), centred(parts.root, 1), nodes
