"""From settings to the parts of a network."""

from __future__ import annotations

import torch
from torch import nn

from trelliswork.data import WordVectors
from trelliswork.models.config import TaggerConfig
from trelliswork.models.features import CHARACTERS, VECTOR, TokenFeatures
from trelliswork.nn.encoders import DeepEncoder, RecurrentEncoder, TokenEncoder, WindowEncoder
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.nn.inputs import UNKNOWN, CharacterCNN, CharacterLSTM, LookupTables, TokenInputs, VariationalDropout
from trelliswork.nn.scorers import (
    ContextScorer,
    EndpointScorer,
    HiddenUnitScorer,
    LinearScorer,
    PyramidScorer,
    TransitionScorer,
)


def make_inputs(config: TaggerConfig, features: TokenFeatures) -> TokenInputs:
    """The vectors that go in."""
    lookup = LookupTables(features.sizes, features.dims, unknown_dropout=config.unknown_dropout)
    initialize_fan_in(lookup, config.initialization)
    if VECTOR in features.names:
        lookup.tables[features.names.index(VECTOR)].requires_grad_(config.tune_vectors)
    if config.characters == "none":
        return TokenInputs(lookup)
    kind = CharacterCNN if config.characters == "cnn" else CharacterLSTM
    n_characters = len(features.vocabularies[CHARACTERS])
    return TokenInputs(lookup, kind(n_characters, dim=config.character_dim, hidden=config.character_hidden))


def make_encoder(config: TaggerConfig, dim: int) -> TokenEncoder:
    """What looks at the neighbours of tokens."""
    if config.encoder == "window":
        return WindowEncoder(dim, window=config.window, hidden=config.hidden, initialization=config.initialization)
    if config.encoder == "deep":
        return DeepEncoder(
            dim, window=config.window, hidden=config.hidden, layers=config.layers, dropout=config.hidden_dropout
        )
    return RecurrentEncoder(
        dim, hidden=config.hidden, layers=config.layers, cell=config.encoder, dropout=config.hidden_dropout
    )


def make_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    if config.scorer == "hidden-units":
        return HiddenUnitScorer(dim, n_labels, config.n_units, initialization=config.initialization)
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
    return nn.Dropout(share) if config.encoder in ("window", "deep") else VariationalDropout(share)


def load_vectors(table: nn.Module, vectors: WordVectors) -> None:
    """Put pretrained vectors into a lookup table whose first rows are padding and unknown: 0 and the mean of all."""
    assert isinstance(table, nn.Embedding)
    with torch.no_grad():
        matrix = torch.from_numpy(vectors.matrix)
        table.weight.zero_()
        table.weight[UNKNOWN] = matrix.mean(0)
        table.weight[UNKNOWN + 1 :] = matrix
