"""Scorers: from one vector per token to scores of tags `[batch, n, c]`, of arcs, of segments or of spans.

linear.py, hidden_units.py, tensor.py    tags of tokens
spans.py                                segments and labelled spans
biaffine.py                                          arcs and their labels
roles.py, event_memory.py           events
softplus_kernels.py               parts of two of them, computed without large arrays
"""

from __future__ import annotations

from trelliswork.nn.scorers.biaffine import BiaffineScorer
from trelliswork.nn.scorers.hidden_units import HiddenUnitScorer
from trelliswork.nn.scorers.linear import ContextScorer, LinearScorer, TransitionScorer
from trelliswork.nn.scorers.roles import RoleScorer
from trelliswork.nn.scorers.spans import EndpointScorer, PyramidScorer
from trelliswork.nn.scorers.tensor import NeuralTensor, TensorScorer

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
