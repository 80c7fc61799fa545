"""A frame-semantic parser: entities and events with their roles, built as a graph action by action.

    >>> parser = FrameParser.from_data(train_sentences)                        # doctest: +SKIP
    >>> train(parser, train_sentences, dev_sentences, out="frames")            # doctest: +SKIP
    >>> tw.load("frames").predict("Ann visited Rome.")[0].value["frames"]      # doctest: +SKIP
    ['PER', 'Visit', 'LOC']

Ringgaard, Gupta and Pereira (2017), SLING: A framework for frame semantic parsing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from trelliswork.data import Sentence, WordVectors
from trelliswork.data.event_frames import frame_graph_of
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.frame_graphs import GraphScores, frame_scores
from trelliswork.models.base import Alternative, Answer, Description, PartProbability, Readable, Report, Scores
from trelliswork.models.batched import in_batches
from trelliswork.models.events.config import FrameConfig
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import network_described
from trelliswork.models.networks.word_network import EncodedSentence, WordNetwork
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.transitions.frames import FrameUnit
from trelliswork.nn.transitions.unit import RecurrentSystem, unroll
from trelliswork.runtime.arrays import Float, Int
from trelliswork.structures.beam.frames import Actions, FrameGraph, FrameState, FrameSystem, Mention, Slot, actions_of
from trelliswork.structures.beam.frames.system import MAKES_MENTION, MAKES_SLOT
from trelliswork.structures.beam.likelihood import locally_normalised
from trelliswork.structures.beam.search import beam_search
from trelliswork.structures.beam.system import Scorer, advance
from trelliswork.structures.frontier_kernels import NOTHING


@dataclass(frozen=True)
class EncodedFrames:
    """A sentence as indices and, if known, the decisions that build its frame graph."""

    features: Int[Tensor, "n f"]
    words: tuple[str, ...]
    decisions: Int[Tensor, " steps"] | None = None

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class _Hypothesis:
    """A graph, the best decisions that build it, and its probability."""

    graph: FrameGraph
    decisions: Int[Tensor, " steps"]
    probability: float


LARGEST = 1000  # number in an action: a length, or how far back a frame is


class FrameParser(WordNetwork):
    """An encoder, and a unit that reads the states of the frame system.

    Sentences to learn from have entities as `tags`, and events as `trelliswork.data.events` reads them: both are
    frames, arguments are roles, and attributes of events are constants. The actions are those that the training data
    need, so a parser finds nothing that they have none of.

    Args:
        config: settings.
        features: What is read of words.
        actions: Actions that build a graph, by number.
    """

    CONFIG = FrameConfig
    STRUCTURE = "frame transition system"
    learns_from = "events"
    next_options = "--confidence"
    search = "beam"

    def __init__(self, config: FrameConfig, features: TokenFeatures, actions: Actions):
        super().__init__(config, features)
        self.actions = actions
        self.unit = FrameUnit(
            self.encoder.dim, config.state_dim, n_decisions=len(actions), n_roles=len(actions.roles),
            k=config.attention, cell=config.cell, dropout=config.state_dropout,
        )  # fmt: skip

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: FrameConfig | None = None,
        *,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new parser for the frames of some sentences.

        Args:
            train: Sentences or documents with events.
            config: Settings.
            vectors: Pretrained vectors of words.
            seed: Seed of the first weights.

        Returns:
            The parser, not trained.
        """
        if not train:
            raise TrellisworkError("expected sentences with events to build a parser from, got none; check the data")
        config = replace(config or cls.CONFIG(), vector_dim=0 if vectors is None else vectors.dim)
        actions = Actions(action for each in train for action in actions_of(frame_graph_of(each), len(each))[0])
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        return cls.initialised(train, vectors, seed, config, features, actions)

    @classmethod
    def from_material(cls, material: Material, config: FrameConfig, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, vectors=material.files, seed=seed)

    # Learning

    def gold(self, sentence: Sentence) -> list[int]:
        """Return the decisions that build the frame graph of a sentence."""
        return [self.actions.number(each) for each in actions_of(frame_graph_of(sentence), len(sentence))[0]]

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedFrames]:  # type: ignore[override]
        return [
            EncodedFrames(features, each.words, torch.tensor(self.gold(each)) if with_tags else None)
            for features, each in zip(self.features.encode_all(sentences), sentences, strict=True)
        ]

    def connected(self, tokens: TokenBatch) -> tuple[FrameSystem, RecurrentSystem[FrameState]]:
        """Return the system of a batch, and the unit run through it."""
        system = FrameSystem(tokens.mask.sum(1), self.actions)
        return system, self.unit.connect(system, self.encode_tokens(tokens))

    def loss(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence] | Sequence[EncodedFrames]
    ) -> Float[Tensor, ""]:
        """Return -log p(decisions | words), summed over the batch."""
        fresh = [each for each in batch if isinstance(each, Sentence)]
        encoded = [each for each in batch if isinstance(each, EncodedFrames)] or self.encode(fresh, with_tags=True)
        known = [each.decisions for each in encoded if each.decisions is not None]
        if len(known) != len(encoded):
            raise TrellisworkError("expected sentences with events, got one without; encode(..., with_tags=True)")
        tokens = self.token_batch(encoded)  # type: ignore[arg-type]
        gold = torch.nn.utils.rnn.pad_sequence(known, batch_first=True, padding_value=-1).to(tokens.mask.device)
        return -unroll(self.connected(tokens)[1], gold).log_prob(gold).sum()

    # Answers

    def parse(self, sentences: Sequence[Sentence], *, top_k: int = 1) -> list[Framed]:
        """Return the frame graph of each record."""
        return in_batches(
            self, sentences, None, lambda batch, _: self._parsed(batch, top_k), empty=lambda: Framed(probability=1.0)
        )

    def _parsed(self, batch: Sequence[Sentence], top_k: int) -> list[Framed]:
        tokens = self.token_batch(self.encode(batch))  # type: ignore[arg-type]
        system, recurrent = self.connected(tokens)
        width = max(self.config.beam, top_k)
        ranked = self._ranked(system, recurrent, width) if width > 1 else []
        best = torch.nn.utils.rnn.pad_sequence([each[0].decisions for each in ranked], batch_first=True,
                                               padding_value=NOTHING) if ranked else None  # fmt: skip
        run = unroll(recurrent, best)
        decisions, state = run.decisions, system.initial()
        for column in decisions.T:
            state = _advance(system, state, column)
        shares = torch.where(decisions[..., None] >= 0, run.scores, 0.0).log_softmax(-1)
        chances = shares.gather(2, decisions.clamp(min=0)[..., None]).squeeze(2).exp().clamp(max=1.0).tolist()
        whole, framed = run.log_prob(decisions).exp().tolist(), list[Framed]()
        for row, taken in enumerate(decisions.tolist()):
            parts = decision_chances(system, state, row, taken, chances[row])
            others = [(each.graph, each.probability) for each in ranked[row]] if ranked else []
            probability, search = (others[0][1], "beam") if ranked else (whole[row], "greedy")
            framed.append(Framed(system.graph(state, row), probability, *parts, search, others))
        return framed

    def _ranked(
        self, system: FrameSystem, recurrent: RecurrentSystem[FrameState], width: int
    ) -> list[list[_Hypothesis]]:
        """Return the graphs of each row that a beam finds, the most probable first.

        Sequences of decisions that build the same graph are one, with the probability of all of them.
        """
        scorer: Scorer[tuple[Tensor, ...]] = locally_normalised(recurrent, recurrent.score)  # type: ignore[assignment]
        hypotheses = beam_search(recurrent, scorer, width)
        state, shares, ranked = (
            recurrent.inner(hypotheses.state),
            hypotheses.scores.exp().tolist(),
            list[list[_Hypothesis]](),
        )
        for row, of_row in enumerate(shares):
            graphs = dict[FrameGraph, _Hypothesis]()
            for h, p in enumerate(of_row):
                if p > 0:
                    graph = system.graph(state, row, h)
                    best = graphs.setdefault(graph.in_order(), _Hypothesis(graph, hypotheses.decisions[row, h], 0.0))
                    graphs[graph.in_order()] = replace(best, probability=best.probability + p)
            ranked.append(sorted(graphs.values(), key=lambda each: -each.probability))
        return ranked

    def predict(
        self, inputs: Readable, *, top_k: int = 1, pins: object = None, confidence: bool = True
    ) -> list[Answer]:
        """Return the frames of each record: their types, mentions [start, end, frame] and slots [frame, role, target].

        The target of a slot is the number of a frame, or a constant as text. The `top_k` best are those that a beam
        finds. There are no pins.

        Args:
            inputs: Raw text, a sentence or document, or several.
            top_k: Number of alternatives of each answer.
            pins: Must be None.
            confidence: Add the probabilities of parts.

        Returns:
            An answer for each sentence or document.
        """
        if pins is not None:
            raise TrellisworkError("a frame parser takes no pins; leave them out")
        sentences = self.sentences_of(inputs)
        framed = self.parse(sentences, top_k=top_k)
        every = zip(sentences, framed, strict=True)
        return [answer_of(sentence, each, top_k, confidence=confidence) for sentence, each in every]

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return F1 of aligned frame graphs: of all parts together, which counts, and of each."""
        scores = self._scores(gold)
        parts = {name: each.f1 for name, each in scores.parts.items()}
        return {"metric": "frame graph f1", "score": scores.combined.f1, **parts}

    def _scores(self, gold: Sequence[Sentence]) -> GraphScores:
        return frame_scores([frame_graph_of(each) for each in gold], [each.graph for each in self.parse(gold)])

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Report precision, recall and F1 of each part of the frame graphs."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans of a tagger; leave it out for a frame parser")
        scores = self._scores(gold)
        named = {**scores.parts, "all together": scores.combined}
        rows = [f"{'':<16}{'precision':>10}{'recall':>10}{'F1':>10}"]
        rows += [
            f"{name:<16}{100 * s.precision:>10.2f}{100 * s.recall:>10.2f}{100 * s.f1:>10.2f}"
            for name, s in named.items()
        ]
        record = {name: each.to_dict() for name, each in named.items()}
        return Report("\n".join(rows), {"metric": "frame graph f1", "score": scores.combined.f1, **record})

    # What it is

    def describe(self, top: int = 20) -> Description:
        shown = {"types": self.actions.types, "roles": self.actions.roles, "constants": self.actions.values}
        return network_described(self, self.STRUCTURE, shown, shown, [])

    @property
    def known_labels(self) -> list[str]:
        """The types of frames."""
        return self.actions.types

    @property
    def size(self) -> str:
        return f"{len(self.actions)} actions, {self.n_parameters:,} parameters"

    def stored_config(self) -> dict[str, object]:
        return super().stored_config() | {"actions": self.actions.to_list()}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        settings, actions = cls.CONFIG.from_dict(config["settings"]), config["actions"]
        numbers = [part for row in actions for part in row if not isinstance(part, str)]
        if not all(type(each) is int and -1 <= each <= LARGEST for each in numbers):
            raise ValueError(f"expected texts and whole numbers of at most {LARGEST} as parts of actions")
        return cls(settings, TokenFeatures.from_stored(settings, config), Actions.from_list(actions))


def _advance(system: FrameSystem, state: FrameState, decisions: Int[Tensor, "batch"]) -> FrameState:
    moving = (decisions >= 0)[:, None]
    return advance(system, state, decisions[:, None], moving)


# Frame graphs that a parser has built, the probabilities of their parts, and the answers made of them.


@dataclass(frozen=True)
class Framed:
    """The frame graph of a record, its probability, and those of the decisions that made its mentions and slots.

    `others` are the most probable graphs, this one first, if several were asked for.
    """

    graph: FrameGraph = field(default_factory=FrameGraph)
    probability: float | None = None
    mentions: Mapping[Mention, float] = field(default_factory=dict)
    slots: Mapping[Slot, float] = field(default_factory=dict)
    search: str = "greedy"
    others: Sequence[tuple[FrameGraph, float]] = ()

    def value(self) -> dict[str, object]:
        """Return plain values."""
        return graph_value(self.graph)


def graph_value(graph: FrameGraph) -> dict[str, object]:
    """Return types of frames, mentions [start, end, frame] and slots [frame, role, target]."""
    return {
        "frames": list(graph.types),
        "mentions": [list(each) for each in graph.mentions],
        "slots": [list(each) for each in graph.slots],
    }


def decision_chances(
    system: FrameSystem, state: FrameState, row: int, decisions: Sequence[int], chances: Sequence[float]
) -> tuple[dict[Mention, float], dict[Slot, float]]:
    """Return the probability of the decision that made each mention and each slot of the graph of a state.

    Args:
        system: The transition system of the batch.
        state: Final states.
        row: Row of the batch.
        decisions: Decisions of the row.
        chances: Probability of each of them.
    """
    made = [(system.actions.items[d].kind, p) for d, p in zip(decisions, chances, strict=True) if d >= 0]
    mentions, slots = state.mentions[row, 0].tolist(), state.slots[row, 0].tolist()
    of_mentions = [p for kind, p in made if kind in MAKES_MENTION]
    of_slots = [p for kind, p in made if kind in MAKES_SLOT]
    names: Actions = system.actions
    return (
        {Mention(*mention): p for mention, p in zip(mentions, of_mentions, strict=False)},
        {
            Slot(s, names.roles[r], names.values[value] if value >= 0 else t): p
            for (s, r, t, value), p in zip(slots, of_slots, strict=False)
        },
    )


def answer_of(sentence: Sentence, framed: Framed, top_k: int, *, confidence: bool) -> Answer:
    """Return the answer about a record: spans are mentions, parts are slots.

    A role is an arc from the last word of the first mention of its frame to the first mention of its target; a constant
    is at the first mention of its frame. Slots of frames without mentions are no parts.

    Args:
        sentence: The sentence or document.
        framed: Its frame graph.
        top_k: Number of alternatives.
        confidence: Add the probabilities of parts.
    """
    graph, first = framed.graph, dict[int, Mention]()
    for mention in graph.mentions:
        first.setdefault(mention.frame, mention)
    spans, parts = list[PartProbability](), list[PartProbability]()
    for mention in graph.mentions if confidence else ():
        spans.append(PartProbability(*mention[:2], graph.types[mention.frame], framed.mentions[mention]))
    for slot in graph.slots if confidence else ():
        source, role, target = slot
        is_constant = isinstance(target, str)
        at = first.get(source if is_constant else target)  # type: ignore[arg-type]
        if at is not None and source in first:
            label, head = (f"{role}={target}", None) if is_constant else (role, first[source].end)
            parts.append(PartProbability(at.start, at.end, label, framed.slots[slot], head=head))
    ranked = (framed.others or [(graph, framed.probability or 0.0)])[:top_k]
    probability = framed.probability if confidence or top_k else None
    return Answer(
        framed.value(), probability, sentence.words, parts=parts, spans=spans, offsets=sentence.offsets,
        alternatives=[Alternative(graph_value(each), p) for each, p in ranked], search=framed.search,
    )  # fmt: skip
