"""Neural network layers: structured output layers, and the inputs, encoders and scorers that feed them.

crf.py, semi_crf.py, tree_crf.py, dependency_crf.py, ctc.py    structured layers; structured.py is their base class
token_classifier.py             a CRF over a transformer of Hugging Face, for its Trainer
attention.py                    attention whose weights are marginals of a structure
inputs/, encoders/, scorers/    words to vectors, vectors in context, scores
decoders/, output_layers/       generation of strings and trees; softmaxes over large vocabularies
edit/                           neural edit transducers
transitions/                    networks that build trees action by action
event_factors.py                models of events
query_parts.py                  parts of a network that writes database queries
rbm.py, initialization.py       pre-training and initialization of weights
dropout.py                      dropout with fast masks on a CPU
kernel_math.py                  an exponential for kernels of networks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
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
    from trelliswork.nn.encoders import (
        DeepEncoder,
        DilatedConvolution,
        GatedRecursiveConvolution,
        IdentityEncoder,
        RecurrentEncoder,
        SentenceConvolution,
        TransformerEncoder,
        WindowEncoder,
    )
    from trelliswork.nn.initialization import fan_in_parameter_groups, initialize_fan_in
    from trelliswork.nn.inputs import (
        CharacterCNN,
        CharacterLSTM,
        DirectConnections,
        LookupTables,
        NgramBag,
        TokenInputs,
        VariationalDropout,
        WordDropout,
    )
    from trelliswork.nn.rbm import RBM, PretrainingConfig, pretrain_layers
    from trelliswork.nn.scorers import (
        BiaffineScorer,
        ContextScorer,
        EndpointScorer,
        HiddenUnitScorer,
        LinearScorer,
        NeuralTensor,
        PyramidScorer,
        TensorScorer,
        TransitionScorer,
    )
    from trelliswork.nn.scorers.roles import dynamic_multi_pooling
    from trelliswork.nn.semi_crf import SemiCRF
    from trelliswork.nn.token_classifier import TokenClassifierWithCRF
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
    "DilatedConvolution",
    "DirectConnections",
    "EndpointScorer",
    "GatedRecursiveConvolution",
    "HiddenUnitScorer",
    "IdentityEncoder",
    "LinearScorer",
    "LookupTables",
    "NeuralTensor",
    "NgramBag",
    "PretrainingConfig",
    "PyramidScorer",
    "RecurrentEncoder",
    "SegmentAttention",
    "SemiCRF",
    "SentenceConvolution",
    "SoftmaxAttention",
    "TensorScorer",
    "TokenClassifierWithCRF",
    "TokenInputs",
    "TransformerEncoder",
    "TransitionScorer",
    "TreeAttention",
    "TreeCRF",
    "VariationalDropout",
    "WindowEncoder",
    "WordDropout",
    "dynamic_multi_pooling",
    "fan_in_parameter_groups",
    "initialize_fan_in",
    "pretrain_layers",
]
_HOMES = {
    "attention": "Attended BernoulliAttention ChainAttention SegmentAttention SoftmaxAttention TreeAttention",
    "crf": "CRF",
    "ctc": "CTC",
    "dependency_crf": "DependencyCRF",
    "encoders": "DeepEncoder DilatedConvolution GatedRecursiveConvolution IdentityEncoder RecurrentEncoder "
    "SentenceConvolution TransformerEncoder WindowEncoder",
    "initialization": "fan_in_parameter_groups initialize_fan_in",
    "inputs": "CharacterCNN CharacterLSTM DirectConnections LookupTables NgramBag TokenInputs "
    "VariationalDropout WordDropout",
    "rbm": "RBM PretrainingConfig pretrain_layers",
    "scorers": "BiaffineScorer ContextScorer EndpointScorer HiddenUnitScorer LinearScorer NeuralTensor "
    "PyramidScorer TensorScorer TransitionScorer",
    "scorers.roles": "dynamic_multi_pooling",
    "semi_crf": "SemiCRF",
    "token_classifier": "TokenClassifierWithCRF",
    "tree_crf": "TreeCRF",
}
__getattr__ = lazy_names(__name__, _HOMES)
