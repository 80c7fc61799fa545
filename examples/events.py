"""Who did what to whom: triggers and arguments of events found together, on the built-in corpus.

An LSTM from both ends reads words and entities. A chain of event types runs over its output; for each trigger and
each entity, a second layer sees the sentence cut in three by the two and says the entity's role, or that it has none.
Both learn at once, and the one encoder serves both.

    python examples/events.py                   # two minutes; prints F1 of triggers and of arguments
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork import Sentence
from trelliswork.data.corpus import AnnotatedSentence, Event, builtin_corpus
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.models.networks.word_network import EncodedSentence
from trelliswork.nn.scorers import RoleScorer
from trelliswork.tags.schemes import spans_of
from trelliswork.training import TrainingConfig, train

NOTHING = "O"
SETTINGS = TaggerConfig(encoder="lstm", hidden=60, word_dim=40, dropout=0.3, hidden_dropout=0.2)


@dataclass(frozen=True)
class Candidates:
    """Pairs of a trigger and an entity: whose sentence, where they are, the type of the event, the role."""

    row: Tensor
    trigger: Tensor
    entity: Tensor
    type: Tensor
    role: Tensor

    def scores(self, scorer: RoleScorer, vectors: Tensor, mask: Tensor) -> Tensor:
        """[m, roles]"""
        return scorer(vectors, mask, row=self.row, trigger=self.trigger, entity=self.entity, event=self.type)

    @classmethod
    def of(cls, rows: list[tuple[int, ...]]) -> Candidates:
        return cls(*torch.tensor(rows, dtype=torch.long).reshape(-1, 5).unbind(1))


@dataclass(frozen=True)
class Example:
    """A sentence as indices, and the candidates of its events: trigger, entity, type, role."""

    sentence: EncodedSentence
    candidates: list[tuple[int, int, int, int]]

    def __len__(self) -> int:
        return len(self.sentence)


class EventExtractor(nn.Module):
    """A tagger of triggers and a scorer of roles on one encoder."""

    def __init__(self, triggers: Tagger, roles: Sequence[str]) -> None:
        super().__init__()
        self.metrics: dict[str, Any] = {}
        self.triggers, self.roles = triggers, list(roles)
        self.scorer = RoleScorer(triggers.encoder.dim, len(triggers.labels.vocabulary), len(self.roles))

    @classmethod
    def from_data(
        cls, sentences: Sequence[AnnotatedSentence], config: TaggerConfig = SETTINGS, *, seed: int = 0
    ) -> EventExtractor:
        """An extractor for the event types and roles of some sentences, with random weights."""
        triggers = Tagger.from_data([as_tagging(each) for each in sentences], config, scheme="plain", seed=seed)
        roles = {role for each in sentences for event in each.events for *_, role in event.arguments}
        torch.manual_seed(seed)
        return cls(triggers, [NOTHING, *sorted(roles)])

    def encode(self, sentences: Sequence[AnnotatedSentence], *, with_tags: bool = False) -> list[Example]:
        encoded = self.triggers.encode([as_tagging(each) for each in sentences], with_tags=with_tags)
        return [
            Example(indices, self._gold(each) if with_tags else [])
            for indices, each in zip(encoded, sentences, strict=True)
        ]

    def _gold(self, sentence: AnnotatedSentence) -> list[tuple[int, int, int, int]]:
        """Every entity with every event: its role, or none."""
        found = []
        for event in sentence.events:
            roles = {(start, end): role for start, end, role in event.arguments}
            for start, end, _ in spans_of(sentence.entities, "IOB2"):
                role = self.roles.index(roles.get((start, end), NOTHING))
                found.append((event.trigger, end - 1, self.triggers.labels.vocabulary.index(event.type), role))
        return found

    def loss(self, batch: Sequence[Example]) -> Tensor:
        """-log p(triggers | words) - Σ log p(role | words, trigger), summed over the batch."""
        encoded, gold = self.triggers.encoded([each.sentence for each in batch])
        tokens = self.triggers.token_batch(encoded)
        vectors = self.triggers.encode_tokens(tokens)
        total = self.triggers.loss_of_vectors(vectors, pad_sequence(gold, batch_first=True), tokens)
        found = Candidates.of([(row, *each) for row, example in enumerate(batch) for each in example.candidates])
        if not len(found.row):
            return total
        return total + F.cross_entropy(found.scores(self.scorer, vectors, tokens.mask), found.role, reduction="sum")

    def extract(self, sentences: Sequence[AnnotatedSentence]) -> list[list[Event]]:
        """The events of sentences whose entities are known."""
        self.eval()
        with torch.no_grad():
            tokens = self.triggers.token_batch(self.triggers.encode([as_tagging(each) for each in sentences]))
            vectors = self.triggers.encode_tokens(tokens)
            best = self.triggers.crf.decode(self.triggers.scorer(vectors, tokens.mask), tokens.mask)
            return [
                [self._event(vectors, tokens.mask, row, t, each, sentence) for t, each in self._triggers(tags)]
                for row, (tags, sentence) in enumerate(zip(best, sentences, strict=True))
            ]

    def _triggers(self, tags: Sequence[int]) -> list[tuple[int, int]]:
        nothing = self.triggers.labels.vocabulary.index(NOTHING)
        return [(t, each) for t, each in enumerate(tags) if each != nothing]

    def _event(
        self, vectors: Tensor, mask: Tensor, row: int, trigger: int, type_: int, sentence: AnnotatedSentence
    ) -> Event:
        name, entities = self.triggers.labels.vocabulary[type_], spans_of(sentence.entities, "IOB2")
        if not entities:
            return Event(trigger, name, ())
        found = Candidates.of([(row, trigger, end - 1, type_, 0) for _, end, _ in entities])
        roles = [self.roles[i] for i in found.scores(self.scorer, vectors, mask).argmax(-1).tolist()]
        pairs = zip(entities, roles, strict=True)
        return Event(trigger, name, tuple((start, end, role) for (start, end, _), role in pairs if role != NOTHING))

    def evaluate(self, sentences: Sequence[AnnotatedSentence]) -> dict[str, Any]:
        """F1 of triggers (token and type) and of arguments (also the span and the role); the latter counts."""
        gold, found = [each.events for each in sentences], self.extract(sentences)
        triggers, arguments = f1(triggers_in(gold), triggers_in(found)), f1(arguments_in(gold), arguments_in(found))
        return {"metric": "argument f1", "score": arguments, "triggers": triggers, "arguments": arguments}

    def check_output(self, directory: str | Path) -> None:
        self.triggers.check_output(directory)

    def save(self, directory: str | Path, *, extra: Any = None) -> None:
        """The tagger of triggers, and the roles with their scorer beside it."""
        self.triggers.save(directory, extra=extra)
        save_file(self.scorer.state_dict(), Path(directory) / "roles.safetensors", {"roles": json.dumps(self.roles)})

    @classmethod
    def load(cls, directory: str | Path) -> EventExtractor:
        """A saved extractor."""
        with safe_open(Path(directory) / "roles.safetensors", "pt") as file:
            found = cls(Tagger.load(directory), json.loads(file.metadata()["roles"]))
            found.scorer.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        return found


def as_tagging(sentence: AnnotatedSentence) -> Sentence:
    """Triggers as tags, entities as the one column."""
    tags = [NOTHING] * len(sentence)
    for event in sentence.events:
        tags[event.trigger] = event.type
    return Sentence(sentence.words, tuple(tags), (sentence.entities,))


def triggers_in(rows: Sequence[Sequence[Event]]) -> Counter[tuple[Any, ...]]:
    return Counter((row, event.trigger, event.type) for row, events in enumerate(rows) for event in events)


def arguments_in(rows: Sequence[Sequence[Event]]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (row, event.trigger, event.type, *argument)
        for row, events in enumerate(rows)
        for event in events
        for argument in event.arguments
    )


def f1(gold: Counter[tuple[Any, ...]], found: Counter[tuple[Any, ...]]) -> float:
    return 2 * (gold & found).total() / max(gold.total() + found.total(), 1)


def main(n_train: int = 2000, n_test: int = 300, epochs: int = 12, batch_tokens: int = 500) -> dict[str, float]:
    """Train on one part of the corpus, print the scores on another and the events of a sentence."""
    torch.set_num_threads(1)
    corpus = builtin_corpus(sizes=(n_train, 1, n_test))
    model = EventExtractor.from_data(corpus["train"])
    config = TrainingConfig(epochs=epochs, batch_tokens=batch_tokens, lr=3e-3)
    train(model, corpus["train"], None, config)  # type: ignore[arg-type]
    scores = model.evaluate(corpus["test"])
    print(f"triggers F1 {100 * scores['triggers']:.1f}, arguments F1 {100 * scores['arguments']:.1f}, on {n_test}")
    for sentence, events in list(zip(corpus["test"], model.extract(corpus["test"]), strict=True))[:5]:
        print(" ".join(sentence.words))
        for event in events:
            arguments = [f"{role}: {' '.join(sentence.words[a:b])}" for a, b, role in event.arguments]
            print(f"    {event.type} ({sentence.words[event.trigger]})", *arguments, sep=", ")
    return {name: scores[name] for name in ("triggers", "arguments")}


if __name__ == "__main__":
    main()
