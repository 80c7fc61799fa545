"""Scores moved so that their highest are 0, by amounts that every structure of a row shares.

Entropies and divergences are differences of log Z and E[score]: of numbers of the size of the scores they would keep
few digits. They are the same for scores that are moved together, and of centred ones nothing cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.runtime import bridge
from trelliswork.runtime.arrays import INF, Bool, Float

if TYPE_CHECKING:
    from trelliswork.structures.edit.structure import EditLattice
    from trelliswork.structures.grammar.structure import Productions
    from trelliswork.structures.segments.structure import Segments

SMALL = 100.0  # sums of such numbers keep thirteen digits


def level(scores: Tensor, n_axes: int, read: Bool[Tensor, "..."] | None = None) -> Tensor:
    """Return the highest score above -inf over the last axes, which stay with size 1; of those `read`; 0 if none.

    A constant: nothing is differentiated by it, as no result changes with it.

    Args:
        scores: scores of any float dtype [*batch, ...].
        n_axes: how many of the last axes to take the highest score over.
        read: True at the scores that count, shaped like the scores; None for all.

    Returns:
        The levels, shaped like the scores with the last axes of size 1.
    """
    kept = scores.detach().double()
    kept = kept if read is None else torch.where(read, kept, -INF)
    highest = kept.amax(tuple(range(-n_axes, 0)), keepdim=True) if kept.numel() else kept
    return torch.where(highest.isfinite(), highest, 0.0)


def centred(scores: Tensor, n_axes: int, read: Bool[Tensor, "..."] | None = None) -> Tensor:
    """Return scores in float64 less their level.

    Args:
        scores: scores of any float dtype [*batch, ...].
        n_axes: how many of the last axes share a level.
        read: True at the scores that count, shaped like the scores; None for all.

    Returns:
        Scores of the same shape in float64.
    """
    return scores.double() - level(scores, n_axes, read) if scores.numel() else scores.double()


def centred_segments(parts: Segments) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Return segments, transitions, start and end, where the best way to each position scores 0.

    A segmentation has one transition fewer than segments: their level moves to the segments. Then a segment from i to j
    gets best(i) - best(j), of which a whole segmentation keeps the first and the last alone. Small scores stay.
    """
    segments, transitions, start, end = parts.double().scores
    if transitions is not None:
        common = level(transitions, 2).round()
        segments, transitions, start = segments + common[0, 0], transitions - common, start - common[0]
    start, end = centred(start, 1), centred(end, 1)
    if _are_small(torch.where(parts.segment_mask[..., None], segments, 0.0)):
        return segments, transitions, start, end
    best = _best_prefixes(segments.detach(), None if transitions is None else transitions.detach(), start.detach())
    behind = torch.nn.functional.pad(best, (0, parts.k)).unfold(-1, parts.k, 1)[:, 1 : parts.n + 1]
    return segments + (best[:, : parts.n, None] - behind)[..., None], transitions, start, end


def _best_prefixes(segments: Tensor, transitions: Tensor | None, start: Tensor) -> Float[Tensor, "rows n+1"]:
    """Return the highest score of a segmentation of the first j tokens, as a whole number; 0 where there is none."""
    n, k = segments.shape[1:3]
    arriving, best = [start.expand(len(segments), -1)], [start.new_zeros(len(segments))]
    for j in range(1, n + 1):
        ending = [arriving[j - d] + segments[:, j - d, d - 1] for d in range(1, min(j, k) + 1)]
        here = torch.stack(ending).amax(0)  # [rows, c]
        best.append(here.amax(-1))
        after = best[-1][:, None].expand_as(here) if transitions is None else here[..., None] + transitions
        arriving.append(after if transitions is None else after.amax(-2))
    return _whole(torch.stack(best, -1))


def centred_steps(parts: EditLattice) -> Float[Tensor, "rows n+1 m+1 3"]:
    """Return steps less the best way to the cell that a step leads to, plus that to the one it leaves.

    Small scores stay.
    """
    scores, n = parts.scores, parts.n
    if _are_small(scores):
        return scores
    steps = parts.diagonals(scores.detach(), -INF).unbind(1)  # each [rows, n+1, 3]: cells (i, d - i)
    nothing = scores.new_full((len(scores), 1), -INF)
    here, before = torch.cat([torch.zeros_like(nothing), nothing.expand(-1, n)], 1), nothing.expand(-1, n + 1)
    diagonals = [here]
    for step in steps[1:]:
        shifted = [torch.cat([nothing, each[:, :-1]], 1) for each in (before, here)]
        before, here = here, (torch.stack([*shifted, here], -1) + step).amax(-1)
        diagonals.append(here)
    i, j = (torch.arange(size, device=scores.device) for size in (n + 1, parts.m + 1))
    best = _whole(torch.stack(diagonals, 1)[:, i[:, None] + j, i[:, None].expand(-1, len(j))])  # [rows, n+1, m+1]
    padded = torch.nn.functional.pad(best, (1, 0, 1, 0))
    left = torch.stack([padded[:, :-1, :-1], padded[:, :-1, 1:], padded[:, 1:, :-1]], -1)
    return scores + (left - best[..., None])


def _are_small(scores: Tensor) -> bool:
    """Return whether sums of scores keep their digits as they are."""
    if bridge.out_of_reach():
        return False
    return not bool(torch.where(scores.isfinite(), scores.detach().abs(), 0.0).gt(SMALL).any())


def _whole(best: Tensor) -> Tensor:
    """Return whole numbers: near enough, and added without rounding; 0 where nothing leads."""
    return torch.where(best.isfinite(), best.round(), 0.0)


def centred_spans(spans: Float[Tensor, "rows n n c"], mask: Bool[Tensor, "rows n n"]) -> Float[Tensor, "rows n n c"]:
    """Return spans less the level of each token, and of all longer spans together.

    Every binary tree has as many of them.
    """
    single = torch.eye(spans.shape[1], dtype=torch.bool, device=spans.device)
    longer = level(spans, 3, (mask & ~single)[..., None])
    return spans.double() - torch.where(single[..., None], level(spans, 1), longer)


def centred_by_word(
    labels: Float[Tensor, "rows n+1 n+1 l"], is_arc: Bool[Tensor, "rows n+1 n+1"]
) -> Float[Tensor, "rows n+1 n+1 l"]:
    """Return arcs less the level of all arcs into each word: a tree has one of them."""
    into_words = centred(labels.transpose(1, 2), 2, is_arc.transpose(1, 2)[..., None])
    return into_words.transpose(1, 2)


def centred_productions(parts: Productions) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return rules, words, roots and nodes.

    A derivation has one rule fewer than tokens, and one of each of the others.
    """
    place = torch.arange(parts.n, device=parts.lengths.device)
    spans = (place[:, None] <= place) & (place < parts.lengths[:, None, None])
    read = (spans & (place[:, None] != place))[..., None] if parts.rules.shape[1] > 1 else None
    if read is not None and len(parts.rules) == 1:
        read = read.any(0, keepdim=True)
    nodes = None if parts.nodes is None else centred_spans(parts.nodes, spans)
    return centred(parts.rules, 3, read), centred(parts.lexical, 1), centred(parts.root, 1), nodes
