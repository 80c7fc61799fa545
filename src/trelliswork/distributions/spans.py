"""Spans under a tag scheme as events of a chain: P(tokens i..j-1 are exactly one X span), exactly.

The event is a disjoint union of per-position sets of tags (`schemes.span_patterns`), so its probability is a sum of
constrained partition functions: no sampling, no product of token marginals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.semirings.log import logsumexp
from trelliswork.structures.chain.structure import Chain
from trelliswork.tags.schemes import SpanPattern, span_patterns

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Span = tuple[int, int, str]
INF = float("inf")


def span_chains(
    chain: Chain,
    spans: Sequence[Span],
    owner: Int[Tensor, "m"],
    tags: list[str],
    scheme: str,
) -> list[Chain]:
    """One chain per pattern, each with a row per span: the row that owns it, restricted to the pattern."""
    if len(tags) != chain.c:
        raise ScoreError(f"tags must name all {chain.c} tag indices; got {len(tags)} names")
    patterns = {label: span_patterns(tags, scheme, label) for label in {span[2] for span in spans}}
    emissions, lengths = chain.emissions[owner], chain.lengths[owner]
    bounded = list(zip(spans, lengths.tolist(), strict=True))
    transitions = chain.transitions if chain.transitions.dim() == 2 else chain.transitions[owner]
    chains = []
    for p in range(max((len(found) for found in patterns.values()), default=0)):
        masks = [_allowed(patterns[span[2]][p], span, length, chain) for span, length in bounded]
        kept = torch.where(torch.stack(masks).to(emissions.device), emissions, -INF)
        chains.append(Chain(kept, transitions, chain.start, chain.end, lengths))
    return chains


def _allowed(pattern: SpanPattern, span: Span, length: int, chain: Chain) -> Bool[Tensor, "n c"]:
    """Which tags each position may take if the span follows this pattern."""
    first, last, _ = span
    if not 0 <= first < last <= length:
        raise ScoreError(f"spans must lie in 0..{length} with start < end; got {span}")
    allowed = torch.ones(chain.n, chain.c, dtype=torch.bool)

    def only(position: int, tags: frozenset[int] | None) -> None:
        if tags is not None:
            allowed[position] = False
            allowed[position, list(tags)] = True

    if last - first == 1:
        only(first, pattern.single)
    else:
        only(first, pattern.first)
        for position in range(first + 1, last - 1):
            only(position, pattern.inside)
        only(last - 1, pattern.last)
    if first > 0:
        only(first - 1, pattern.before)
    if last < length:
        only(last, pattern.after)
    if (first == 0 and not pattern.at_start) or (last == length and not pattern.at_end):
        allowed[first] = False
    return allowed


def add_up(log_weights: list[Float[Tensor, "m"]]) -> Float[Tensor, "m"]:
    """log of the summed weights of disjoint patterns."""
    return logsumexp(torch.stack(log_weights), dim=0)
