"""What taggers that are networks have in common: inputs, an encoder, batches, their folder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.recipe import Material, Options
from trelliswork.models.taggers.labels import Labels, labels_described, record_of_labels
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.description import network_described
from trelliswork.models.taggers.networks.features import VECTOR, TokenFeatures
from trelliswork.models.taggers.networks.network import load_vectors, make_dropout, make_encoder, make_inputs
from trelliswork.models.taggers.networks.pretraining import pretrain_encoder
from trelliswork.models.taggers.networks.stored_network import StoredNetwork
from trelliswork.models.taggers.sentence_tagger import SentenceTagger
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.rbm import PretrainingConfig

if TYPE_CHECKING:
    from jaxtyping import Float, Int


_SMALL: dict[str, Any] = dict(
    word_dim=2, hidden=16, heads=2, layers=1, segment_dim=4, max_length=2, hidden_units=4, pretrain_epochs=0,
    pretrained="", templates=(), ngrams=(), min_count=1,
)  # fmt: skip
PRETRAINING_RATE = 5e-3  # of RBMs over real values, for which that of binary values is too large


class EncodedSentence(NamedTuple):
    """A sentence as indices: what the network reads and, if known, what it should answer."""

    features: Int[Tensor, "n f"]
    words: tuple[str, ...]
    gold: Int[Tensor, " n"] | None

    def __len__(self) -> int:
        return self.features.shape[0]


class NeuralTagger(StoredNetwork, SentenceTagger):
    """Inputs and encoder; a subclass adds the structure. Trains with `trelliswork.training.train`."""

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        self.inputs = make_inputs(config, features)
        self.encoder = make_encoder(config, self.inputs.dim)
        self.input_dropout = make_dropout(config, config.dropout)
        self.hidden_dropout = make_dropout(config, config.hidden_dropout)

    def knows(self, word: str) -> bool:
        return self.features.knows(word)

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
        """A new model whose vocabularies and labels come from tagged sentences.

        `scheme` is that of the tags (IOB1, IOB2, IOBES, plain), inferred when None. `vectors` are read beside the words
        of the training data. The initial weights depend on `seed` alone.
        """
        if not train:
            raise TrellisworkError("expected tagged sentences to build a tagger from, got none; check the data")
        config = replace(config or TaggerConfig(), vector_dim=0 if vectors is None else vectors.dim)
        labels = Labels.from_sentences(train, scheme=scheme, label_scheme=config.label_scheme)
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, features, labels)
        model.begin(train, vectors, seed)
        return model

    @classmethod
    def from_material(cls, material: Material, config: TaggerConfig, options: Options, seed: int) -> Self:
        """A new model, as the command line asks for it."""
        return cls.from_data(material.train, config, scheme=material.scheme, vectors=material.files, seed=seed)

    def begin(self, train: Sequence[Sentence], vectors: WordVectors | None, seed: int) -> None:
        """First weights from pretrained vectors and from the training words, as far as the settings want them."""
        if vectors is not None:
            load_vectors(self.inputs.lookup.tables[self.features.names.index(VECTOR)], vectors)
        if self.config.pretrain_epochs:
            how = PretrainingConfig(epochs=self.config.pretrain_epochs, lr=PRETRAINING_RATE, seed=seed)
            pretrain_encoder(self, train, how)

    @property
    def n_columns(self) -> int:
        return self.features.n_columns

    # Learning

    @abstractmethod
    def gold(self, sentence: Sentence) -> list[int]:
        """The right answer, one number a token."""

    @abstractmethod
    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(tags | words), summed over the batch."""

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedSentence]:
        """Sentences as indices, to be reused from epoch to epoch."""
        return [
            EncodedSentence(features, sentence.words, torch.tensor(self.gold(sentence)) if with_tags else None)
            for features, sentence in zip(self.features.encode_all(sentences), sentences, strict=True)
        ]

    def encoded(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[list[EncodedSentence], list[Tensor]]:
        """Sentences as indices, and their right answers, which must be there."""
        found = [
            sentence if isinstance(sentence, EncodedSentence) else self.encode([sentence], with_tags=True)[0]
            for sentence in batch
        ]
        gold = [sentence.gold for sentence in found if sentence.gold is not None]
        if len(gold) != len(found):
            raise TrellisworkError("expected tagged sentences, got one without; encode(..., with_tags=True)")
        return found, gold

    def token_batch(self, encoded: Sequence[EncodedSentence]) -> TokenBatch:
        """Encoded sentences side by side, where the weights are."""
        batch = self.features.batch([each.features for each in encoded], [each.words for each in encoded])
        return batch.to(next(self.parameters()).device)

    def encode_tokens(self, batch: TokenBatch) -> Float[Tensor, "batch n d"]:
        """One vector per token that knows its neighbours."""
        return self.hidden_dropout(self.encoder(self.input_dropout(self.inputs(batch)), batch.mask))

    # What it is

    STRUCTURE: ClassVar[str]

    def describe(self, top: int = 20) -> Description:
        labels = labels_described(self.labels)
        return network_described(self, self.STRUCTURE, labels, record_of_labels(self.labels), self.transitions())

    @abstractmethod
    def transitions(self) -> list[tuple[float, str, str]]:
        """Learned scores of legal neighbours, the strongest first."""

    def rehearse(self) -> None:
        """Learn and answer with a small network of the same kind, so that its kernels are compiled."""
        sentences = [Sentence(("Ann", "Lee", "sings"), ("B-X", "I-X", "O")), Sentence(("Stop",), ("O",))] * 4
        with torch.random.fork_rng(devices=[]):
            small = type(self).from_data(sentences, replace(self.config, **_SMALL))
            small.loss(sentences).backward()  # a batch that is large enough for every kernel
        small.tag(sentences)
        small.confidences(sentences[:2], [{0: "B-X"}, {}])
        small.analyses(sentences, 2)

    # Disk

    def stored_config(self) -> dict[str, Any]:
        config = {
            "settings": self.config.to_dict(),
            "scheme": self.labels.scheme,
            "data_scheme": self.labels.data_scheme,
            "labels": self.labels.vocabulary.to_list(),
            "vocabularies": self.features.stored_vocabularies(),
        }
        if self.inputs.pretrained is not None:
            config["pretrained"] = self.inputs.pretrained.to_dict()
        return config

    @classmethod
    def from_stored(cls, config: Mapping[str, Any]) -> Self:
        settings = TaggerConfig.from_dict(config["settings"])
        labels = Labels.from_stored(config["labels"], config["scheme"], config["data_scheme"])
        return cls(settings, TokenFeatures.from_stored(settings, config), labels)

    @property
    def label_names(self) -> list[str]:
        return self.labels.vocabulary.to_list()
