"""Base of all dependency parsers, however they find their trees: labels, tags, answers and scores."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, Vocabulary, WordVectors
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.metrics.attachment import (
    attachment,
)
from trelliswork.models.base import Alternative, Answer, Description, PartProbability, Readable, Report, Scores
from trelliswork.models.batched import BUDGET, in_batches
from trelliswork.models.lemmatiser import lemma_scores
from trelliswork.models.networks.config import NetworkConfig
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import network_described
from trelliswork.models.networks.word_network import EncodedSentence, WordNetwork
from trelliswork.models.parsers.dependency.pins import head_pin
from trelliswork.models.parsers.dependency.report import report_of
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.inputs import TokenBatch
from trelliswork.runtime.arrays import Float, Int
from trelliswork.training.shares import answered

TAGS = ("UPOS", "XPOS", "FEATS")  # columns that are predicted with the tree, if wanted
MOST_SHOWN = 20  # tags of a column in a description
Arc = tuple[int, str]  # head, counted from 1 with 0 for the root, and label
Pins = Mapping[int, tuple[int | None, str | None]]  # word, counted from 0 -> its head and its label, as far as known


@dataclass(frozen=True)
class ParsedArcs:
    """A tree of one sentence, its probability, that of each arc with its label, and the best trees, if asked for.

    `heads_sure` are the probabilities of heads, whatever the labels, if they are known.
    """

    arcs: list[Arc]
    probability: float | None = None
    sure: Sequence[float] = ()
    heads_sure: Sequence[float] = ()
    best: Sequence[tuple[list[Arc], float]] = ()
    tags: Mapping[str, list[str]] = field(default_factory=dict)


class DependencyParser(WordNetwork):
    """Inputs, an encoder, and tags of words on the same encoder if wanted; a subclass finds trees.

    Sentences to learn from have `heads`, and the labels of their arcs as `tags`.

    Args:
        config: settings.
        features: What is read of words.
        labels: Labels of arcs by number.
        tags: Values of the columns that are predicted on the same encoder; None for no columns.
    """

    STRUCTURE: str
    learns_from = "heads"
    supports_pins = True
    budget = BUDGET  # tokens that are parsed at a time

    def __init__(
        self,
        config: NetworkConfig,
        features: TokenFeatures,
        labels: Vocabulary,
        tags: Mapping[str, Vocabulary] | None = None,
    ):
        super().__init__(config, features)
        self.labels, self.tags = labels, dict(tags or {})
        width = self.tag_width
        self.tag_scorers = nn.ModuleDict({name: nn.Linear(width, len(v)) for name, v in self.tags.items()})

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: Any = None,
        *,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new parser whose vocabularies and labels come from sentences with heads.

        Args:
            train: Sentences with heads.
            config: Settings of the network; None for their defaults.
            vectors: Pretrained vectors; None for none.
            seed: What the first weights depend on.

        Returns:
            The parser, not trained.
        """
        if not train:
            raise TrellisworkError("expected sentences with heads to build a parser from, got none; check the data")
        config = replace(config or cls.CONFIG(), vector_dim=0 if vectors is None else vectors.dim)
        labels = Vocabulary.from_counts(Counter(label for each in train for label in labels_of(each)))
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        resolved, tags = cls.resolve_config(config, train), tag_vocabularies(train) if config.tags != "none" else {}
        return cls.initialised(train, vectors, seed, resolved, features, labels, tags)

    @classmethod
    def from_material(cls, material: Material, config: Any, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, vectors=material.files, seed=seed)

    @classmethod
    def resolve_config(cls, config: Any, train: Sequence[Sentence]) -> Any:
        """Return the settings with what the data decide filled in."""
        return config

    @property
    def tag_width(self) -> int:
        """Width of the vectors that tags are scored by."""
        width: int = self.encoder.dim
        return width

    # Learning

    def gold(self, sentence: Sentence) -> list[list[int]]:
        """Return head, label and tags of each word."""
        heads = heads_of(sentence)
        labels = [self.labels.index(label) for label in labels_of(sentence)]
        tags = [[self.tags[name].index(tag) for tag in sentence.columns[name]] for name in self.tags]
        return [list(row) for row in zip(heads, labels, *tags, strict=True)]

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """Return -log p(tree | words), and of the tags if it predicts them, summed over the batch."""
        encoded, rows = self.encoded(batch)
        tokens = self.token_batch(encoded)
        vectors = self.encode_tokens(tokens)
        gold = pad_sequence(list(rows), batch_first=True).to(vectors.device)
        return self.tree_loss(vectors, gold[..., 0], gold[..., 1], tokens) + self._tag_loss(vectors, gold, tokens)

    @abstractmethod
    def tree_loss(
        self,
        vectors: Float[Tensor, "batch n d"],
        heads: Int[Tensor, "batch n"],
        labels: Int[Tensor, "batch n"],
        tokens: TokenBatch,
    ) -> Float[Tensor, ""]:
        """Return the loss of the gold trees, summed over the batch.

        Args:
            vectors: Vectors of the words, from the encoder.
            heads: Gold heads, words counted from 1 and 0 being the root; negative at padding.
            labels: Gold labels.
            tokens: The batch as the network reads it.

        Returns:
            A scalar.
        """

    def _tag_loss(self, vectors: Tensor, gold: Tensor, tokens: TokenBatch) -> Tensor:
        total = vectors.new_zeros(())
        for i, scores in enumerate(self.tag_scores(vectors[tokens.mask]).values(), 2):
            total = total + F.cross_entropy(scores, gold[..., i][tokens.mask], reduction="sum")
        return self.config.tag_weight * total

    # Answers

    @abstractmethod
    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedArcs]:
        """Return the tree of each sentence of a batch, with the `top_k` best trees and, if `sure`, probabilities.

        Args:
            batch: sentences.
            pins: For each sentence what is known of its tree; None if nothing is.
            top_k: How many trees to return; 0 for the best alone.
            sure: Whether arcs have their probabilities.

        Returns:
            A tree for each sentence.
        """

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; trees over n words take n³ steps, and so does each further one of the best."""
        more = choices + explain
        arcs = 5e-5 * n + (1 + more) * 2e-6 * n**2
        trees = (3e-9 * (1 + more) + 1.3e-8 * top_k) * n**3
        return 5e-4 + arcs + trees + 0.1 * explain * n + self.encoder_cost(n, explain=explain)

    def predict(
        self,
        inputs: Readable,
        *,
        top_k: int = 1,
        pins: Sequence[Pins] | None = None,
        confidence: bool = True,
    ) -> list[Answer]:
        """Return the tree of each sentence: a list of (head, label), words counted from 1 and 0 being the root.

        `pins` has for each sentence what is known: {0: (2, "nsubj")} says that the first word is the subject of the
        second; a head or a label of None is unknown. Of raw text there is an answer for each sentence.
        """
        sentences = self.sentences_of(inputs)
        parses = self._parse(sentences, pins, top_k, confidence)
        return [
            replace(_answer(sentence, each), lemmas=self._lemmas(sentence, each))
            for sentence, each in zip(sentences, parses, strict=True)
        ]

    def _lemmas(self, sentence: Sentence, parse: ParsedArcs) -> list[str]:
        """Return the lemmas of the words given their predicted tags, if the parser keeps a lemmatiser."""
        tags = parse.tags.get("UPOS") or parse.tags.get("XPOS")
        return [] if self.lemmatiser is None or not tags else self.lemmatiser.lemmas(sentence.words, tags)

    def _parse(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedArcs]:
        return in_batches(
            self, sentences, pins, lambda batch, known: self.parsed(batch, known, top_k, sure),
            empty=lambda: ParsedArcs([], 1.0, best=[([], 1.0)] if top_k else ()), budget=self.budget,
        )  # fmt: skip

    def tag_scores(self, vectors: Float[Tensor, "*words d"]) -> dict[str, Float[Tensor, "*words tags"]]:
        """Return the scores of the tags of words, by column."""
        return {name: scorer(vectors) for name, scorer in self.tag_scorers.items()}

    def tags_of(self, vectors: Float[Tensor, "batch n d"], lengths: Sequence[int]) -> list[dict[str, list[str]]]:
        """Return the best tags of each word, if it predicts tags."""
        numbers = {name: scores.argmax(-1).tolist() for name, scores in self.tag_scores(vectors).items()}
        names = {name: self.tags[name].to_list() for name in numbers}
        return [
            {name: list(map(names[name].__getitem__, rows[i][:n])) for name, rows in numbers.items()}
            for i, n in enumerate(lengths)
        ]

    def pinned(self, text: str, n: int | None = None) -> tuple[int | None, str | None]:
        return head_pin(text, self.known_labels, n)

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return attachment scores on sentences with heads, every word counted."""
        parses = answered(lambda sentences: self._parse(sentences, None, 0, False), gold)
        scores = attachment([arcs_of(each) for each in gold], [each.arcs for each in parses])
        return {"metric": "las", "score": scores.las, **scores.to_dict(), **self._tag_scores(gold, parses)}

    def _tag_scores(self, gold: Sequence[Sentence], parses: Sequence[ParsedArcs]) -> dict[str, float]:
        scores = {}
        for name in self.tags:
            pairs = [
                (a, b) for given, each in zip(gold, parses, strict=True) if name in given.columns
                for a, b in zip(given.columns[name], each.tags[name], strict=True)
            ]  # fmt: skip
            if pairs:
                scores[f"{name.lower()}_accuracy"] = sum(a == b for a, b in pairs) / len(pairs)
        return scores | lemma_scores(gold, [self._lemmas(*each) for each in zip(gold, parses, strict=True)])

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return attachment scores, the worst labels, and how far the probabilities are off."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a parser finds one tree; leave it out")
        parses = self._parse(gold, None, 0, True)
        arcs = [each.arcs for each in parses]
        sure = [each.sure for each in parses]
        return report_of(gold, [arcs_of(each) for each in gold], arcs, sure, self._tag_scores(gold, parses))

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        return self._unknown_labels(dev, "labels of the dev sentences")

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        return list(gold), self._unknown_labels(gold, "labels")

    def _unknown_labels(self, gold: Sequence[Sentence], what: str) -> list[str]:
        """Return a note about labels that training never saw, with the place of the first."""
        unknown = [
            (label, each, i) for each in gold for i, label in enumerate(labels_of(each)) if label not in self.labels
        ]
        if not unknown:
            return []
        worst = ", ".join(label for label, _ in Counter(label for label, _, _ in unknown).most_common(5))
        _, sentence, i = unknown[0]
        place = f" (the first at {sentence.file}:{sentence.line_of(i)})" if sentence.file else ""
        return [f"note: {what} that training never saw count as mistakes: {worst}{place}; train on sentences with them"]

    # What it is

    def describe(self, top: int = 20) -> Description:
        shown = {"labels": self.known_labels} | {name: _some(v.to_list()) for name, v in self.tags.items()}
        return network_described(self, self.STRUCTURE, shown, {"labels": self.known_labels}, [])

    @property
    def size(self) -> str:
        return f"{len(self.labels)} labels of arcs, {self.n_parameters:,} parameters"

    @property
    def known_labels(self) -> list[str]:
        return self.labels.to_list()

    def stored_config(self) -> dict[str, object]:
        tags = {name: vocabulary.to_list() for name, vocabulary in self.tags.items()}
        return super().stored_config() | {"labels": self.known_labels, "tags": tags}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        settings = cls.CONFIG.from_dict(config["settings"])
        tags = {name: Vocabulary(items) for name, items in config["tags"].items()}
        return cls(settings, TokenFeatures.from_stored(settings, config), Vocabulary(config["labels"]), tags)


def heads_of(sentence: Sentence) -> tuple[int, ...]:
    """Return the heads of a sentence, which must be there."""
    if sentence.heads is None:
        problem = "expected a head for each word, got a sentence without heads; give a treebank"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return sentence.heads


def labels_of(sentence: Sentence) -> tuple[str, ...]:
    """Return the labels of the arcs; a treebank without has the same for all."""
    return sentence.tags or ("_",) * len(sentence)


def arcs_of(sentence: Sentence) -> list[Arc]:
    """Return the gold tree of a sentence.

    >>> arcs_of(Sentence(("Ann", "sings"), ("nsubj", "root"), heads=(2, 0)))
    [(2, 'nsubj'), (0, 'root')]
    """
    return list(zip(heads_of(sentence), labels_of(sentence), strict=True))


def tag_vocabularies(train: Sequence[Sentence]) -> dict[str, Vocabulary]:
    """Return the tags of each column that all sentences have."""
    shared = [name for name in TAGS if all(name in each.columns for each in train)]
    if not shared:
        problem = "tags need a treebank with UPOS, XPOS or FEATS, got one without; leave it out"
        raise TrellisworkError(problem)
    return {
        name: Vocabulary.from_counts(Counter(tag for each in train for tag in each.columns[name])) for name in shared
    }


def _some(tags: list[str]) -> str:
    """Return the most frequent of many tags."""
    more = f", ... {len(tags):,} in all" if len(tags) > MOST_SHOWN else ""
    return ", ".join(tags[:MOST_SHOWN]) + more


def _answer(sentence: Sentence, parse: ParsedArcs) -> Answer:
    of_heads: Sequence[float | None] = parse.heads_sure or [None] * len(parse.sure)
    sure = zip(parse.arcs, parse.sure, of_heads, strict=True) if parse.sure else ()
    columns = {"HEAD": [str(head) for head, _ in parse.arcs], "DEPREL": [label for _, label in parse.arcs]}
    return Answer(
        parse.arcs,
        parse.probability,
        sentence.words,
        parts=[PartProbability(i, i + 1, label, p, head, h) for i, ((head, label), p, h) in enumerate(sure)],
        alternatives=[Alternative(arcs, probability) for arcs, probability in parse.best],
        offsets=sentence.offsets,
        columns={**parse.tags, **columns},
    )
