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
from trelliswork.distributions.local import locally_normalised
from trelliswork.models.config import TaggerConfig
from trelliswork.models.features import TokenFeatures
from trelliswork.models.labels import Labels
from trelliswork.models.network import make_direct_connections, make_scorer
from trelliswork.models.neural_tagger import EncodedSentence, NeuralTagger
from trelliswork.models.sentence_tagger import ChainTagger
from trelliswork.nn.crf import CRF
from trelliswork.nn.inputs import TokenBatch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from trelliswork.distributions import LinearChain


class Tagger(NeuralTagger, ChainTagger):
    """Inputs, encoder, scorer and CRF."""

    STRUCTURE = "linear-chain CRF"

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features, labels)
        self.scorer = make_scorer(config, self.encoder.dim, len(labels.vocabulary))
        self.direct = make_direct_connections(config, features, len(labels.vocabulary))
        if config.constrained and labels.has_spans:
            self.crf = CRF.from_tags(labels.vocabulary.to_list(), scheme=labels.scheme, batch_first=True)
        else:
            self.crf = CRF(len(labels.vocabulary), batch_first=True)

    def gold(self, sentence: Sentence) -> list[int]:
        return self.labels.indices(sentence, constrained=self.config.constrained)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Scores of each label at each token."""
        emissions: Tensor = self.scorer(self.encode_tokens(batch), batch.mask)
        return emissions if self.direct is None else emissions + self.direct(batch)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(tags | words), summed over the batch [S3, Sentence-Level Log-Likelihood; S1, loss]."""
        emissions, tags, mask = self._scores_and_tags(batch)
        if self.config.normalization == "local":
            return -self._distribution(emissions, mask).score(tags).sum()
        return -self.crf(emissions, tags, mask)

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[LinearChain, Int[Tensor, "batch n"]]:
        """p(labels | words) of a batch and its gold labels, for objectives other than the likelihood."""
        emissions, tags, mask = self._scores_and_tags(batch)
        return self._distribution(emissions, mask), tags

    def _distribution(self, emissions: Float[Tensor, "batch n c"], mask: Bool[Tensor, "batch n"]) -> LinearChain:
        chain = self.crf.distribution(emissions, mask)
        return locally_normalised(chain) if self.config.normalization == "local" else chain

    def _scores_and_tags(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[Float[Tensor, "batch n c"], Int[Tensor, "batch n"], Bool[Tensor, "batch n"]]:
        encoded, gold = self.encoded(batch)
        tokens = self.token_batch(encoded)
        emissions = self(tokens).to(self.crf.transitions.dtype)  # the chain is exact where the network need not be
        return emissions, pad_sequence(gold, batch_first=True).to(emissions.device), tokens.mask

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        batch = self.token_batch(self.encode(sentences))
        return self._distribution(self(batch), batch.mask)

    def _decode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        if self.config.normalization == "local":
            return super()._decode(sentences)
        batch = self.token_batch(self.encode(sentences))
        return self.crf.decode(self(batch), batch.mask)

    @property
    def summary(self) -> str:
        return f"A network ({self.config.encoder}) under a {self.STRUCTURE}, for {self.labels.data_scheme} tags."
