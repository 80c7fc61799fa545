"""Scorers: from one vector per token to scores of tags `[batch, n, c]`, of arcs, of segments or of spans.

linear.py, context.py, hidden_units.py, tensor.py    tags of tokens
transitions.py                                       pairs of tags, depending on the tokens
segments.py, spans.py                                segments and labelled spans
biaffine.py                                          arcs and their labels
roles.py, event_memory.py, event_search.py           events
bilinear_pairs.py, softplus_kernels.py               parts of two of them, computed without large arrays
"""

from __future__ import annotations

from trelliswork.nn.scorers.biaffine import BiaffineScorer
from trelliswork.nn.scorers.context import ContextScorer
from trelliswork.nn.scorers.hidden_units import HiddenUnitScorer
from trelliswork.nn.scorers.linear import LinearScorer
from trelliswork.nn.scorers.roles import RoleScorer
from trelliswork.nn.scorers.segments import EndpointScorer, PyramidScorer
from trelliswork.nn.scorers.tensor import NeuralTensor, TensorScorer
from trelliswork.nn.scorers.transitions import TransitionScorer

__all__ = [
    "BiaffineScorer",
    "ContextScorer",
    "EndpointScorer",
    "HiddenUnitScorer",
    "LinearScorer",
    "NeuralTensor",
    "PyramidScorer",
    "RoleScorer",
    "TensorScorer",
    "TransitionScorer",
]
