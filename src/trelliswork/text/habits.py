"""The rules, corrected by what a file of tokens shows of how it cuts: hyphens, abbreviations, clitics, sentence ends.

A written word, which white space ends, is a sequence of runs of letters, runs of digits and marks. Between two of these
the rules cut or do not cut; so does the file. Each such place is described from the general to the particular: the
kinds of the runs around it, then one of them as it is spelt, then all of them. What the file did at places of the same
description is counted, and the estimate of each description is smoothed by that of the next more general one, down to
the decision of the rules. Places that the file does not have are thus cut by the rules, and those that it has as it
cuts them. Sentence ends are described and counted in the same way.

>>> from trelliswork.text.spacing import plausible_text
>>> habits = Habits.of(plausible_text([["the", "long", "-", "term", "plan"], ["a", "short", "-", "lived", "one"]] * 3))
>>> [token.text for token in HabitTokeniser(habits).tokenise("a well-known plan")[0]]
['a', 'well', '-', 'known', 'plan']
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from trelliswork.text.documents import Document
from trelliswork.text.rules import Piece, Token, ends_sentence, mark_of, paragraphs, pieces, split

STRENGTH = 1.5  # how many places a more general description counts for
SURE = 0.98  # what the decision of the rules is worth, as a probability
SENTENCE_END = "|. 1 A"  # a full stop before a capital letter, where the rules end a sentence
_ATOM = regex.compile(
    r"[\p{Han}\p{Hiragana}]\p{M}*|(?i:(?:(?!n['’]t\b)[\p{L}\p{M}\u200C\u200D\u2060\u00AD])+|n(?=['’]t\b))"
    r"|\p{Nd}+|``|''|,,|\S\p{M}*"
)
_APOSTROPHES = str.maketrans({"’": "'", "\u2010": "-", "\u2011": "-", "\u00ad": None, "\u2060": None})
_END_MARKS = ".!?…。！？｡؟۔।॥"

Keys = list[str]
Counts = dict[str, tuple[int, int]]  # how often yes, of how many


@dataclass(frozen=True)
class Habits:
    """Habits of a file: `cuts` of written words, and `ends` of sentences, by descriptions of places."""

    cuts: Counts = field(default_factory=dict)
    ends: Counts = field(default_factory=dict)

    @classmethod
    def of(cls, document: Document) -> Habits:
        """Learn from a text whose tokens are known."""
        cuts, ends = _Learner(), _Learner()
        known = {token.end for sentence in document.sentences for token in sentence}
        last = {sentence[-1].end for sentence in document.sentences if sentence}
        tokens = [token for sentence in document.sentences for token in sentence]
        at = 0
        for begin, end in paragraphs(document.text):
            for word in _written_words(document.text, begin, end):
                for place in word.places():
                    cuts.see(place.keys, place.by_rule, place.at in known)
            first = at
            while at < len(tokens) and tokens[at].start < end:
                at += 1
            within = tokens[first:at]
            for i in range(len(within) - 1):
                keys = _end_keys(document.text, within, i)
                if keys:
                    ends.see(keys, ends_sentence(within, i), within[i].end in last)
        counts = ends.counts()
        several = _estimate(counts, [SENTENCE_END], by_rule=True) < 0.5  # "sentences" of the file are whole texts
        return cls(cuts.counts(), {} if several else counts)


class HabitTokeniser:
    """Sentences and tokens by rules and habits."""

    def __init__(self, habits: Habits) -> None:
        self.habits = habits

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; a blank line always ends one."""
        sentences: list[list[Token]] = []
        for begin, end in paragraphs(text):
            tokens = list(self._tokens(text, begin, end))
            sentences += split(tokens, lambda at, tokens=tokens: self._ends(text, tokens, at))  # type: ignore[misc]
        return sentences

    def _tokens(self, text: str, begin: int, end: int) -> Iterator[Token]:
        for word in _written_words(text, begin, end):
            cuts = word.cuts
            for place in word.places():
                if _estimate(self.habits.cuts, place.keys, place.by_rule) > 0.5:
                    cuts.add(place.at)
                else:
                    cuts.discard(place.at)
            start = word.start
            for cut in sorted(cuts):
                yield Token(text[start:cut], start, cut)
                start = cut

    def _ends(self, text: str, tokens: Sequence[Token], at: int) -> bool:
        by_rule = ends_sentence(tokens, at)
        keys = _end_keys(text, tokens, at)
        return _estimate(self.habits.ends, keys, by_rule) > 0.5 if keys else by_rule


def _estimate(counts: Mapping[str, tuple[int, int]], keys: Keys, by_rule: bool) -> float:
    """Return the probability of a cut or an end, from the most general description to the most particular."""
    probability = SURE if by_rule else 1 - SURE
    for key in keys:
        if key in counts:
            yes, n = counts[key]
            probability = (yes + STRENGTH * probability) / (n + STRENGTH)
    return probability


class _Learner:
    """Counts of descriptions."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], list[int]] = {}

    def see(self, keys: Keys, by_rule: bool, yes: bool) -> None:
        counts = self._seen.setdefault((*keys, "1" if by_rule else "0"), [0, 0])
        counts[yes] += 1

    def counts(self) -> Counts:
        """Return those that change a decision; the others would only take room."""
        by_key: dict[str, list[int]] = {}
        for (*keys, _), (no, yes) in self._seen.items():
            for key in keys:
                counts = by_key.setdefault(key, [0, 0])
                counts[0] += yes
                counts[1] += no + yes
        every = {key: (yes, n) for key, (yes, n) in by_key.items()}
        kept: Counts = {}
        for (*keys, by_rule), _ in self._seen.items():
            estimate = SURE if by_rule == "1" else 1 - SURE
            for key in keys:
                yes, n = every[key]
                before, estimate = estimate, (yes + STRENGTH * estimate) / (n + STRENGTH)
                if abs(before - estimate) > 0.05:
                    kept[key] = every[key]
        return dict(sorted(kept.items()))


@dataclass
class _Place:
    """A place between two runs of a written word."""

    at: int
    by_rule: bool
    keys: Keys


@dataclass
class _Word:
    """A written word: where it is, where the rules cut it, and what is whole in it."""

    text: str
    start: int
    end: int
    cuts: set[int]
    whole: set[int]  # places inside addresses, handles and emoji
    paragraph_end: int

    def places(self) -> Iterator[_Place]:
        """Yield the places where the run may be cut."""
        if len(self.cuts) == 1 and self.text[self.start : self.end].isalpha():
            return
        atoms = [(match.start(), match[0]) for match in _ATOM.finditer(self.text, self.start, self.end)]
        if len(atoms) < 2:
            return
        spelt = ["^", *(_spelt(atom) for _, atom in atoms), f"_{_begins(self.text, self.end, self.paragraph_end)}"]
        shapes = [*map(_shape, spelt)]
        for i, (at, _) in enumerate(atoms[1:]):
            state = "=" if at in self.whole else "|" if at in self.cuts else "+"
            yield _Place(at, state == "|", _cut_keys(state, spelt[i : i + 4], shapes[i : i + 4]))


def _cut_keys(state: str, spelt: Sequence[str], shapes: Sequence[str]) -> Keys:
    """Descriptions of the place between the middle two of four runs, general ones first."""
    before, left, right, after = spelt
    a, b, c, d = shapes
    e, f, g, h = (shape[0] if shape[0] in "a0" else shape for shape in shapes)
    keys = [
        f"{state} {'w' if f in 'a0' else f} {'w' if g in 'a0' else g}",
        f"{state} {f} {g}",
        f"{state} {e} {f} {g}",
        f"{state} {f} {g} {h} >",
        f"{state} {e} {f} {g} {h}",
        f"{state} {a} {b} {c} {d}",
        *([] if (right, after) == (g, h) else [f"{state} ? {f} {right} {after}"]),  # no evidence counts twice
        f"{state} ? {left} {right} {h}" if f in "a0" else f"{state} {before} {left} {g} ?",
        f"{state} {before} {left} {right} {after}",
    ]
    return list(dict.fromkeys(keys))


def _written_words(text: str, begin: int, end: int) -> Iterator[_Word]:
    run: list[Piece] = []
    for piece in pieces(text, begin, end):
        if run and run[-1].end < piece.start:
            yield _word(text, run, end)
            run = []
        run.append(piece)
    if run:
        yield _word(text, run, end)


def _word(text: str, run: Sequence[Piece], paragraph_end: int) -> _Word:
    whole = {place for piece in run if piece.whole for place in range(piece.start + 1, piece.end)}
    return _Word(text, run[0].start, run[-1].end, {piece.end for piece in run}, whole, paragraph_end)


def _spelt(atom: str) -> str:
    """Return a run as it is compared: digits are alike, and so are forms of Unicode."""
    if atom.isdigit():
        return "0" if len(atom) == 1 else "00" if len(atom) == 2 else "000"
    return unicodedata.normalize("NFC", atom).translate(_APOSTROPHES) or "-"


def _shape(spelt: str) -> str:
    """Return the kind of a run: digits and marks, letters by case; the first character is the coarse kind."""
    if not spelt[0].isalpha():
        return spelt
    if len(spelt) == 1:
        return "aA" if spelt.isupper() else "aa"
    return "aAA" if spelt.isupper() else "aAa" if spelt[0].isupper() else "aaa"


def _begins(text: str, place: int, end: int) -> str:
    """Describe what follows white space: $ at the end, a letter by its case, 0, or the mark."""
    while place < end and text[place].isspace():
        place += 1
    if place >= end:
        return "$"
    character = text[place]
    return "0" if character.isdigit() else ("a" if character.islower() else "A") if character.isalpha() else character


def _end_keys(text: str, tokens: Sequence[Token], at: int) -> Keys:
    """Descriptions of a place where a sentence may end: after an end mark and white space; else none."""
    following = tokens[at + 1]
    if following.start == tokens[at].end:
        return []
    number = mark_of(tokens, at)
    before = tokens[number].text.rstrip(_END_MARKS)
    mark, joined = tokens[number].text[len(before) :], "+" if before else "|"
    if not mark:
        return []
    touches = number > 0 and tokens[number - 1].end == tokens[number].start
    word = _spelt(before or (tokens[number - 1].text if touches else "^"))
    closed = ")" if number < at else ""
    begins = _begins(text, following.start, following.end)
    state = f"{joined}{mark}{closed} {'1' if ends_sentence(tokens, at) else '0'} {begins}"
    return [
        f"{state}",
        f"{state} {_shape(word)}",
        f"{state} {_shape(word)} {_spelt(following.text)}",
        f"{state} {word}",
        f"{state} {word} {_spelt(following.text)}",
    ]
