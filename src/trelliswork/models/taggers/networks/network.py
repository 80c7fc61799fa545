"""From settings to the parts of a network."""

from __future__ import annotations

import torch
from torch import nn

from trelliswork.data import WordVectors
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.features import CHARACTERS, VECTOR, TokenFeatures
from trelliswork.models.taggers.networks.parts import CHARACTERS as CHARACTER_INPUTS
from trelliswork.models.taggers.networks.parts import ENCODERS, SCORERS, SEGMENT_SCORERS
from trelliswork.nn.encoders import TokenEncoder
from trelliswork.nn.encoders.pretrained import PretrainedEncoder
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.nn.inputs import (
    UNKNOWN,
    DirectConnections,
    LookupTables,
    NgramBag,
    TokenInputs,
    VariationalDropout,
)
from trelliswork.nn.scorers import TransitionScorer


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
    spelled = CHARACTER_INPUTS[config.characters]
    characters = None if spelled is None else spelled.make(config, len(features.vocabularies[CHARACTERS]))
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
    found: TokenEncoder = ENCODERS[config.encoder].make(config, dim)
    return found


def make_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """From vectors of tokens to scores of labels."""
    found: nn.Module = SCORERS[config.scorer].make(config, dim, n_labels)
    return found


def make_transition_scorer(config: TaggerConfig, dim: int, n_labels: int) -> TransitionScorer | None:
    """What scores pairs of labels by the input; None if they score the same everywhere."""
    return TransitionScorer(dim, n_labels) if config.transitions == "network" else None


def make_segment_scorer(config: TaggerConfig, dim: int, n_labels: int) -> nn.Module:
    """From vectors of tokens to scores of segments."""
    found: nn.Module = SEGMENT_SCORERS[config.segments].make(config, dim, num_labels=n_labels)
    return found


def make_dropout(config: TaggerConfig, share: float) -> nn.Module:
    """The same dimensions at all tokens where a recurrent network carries them on, others at each token elsewhere."""
    return VariationalDropout(share) if "cell" in ENCODERS[config.encoder].settings else nn.Dropout(share)


def load_vectors(table: nn.Module, vectors: WordVectors) -> None:
    """Put pretrained vectors into a lookup table whose first rows are padding and unknown: 0 and the mean of all."""
    assert isinstance(table, nn.Embedding)
    with torch.no_grad():
        matrix = torch.from_numpy(vectors.matrix)
        table.weight.zero_()
        table.weight[UNKNOWN] = matrix.mean(0)
        table.weight[UNKNOWN + 1 :] = matrix
