"""A tagger: a network, such as the window of [S3] or an LSTM from both ends, under a linear-chain CRF.

>>> tagger = Tagger.from_data(train_sentences)                         # doctest: +SKIP
>>> train(tagger, train_sentences, dev_sentences, out="chunker")       # doctest: +SKIP
>>> Tagger.load("chunker").tag([Sentence(("Ann", "sings", "."))])      # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence
from trelliswork.models.config import TaggerConfig
from trelliswork.models.features import TokenFeatures
from trelliswork.models.labels import Labels
from trelliswork.models.network import make_scorer, make_transition_scorer
from trelliswork.models.neural_tagger import EncodedSentence, NeuralTagger
from trelliswork.models.sentence_tagger import ChainTagger
from trelliswork.nn.crf import CRF
from trelliswork.nn.inputs import TokenBatch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from trelliswork.distributions import LinearChain


class Tagger(NeuralTagger, ChainTagger):
    """Inputs, encoder, scorer and CRF."""

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features, labels)
        self.scorer = make_scorer(config, self.encoder.dim, len(labels.vocabulary))
        self.pairs = make_transition_scorer(config, self.encoder.dim, len(labels.vocabulary))
        if config.constrained and labels.has_spans:
            self.crf = CRF.from_tags(labels.vocabulary.to_list(), scheme=labels.scheme, batch_first=True)
        else:
            self.crf = CRF(len(labels.vocabulary), batch_first=True)

    def gold(self, sentence: Sentence) -> list[int]:
        return self.labels.indices(sentence, constrained=self.config.constrained)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Scores of each label at each token."""
        return self.scorer(self.encode_tokens(batch), batch.mask)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(tags | words), summed over the batch [S3, Sentence-Level Log-Likelihood; S1, loss]."""
        encoded, gold = self.encoded(batch)
        tokens = self.token_batch(encoded)
        tags = pad_sequence(gold, batch_first=True).to(tokens.mask.device)
        return self.loss_of_vectors(self.encode_tokens(tokens), tags, tokens.mask)

    def loss_of_vectors(
        self, vectors: Float[Tensor, "batch n d"], tags: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch n"]
    ) -> Float[Tensor, ""]:
        """-log p(tags | words) from what `encode_tokens` gives."""
        if self.pairs is None:
            return -self.crf(self.scorer(vectors, mask), tags, mask)
        return -self._chain(vectors, mask).log_prob(tags).sum()

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        batch = self.token_batch(self.encode(sentences))
        return self._chain(self.encode_tokens(batch), batch.mask)

    def _chain(self, vectors: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> LinearChain:
        """Scores of labels and, if the network has them, of pairs of labels."""
        pair_scores = None if self.pairs is None else self.pairs(vectors)
        return self.crf.distribution(self.scorer(vectors, mask), mask, pair_scores=pair_scores)

    def _decode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        if self.pairs is not None:
            return super()._decode(sentences)
        batch = self.token_batch(self.encode(sentences))
        return self.crf.decode(self(batch), batch.mask)

    @property
    def summary(self) -> str:
        return f"A network ({self.config.encoder}) under a linear-chain CRF, for {self.labels.data_scheme} tags."
