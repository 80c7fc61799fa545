"""The words that a decision is due to: integrated gradients over what a network reads of each word.

A decision is the difference between the scores of an answer and of its rival, F. What word i brings is multiplied by a
factor between 0 (nothing: the baseline) and 1 (the word as it is), and the share of the word is

    a_i = ∫ ∂F/∂s_i at s = (α, ..., α) dα from 0 to 1,    Σ_i a_i = F(1, ..., 1) - F(0, ..., 0)  (completeness)

The integral is taken by Gauss-Legendre quadrature with ever more steps, until the two sides agree.

Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.models.votes import is_complete
from trelliswork.nn.inputs import TokenBatch
from trelliswork.runtime.arrays import Array, Float, Int

FIRST_STEPS, MOST_STEPS = 8, 256
AT_A_TIME = 4096  # tokens, copies of the sentence included, that are read at a time
MOST_WORK = 60_000  # tokens, copies included, that are read for one sentence with the first number of steps
REFINED_WORK = 2 * MOST_WORK  # the same with all numbers of steps: a bound of the cost of a sentence

# F of some decisions, given the factors of each row and the number of the decision that the row is about.
Margins = Callable[[Float[Tensor, "rows n parts"], Int[Tensor, " rows"]], Float[Tensor, " rows"]]


class Attribution(NamedTuple):
    """The shares of words in a decision: `shares.sum() + base` is `difference`, up to `error`.

    `base` is the difference without any words, which biases and transitions make; `steps` are those of the integral.
    """

    shares: Array  # [n, parts]
    base: float
    difference: float
    error: float
    steps: int


def affordable(n: int, cost: int | None = None) -> int:
    """Return the number of decisions about a sentence of n tokens that can be attributed, one at least.

    `cost` is that of reading the sentence once, in tokens.

    >>> affordable(30), affordable(3000)
    (250, 2)
    """
    return max(1, MOST_WORK // (FIRST_STEPS * max(cost or n, 1)))


def attribute(
    margins: Margins, shape: tuple[int, int], n_decisions: int, like: Tensor, *, cost: int | None = None
) -> list[Attribution]:
    """Return the shares of n words, by part, in each decision.

    `cost` is that of reading the sentence once, in tokens. All decisions get `FIRST_STEPS` steps, and those that are
    not complete (see `votes.TOLERANCE`) twice as many again and again, as far as `MOST_STEPS` and the work allow.

    Args:
        margins: by how much an answer beats its rival, [rows], given factors [rows, n, parts] and decisions [rows].
        shape: (n, parts): the words of the sentence, and the parts that each brings.
        n_decisions: number of decisions.
        like: a tensor of the dtype and device of the network.
        cost: tokens that a row takes; those of the sentence if None.

    Returns:
        An attribution for each decision.
    """
    if not n_decisions:
        return []
    cost, every = cost or shape[0], list(range(n_decisions))
    ends = [_values(margins, shape, every, scale, like, cost) for scale in (0.0, 1.0)]
    attributions: list[Attribution | None] = [None] * n_decisions
    left, steps, work = every, FIRST_STEPS, 0
    while left and (steps == FIRST_STEPS or (steps <= MOST_STEPS and work + len(left) * steps * cost <= REFINED_WORK)):
        work += len(left) * steps * cost
        for d, shares in zip(left, _integrals(margins, shape, left, steps, like, cost), strict=True):
            base, difference = float(ends[0][d]), float(ends[1][d])
            error = abs(float(shares.sum()) - (difference - base))
            attributions[d] = Attribution(shares, base, difference, error, steps)
        left = [d for d in left if not _complete(attributions[d])]
        steps *= 2
    return [each for each in attributions if each is not None]


def _complete(attribution: Attribution | None) -> bool:
    assert attribution is not None
    return is_complete(attribution.error, attribution.difference)


def _values(
    margins: Margins, shape: tuple[int, int], decisions: Sequence[int], scale: float, like: Tensor, cost: int
) -> Array:
    """Return F of each decision where all words have the same factor."""
    values = []
    with torch.no_grad():
        for rows in torch.tensor(decisions, device=like.device).split(max(1, AT_A_TIME // cost)):
            values.append(margins(like.new_full((len(rows), *shape), scale), rows).double().cpu())
    return torch.cat(values).numpy()


def _integrals(
    margins: Margins, shape: tuple[int, int], decisions: Sequence[int], steps: int, like: Tensor, cost: int
) -> Array:
    """Return the shares [decisions, n, parts] by an integral of `steps` steps; a row is a decision at a step."""
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(steps))
    alphas, weights = (nodes + 1) / 2, weights / 2
    total = torch.zeros(len(decisions), *shape, dtype=torch.float64)
    which = torch.arange(len(decisions)).repeat_interleave(steps)
    numbers, step = torch.tensor(decisions)[which], torch.arange(steps).repeat(len(decisions))
    # cuDNN has no gradients of recurrent networks that are evaluated.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        for rows in torch.arange(len(which)).split(max(1, AT_A_TIME // cost)):
            scales = alphas[step[rows], None, None].expand(-1, *shape).to(like).contiguous().requires_grad_(True)
            value = margins(scales, numbers[rows].to(like.device)).sum()
            (slopes,) = torch.autograd.grad(value, scales) if value.requires_grad else (torch.zeros_like(scales),)
            total.index_add_(0, which[rows], slopes.double().cpu() * weights[step[rows], None, None])
    return total.numpy()


def mean_of(same: Sequence[Attribution]) -> Attribution:
    """Return the mean of attributions of one decision by several networks that read the same parts of words."""
    shares = np.mean([each.shares for each in same], axis=0)
    base, difference, error = (float(np.mean([each[field] for each in same])) for field in (1, 2, 3))
    return Attribution(shares, base, difference, error, max(each.steps for each in same))


def scaled(batch: TokenBatch, scales: Float[Tensor, "rows n parts"]) -> TokenBatch:
    """Return copies of a batch of one sentence, one for each row of factors."""
    rows = len(scales)

    def copies(values: Tensor | None) -> Tensor | None:
        return None if values is None else values.expand(rows, *values.shape[1:])

    features, mask = batch.features.expand(rows, -1, -1), batch.mask.expand(rows, -1)
    words = None if batch.words is None else batch.words * rows
    attributes = copies(batch.attributes)
    return TokenBatch(features, mask, copies(batch.forms), batch.spellings, batch.ngrams, attributes, words, scales)
