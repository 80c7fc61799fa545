"""Structured distributions: torch.distributions over tag sequences, segmentations, trees and more."""

from torch.distributions import kl_divergence

from trelliswork.distributions import divergence  # noqa: F401 - registers kl_divergence
from trelliswork.distributions.averaging import average_argmax, average_log_prob
from trelliswork.distributions.base import StructuredDistribution
from trelliswork.distributions.hmm import HMM
from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.distributions.projective_tree import ProjectiveTree
from trelliswork.distributions.semi_markov import SemiMarkov
from trelliswork.distributions.spanning_tree import SpanningTree

__all__ = [
    "HMM",
    "LinearChain",
    "ProjectiveTree",
    "SemiMarkov",
    "SpanningTree",
    "StructuredDistribution",
    "average_argmax",
    "average_log_prob",
    "kl_divergence",
]
