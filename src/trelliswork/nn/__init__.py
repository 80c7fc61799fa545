"""Layers: scores in, structured distributions and losses out."""

from trelliswork.nn.attention import (
    Attended,
    BernoulliAttention,
    ChainAttention,
    SegmentAttention,
    SoftmaxAttention,
    TreeAttention,
)
from trelliswork.nn.crf import CRF
from trelliswork.nn.ctc import CTC
from trelliswork.nn.encoders import LookupTables, WindowEncoder
from trelliswork.nn.initialization import fan_in_parameter_groups, initialize_fan_in
from trelliswork.nn.scorers import ContextScorer, HiddenUnitScorer, LinearScorer

__all__ = [
    "CRF",
    "CTC",
    "Attended",
    "BernoulliAttention",
    "ChainAttention",
    "ContextScorer",
    "HiddenUnitScorer",
from trelliswork.nn.dependency_crf import DependencyCRF
from trelliswork.nn.encoders import LookupTables, WindowEncoder
from trelliswork.nn.initialization import fan_in_parameter_groups, initialize_fan_in
from trelliswork.nn.scorers import BiaffineScorer, ContextScorer, LinearScorer

__all__ = [
    "CRF",
    "BiaffineScorer",
    "ContextScorer",
    "DependencyCRF",
    "LinearScorer",
    "LookupTables",
    "SegmentAttention",
    "SoftmaxAttention",
    "TreeAttention",
    "WindowEncoder",
    "fan_in_parameter_groups",
    "initialize_fan_in",
]
