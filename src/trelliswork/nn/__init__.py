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
from trelliswork.nn.encoders import DeepEncoder, GatedRecursiveConvolution, RecurrentEncoder, WindowEncoder
from trelliswork.nn.initialization import fan_in_parameter_groups, initialize_fan_in
from trelliswork.nn.inputs import CharacterCNN, CharacterLSTM, LookupTables, TokenInputs, VariationalDropout
from trelliswork.nn.pooling import dynamic_multi_pooling
from trelliswork.nn.rbm import RBM, PretrainingConfig, pretrain_layers
from trelliswork.nn.scorers import (
    BiaffineScorer,
    ContextScorer,
    EndpointScorer,
    HiddenUnitScorer,
    LinearScorer,
    PyramidScorer,
    TransitionScorer,
)
from trelliswork.nn.semi_crf import SemiCRF
from trelliswork.nn.tree_crf import TreeCRF

__all__ = [
    "CRF",
    "CTC",
    "RBM",
    "Attended",
    "BernoulliAttention",
    "BiaffineScorer",
    "ChainAttention",
    "CharacterCNN",
    "CharacterLSTM",
    "ContextScorer",
    "DeepEncoder",
    "DependencyCRF",
    "EndpointScorer",
    "GatedRecursiveConvolution",
    "HiddenUnitScorer",
    "LinearScorer",
    "LookupTables",
    "PretrainingConfig",
    "PyramidScorer",
    "RecurrentEncoder",
    "SegmentAttention",
    "SemiCRF",
    "SoftmaxAttention",
    "TokenInputs",
    "TransitionScorer",
    "TreeAttention",
    "TreeCRF",
    "VariationalDropout",
    "WindowEncoder",
    "dynamic_multi_pooling",
    "fan_in_parameter_groups",
    "initialize_fan_in",
    "pretrain_layers",
]
