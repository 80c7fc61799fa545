"""From settings to the parts of a network."""

from __future__ import annotations

import torch
from torch import nn

from trelliswork.data import WordVectors
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.features import CHARACTERS, VECTOR, TokenFeatures
from trelliswork.nn.encoders import (
    DeepEncoder,
    DilatedConvolution,
    IdentityEncoder,
    RecurrentEncoder,
    SentenceConvolution,
    TokenEncoder,
    TransformerEncoder,
    WindowEncoder,
)
from trelliswork.nn.encoders.pretrained import PretrainedEncoder
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.nn.inputs import (
    UNKNOWN,
    CharacterCNN,
    CharacterLSTM,
    DirectConnections,
    LookupTables,
    NgramBag,
    TokenInputs,
    VariationalDropout,
)
from trelliswork.nn.scorers import (
    ContextScorer,
    EndpointScorer,
    HiddenUnitScorer,
    LinearScorer,
    PyramidScorer,
    TensorScorer,
    TransitionScorer,
)


def make_inputs(config: TaggerConfig, features: TokenFeatures) -> TokenInputs:
    """The vectors that go in."""
    lookup = LookupTables(
        features.sizes,
        features.dims,
        unknown_dropout=config.unknown_dropout,
        embedding_dropout=config.embedding_dropout,
    )
    initialize_fan_in(lookup, config.initialization)
    if VECTOR in features.names:
        lookup.tables[features.names.index(VECTOR)].requires_grad_(config.tune_vectors)
    characters: CharacterCNN | CharacterLSTM | None = None
    if config.characters != "none":
        kind = CharacterCNN if config.characters == "cnn" else CharacterLSTM
        n_characters = len(features.vocabularies[CHARACTERS])
        characters = kind(n_characters, dim=config.character_dim, hidden=config.character_hidden)
    ngrams = NgramBag(config.ngram_buckets, dim=config.ngram_dim) if config.ngrams else None
    return TokenInputs(lookup, characters, ngrams, make_pretrained(config, features), word_dropout=config.word_dropout)


def make_pretrained(config: TaggerConfig, features: TokenFeatures) -> PretrainedEncoder | None:
    """The encoder that `pretrained` names; a stored model has all but the weights of it, and needs no hub."""
    if not config.pretrained:
        return None
    if features.pretrained is None:
        found = PretrainedEncoder.from_name(config.pretrained)
    else:
        found = PretrainedEncoder.from_dict(features.pretrained)
    return found.requires_grad_(config.tune_pretrained)


def make_direct_connections(config: TaggerConfig, features: TokenFeatures, n_labels: int) -> DirectConnections | None:
    """What scores labels past the network, if there are templates."""
    return DirectConnections(features.n_attributes, n_labels) if config.templates else None


def make_encoder(config: TaggerConfig, dim: int) -> TokenEncoder:
    """What looks at the neighbours of tokens."""
    hidden, layers, dropout = config.hidden, config.layers, config.hidden_dropout
    if config.encoder == "window":
        return WindowEncoder(dim, window=config.window, hidden=hidden, initialization=config.initialization)
    if config.encoder == "sentence":
        return SentenceConvolution(dim, window=config.window, hidden=hidden, initialization=config.initialization)
    if config.encoder == "transformer":
        return TransformerEncoder(dim, hidden=hidden, layers=layers, heads=config.heads, dropout=dropout)
    if config.encoder == "dilated":
        return DilatedConvolution(
            dim, hidden=hidden, layers=layers, width=config.width, causal=config.causal, dropout=dropout
        )
    if config.encoder == "deep":
        return DeepEncoder(dim, window=config.window, hidden=hidden, layers=layers, dropout=dropout)
    if config.encoder == "none":
        return IdentityEncoder(dim)
    return RecurrentEncoder(dim, hidden=hidden, layers=layers, cell=config.encoder, dropout=dropout)


def make_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """From vectors of tokens to scores of labels."""
    if config.scorer == "hidden-units":
        return HiddenUnitScorer(dim, n_labels, config.hidden_units, initialization=config.initialization)
    if config.scorer == "tensor":
        return TensorScorer(dim, n_labels, slices=config.tensor_slices, initialization=config.initialization)
    kind = LinearScorer if config.scorer == "linear" else ContextScorer
    return kind(dim, n_labels, initialization=config.initialization)


def make_transition_scorer(config: TaggerConfig, dim: int, n_labels: int) -> TransitionScorer | None:
    """What scores pairs of labels by the input; None if they score the same everywhere."""
    return TransitionScorer(dim, n_labels) if config.transitions == "network" else None


def make_segment_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    if config.segments == "pyramid":
        return PyramidScorer(dim, config.segment_dim, n_labels, config.max_length)
    return EndpointScorer(dim, config.segment_dim, n_labels, config.max_length)


def make_dropout(config: TaggerConfig, share: float) -> nn.Module:
    """The same dimensions at all tokens where a recurrent network carries them on, others at each token elsewhere."""
    return VariationalDropout(share) if config.encoder in ("lstm", "gru") else nn.Dropout(share)


def load_vectors(table: nn.Module, vectors: WordVectors) -> None:
    """Put pretrained vectors into a lookup table whose first rows are padding and unknown: 0 and the mean of all."""
    assert isinstance(table, nn.Embedding)
    with torch.no_grad():
        matrix = torch.from_numpy(vectors.matrix)
        table.weight.zero_()
        table.weight[UNKNOWN] = matrix.mean(0)
        table.weight[UNKNOWN + 1 :] = matrix
