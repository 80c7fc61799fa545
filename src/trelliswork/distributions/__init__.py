"""Structured distributions: torch.distributions over tag sequences, segmentations, trees and more.

base.py                     every query, written once; divergence.py those of two; registry.py lists the distributions
linear_chain.py, semi_markov.py, hmm.py    tags, segments, states; grouped_chain.py and local.py are special chains
dependency_tree.py          what projective_tree.py and spanning_tree.py share
span_tree.py, weighted_cfg.py, probabilistic_cfg.py    constituents and derivations
ctc.py, ctc_alignment.py, edit_alignment.py, alignment.py    label strings of frames; alignments
automaton.py, acceptor.py, ngram_model.py    machines, under the name `trelliswork.fst`
factor_graph.py, clique_templates.py, approximation.py    variables and factors
averaging.py, centring.py   several distributions as one; scores near 0; costs.py, ranking.py: arithmetic of both
spans.py, *_values.py, segment_scores.py    from values to spans, and how values are written
checks.py, *_inputs.py      what may be given, with a sentence for each thing that can be wrong
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributions import kl_divergence

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
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
_HOMES = {
    "approximation": "Approximation",
    "averaging": "average_argmax average_chain average_log_prob",
    "base": "StructuredDistribution",
    "clique_templates": "CliqueTemplate factorial_chain skip_chain unroll",
    "ctc": "CTC",
    "ctc_alignment": "CTCAlignment",
    "edit_alignment": "EditAlignment edit_distance",
    "factor_graph": "FactorGraph",
    "hmm": "HMM",
    "linear_chain": "LinearChain",
    "probabilistic_cfg": "ProbabilisticCFG",
    "projective_tree": "ProjectiveTree",
    "semi_markov": "SemiMarkov",
    "span_tree": "SpanTree",
    "spanning_tree": "SpanningTree",
    "weighted_cfg": "WeightedCFG",
}
__getattr__ = lazy_names(__name__, _HOMES)
