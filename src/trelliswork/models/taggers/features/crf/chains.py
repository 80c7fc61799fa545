"""The distribution behind a feature CRF, with every query, and averages of several: what needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch

from trelliswork.data.attributes import AttributeRows
from trelliswork.distributions import LinearChain, average_chain
from trelliswork.distributions.grouped_chain import GroupedChain, TagDistribution
from trelliswork.models.taggers.features.crf.array_chain import ArrayChain
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.states import StateSpace
from trelliswork.runtime.arrays import Array


def distribution(space: StateSpace, chain: ArrayChain) -> TagDistribution:
    """Return p(labels | attributes): a chain of labels, or one whose states belong to labels."""
    arcs = chain.transitions[0, 0] if chain.transitions.shape[:2] == (1, 1) else chain.transitions
    *scores, lengths = map(torch.from_numpy, (chain.emissions, arcs, chain.start, chain.end, chain.lengths))
    states = LinearChain(*scores, lengths=lengths)
    if space.is_plain:
        return states
    return GroupedChain(states, torch.from_numpy(space.label_of), one_path_each=space.order == 2)


# Several weight vectors, whose answers are averaged. Qi et al. (2005), Bayesian conditional random fields.


@dataclass(frozen=True)
class AveragedCRF(FeatureCRF):
    """`samples` [members, weights] are drawn from p(w | data), or from the trajectory of herding.

    Answers come from the chain nearest to the average of the members: its probabilities of labels and of neighbouring
    labels are the averages. With `voting` a member has one vote, its best labels; else its probabilities are averaged.
    `weights` are those of the point estimate; they serve for explanations.
    """

    samples: Array = field(default_factory=lambda: np.empty((0, 0)))
    voting: bool = False

    @property
    def _shared_transitions(self) -> Array | None:
        return None

    @property
    def has_array_chain(self) -> bool:
        return False

    @property
    def members(self) -> list[FeatureCRF]:
        """One feature CRF for each weight vector."""
        return [FeatureCRF(**{**_fields(self), "weights": weights}) for weights in self.samples]

    def compact(self) -> tuple[FeatureCRF, Array]:
        """Return the model without the weights that are 0 in all members."""
        reach = np.abs(np.vstack([self.weights, self.samples])).max(0)
        smaller, kept = FeatureCRF(**{**_fields(self), "weights": reach}).compact()
        keep = reach.astype(np.float32) != 0
        weights, samples = (each.astype(np.float32).astype(np.float64) for each in (self.weights, self.samples))
        own = _fields(smaller) | {"weights": weights[keep]}
        return AveragedCRF(**own, samples=np.ascontiguousarray(samples[:, keep]), voting=self.voting), kept

    def chain(self, rows: AttributeRows) -> LinearChain:
        """Return the average of all sentences as one batch."""
        lengths = torch.from_numpy(rows.lengths)
        return average_chain([_plain(each.chain(rows)) for each in self.members], lengths=lengths, voting=self.voting)

    def distributions(self, rows: AttributeRows) -> Iterator[tuple[Array, LinearChain]]:
        """Yield the averages, in batches of like length."""
        for by_member in zip(*(each.distributions(rows) for each in self.members), strict=True):
            batch = by_member[0][0]
            lengths = torch.from_numpy(rows.lengths[batch])
            yield batch, average_chain([_plain(chain) for _, chain in by_member], lengths=lengths, voting=self.voting)


def _fields(crf: FeatureCRF) -> dict[str, Any]:
    """Return the fields that any feature CRF has."""
    return {each.name: getattr(crf, each.name) for each in fields(FeatureCRF)}


def _plain(chain: TagDistribution) -> LinearChain:
    assert isinstance(chain, LinearChain), "samples are drawn of chains whose states are labels"
    return chain


def averaged_crf(crf: FeatureCRF, samples: Array | None, *, voting: bool = False) -> FeatureCRF:
    """Return the model itself, or with samples the one that averages over them.

    Args:
        crf: the model.
        samples: weight vectors, [members, weights]; None for no average.
        voting: whether each member has one vote, its best labels.

    Returns:
        The model that answers.
    """
    if samples is None or not len(samples):
        return crf
    return AveragedCRF(**_fields(crf), samples=samples, voting=voting)
