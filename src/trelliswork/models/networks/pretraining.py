"""First weights of hidden layers without tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.nn.encoders import DeepEncoder
from trelliswork.nn.rbm import PretrainingConfig

if TYPE_CHECKING:
    from trelliswork.models.networks.word_network import WordNetwork


def pretrain_encoder(
    tagger: WordNetwork, sentences: Sequence[Sentence], config: PretrainingConfig | None = None
) -> list[float]:
    """Train the layers of a deep encoder as RBMs over the vectors that go in, which count as Gaussian;
    the reconstruction error of each layer. Tags are not looked at.

    Hinton et al. (2006), A fast learning algorithm for deep belief nets.
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
