"""Spans under a tag scheme as events of a chain: P(tokens i..j-1 are exactly one X span), exactly.

The event is a disjoint union of per-position sets of tags (`schemes.span_patterns`), so its probability is a sum of
constrained partition functions: no sampling, no product of token marginals. Only the span and its neighbours are
constrained; forward and backward sums stand for the rest of the row, so that a span costs its own length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Log
from trelliswork.semirings.log import logsumexp
from trelliswork.structures.chain.structure import Chain, backward, forward
from trelliswork.tags.schemes import SpanPattern, span_patterns

Span = tuple[int, int, str]
SHORT = 256  # tokens


class Whole(NamedTuple):
    """Short rows as they are."""

    chain: Chain

    def width(self, span: Span) -> int:
        return self.chain.n

    def windows(self, spans: Sequence[Span], owner: Int[Tensor, "m"]) -> tuple[Chain, Sequence[Span]]:
        """Return the row of each span, and the spans."""
        chain, lengths = self.chain, self.chain.lengths[owner]
        _check(spans, lengths)
        transitions = chain.transitions if chain.transitions.dim() == 2 else chain.transitions[owner]
        return Chain(chain.emissions[owner], transitions, chain.start, chain.end, lengths), spans


class Summed(NamedTuple):
    """A chain with log α and log β of every position: what lies before and behind a window, summed."""

    chain: Chain
    log_alphas: Float[Tensor, "rows n c"]
    log_betas: Float[Tensor, "rows n c"]

    @staticmethod
    def of(chain: Chain) -> Summed:
        log = Log()
        return Summed(chain, torch.stack(forward(chain, log), 1), torch.stack(backward(chain, log), 1))

    def width(self, span: Span) -> int:
        return span[1] - span[0] + 2

    def windows(self, spans: Sequence[Span], owner: Int[Tensor, "m"]) -> tuple[Chain, Sequence[Span]]:
        """Return a row for each span: its tokens and its neighbours, with all that lies outside.

        The span within it is given as well.
        """
        chain, lengths = self.chain, self.chain.lengths[owner]
        _check(spans, lengths)
        bounds = torch.tensor([span[:2] for span in spans], device=owner.device)
        first, last = (bounds[:, 0] - 1).clamp(min=0), torch.minimum(bounds[:, 1], lengths - 1)
        width = int((last - first).max()) + 1
        place = (first[:, None] + torch.arange(width, device=owner.device)).clamp(max=chain.n - 1)
        rows = owner[:, None]
        inner = chain.emissions[rows, place]
        begun = torch.cat([self.log_alphas[owner, first][:, None], inner[:, 1:]], 1)
        at_end = (place == last[:, None])[..., None]
        emissions = torch.where(at_end, begun + self.log_betas[rows, place], begun)
        shared = chain.transitions.dim() == 2
        transitions = chain.transitions if shared else chain.transitions[rows, place[:, :-1].clamp(max=chain.n - 2)]
        nothing = torch.zeros_like(chain.start)
        moved = [(i - start, j - start, label) for (i, j, label), start in zip(spans, first.tolist(), strict=True)]
        return Chain(emissions, transitions, nothing, nothing, last - first + 1), moved


def windows_of(chain: Chain) -> Whole | Summed:
    """Cut long rows to what a span needs; to sum what lies outside would take longer than a short row does."""
    return Whole(chain) if chain.n <= SHORT else Summed.of(chain)


def _check(spans: Sequence[Span], lengths: Int[Tensor, "m"]) -> None:
    for span, length in zip(spans, lengths.tolist(), strict=True):
        if not 0 <= span[0] < span[1] <= length:
            raise ScoreError(f"spans must lie in 0..{length} with start < end; got {span}")


def span_chains(chain: Chain, spans: Sequence[Span], tags: list[str], scheme: str) -> list[Chain]:
    """Return one chain per pattern, the rows restricted to it; each row has its span.

    Args:
        chain: rows of scores, each with one span.
        spans: the span (start, end, label) of each row.
        tags: the name of each tag index.
        scheme: the scheme of these names, such as IOB2.

    Returns:
        Chains whose log Z, less that of `chain`, are the log probabilities of the patterns.
    """
    if len(tags) != chain.c:
        raise ScoreError(f"tags must name all {chain.c} tag indices; got {len(tags)} names")
    patterns = {label: span_patterns(tags, scheme, label) for label in {span[2] for span in spans}}
    bounded = list(zip(spans, chain.lengths.tolist(), strict=True))
    chains = []
    for p in range(max((len(of_row) for of_row in patterns.values()), default=0)):
        masks = [_allowed(patterns[span[2]][p], span, length, chain) for span, length in bounded]
        kept = torch.where(torch.stack(masks).to(chain.emissions.device), chain.emissions, -INF)
        chains.append(Chain(kept, chain.transitions, chain.start, chain.end, chain.lengths))
    return chains


def in_groups(widths: Sequence[int], scores_by_token: int, most: int) -> list[list[int]]:
    """Return places of windows, those of like width together: a group has `most` scores at most, or a single window.

    Args:
        widths: the number of tokens of each window.
        scores_by_token: how many scores a token takes.
        most: how many scores a group may have.

    Returns:
        The places in `widths` of each group.
    """
    order = sorted(range(len(widths)), key=lambda place: -widths[place])
    groups, done = list[list[int]](), 0
    while done < len(order):
        size = max(1, most // (max(widths[order[done]], 1) * scores_by_token))
        groups.append(order[done : done + size])
        done += size
    return groups


def _allowed(pattern: SpanPattern, span: Span, length: int, chain: Chain) -> Bool[Tensor, "n c"]:
    """Return the tags that each position may take if the span follows this pattern."""
    first, last, _ = span
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
    """Return log of the summed weights of disjoint patterns."""
    return logsumexp(torch.stack(log_weights), dim=0)
