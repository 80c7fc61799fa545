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
from trelliswork.nn.dependency_crf import DependencyCRF
from trelliswork.nn.encoders import GatedRecursiveConvolution, LookupTables, WindowEncoder
from trelliswork.nn.initialization import fan_in_parameter_groups, initialize_fan_in
from trelliswork.nn.scorers import BiaffineScorer, ContextScorer, HiddenUnitScorer, LinearScorer
from trelliswork.nn.semi_crf import SemiCRF
from trelliswork.nn.tree_crf import TreeCRF

__all__ = [
    "CRF",
    "CTC",
    "Attended",
    "BernoulliAttention",
    "BiaffineScorer",
    "ChainAttention",
    "ContextScorer",
    "DependencyCRF",
    "GatedRecursiveConvolution",
    "HiddenUnitScorer",
    "LinearScorer",
    "LookupTables",
    "SegmentAttention",
    "SemiCRF",
    "SoftmaxAttention",
    "TreeAttention",
    "TreeCRF",
    "WindowEncoder",
    "fan_in_parameter_groups",
    "initialize_fan_in",
]
