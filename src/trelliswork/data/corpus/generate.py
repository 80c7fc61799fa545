"""Sentences of the built-in corpus, drawn from the grammar with a seed.

>>> part = builtin_corpus(seed=0, sizes=(3, 1, 1))["train"]
>>> len(part), len(part[0].words) == len(part[0].pos) == len(part[0].chunks) == len(part[0].entities)
(3, True)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from trelliswork.data.corpus.grammar import (
    ENTITY_LABEL,
    ROOT,
    Derivation,
    Rule,
    chunk_spans,
    entity_spans,
    rules_by_parent,
)
from trelliswork.data.corpus.lexicon import OPEN, inflect, words
from trelliswork.data.events import Argument, Event
from trelliswork.data.sentence import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.tags.schemes import tags_of
from trelliswork.writing import atomic_write

EVENTS: dict[str, tuple[str, str, str]] = {  # kind of verb: (type of event, role of the subject, role of the object)
    "meet": ("Meet", "Agent", "Person"),
    "visit": ("Visit", "Agent", "Destination"),
    "join": ("Join", "Agent", "Organisation"),
    "hire": ("Hire", "Employer", "Person"),
    "labour": ("Employ", "Person", "Employer"),
    "acquire": ("Acquire", "Buyer", "Target"),
    "trade": ("Trade", "Seller", "Product"),
    "expand": ("Expand", "Organisation", "Organisation"),
    "born": ("Birth", "Person", "Person"),
    "react": ("React", "Cause", "Person"),  # in documents; so are nouns for events
}
PREPOSITIONS = {"in": "Place", "when": "Time", "for_firm": "Employer"}
OUTSIDE = "O"  # a token that triggers nothing

Span = tuple[int, int]
TENSES = {"VBD": "past", "VBZ": "present", "VBP": "present", "VB": "infinitive", "VBG": "progressive", "VBN": "perfect"}


@dataclass(frozen=True)
class _Outside:
    """Participants of a verb phrase that stand outside of it."""

    subject: Span | None = None
    others: tuple[Argument, ...] = ()


def event_mentions(tree: Derivation) -> list[Event]:
    """Return the events of a sentence, from left to right.

    >>> name = Derivation("NML", "PER.short", (Derivation("NNP", "first", word="Ann"),))
    >>> place = Derivation("NML", "LOC.any", (Derivation("NNP", "place_name", word="Rome"),))
    >>> where = Derivation("NP", "where", (place,))
    >>> phrase = Derivation("VP", "who", (Derivation("VBD", "visit", word="visited"), where))
    >>> event_mentions(Derivation("S", "clause", (Derivation("NP", "who", (name,)), phrase), head=1))
    [Event(trigger=1, type='Visit', arguments=((0, 1, 'Agent'), (2, 3, 'Destination')))]
    """
    return sorted(_events(tree, 0, _Outside()), key=lambda event: event.trigger)


def _events(node: Derivation, start: int, outside: _Outside) -> Iterator[Event]:
    placed = list(_children(node, start))
    inside = _clause(placed, outside) if node.label == "S" else outside
    for child, first in placed:
        if node.label == "VP" and child.kind in EVENTS and not child.children:
            yield _event(child, first, placed, outside)
        if child.kind.startswith("event."):
            yield Event(first, child.kind.split(".")[1], ())
        carries = child.label == "VP" or (node.label == "VP" and child.label == "S")  # "plans to visit": same subject
        yield from _events(child, first, inside if carries else _Outside())


def _clause(placed: list[tuple[Derivation, int]], outside: _Outside) -> _Outside:
    """Return the subject of a clause and when it happens; a clause without subject has that of the one around it."""
    labels = [child.label for child, _ in placed]
    before = placed[: labels.index("VP")] if "VP" in labels else []
    subjects = [(child, first) for child, first in before if child.label == "NP"]
    if not subjects:
        return outside
    return _Outside(_entity(*subjects[-1]), tuple(_in_phrases(before)))


def _event(verb: Derivation, trigger: int, placed: list[tuple[Derivation, int]], outside: _Outside) -> Event:
    type_, of_subject, of_object = EVENTS[verb.kind]
    objects = [_entity(child, first) for child, first in placed if child.label == "NP" and first > trigger]
    arguments = [(*span, of_object) for span in objects if span is not None]
    if outside.subject is not None:
        arguments.append((*outside.subject, of_subject))
    tense = (("Tense", TENSES.get(verb.label, "other")),)
    return Event(trigger, type_, tuple(sorted([*arguments, *outside.others, *_in_phrases(placed)])), tense)


def _in_phrases(placed: list[tuple[Derivation, int]]) -> Iterator[Argument]:
    """Yield entities in phrases of prepositions: in Rome, on Monday."""
    for child, first in placed:
        if child.label == "PP" and child.kind in PREPOSITIONS:
            for part, at in _children(child, first):
                span = _entity(part, at) if part.label == "NP" else None
                if span is not None:
                    yield (*span, PREPOSITIONS[child.kind])


def _entity(node: Derivation, start: int) -> Span | None:
    """Return the entity that the heads lead to, if they lead to one."""
    if node.label == ENTITY_LABEL:
        return start, start + len(node.words())
    if not node.children:
        return None
    child, first = list(_children(node, start))[node.head]
    return _entity(child, first)


def _children(node: Derivation, start: int) -> Iterator[tuple[Derivation, int]]:
    """Yield children, each with its first position."""
    for child in node.children:
        yield child, start
        start += len(child.words())


PARTS = ("train", "dev", "test")
TASKS = ("entities", "chunks", "pos")
SHORTEST, LONGEST = 4, 30


@dataclass(frozen=True)
class AnnotatedSentence:
    """A generated sentence with the annotation read from its derivation; chunks and entities are IOB2 tags."""

    words: tuple[str, ...]
    pos: tuple[str, ...]
    chunks: tuple[str, ...]
    entities: tuple[str, ...]
    derivation: Derivation

    def __len__(self) -> int:
        return len(self.words)

    @property
    def events(self) -> list[Event]:
        """Events of the sentence with their participants."""
        return event_mentions(self.derivation)


def builtin_corpus(seed: int = 0, sizes: tuple[int, int, int] = (2000, 300, 300)) -> dict[str, list[AnnotatedSentence]]:
    """Return the parts "train", "dev" and "test", all different sentences; dev and test hold words unseen in train.

    >>> sorted(builtin_corpus(sizes=(2, 1, 1)))
    ['dev', 'test', 'train']
    """
    seen: set[tuple[str, ...]] = set()
    corpus: dict[str, list[AnnotatedSentence]] = {}
    for part, size in zip(PARTS, sizes, strict=True):
        stream = sentences(f"{seed}/{part}", unseen=part != "train")
        corpus[part] = []
        while len(corpus[part]) < size:
            sentence = next(stream)
            if sentence.words not in seen:
                seen.add(sentence.words)
                corpus[part].append(sentence)
    return corpus


def sentences(seed: str | int, *, unseen: bool = True) -> Iterator[AnnotatedSentence]:
    """Yield endless sentences of 4 to 30 words; with `unseen`, held-out words occur among them."""
    expansion = Expansion(random.Random(seed), unseen, rules_by_parent())
    while True:
        tree = expansion.tree(ROOT)
        if tree is not None and SHORTEST <= len(tree.words()) <= LONGEST:
            yield annotate(spell(tree))


def annotate(tree: Derivation) -> AnnotatedSentence:
    """Return words and all layers of annotation of a derivation."""
    leaves = list(tree.leaves())
    n = len(leaves)
    return AnnotatedSentence(
        words=tuple(leaf.word for leaf in leaves),
        pos=tuple(leaf.label for leaf in leaves),
        chunks=tuple(tags_of(chunk_spans(tree), n, "IOB2")),
        entities=tuple(tags_of(entity_spans(tree), n, "IOB2")),
        derivation=tree,
    )


def as_sentences(part: Sequence[AnnotatedSentence], task: str = "entities") -> list[Sentence]:
    """Return a part of the corpus as plain tagged sentences for one task: entities, chunks or pos.

    For entities and chunks the part of speech is the one feature column.
    """
    if task not in TASKS:
        raise TrellisworkError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    file = f"built-in corpus ({task})"
    return [
        Sentence(
            sentence.words,
            getattr(sentence, task),
            () if task == "pos" else (sentence.pos,),
            line=number,
            file=file,
        )
        for number, sentence in enumerate(part, 1)
    ]


def write_corpus(corpus: dict[str, list[AnnotatedSentence]], folder: str | Path) -> list[Path]:
    """Write `train.conll`, `dev.conll`, `test.conll`: word, part of speech, chunk and entity, tab-separated."""
    paths = []
    for part, annotated in corpus.items():
        path = Path(folder) / f"{part}.conll"
        with atomic_write(path) as file:
            file.writelines(_conll_block(sentence) for sentence in annotated)
        paths.append(path)
    return paths


def _conll_block(sentence: AnnotatedSentence) -> str:
    rows = zip(sentence.words, sentence.pos, sentence.chunks, sentence.entities, strict=True)
    return "".join("\t".join(row) + "\n" for row in rows) + "\n"


# Random derivations of a grammar.

MAX_DEPTH = 14
GIVEN = "@"  # a kind that begins so is not drawn: `Expansion.given` makes it


@dataclass(frozen=True)
class Expansion:
    """Draws derivations and words; with `unseen`, held-out words are among them."""

    source: random.Random
    unseen: bool
    rules: Mapping[str, Sequence[Rule]]
    given: Callable[[str], Derivation] | None = None

    def tree(self, symbol: str, depth: int = 0) -> Derivation | None:
        """Return a random derivation of `symbol`, or None when it grows too deep."""
        label, _, kind = symbol.partition("/")
        if self.given is not None and kind.startswith(GIVEN):
            return self.given(kind.removeprefix(GIVEN))
        rules = self.rules.get(symbol)
        if rules is None:
            return Derivation(label, kind, word=self.word(label, kind))
        if depth > MAX_DEPTH:
            return None
        rule: Rule = self.source.choices(rules, [rule.weight for rule in rules])[0]
        children = []
        for child in rule.children:
            node = self.tree(child, depth + 1)
            if node is None:
                return None
            children.append(node)
        if len(children) == 1 and children[0].label == label:
            return children[0]  # a phrase over nothing but a phrase of its own label adds no structure
        return Derivation(label, kind, tuple(children), rule.head)

    def word(self, pos: str, kind: str) -> str:
        """Return a word of a kind in the form that a part of speech asks for."""
        choices = words(kind, self.unseen)
        word = self.source.choices(choices, cum_weights=_rank_weights(len(choices)))[0]
        return inflect(word, pos) if kind in OPEN else word


@cache
def _rank_weights(n: int) -> tuple[float, ...]:
    """Return cumulative weights that fall with the rank, as word frequencies do."""
    total = 0.0
    cumulative = []
    for rank in range(n):
        total += (rank + 8) ** -0.7
        cumulative.append(total)
    return tuple(cumulative)


# What the grammar leaves to spelling: agreement of the verb "was", "a" or "an", the capital at the start.


def spell(tree: Derivation) -> Derivation:
    """Return the derivation of a well-spelled sentence.

    >>> leaves = Derivation("DT", "a", word="a"), Derivation("NN", "thing", word="apple")
    >>> spell(Derivation("NP", "base", leaves, head=1)).words()
    ['An', 'apple']
    """
    agreed = _agree(tree)
    words = agreed.words()
    for i, following in enumerate(words[1:]):
        if words[i] == "a" and following[0].lower() in "aeiou" and not following.startswith("use"):
            words[i] = "an"
    words[0] = words[0][0].upper() + words[0][1:]
    return agreed.with_words(iter(words))


def _agree(node: Derivation) -> Derivation:
    """ "was" after a plural subject becomes "were", throughout the tree."""
    children = [_agree(child) for child in node.children]
    for left, (i, right) in zip(children, list(enumerate(children))[1:], strict=False):
        if left.label == "NP" and right.label == "VP" and _is_plural(left):
            children[i] = _with_were(right)
    return replace(node, children=tuple(children))


def _is_plural(subject: Derivation) -> bool:
    joined = any(child.label == "CC" for child in subject.children)
    return joined or subject.head_leaf().label == "NNS" or subject.head_leaf().word == "they"


def _with_were(phrase: Derivation) -> Derivation:
    first, *others = phrase.children
    if first.kind != "was":
        return phrase
    return replace(phrase, children=(replace(first, word="were"), *others))
