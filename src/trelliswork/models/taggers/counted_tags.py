"""Costs that count what tags spell out: spans of a type, or tokens with a tag."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trelliswork.distributions import LinearChain
from trelliswork.distributions.grouped_chain import TagDistribution
from trelliswork.models.expected_counts import Counting
from trelliswork.models.taggers.labels import Labels
from trelliswork.runtime.shapes import Bool, Float
from trelliswork.tags.scheme_rules import Part, part_of

OUTSIDE: Part = ("O", "")


def tag_counting(members: Sequence[TagDistribution], labels: Labels) -> Counting:
    """Return how spans are counted by type, or tags if they are plain, under the mean of chains over labels."""
    groups, c = labels.tag_groups, len(labels.vocabulary)
    shape, zeros = (*members[0].batch_shape, *members[0].event_shape, c), members[0].log_partition.new_zeros
    if not labels.has_spans:

        def of_tag(tag: str) -> dict[str, Tensor]:
            return {"costs": zeros(c).index_fill(0, torch.tensor(groups[tag]), 1.0).expand(shape)}

        return Counting(members, list(groups), of_tag)
    parts = [part_of(label, "IOBES") for label in labels.vocabulary]  # as `spans_of` reads them
    kinds = list(dict.fromkeys(kind for role, kind in parts if role != "O"))
    possible = [(each.transitions, each.start) for each in members if isinstance(each, LinearChain)]

    def of_kind(kind: str) -> dict[str, Tensor]:
        always, after, at_start = (zeros(0).new_tensor(each) for each in _beginnings(parts, kind))
        costs = {"costs": always.expand(shape)}
        if len(possible) == len(members) and not any(_happen(*each, after, at_start) for each in possible):
            return costs
        return {**costs, "transitions": after, "start": at_start}

    return Counting(members, kinds, of_kind)


def _beginnings(parts: Sequence[Part], kind: str) -> tuple[list[float], list[list[float]], list[float]]:
    """Return which labels begin a span of a type: after any label, beyond these after some label, at the start.

    B and S always do. I and E do where no span of their type goes on: models may allow that, and readers of tags too.
    """
    always = [float(part[1] == kind and part[0] in "BS") for part in parts]

    def also(before: Part, here: Part) -> float:
        return float(here[1] == kind and here[0] in "IE" and (before[0] in "OES" or before[1] != kind))

    after = [[also(before, here) for here in parts] for before in parts]
    return always, after, [also(OUTSIDE, here) for here in parts]


def _happen(
    transitions: Tensor, start: Float[Tensor, " c"], after: Float[Tensor, "c c"], at_start: Float[Tensor, " c"]
) -> bool:
    """Whether I or E may begin a span: the scores forbid it where the scheme is kept."""
    pairs: Bool[Tensor, "..."] = (transitions > -torch.inf) & (after > 0)
    return bool(pairs.any() | ((start > -torch.inf) & (at_start > 0)).any())
