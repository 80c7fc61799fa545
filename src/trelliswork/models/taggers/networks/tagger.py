"""A tagger: a network, such as a window or an LSTM from both ends, under a linear-chain CRF.

Collobert et al. (2011), Natural language processing (almost) from scratch.

>>> tagger = Tagger.from_data(train_sentences)                         # doctest: +SKIP
>>> train(tagger, train_sentences, dev_sentences, out="chunker")       # doctest: +SKIP
>>> Tagger.load("chunker").tag([Sentence(("Ann", "sings", "."))])      # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence
from trelliswork.distributions.local import locally_normalised
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import strongest_transitions
from trelliswork.models.networks.word_network import EncodedSentence
from trelliswork.models.taggers.chain_tagger import ChainTagger
from trelliswork.models.taggers.labels import Labels
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.neural_tagger import (
    NeuralTagger,
    make_direct_connections,
    make_scorer,
    make_transition_scorer,
)
from trelliswork.models.taggers.sentence_tagger import Pins
from trelliswork.nn.crf import CRF
from trelliswork.nn.inputs import TokenBatch
from trelliswork.runtime.shapes import Float, Int

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


class Tagger(NeuralTagger, ChainTagger):
    """Inputs, encoder, scorer and CRF."""

    STRUCTURE = "linear-chain CRF"
    graph = "chain"

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features, labels)
        self.scorer = make_scorer(config, self.encoder.dim, len(labels.vocabulary))
        self.pairs = make_transition_scorer(config, self.encoder.dim, len(labels.vocabulary))
        self.direct = make_direct_connections(config, features, len(labels.vocabulary))
        if config.constrained and labels.has_spans:
            self.crf = CRF.from_tags(labels.vocabulary.to_list(), scheme=labels.scheme, batch_first=True)
        else:
            self.crf = CRF(len(labels.vocabulary), batch_first=True)

    def gold(self, sentence: Sentence) -> list[int]:
        return self.labels.indices(sentence, constrained=self.config.constrained)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Scores of each label at each token."""
        return self._emissions(self.encode_tokens(batch), batch)

    def _emissions(self, vectors: Float[Tensor, "batch n d"], batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Scores of labels from what `encode_tokens` gives; the chain is exact where the network need not be."""
        emissions: Tensor = self.scorer(vectors, batch.mask)
        emissions = emissions if self.direct is None else emissions + self.direct(batch)
        return emissions.to(self.crf.transitions.dtype)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(tags | words), summed over the batch."""
        # [S3, Sentence-Level Log-Likelihood; S1, loss]
        encoded, gold = self.encoded(batch)
        tokens = self.token_batch(encoded)
        return self.loss_of_vectors(self.encode_tokens(tokens), _padded(gold, tokens), tokens)

    def loss_of_vectors(
        self, vectors: Float[Tensor, "batch n d"], tags: Int[Tensor, "batch n"], batch: TokenBatch
    ) -> Float[Tensor, ""]:
        """-log p(tags | words) from what `encode_tokens` gives."""
        if self._is_plain:
            return -self.crf(self._emissions(vectors, batch), tags, batch.mask)
        return -self._distribution(vectors, batch).log_prob(tags).sum()

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[LinearChain, Int[Tensor, "batch n"]]:
        """p(labels | words) of a batch and its gold labels, for objectives other than the likelihood."""
        encoded, gold = self.encoded(batch)
        tokens = self.token_batch(encoded)
        return self._distribution(self.encode_tokens(tokens), tokens), _padded(gold, tokens)

    @property
    def _is_plain(self) -> bool:
        """Whether transitions are those of the CRF alone, and all is normalised together."""
        return self.pairs is None and self.config.normalization != "local"

    def _distribution(self, vectors: Float[Tensor, "batch n d"], batch: TokenBatch) -> LinearChain:
        """Scores of labels and, if the network has them, of pairs of labels."""
        pair_scores = None if self.pairs is None else self.pairs(vectors)
        chain = self.crf.distribution(self._emissions(vectors, batch), batch.mask, pair_scores=pair_scores)
        return locally_normalised(chain) if self.config.normalization == "local" else chain

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        batch = self.token_batch(self.encode(sentences))
        return self._distribution(self.encode_tokens(batch), batch)

    def best_values(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[int]]:
        best = self.distribution(batch, pins).argmax.tolist()
        return [row[: len(sentence)] for row, sentence in zip(best, batch, strict=True)]

    def tags_of_value(self, value: Sequence[int], n: int) -> list[str]:
        return self.labels.tags(value)

    def margins(
        self, batch: TokenBatch, values: Sequence[Sequence[int]], rivals: Sequence[Sequence[int]]
    ) -> Float[Tensor, " batch"]:
        chain = self._distribution(self.encode_tokens(batch), batch)
        both = (torch.tensor(each, device=batch.mask.device) for each in (values, rivals))
        value, rival = (chain.score(each) for each in both)
        return value - rival

    def _decode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        if not self._is_plain:
            return super()._decode(sentences)
        batch = self.token_batch(self.encode(sentences))
        return self.crf.decode(self(batch), batch.mask)

    def transitions(self) -> list[tuple[float, str, str]]:
        return strongest_transitions(self.crf, self.label_names)


def _padded(gold: Sequence[Tensor], batch: TokenBatch) -> Int[Tensor, "batch n"]:
    return pad_sequence(list(gold), batch_first=True).to(batch.mask.device)
