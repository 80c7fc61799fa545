"""Scorers: from one vector per token to scores of tags, `[batch, n, c]`, or of arcs, `[batch, n+1, n+1]`."""

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
