"""The best labels and the best segments as loops that become part of an ONNX graph.

Positions come first, [n, batch, ...]: then a step of a loop takes one row of a tensor. Nothing in a loop changes its
shape from step to step; what grows is a list. Of several that are best the first is taken, as the kernels do.
"""

from __future__ import annotations

import torch
from torch import Tensor


@torch.jit.script_if_tracing
def best_labels(
    emissions: Tensor, mask: Tensor, arcs: Tensor, start: Tensor, end: Tensor, step: int
) -> tuple[Tensor, Tensor]:
    """Viterbi of a chain [S4.100-102]: labels [batch, n], of no meaning behind the last token, and scores [batch].

    emissions [n, batch, c]; mask [n, batch], tokens first in a sentence. With `step` 1 arcs are [n-1, batch, to, from]:
    those of each place and sentence; with 0 [1, 1, to, from], the same for all.
    """
    n, c = mask.shape[0], emissions.shape[2]
    best = start + emissions[0]
    bests = [best]
    for k in range(1, n):
        arrived = (best.unsqueeze(1) + arcs[step * (k - 1)]).amax(2)
        best = torch.where(mask[k].unsqueeze(1), arrived + emissions[k], best)
        bests.append(best)
    score, label = (best + end).max(1)
    path = [label]
    first_row = step * c * torch.arange(mask.shape[1])
    for back in range(1, n):
        k = n - back
        into = arcs[step * (k - 1)].flatten(0, 1)[first_row + label]
        label = torch.where(mask[k], (bests[k - 1] + into).argmax(1), label)
        path.append(label)
    return torch.stack(path, 1).flip([1]), score


@torch.jit.script_if_tracing
def best_segments(
    arriving: Tensor, mask: Tensor, arcs: Tensor, start: Tensor, end: Tensor, impossible: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Viterbi of segments [S0.18]: of each token the kind and the role of its segment [batch, n], and scores [batch].

    arriving [n, batch, k, c]: the score of the segment of d tokens that ends with token t at [t, :, d-1]; mask
    [n, batch]; arcs [to, from]. Roles are 0 for the first token of several, 1 for one inside, 2 for the last, 3 for the
    only one. Nothing ends before the first token: it scores `impossible`.
    """
    n, k = mask.shape[0], arriving.shape[2]
    lengths = mask.long().sum(0)
    entered = torch.full_like(arriving[0], impossible)  # at d-1: the best that ends d tokens ago, going on to a label
    entered = torch.cat([start.expand_as(entered[:, :1]), entered[:, 1:]], 1)
    final = torch.zeros_like(entered[:, 0])
    bests: list[Tensor] = []
    durations: list[Tensor] = []
    for t in range(n):
        totals = entered + arriving[t]
        best = totals.amax(1)
        bests.append(best)
        durations.append(totals.argmax(1) + 1)
        entered = torch.cat([(best.unsqueeze(1) + arcs).amax(2).unsqueeze(1), entered[:, : k - 1]], 1)
        final = torch.where((lengths == t + 1).unsqueeze(1), best, final)
    score, label = (final + end).max(1)
    past = lengths  # the tokens from here on have their segment
    kinds: list[Tensor] = []
    roles: list[Tensor] = []
    for back in range(1, n + 1):
        t = n - back
        ends = past == t + 1
        label = torch.where(ends & (lengths > t + 1), (bests[t] + arcs[label]).argmax(1), label)
        duration = durations[t].gather(1, label.unsqueeze(1)).flatten()
        past = torch.where(ends, t + 1 - duration, past)
        kinds.append(label)
        roles.append(torch.where(past == t, 3 * ends.long(), 1 + ends.long()))
    return torch.stack(kinds, 1).flip([1]), torch.stack(roles, 1).flip([1]), score
