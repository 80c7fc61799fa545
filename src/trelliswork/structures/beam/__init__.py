"""Transition systems: y is a sequence of decisions, each scored in the state that the ones before have led to.

system.py                   what a system and a scorer answer
tagging.py, arc_standard.py, arc_hybrid.py, frames/    systems: tags; dependency trees, with swaps or not; frames
parse_state.py, parse_kernels.py    the states of dependency trees, and their right decisions; one sentence by numba
search.py, ranking.py, kernels.py    beams, greedy search and samples; diverse and ranked beams; a step by numba
likelihood.py               log p of a sequence, locally and over a beam

    >>> system = Tagging(lengths, n_tags)                          # or ArcStandard(lengths), or your own
    >>> hypotheses = beam_search(system, scorer, beam_size=8)      # decisions and scores of the 8 best
    >>> local_log_prob(system, scorer, gold), beam_log_prob(system, scorer, gold, beam_size=8)

The other families score parts that many structures share, so one recursion sums over all of them. Here a score may
depend on every decision before it: nothing is shared, and the sum over all sequences has no recursion. Hence this
folder has no semiring and no distribution, and offers no log Z, marginals or exact k best: a beam gives the
best that it finds, and the likelihood over the paths that it keeps. Where exact answers exist (a chain, a projective
tree), use those distributions.
"""

from trelliswork.structures.beam.arc_hybrid import ArcHybrid
from trelliswork.structures.beam.arc_standard import ArcStandard, Swap
from trelliswork.structures.beam.frames import Actions, FrameGraph, FrameSystem
from trelliswork.structures.beam.likelihood import BeamLikelihood, beam_log_prob, local_log_prob, locally_normalised
from trelliswork.structures.beam.ranking import diverse_beam_search, length_penalty, ranked_beam_search
from trelliswork.structures.beam.search import Hypotheses, beam_search, greedy, sample
from trelliswork.structures.beam.system import Scorer, TransitionSystem
from trelliswork.structures.beam.tagging import ChainScorer, Tagging

__all__ = [
    "Actions",
    "ArcHybrid",
    "ArcStandard",
    "BeamLikelihood",
    "ChainScorer",
    "FrameGraph",
    "FrameSystem",
    "Hypotheses",
    "Scorer",
    "Swap",
    "Tagging",
    "TransitionSystem",
    "beam_log_prob",
    "beam_search",
    "diverse_beam_search",
    "greedy",
    "length_penalty",
    "local_log_prob",
    "locally_normalised",
    "ranked_beam_search",
    "sample",
]
