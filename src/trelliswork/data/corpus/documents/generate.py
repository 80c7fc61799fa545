"""Documents of the built-in corpus: some sentences about the same people, firms and places.

Later sentences speak of them by name, by description or by pronoun, and of events by nouns ("the deal"). Some of what
a document says has no words of its own: who is called "Orion engineer Ann Lee" works for Orion.

>>> part = builtin_documents(seed=0, sizes=(2, 1, 1))["train"]
>>> len(part), all(len(document.sentences) >= 2 for document in part)
(2, True)
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from trelliswork.data.corpus.derivation import Derivation
from trelliswork.data.corpus.documents.cast import Cast
from trelliswork.data.corpus.documents.events import Layers, layers_of, noun_kind
from trelliswork.data.corpus.documents.grammar import NOUNS, SCRIPTS, document_rules
from trelliswork.data.corpus.events import EVENTS
from trelliswork.data.corpus.expansion import Expansion
from trelliswork.data.corpus.generate import PARTS, AnnotatedSentence, annotate
from trelliswork.data.corpus.spelling import spelled

AGAIN, ASIDE, AFTER = 0.45, 0.15, 0.35  # chances: a reaction to what happened, another matter, "After the deal, ..."


@dataclass(frozen=True)
class AnnotatedDocument:
    """Generated sentences; events and what refers to what are read from their derivations."""

    sentences: tuple[AnnotatedSentence, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all sentences."""
        return tuple(word for sentence in self.sentences for word in sentence.words)

    @cached_property
    def layers(self) -> Layers:
        """Events, which mentions are of the same thing, and which events refer to one another."""
        return layers_of([sentence.derivation for sentence in self.sentences])


def builtin_documents(seed: int = 0, sizes: tuple[int, int, int] = (500, 75, 75)) -> dict[str, list[AnnotatedDocument]]:
    """The parts "train", "dev" and "test", all different documents; dev and test hold words unseen in train."""
    seen: set[tuple[str, ...]] = set()
    corpus: dict[str, list[AnnotatedDocument]] = {}
    for part, size in zip(PARTS, sizes, strict=True):
        stream = documents(f"{seed}/documents/{part}", unseen=part != "train")
        corpus[part] = []
        while len(corpus[part]) < size:
            document = next(stream)
            if document.words not in seen:
                seen.add(document.words)
                corpus[part].append(document)
    return corpus


def documents(seed: str | int, *, unseen: bool = True) -> Iterator[AnnotatedDocument]:
    """Endless documents; with `unseen`, held-out words occur among them."""
    source = random.Random(seed)
    while True:
        trees = _Story(source, unseen).told()
        yield AnnotatedDocument(tuple(annotate(spelled(tree)) for tree in trees))


class _Story:
    """A document while it is told: its cast, and the type of the event of each sentence, if it has one."""

    def __init__(self, source: random.Random, unseen: bool):
        self.source = source
        self.draw = Expansion(source, unseen, document_rules(), self._given)
        self.cast = Cast(source, self.draw.word)
        self.types: list[str | None] = []

    def told(self) -> list[Derivation]:
        script = self.source.choice(SCRIPTS)
        n = self.source.randint(2, len(script))
        steps = [script[i] for i in sorted(self.source.sample(range(len(script)), n))]
        trees = list[Derivation]()
        for step in steps:
            trees.append(self._sentence(step))
            if self.source.random() < ASIDE:
                trees.append(self._sentence("aside"))
            if self._events() and self.source.random() < AGAIN:
                trees.append(self._sentence("react"))
        return trees

    def _sentence(self, kind: str) -> Derivation:
        begins = kind in EVENTS and kind != "react" and bool(self._events()) and self.source.random() < AFTER
        after = self._whole("PP/after") if begins else None
        tree = self._whole(f"S/{kind}")
        self.types.append(EVENTS[kind][0] if kind in EVENTS else None)
        if after is None:
            return tree
        return replace(tree, children=(after, Derivation(",", "comma", word=","), *tree.children), head=tree.head + 2)

    def _whole(self, symbol: str) -> Derivation:
        tree = self.draw.tree(symbol)
        assert tree is not None  # no rule of documents leads back to itself
        return tree

    def _events(self) -> list[int]:
        """The sentences whose events there are nouns for."""
        return [i for i, type_ in enumerate(self.types) if type_ in NOUNS]

    def _given(self, kind: str) -> Derivation:
        role, _, is_object = kind.partition(".")
        if role != "event":
            return self.cast.mention(role, is_object=bool(is_object))
        told = self._events()
        sentence = told[-1] if self.source.random() < 0.6 else self.source.choice(told)
        type_ = str(self.types[sentence])
        noun = Derivation("NN", noun_kind(type_, sentence), word=self.source.choice(NOUNS[type_].split()))
        return Derivation("NP", "event", (Derivation("DT", "the", word="the"), noun), head=1)
