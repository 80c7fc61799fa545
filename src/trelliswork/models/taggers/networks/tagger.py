"""A tagger: a network, such as a window or an LSTM from both ends, under a linear-chain CRF.

Collobert et al. (2011), Natural language processing (almost) from scratch.

>>> tagger = Tagger.from_data(train_sentences)                         # doctest: +SKIP
>>> train(tagger, train_sentences, dev_sentences, out="chunker")       # doctest: +SKIP
>>> Tagger.load("chunker").tag([Sentence(("Ann", "sings", "."))])      # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, WordVectors
from trelliswork.distributions.local import locally_normalised
from trelliswork.models.base import Description, Readable
from trelliswork.models.networks.attribution import Attribution
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import strongest_transitions
from trelliswork.models.networks.word_network import EncodedSentence, WordNetwork
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.models.taggers.labels import Labels, Pins
from trelliswork.models.taggers.networks.building import (
    attribute_rivals,
    describe_tagger,
    make_direct_connections,
    make_scorer,
    make_transition_scorer,
    network_seconds,
    parts_from_data,
    parts_from_stored,
    stored_labels,
)
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.word_votes import WordExplanation, explained_tags
from trelliswork.models.taggers.posterior import ChainPosterior, constrained
from trelliswork.models.taggers.sentence_tagger import SentenceTagger
from trelliswork.nn.crf import CRF
from trelliswork.nn.inputs import TokenBatch
from trelliswork.runtime.arrays import Float, Int

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


class Tagger(WordNetwork, SentenceTagger):
    """Inputs, encoder, scorer and CRF.

    Args:
        config: the settings.
        features: what is read of words.
        labels: the labels by number.
    """

    CONFIG = TaggerConfig
    STRUCTURE: ClassVar[str] = "linear-chain CRF"
    graph = "chain"
    explains = supports_ensembling = True

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features)
        self.labels = labels
        self.scorer = make_scorer(config, self.encoder.dim, len(labels.vocabulary))
        self.pairs = make_transition_scorer(config, self.encoder.dim, len(labels.vocabulary))
        self.direct = make_direct_connections(config, features, len(labels.vocabulary))
        if config.constrained and labels.has_spans:
            self.crf = CRF.from_tags(labels.vocabulary.to_list(), scheme=labels.scheme, batch_first=True)
        else:
            self.crf = CRF(len(labels.vocabulary), batch_first=True)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: TaggerConfig | None = None,
        *,
        scheme: str | None = None,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new model whose vocabularies and labels come from tagged sentences.

        Args:
            train: the training data.
            config: the settings; those of `TaggerConfig()` if None.
            scheme: the scheme of the tags (IOB1, IOB2, IOBES, plain), inferred when None.
            vectors: pretrained vectors, read in addition to the words of the training data.
            seed: what the initial weights depend on, and they on nothing else.

        Returns:
            The model, with its initial weights.
        """
        return cls.initialised(train, vectors, seed, *parts_from_data(train, config, scheme, vectors))

    @classmethod
    def from_material(cls, material: Material, config: TaggerConfig, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, scheme=material.scheme, vectors=material.files, seed=seed)

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        return (
            super().cost(n, top_k=top_k, choices=choices)
            + network_seconds(n, explain=explain)
            + self.encoder_cost(n, explain=explain)
        )

    def describe(self, top: int = 20) -> Description:
        return describe_tagger(self)

    def explain(self, sentences: Readable) -> list[WordExplanation]:
        """Return the tags of each sentence, the words that they are due to, and the alternatives."""
        return [explained_tags(self, each) for each in self.sentences_of(sentences)]

    def attributed(
        self, sentence: Sentence, value: Sequence[int], rivals: Sequence[Sequence[int]]
    ) -> list[Attribution]:
        """Return the shares of the words in the difference between the scores of a value and of each rival.

        Args:
            sentence: the sentence.
            value: its labels, [n].
            rivals: other labels of it.

        Returns:
            An attribution for each rival.
        """
        return attribute_rivals(self, self.margins, sentence, value, rivals)

    def stored_config(self) -> dict[str, object]:
        return super().stored_config() | stored_labels(self.labels)

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        return cls(*parts_from_stored(config))

    def gold(self, sentence: Sentence) -> list[int]:
        return self.labels.indices(sentence, constrained=self.config.constrained)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Return scores of each label at each token."""
        return self._emissions(self.encode_tokens(batch), batch)

    def _emissions(self, vectors: Float[Tensor, "batch n d"], batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        """Return scores of labels from what `encode_tokens` gives; the chain is exact where the network need not be."""
        emissions: Tensor = self.scorer(vectors, batch.mask)
        emissions = emissions if self.direct is None else emissions + self.direct(batch)
        return emissions.to(self.crf.transitions.dtype)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """Return -log p(tags | words), summed over the batch."""
        # [S3, Sentence-Level Log-Likelihood; S1, loss]
        encoded, gold = self.encoded(batch)
        tokens = self.token_batch(encoded)
        return self.loss_of_vectors(self.encode_tokens(tokens), _padded(gold, tokens), tokens)

    def loss_of_vectors(
        self, vectors: Float[Tensor, "batch n d"], tags: Int[Tensor, "batch n"], batch: TokenBatch
    ) -> Float[Tensor, ""]:
        """Return -log p(tags | words) from what `encode_tokens` gives.

        Args:
            vectors: what `encode_tokens` gives, [batch, n, d].
            tags: gold labels, [batch, n].
            batch: the tokens, with their mask.

        Returns:
            The loss, summed over the batch.
        """
        if self._is_plain:
            return -self.crf(self._emissions(vectors, batch), tags, batch.mask)
        return -self._distribution(vectors, batch).log_prob(tags).sum()

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[LinearChain, Int[Tensor, "batch n"]]:
        """Return p(labels | words) of a batch and its gold labels, for objectives other than the likelihood."""
        encoded, gold = self.encoded(batch)
        tokens = self.token_batch(encoded)
        return self._distribution(self.encode_tokens(tokens), tokens), _padded(gold, tokens)

    @property
    def _is_plain(self) -> bool:
        """True if transitions are those of the CRF alone, and all is normalised together."""
        return self.pairs is None and self.config.normalization != "local"

    def _distribution(self, vectors: Float[Tensor, "batch n d"], batch: TokenBatch) -> LinearChain:
        """Return scores of labels and, if the network has them, of pairs of labels."""
        pair_scores = None if self.pairs is None else self.pairs(vectors)
        chain = self.crf.distribution(self._emissions(vectors, batch), batch.mask, pair_scores=pair_scores)
        return locally_normalised(chain) if self.config.normalization == "local" else chain

    def chain(self, sentences: Sequence[Sentence]) -> LinearChain:
        """Return p(labels | words) of a batch of sentences; values are indices into `labels.vocabulary`."""
        batch = self.token_batch(self.encode(sentences))
        return self._distribution(self.encode_tokens(batch), batch)

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> LinearChain:
        """Return p(labels | words, pins) of a batch of sentences.

        `pins` holds, for each sentence, tags that are known: `{0: "B-NP"}` says that the first token begins an NP.
        """
        sentences = self.sentences_of(sentences)
        with self.evaluating():
            return constrained(self.chain(sentences), self.labels, sentences, pins)

    def _posterior(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> ChainPosterior:
        return ChainPosterior(self.distribution(batch, pins), self.labels, batch)

    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        if pins is not None or not self._is_plain:
            return super()._best_tags(batch, pins)
        tokens = self.token_batch(self.encode(batch))  # the layer decodes without making a distribution
        return [self.labels.tags(labels) for labels in self.crf.decode(self(tokens), tokens.mask)]

    def best_values(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[int]]:
        """Return the best labels of each sentence."""
        best = self.distribution(batch, pins).argmax.tolist()
        return [row[: len(sentence)] for row, sentence in zip(best, batch, strict=True)]

    def tags_of_value(self, value: Sequence[int], n: int) -> list[str]:
        """Return the tags of labels, in the scheme of the data."""
        return self.labels.tags(value)

    def margins(
        self, batch: TokenBatch, values: Sequence[Sequence[int]], rivals: Sequence[Sequence[int]]
    ) -> Float[Tensor, " batch"]:
        """Return by how much the scores of labels are above those of their rivals.

        Args:
            batch: copies of a sentence, or several sentences.
            values: the labels of each row.
            rivals: other labels of each row.

        Returns:
            Differences of scores, [batch].
        """
        chain = self._distribution(self.encode_tokens(batch), batch)
        both = (torch.tensor(each, device=batch.mask.device) for each in (values, rivals))
        value, rival = (chain.score(each) for each in both)
        return value - rival

    def transitions(self) -> list[tuple[float, str, str]]:
        """Return the learned scores of legal neighbours, the strongest first."""
        return strongest_transitions(self.crf, self.label_names)


def _padded(gold: Sequence[Tensor], batch: TokenBatch) -> Int[Tensor, "batch n"]:
    return pad_sequence(list(gold), batch_first=True).to(batch.mask.device)
