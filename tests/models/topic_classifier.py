"""A model of a new kind in one file: the topic of a text from the sum of its words' weights.

It answers what `Model` asks and adds one line to `CLASSES`. Nothing in training, storage or the commands knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, Vocabulary
from trelliswork.models.base import Alternative, Answer, Description
from trelliswork.models.catalogue import CLASSES
from trelliswork.models.networks.stored_network import StoredNetwork

CLASSES["TopicClassifier"] = f"{__name__}:TopicClassifier"


class TopicClassifier(StoredNetwork):
    """p(topic | words) is proportional to exp of the sum of the words' weights; the tag of each word is the topic."""

    def __init__(self, words: Vocabulary, topics: Vocabulary) -> None:
        super().__init__()
        self.words, self.topics = words, topics
        self.weights = nn.Parameter(torch.zeros(len(words), len(topics)))

    @classmethod
    def from_data(cls, texts: Sequence[Sentence]) -> Self:
        words = Vocabulary(sorted({word for text in texts for word in text.words}))
        return cls(words, Vocabulary(sorted({tag for text in texts for tag in text.tags or ()})))

    # Learning

    def encode(self, texts: Sequence[Sentence], *, with_tags: bool = False) -> list[Sentence]:
        return list(texts)

    def loss(self, batch: Sequence[Sentence]) -> Tensor:
        gold = [self.topics.index((text.tags or ("",))[0]) for text in batch]
        return -self._log_probs(batch)[range(len(batch)), gold].sum()

    def _log_probs(self, texts: Sequence[Sentence]) -> Tensor:
        known = [[self.words.index(word) for word in text.words if word in self.words] for text in texts]
        return torch.stack([self.weights[each].sum(0) for each in known]).log_softmax(-1)

    # Answers

    def predict(
        self, inputs: Sequence[Sentence], *, top_k: int = 1, pins: Any = None, confidence: bool = True
    ) -> list[Answer]:
        with self.evaluating():
            return [self._answer(row, text, top_k) for row, text in zip(self._log_probs(inputs), inputs, strict=True)]

    def _answer(self, log_probs: Tensor, text: Sentence, top_k: int) -> Answer:
        best = log_probs.exp().topk(min(max(top_k, 1), len(self.topics)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found = [Alternative(self.topics[topic], probability) for topic, probability in pairs]
        return Answer(found[0].value, found[0].probability, text.words, alternatives=found[:top_k])

    def evaluate(self, gold: Sequence[Sentence]) -> dict[str, Any]:
        right = [answer.value in (text.tags or ()) for answer, text in zip(self.predict(gold), gold, strict=True)]
        return {"metric": "accuracy", "score": sum(right) / len(right)}

    # What it is

    def describe(self, top: int = 20) -> Description:
        return Description("a classifier of topics", {"topics": self.known_labels}, {"topics": self.known_labels}, {})

    @property
    def summary(self) -> str:
        return "The topic of a text from its words."

    @property
    def known_labels(self) -> list[str]:
        return self.topics.to_list()

    def stored_config(self) -> dict[str, Any]:
        return {"settings": {}, "words": self.words.to_list(), "topics": self.known_labels}

    @classmethod
    def from_stored(cls, config: Mapping[str, Any]) -> Self:
        return cls(Vocabulary(config["words"]), Vocabulary(config["topics"]))
