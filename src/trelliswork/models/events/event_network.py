"""Base of the models of events: inputs with dependencies, a CRF of entities, answers and scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, WordVectors
from trelliswork.data.events import Entity, Event, entities_of, events_of, sentences_in
from trelliswork.distributions import LinearChain
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.frame_graphs import PartScores, event_scores
from trelliswork.models.base import Alternative, Answer, Description, PartProbability, Readable, Report, Scores
from trelliswork.models.batched import in_batches
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.inputs import SCHEME, Batch, EncodedRecord, Inventory, encoded_record
from trelliswork.models.networks.building import make_encoder
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import network_described
from trelliswork.models.networks.word_network import EncodedSentence, WordNetwork
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.crf import CRF
from trelliswork.runtime.arrays import Float
from trelliswork.tags.schemes import spans_of, tags_of

Pins = Mapping[str, Sequence[Entity]]  # {"entities": [(start, end, type)]}: all of them, if they are known
KnownEntities = Sequence[Sequence[Entity] | None]  # the same, sentence by sentence


class EventNetwork(WordNetwork):
    """Entities by a CRF over an encoder of words and dependencies; a subclass finds events with their arguments.

    Sentences to learn from have entities as `tags`, and events as `trelliswork.data.events` reads them. Sentences of a
    document are encoded one by one; what goes from one to the next is left to the subclass.

    Args:
        config: settings.
        features: What is read of words.
        inventory: Names of entities, types and roles.
    """

    CONFIG = EventConfig
    STRUCTURE: ClassVar[str]
    learns_from = "events"
    next_options = "--confidence"

    def __init__(self, config: EventConfig, features: TokenFeatures, inventory: Inventory):
        super().__init__(config, features)
        self.inventory, n_relations = inventory, len(inventory.relations)
        if n_relations:
            self.encoder = make_encoder(config, self.inputs.dim + n_relations)
        self.entity_scorer = nn.Linear(self.encoder.dim, len(inventory.tags))
        self.crf = CRF.from_tags(inventory.tags, SCHEME, batch_first=True)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: EventConfig | None = None,
        *,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new model for the entities, events and roles of some sentences.

        Args:
            train: Sentences or documents with events.
            config: Settings, by default those of the class.
            vectors: Pretrained vectors of words.
            seed: Seed of the first weights.

        Returns:
            The model, not trained.
        """
        config = replace(config or cls.CONFIG(), vector_dim=0 if vectors is None else vectors.dim)
        inventory = Inventory.from_sentences(train, dependencies=config.dependencies)
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        return cls.initialised(train, vectors, seed, config, features, inventory)

    @classmethod
    def from_material(cls, material: Material, config: EventConfig, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, vectors=material.files, seed=seed)

    # Learning

    def gold(self, sentence: Sentence) -> list[int]:
        """Return the number of the entity tag of each word."""
        known = [each for each in entities_of(sentence) if each[2] in self.inventory.kinds]
        tags = self.inventory.tags
        return [tags.index(tag) for tag in tags_of(known, len(sentence), SCHEME)]

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedRecord]:  # type: ignore[override]
        every = zip(self.features.encode_all(sentences), sentences, strict=True)
        return [encoded_record(self.inventory, features, each, with_tags=with_tags) for features, each in every]

    def read(self, encoded: Sequence[EncodedRecord]) -> Batch:
        """Return vectors of words, and of words among their neighbours, a row for each sentence."""
        rows = [sentence for record in encoded for sentence in record.sentences]
        tokens = self.token_batch(rows)  # type: ignore[arg-type]
        inputs = self.inputs(tokens)
        dependencies = inputs.new_zeros(*inputs.shape[:2], len(self.inventory.relations))
        for row, each in enumerate(rows):
            for head, dependent, relation in each.arcs:
                dependencies[row, [head, dependent], relation] = 1.0
        given = self.input_dropout(torch.cat([inputs, dependencies], -1))
        vectors = self.hidden_dropout(self.encoder(given, tokens.mask))
        return Batch(encoded, tokens, dependencies, inputs, vectors)

    def loss(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence] | Sequence[EncodedRecord]
    ) -> Float[Tensor, ""]:
        """Return -log p(entities | words) and the loss of events, summed over the batch."""
        fresh = [each for each in batch if isinstance(each, Sentence)]
        encoded = [each for each in batch if isinstance(each, EncodedRecord)] or self.encode(fresh, with_tags=True)
        read = self.read(encoded)
        known = [each.tags for each in read.sentences if each.tags is not None]
        if len(known) != len(read.sentences):
            raise TrellisworkError("expected sentences with events, got one without; encode(..., with_tags=True)")
        tags = pad_sequence(known, batch_first=True).to(read.vectors.device)
        of_entities = -self.crf(self.entity_scorer(read.vectors), tags, read.tokens.mask)
        return of_entities + self.event_loss(read)

    @abstractmethod
    def event_loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of the events of a batch."""

    # Answers

    def entity_chain(self, batch: Batch) -> LinearChain:
        """Return p(tags of entities | words)."""
        return self.crf.distribution(self.entity_scorer(batch.vectors), batch.tokens.mask)

    def best_entities(self, batch: Batch, known: KnownEntities) -> list[list[Entity]]:
        """Return the most probable entities of each sentence, or those that are known."""
        best = self.crf.decode(self.entity_scorer(batch.vectors), batch.tokens.mask)
        decoded = [self.spans_of(tags) for tags in best]
        return [spans if given is None else list(given) for spans, given in zip(decoded, known, strict=True)]

    def spans_of(self, tags: Sequence[int]) -> list[Entity]:
        """Return the entities that the numbers of tags spell."""
        return spans_of([self.inventory.tags[tag] for tag in tags], SCHEME)

    @abstractmethod
    def extracted(self, batch: Batch, known: KnownEntities, top_k: int, *, confidence: bool) -> list[Extracted]:
        """Return entities and events of each record of a batch, with probabilities if `confidence` or `top_k` asks.

        Args:
            batch: Encoded records with their vectors.
            known: Known entities of each sentence, None if unknown.
            top_k: Number of best values of each record.
            confidence: Add the probabilities of parts.

        Returns:
            The value of each record.
        """

    def extract(
        self,
        sentences: Sequence[Sentence],
        pins: Sequence[Pins] | None = None,
        *,
        top_k: int = 1,
        confidence: bool = False,
    ) -> list[Extracted]:
        """Return entities and events of sentences or documents, as `predict` answers with them.

        Args:
            sentences: Sentences or documents.
            pins: For each of them what is known, by `entities` and `events`; None if nothing is.
            top_k: How many alternatives to return; 0 for none.
            confidence: Whether parts have their probabilities.

        Returns:
            Entities and events of each sentence or document.
        """

        def answer(batch: Sequence[Sentence], pinned: Sequence[Pins] | None) -> list[Extracted]:
            encoded = self.encode(batch)
            self._check(batch, pinned)
            read = self.read(encoded)
            given = [None] * len(encoded) if pinned is None else [each.get("entities") for each in pinned]
            known = [each for record, of_it in zip(encoded, given, strict=True) for each in record.split(of_it)]
            return self.extracted(read, known, top_k, confidence=confidence)

        return in_batches(self, sentences, pins, answer, empty=lambda: Extracted(probability=1.0))

    def _check(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> None:
        for sentence, known in zip(batch, pins or (), strict=False):
            bounds = sentences_in(sentence)
            for start, end, kind in known.get("entities", ()):
                inside = start < end and any(first <= start and end <= last for first, last in bounds)
                if not inside or kind not in self.inventory.kinds:
                    problem = f"expected entities within {len(sentence)} tokens of {', '.join(self.inventory.kinds)}"
                    raise TrellisworkError(f"{problem}, each in one sentence; got {(start, end, kind)} in the pins")

    def predict(
        self, inputs: Readable, *, top_k: int = 1, pins: Sequence[Pins] | None = None, confidence: bool = True
    ) -> list[Answer]:
        """Return entities and events of each sentence or document, as {"entities": [...], "events": [...]}.

        `pins` has for each of them {"entities": [(start, end, type)]}, all of them, or {} if they are not known.
        `Answer.search` says how the value was extractions, and so whether it is surely the most probable one.

        Args:
            inputs: Raw text, a sentence or document, or several.
            top_k: Number of alternatives of each answer.
            pins: Known entities of each of them.
            confidence: Add the probabilities of parts.

        Returns:
            An answer for each sentence or document.
        """
        sentences = self.sentences_of(inputs)
        extractions = self.extract(sentences, pins, top_k=top_k, confidence=confidence)
        every = zip(sentences, extractions, strict=True)
        return [answer_of(sentence, each, top_k, confidence=confidence) for sentence, each in every]

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return F1 of entities, triggers and arguments, all of them found; that of arguments counts."""
        scores = self._scores(gold, None)
        return {"metric": "argument f1", "score": scores["arguments"].f1} | {k: v.f1 for k, v in scores.items()}

    def _scores(self, gold: Sequence[Sentence], pins: Sequence[Pins] | None) -> dict[str, PartScores]:
        extractions = self.extract(gold, pins)
        right = [(entities_of(each), events_of(each)) for each in gold]
        return event_scores(right, [(each.entities, each.events) for each in extractions])

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Report precision, recall and F1, also with gold entities."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans of a tagger; leave it out for a model of events")
        pins = [{"entities": [e for e in entities_of(each) if e[2] in self.inventory.kinds]} for each in gold]
        scores, given = self._scores(gold, None), self._scores(gold, pins)
        rows = [f"{'':<28}{'precision':>10}{'recall':>10}{'F1':>10}"]
        named = [*scores.items(), *((f"{name}, entities given", given[name]) for name in ("triggers", "arguments"))]
        rows += [f"{name:<28}{100 * s.precision:>10.2f}{100 * s.recall:>10.2f}{100 * s.f1:>10.2f}" for name, s in named]
        record = {name: each.to_dict() for name, each in named}
        return Report("\n".join(rows), {"metric": "argument f1", "score": scores["arguments"].f1, **record})

    # What it is

    def describe(self, top: int = 20) -> Description:
        shown = self.inventory.to_dict()
        return network_described(self, self.STRUCTURE, shown, shown, [])

    @property
    def known_labels(self) -> list[str]:
        """The types of events."""
        return list(self.inventory.types)

    @property
    def size(self) -> str:
        n_types, n_roles = len(self.inventory.types) - 1, len(self.inventory.roles) - 1
        return f"{n_types} types of events, {n_roles} roles, {self.n_parameters:,} parameters"

    def stored_config(self) -> dict[str, object]:
        return super().stored_config() | {"inventory": self.inventory.to_dict()}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        settings = cls.CONFIG.from_dict(config["settings"])
        return cls(settings, TokenFeatures.from_stored(settings, config), Inventory.from_dict(config["inventory"]))


# Entities and events that a model has found, and the answers made of them.


@dataclass(frozen=True)
class Extracted:
    """Entities and events of one record, and the probabilities of the parts, if they were asked for.

    `triggers` has the probability of each event's trigger with its type, `arguments` those of each event's arguments.
    `search` says how they were found; `others` are the best values, this one first, if several were asked for.
    """

    entities: list[Entity] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    entity_probs: list[float] = field(default_factory=list)
    triggers: list[float] = field(default_factory=list)
    arguments: list[list[float]] = field(default_factory=list)
    probability: float | None = None
    search: str = "exact"
    others: Sequence[Extracted] = ()

    def value(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "entities": [list(each) for each in self.entities],
            "events": [event.record() for event in self.events],
        }  # fmt: skip


def answer_of(sentence: Sentence, extracted: Extracted, top_k: int, *, confidence: bool) -> Answer:
    """Return the answer about a record.

    Parts are triggers, and arguments with the trigger as their head; spans are entities.

    Args:
        sentence: The sentence or document.
        extracted: Its entities and events.
        top_k: Number of alternatives.
        confidence: Add the probabilities of parts.
    """
    parts, spans = list[PartProbability](), list[PartProbability]()
    if confidence:
        for event, sure, of_roles in zip(extracted.events, extracted.triggers, extracted.arguments, strict=True):
            parts.append(PartProbability(event.trigger, event.trigger + 1, event.type, sure))
            for (start, end, role), chance in zip(event.arguments, of_roles, strict=True):
                parts.append(PartProbability(start, end, role, chance, head=event.trigger + 1))
        spans = [PartProbability(*each, p) for each, p in zip(extracted.entities, extracted.entity_probs, strict=True)]
    ranked = [each for each in (extracted.others or [extracted])[:top_k] if each.probability is not None]
    return Answer(
        extracted.value(), extracted.probability, sentence.words, parts=parts, spans=spans, offsets=sentence.offsets,
        alternatives=[Alternative(each.value(), each.probability or 0.0) for each in ranked], search=extracted.search,
    )  # fmt: skip
