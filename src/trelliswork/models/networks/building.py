"""From settings to the parts of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.networks.config import NetworkConfig, PretrainedConfig
from trelliswork.models.networks.features import CHARACTERS, VECTOR, TokenFeatures
from trelliswork.models.networks.parts import CHARACTERS as CHARACTER_INPUTS
from trelliswork.models.networks.parts import encoder_part
from trelliswork.models.storage import StoredConfig, is_language_model
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders import DeepEncoder, TokenEncoder
from trelliswork.nn.encoders.pretrained import PretrainedEncoder, PretrainedWords
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.nn.inputs import (
    UNKNOWN,
    LookupTables,
    NgramBag,
    TokenInputs,
    VariationalDropout,
)
from trelliswork.nn.rbm import PretrainingConfig

if TYPE_CHECKING:
    from trelliswork.models.networks.word_network import WordNetwork


LANGUAGE_MODEL = "trelliswork.models.language.recurrent:LanguageModelWords"


def make_inputs(config: NetworkConfig, features: TokenFeatures) -> TokenInputs:
    """Return the vectors that go in."""
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
    pretrained = make_pretrained(config, features.pretrained)
    return TokenInputs(lookup, characters, ngrams, pretrained, word_dropout=config.word_dropout)


def make_pretrained(config: PretrainedConfig, stored: StoredConfig | None) -> PretrainedWords | None:
    """Return the encoder that `pretrained` names; what is `stored` of one has all but its weights, and needs no hub."""
    if not config.pretrained:
        return None
    if stored is None and is_language_model(config.pretrained):
        if config.pretrained_words != "first":
            got = f"pretrained_words {config.pretrained_words} with the language model {config.pretrained}"
            raise TrellisworkError(f"expected an encoder of sub-words for it, got {got}; leave --pretrained-words out")
        encoder: PretrainedWords = named(LANGUAGE_MODEL).from_folder(config.pretrained, layers=config.pretrained_layers)
    elif stored is None:
        encoder = PretrainedEncoder.from_name(
            config.pretrained, words=config.pretrained_words, layers=config.pretrained_layers
        )
    elif "language_model" in stored:
        encoder = named(LANGUAGE_MODEL).from_dict(stored)
    else:
        encoder = PretrainedEncoder.from_dict(stored)
    is_frozen = config.encoder_training == "frozen"
    encoder.model.requires_grad_(not is_frozen)
    encoder.freeze(is_frozen)
    return encoder


def make_encoder(config: NetworkConfig, dim: int) -> TokenEncoder:
    """Return the layer that looks at the neighbours of tokens."""
    encoder: TokenEncoder = encoder_part(config.encoder).make(config, dim)
    return encoder


def make_dropout(config: NetworkConfig, share: float) -> nn.Module:
    """Return dropout of the same dimensions at all tokens for recurrent networks, else of others at each token."""
    return VariationalDropout(share) if "cell" in encoder_part(config.encoder).settings else Dropout(share)


def load_vectors(table: nn.Module, vectors: WordVectors) -> None:
    """Put pretrained vectors into a lookup table whose first rows are padding and unknown: 0 and the mean of all."""
    assert isinstance(table, nn.Embedding)
    with torch.no_grad():
        matrix = torch.from_numpy(vectors.matrix)
        table.weight.zero_()
        table.weight[UNKNOWN] = matrix.mean(0)
        table.weight[UNKNOWN + 1 :] = matrix


# First weights of hidden layers without tags.


def pretrain_encoder(
    tagger: WordNetwork, sentences: Sequence[Sentence], config: PretrainingConfig | None = None
) -> list[float]:
    """Train the layers of a deep encoder as RBMs over the vectors that go in, which count as Gaussian;
    the reconstruction error of each layer. Tags are not looked at.

    Hinton et al. (2006), A fast learning algorithm for deep belief nets.

    Args:
        tagger: the network, whose encoder must be deep.
        sentences: text; tags are not used.
        config: the settings of the RBMs; `PretrainingConfig()` if None.
    """
    # [S4, RBM pre-training]
    if not isinstance(tagger.encoder, DeepEncoder):
        raise TrellisworkError(
            f'pre-training needs encoder="deep"; got {tagger.config.encoder!r}; set it or leave it out'
        )
    filled = [sentence for sentence in sentences if len(sentence)]
    if not filled:
        raise TrellisworkError("expected sentences to pre-train on, got none; check the data")
    with tagger.evaluating():
        batch = tagger.token_batch(tagger.encode(filled))
        vectors = tagger.inputs(batch)
    with torch.enable_grad():
        return tagger.encoder.pretrain(vectors, batch.mask, config, visible="gaussian")
