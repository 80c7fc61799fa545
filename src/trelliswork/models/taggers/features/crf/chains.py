"""The distribution behind a feature CRF, with every query: what needs torch."""

from __future__ import annotations

import torch

from trelliswork.distributions import LinearChain
from trelliswork.distributions.grouped_chain import GroupedChain, TagDistribution
from trelliswork.models.taggers.features.crf.array_chain import ArrayChain
from trelliswork.models.taggers.features.crf.states import StateSpace


def distribution(space: StateSpace, chain: ArrayChain) -> TagDistribution:
    """p(labels | attributes): a chain of labels, or one whose states belong to labels."""
    arcs = chain.transitions[0, 0] if chain.transitions.shape[:2] == (1, 1) else chain.transitions
    *scores, lengths = map(torch.from_numpy, (chain.emissions, arcs, chain.start, chain.end, chain.lengths))
    states = LinearChain(*scores, lengths=lengths)
    if space.is_plain:
        return states
    return GroupedChain(states, torch.from_numpy(space.label_of), one_path_each=space.order == 2)
