"""Who and what a document is about: names, and how they are mentioned again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from trelliswork.data.corpus.derivation import ENTITY_LABEL, Derivation

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
        """A noun phrase for the member with a role in the document."""
        member = self.member(role)
        found = self._again(member, is_object) if member.number in self.known else self._first(member)
        self.known.add(member.number)
        self.latest[member.pronoun] = member.number
        return found

    def member(self, role: str) -> Member:
        """The member with a role; a new name is unlike all others."""
        if role not in self.members:
            taken = {word for each in self.members.values() for _, word in each.names}
            found = self._new(role)
            while taken & {word for _, word in found.names}:
                found = self._new(role)
            self.members[role] = found
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
    """A mention; the third part of its kind is the number of the member."""
    return Derivation(ENTITY_LABEL, f"{member.type}.{form}.{member.number}", children, head=len(children) - 1)


def _name(member: Member, names: tuple[tuple[str, str], ...], form: str) -> Derivation:
    return _entity(member, form, *(_leaf("NNP", kind, word) for kind, word in names))
