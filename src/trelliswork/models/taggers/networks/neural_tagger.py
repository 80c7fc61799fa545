"""What taggers that are networks have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.networks.attribution import Attribution
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import network_described
from trelliswork.models.networks.word_network import WordNetwork
from trelliswork.models.recipe import Material, Options
from trelliswork.models.taggers.labels import Labels, labels_described, record_of_labels
from trelliswork.models.taggers.networks.config import SCORERS, SEGMENT_SCORERS, TaggerConfig
from trelliswork.models.taggers.networks.word_votes import WordExplanation, explained_tags
from trelliswork.models.taggers.sentence_tagger import Pins, SentenceTagger
from trelliswork.nn.inputs import DirectConnections, TokenBatch
from trelliswork.nn.scorers import TransitionScorer
from trelliswork.runtime.shapes import Float, Int

_SMALL: dict[str, Any] = dict(
    word_dim=2, hidden=16, heads=2, layers=1, segment_dim=4, max_length=2, hidden_units=4, pretrain_epochs=0,
    pretrained="", templates=(), ngrams=(), min_count=1,
)  # fmt: skip


class NeuralTagger(WordNetwork, SentenceTagger):
    """Inputs and encoder; a subclass adds the structure."""

    CONFIG = TaggerConfig
    explains = True

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features)
        self.labels = labels

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
        return cls.initialised(train, vectors, seed, config, features, labels)

    @classmethod
    def from_material(cls, material: Material, config: TaggerConfig, options: Options, seed: int) -> Self:
        """A new model, as the command line asks for it."""
        return cls.from_data(material.train, config, scheme=material.scheme, vectors=material.files, seed=seed)

    # What it is

    STRUCTURE: ClassVar[str]

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Attention has something to do for each pair of words, and an explanation runs the network many times."""
        chain = super().cost(n, top_k=top_k, choices=choices)
        return chain + 5e-5 * n + 5e-8 * n**2 + 3e-2 * explain * n + self.encoder_cost(n, explain=explain)

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

    # Explanations

    def explain(self, sentences: Any) -> list[WordExplanation]:
        """The tags of each sentence, the words that they are due to, and the alternatives."""
        return [explained_tags(self, each) for each in self.sentences_of(sentences)]

    @property
    def known_tags(self) -> list[str]:
        """The tags that a token can have."""
        return list(self.labels.tag_groups)

    @abstractmethod
    def best_values(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Any]:
        """The best value of each sentence as its distribution has it: labels, or segments."""

    @abstractmethod
    def tags_of_value(self, value: Any, n: int) -> list[str]:
        """The tags that such a value stands for, in the scheme of the data."""

    @abstractmethod
    def margins(self, batch: TokenBatch, values: Sequence[Any], rivals: Sequence[Any]) -> Float[Tensor, " batch"]:
        """By how much the scores of values are above those of their rivals."""

    def attributed(self, sentence: Sentence, value: Any, rivals: Sequence[Any]) -> list[Attribution]:
        """The shares of the words in the difference between the scores of a value and of each rival."""

        def margins(batch: TokenBatch, which: Int[Tensor, " rows"]) -> Tensor:
            return self.margins(batch, [value] * len(which), [rivals[d] for d in which.tolist()])

        return self.attribute(sentence, margins, len(rivals))

    # Disk

    def stored_config(self) -> dict[str, Any]:
        labels = self.labels
        of_labels = {
            "scheme": labels.scheme, "data_scheme": labels.data_scheme, "labels": labels.vocabulary.to_list(),
        }  # fmt: skip
        return super().stored_config() | of_labels

    @classmethod
    def from_stored(cls, config: Mapping[str, Any]) -> Self:
        settings = TaggerConfig.from_dict(config["settings"])
        labels = Labels.from_stored(config["labels"], config["scheme"], config["data_scheme"])
        return cls(settings, TokenFeatures.from_stored(settings, config), labels)

    @property
    def label_names(self) -> list[str]:
        return self.labels.vocabulary.to_list()


# From settings to the parts of a tagger that score labels.


def make_direct_connections(config: TaggerConfig, features: TokenFeatures, n_labels: int) -> DirectConnections | None:
    """What scores labels past the network, if there are templates."""
    return DirectConnections(features.n_attributes, n_labels) if config.templates else None


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
