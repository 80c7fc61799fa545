"""Structured distributions: torch.distributions over tag sequences, segmentations, trees and more."""

from torch.distributions import kl_divergence

from trelliswork.distributions.approximation import Approximation
from trelliswork.distributions.averaging import average_argmax, average_chain, average_log_prob
from trelliswork.distributions.base import StructuredDistribution
from trelliswork.distributions.clique_templates import CliqueTemplate, factorial_chain, skip_chain, unroll
from trelliswork.distributions.ctc import CTC
from trelliswork.distributions.ctc_alignment import CTCAlignment
from trelliswork.distributions.edit_alignment import EditAlignment, edit_distance
from trelliswork.distributions.factor_graph import FactorGraph
from trelliswork.distributions.hmm import HMM
from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.distributions.probabilistic_cfg import ProbabilisticCFG
from trelliswork.distributions.projective_tree import ProjectiveTree
from trelliswork.distributions.semi_markov import SemiMarkov
from trelliswork.distributions.span_tree import SpanTree
from trelliswork.distributions.spanning_tree import SpanningTree
from trelliswork.distributions.weighted_cfg import WeightedCFG

__all__ = [
    "CTC",
    "HMM",
    "Approximation",
    "CTCAlignment",
    "CliqueTemplate",
    "EditAlignment",
    "FactorGraph",
    "LinearChain",
    "ProbabilisticCFG",
    "ProjectiveTree",
    "SemiMarkov",
    "SpanTree",
    "SpanningTree",
    "StructuredDistribution",
    "WeightedCFG",
    "average_argmax",
    "average_chain",
    "average_log_prob",
    "edit_distance",
    "factorial_chain",
    "kl_divergence",
    "skip_chain",
    "unroll",
]
