"""Documents of the built-in corpus: some sentences about the same people, firms and places.

Later sentences speak of them by name, by description or by pronoun, and of events by nouns ("the deal"). Some of what
a document says has no words of its own: who is called "Orion engineer Ann Lee" works for Orion.

>>> part = builtin_documents(seed=0, sizes=(2, 1, 1))["train"]
>>> len(part), all(len(document.sentences) >= 2 for document in part)
(2, True)

The kind of a mention of the cast is TYPE.form.number, that of a noun for an event event.Type.sentence.

The notation is that of `grammar`, whose rules serve here too. A kind that begins with @ is a member of the cast, or an
earlier event; .o is behind those that are objects.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import NamedTuple

from trelliswork.data.corpus.generate import (
    EVENTS,
    PARTS,
    AnnotatedSentence,
    Expansion,
    annotate,
    event_mentions,
    spell,
)
from trelliswork.data.corpus.grammar import ENTITY_LABEL, Derivation, Rule, parsed_rules, placed, rules_by_parent
from trelliswork.data.events import IMPLIED, Event

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
    """Return the parts "train", "dev" and "test", all different documents; dev and test hold words unseen in train."""
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
    """Yield endless documents; with `unseen`, held-out words occur among them."""
    source = random.Random(seed)
    while True:
        trees = _Story(source, unseen).trees()
        yield AnnotatedDocument(tuple(annotate(spell(tree)) for tree in trees))


class _Story:
    """A document while it is made: its cast, and the type of the event of each sentence, if it has one."""

    def __init__(self, source: random.Random, unseen: bool):
        self.source = source
        self.draw = Expansion(source, unseen, document_rules(), self._given)
        self.cast = Cast(source, self.draw.word)
        self.types: list[str | None] = []

    def trees(self) -> list[Derivation]:
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
        """Return the sentences whose events there are nouns for."""
        return [i for i, type_ in enumerate(self.types) if type_ in NOUNS]

    def _given(self, kind: str) -> Derivation:
        role, _, is_object = kind.partition(".")
        if role != "event":
            return self.cast.mention(role, is_object=bool(is_object))
        earlier = self._events()
        sentence = earlier[-1] if self.source.random() < 0.6 else self.source.choice(earlier)
        type_ = str(self.types[sentence])
        noun = Derivation("NN", noun_kind(type_, sentence), word=self.source.choice(NOUNS[type_].split()))
        return Derivation("NP", "event", (Derivation("DT", "the", word="the"), noun), head=1)


# Who and what a document is about: names, and how they are mentioned again.

PRONOUNS = {"she": ("she", "her"), "he": ("he", "him"), "it": ("it", "it")}  # as subject and object
EMPLOYEE = "employee"  # a firm, what somebody does there, and the name
Draw = Callable[[str, str], str]  # a word, by part of speech and kind


@dataclass(frozen=True)
class Member:
    """A member of the cast: the words of its name, of which the last (a firm: the first) is the short one."""

    number: int
    type: str
    names: tuple[tuple[str, str], ...]  # kind and word
    noun: tuple[str, str]  # kind and word of a description
    pronoun: str

    @property
    def short(self) -> tuple[str, str]:
        return self.names[0] if self.type == "ORG" else self.names[-1]


@dataclass
class Cast:
    """Members are made when they are first mentioned; `mention` chooses a name, a description or a pronoun."""

    source: random.Random
    draw: Draw
    members: dict[str, Member] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    titled: set[int] = field(default_factory=set)  # people of whom it was said what they do
    latest: dict[str, int] = field(default_factory=dict)  # by pronoun, the member that it would mean

    def mention(self, role: str, *, is_object: bool) -> Derivation:
        """Return a noun phrase for the member with a role in the document."""
        member = self.member(role)
        mention = self._again(member, is_object) if member.number in self.known else self._first(member)
        self.known.add(member.number)
        self.latest[member.pronoun] = member.number
        return mention

    def member(self, role: str) -> Member:
        """Return the member with a role; a new name is unlike all others."""
        if role not in self.members:
            taken = {word for each in self.members.values() for _, word in each.names}
            member = self._new(role)
            while taken & {word for _, word in member.names}:
                member = self._new(role)
            self.members[role] = member
        return self.members[role]

    def _new(self, role: str) -> Member:
        number = len(self.members)
        if role in ("person", "friend", "witness"):
            last = "ambiguous" if self.source.random() < 0.3 else "last"
            names = self._words("first", last)
            return Member(number, "PER", names, self._noun("role"), self.source.choice(["she", "he"]))
        if role in ("firm", "target"):
            first = "ambiguous" if self.source.random() < 0.3 else "firm_name"
            return Member(number, "ORG", self._words(first, "firm_end"), self._noun("business"), "it")
        if role == "place":
            kind = "ambiguous" if self.source.random() < 0.3 else "place_name"
            return Member(number, "LOC", self._words(kind), self._noun("town"), "")
        return Member(number, "PROD", self._words("product"), ("", ""), "")

    def _words(self, *kinds: str) -> tuple[tuple[str, str], ...]:
        return tuple((kind, self.draw("NNP", kind)) for kind in kinds)

    def _noun(self, kind: str) -> tuple[str, str]:
        return kind, self.draw("NN", kind)

    def _first(self, member: Member) -> Derivation:
        name, chance = _name(member, member.names, "full"), self.source.random()
        if member.type == "PROD":
            return _phrase("goods", _leaf("DT", "the", "the"), name)
        if member.type == "PER" and chance < 0.5:
            title = _leaf("NN", *member.noun)
            self.titled.add(member.number)
            if chance < 0.3 and "firm" in self.members:
                firm = self.members["firm"]
                self.known.add(firm.number)
                return _phrase(EMPLOYEE, _name(firm, (firm.short,), "short"), title, name)
            return _phrase("who", title, name)
        return _phrase("first", name)

    def _again(self, member: Member, is_object: bool) -> Derivation:
        chance, short = self.source.random(), _name(member, (member.short,), "short")
        if member.type == "PROD":
            return _phrase("goods", _leaf("DT", "the", "the"), short)
        if chance < 0.35 and member.pronoun and self.latest.get(member.pronoun) == member.number:
            word = PRONOUNS[member.pronoun][is_object]
            return _phrase("again", _entity(member, "pronoun", _leaf("PRP", "pronoun", word)))
        if chance < 0.6 and (member.type != "PER" or member.number in self.titled):
            noun = _entity(member, "nominal", _leaf("DT", "the", "the"), _leaf("NN", *member.noun))
            return _phrase("again", noun)
        return _phrase("again", short)


def _leaf(pos: str, kind: str, word: str) -> Derivation:
    return Derivation(pos, kind, word=word)


def _phrase(kind: str, *children: Derivation) -> Derivation:
    return Derivation("NP", kind, children, head=len(children) - 1)


def _entity(member: Member, form: str, *children: Derivation) -> Derivation:
    """Return a mention; the third part of its kind is the number of the member."""
    return Derivation(ENTITY_LABEL, f"{member.type}.{form}.{member.number}", children, head=len(children) - 1)


def _name(member: Member, names: tuple[tuple[str, str], ...], form: str) -> Derivation:
    return _entity(member, form, *(_leaf("NNP", kind, word) for kind, word in names))


# Events of a document, what refers to what, and what is implied; all read from derivations.

NOUN = "event"
Span = tuple[int, int]
Link = tuple[int, str, int]


class Layers(NamedTuple):
    """Events, links (event, role, event) between them by number, and the spans of what is mentioned several times."""

    events: list[Event]
    links: list[Link]
    coreference: list[list[Span]]


def noun_kind(type_: str, sentence: int) -> str:
    """Return the kind of a noun that speaks of the event of an earlier sentence."""
    return f"{NOUN}.{type_}.{sentence}"


def layers_of(trees: Sequence[Derivation]) -> Layers:
    """Return all layers of a document."""
    events, links = list[Event](), list[Link]()
    same: dict[object, list[Span]] = {}
    start = 0
    for number, tree in enumerate(trees):
        said = [event.moved(start) for event in event_mentions(tree)]
        nouns = {at: node.kind for node, at in placed(tree, start) if node.kind.startswith(f"{NOUN}.")}
        first = len(events)
        events += said
        for event in said:
            kind = nouns.get(event.trigger, noun_kind(event.type, number))
            same.setdefault(kind, []).append((event.trigger, event.trigger + 1))
        main = next((first + i for i, event in enumerate(said) if event.trigger not in nouns), None)
        links += [(main, _role(events[main]), first + i) for i, event in enumerate(said)
                  if main is not None and event.trigger in nouns]  # fmt: skip
        for event, role in _implied(tree, start):
            links += [(main, role, len(events))] if role and main is not None else []
            events.append(event)
        for node, at in placed(tree, start):
            if node.label == ENTITY_LABEL and node.kind.count(".") == 2:
                same.setdefault(int(node.kind.rpartition(".")[2]), []).append((at, at + len(node.words())))
        start += len(tree.words())
    return Layers(events, links, [sorted(spans) for spans in same.values() if len(spans) > 1])


def _role(event: Event) -> str:
    """Return the role of an earlier event: what causes a reaction, or what something comes after."""
    return "Cause" if event.type == "React" else "After"


def _implied(tree: Derivation, start: int) -> Iterator[tuple[Event, str]]:
    """Yield the events that no word says by itself, each with its role in the event of the sentence, if it has one."""
    for node, at in placed(tree, start):
        if node.kind == EMPLOYEE:
            firm, title, name = node.children
            there = at + len(firm.words())
            person = there + len(title.words())
            roles = ((at, there, "Employer"), (person, person + len(name.words()), "Person"))
            yield Event(IMPLIED, "Employ", roles), ""
        if node.kind == "crew":
            yield Event(IMPLIED, "Group", (), (("Size", node.children[0].word),)), "Person"


# The grammar of documents: a sentence for each kind of event, over a cast that the whole document shares.

RULES = """
S/acquire -> NP/@firm *VP/acquire ./stop ; 1
S/hire -> NP/@firm *VP/hire ./stop ; 1
S/join -> NP/@person *VP/join ./stop ; 1
S/visit -> NP/@person *VP/visit ./stop ; 1
S/meet -> NP/@person *VP/meet ./stop ; 1
S/labour -> NP/@person *VP/labour ./stop ; 1
S/trade -> NP/@firm *VP/trade ./stop ; 1
S/expand -> NP/@firm *VP/expand ./stop ; 1
S/born -> NP/@person *VP/was_born ./stop ; 1
S/react -> NP/@event *VP/react ./stop ; 1
S/aside -> NP/base *VP/aside ./stop ; 1

VP/acquire -> *VBD/acquire NP/@target.o ; 2
VP/acquire -> *VBD/acquire NP/@target.o PP/when ; 1
VP/hire -> *VBD/hire NP/@person.o ; 1
VP/hire -> *VBD/hire NP/crew ; 1
NP/crew -> CD/count *NNS/staff ; 1
VP/join -> *VBD/join NP/@firm.o ; 1
VP/visit -> *VBD/visit NP/@place.o ; 1
VP/visit -> *VBD/visit NP/@place.o PP/when ; 1
VP/meet -> *VBD/meet NP/@friend.o ; 1
VP/meet -> *VBD/meet NP/@friend.o PP/in ; 1
VP/labour -> *VBD/labour PP/for_firm PP/in ; 1
VP/trade -> *VBD/trade NP/@product.o ; 1
VP/expand -> *VBD/expand PP/in ; 1
VP/was_born -> VBD/was *VP/born ; 1
VP/born -> *VBN/born PP/in ; 1
VP/react -> *VBD/react NP/@witness.o ; 1
VP/aside -> *VBD/happen ; 1
VP/aside -> *VBD/happen ADVP/how ; 1
VP/aside -> VBD/was *ADJP/worth ; 1
PP/for_firm -> *IN/for NP/@firm.o ; 1
PP/in -> *IN/in NP/@place.o ; 1
PP/after -> *IN/after NP/@event ; 1
"""

SCRIPTS: tuple[tuple[str, ...], ...] = (  # what happens in a document, in this order; some of it is left out
    ("expand", "acquire", "hire", "trade"),
    ("trade", "expand", "hire"),
    ("born", "labour", "join", "visit", "meet"),
    ("visit", "meet", "join", "hire"),
)

# How a later sentence speaks of an event; "deal", "move" and "visit" are said of several types.
NOUNS: dict[str, str] = {
    "Acquire": "deal deal takeover purchase",
    "Trade": "deal deal launch",
    "Hire": "move move appointment",
    "Join": "move move switch",
    "Expand": "move move growth",
    "Visit": "visit visit trip",
    "Meet": "visit visit meeting",
}


@cache
def document_rules() -> dict[str, tuple[Rule, ...]]:
    """Return the rules of documents before those of sentences."""
    return {**rules_by_parent(), **parsed_rules(RULES)}
