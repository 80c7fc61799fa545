"""A tokeniser learned from tokens alone: rules, corrected by how a file cuts, as `trelliswork.text.habits` has it.

>>> tokeniser = LearnedRules.fit([["the", "well", "-", "known", "plan"], ["a", "long", "-", "term", "one"]] * 3)
>>> tokeniser.predict("a short-lived plan")[0].inputs
['a', 'short', '-', 'lived', 'plan']
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Self

from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.export_folder import model_card
from trelliswork.models.storage import StoredConfig, StoredModel, read_model, write_model
from trelliswork.models.tokenisers.base import TokeniserModel
from trelliswork.text import Token
from trelliswork.text.habits import Counts, Habits, HabitTokeniser
from trelliswork.text.rules import VERSION
from trelliswork.text.spacing import plausible_text

SHORTEST, LONGEST = 2, 6  # endings by which a new token may be split, in characters
ENOUGH = 0.9  # of the tokens with an ending that must be split alike
OFTEN = 3  # times that an ending must have been seen

Words = tuple[str, ...]


@dataclass(frozen=True)
class MultiwordTable:
    """The words of the tokens seen in training, lower case, and the endings that are cut off new ones.

    A token that was mostly seen whole is not in the table; one never seen is split by its longest ending here.
    """

    whole: Mapping[str, Words] = field(default_factory=dict)
    endings: Mapping[str, Words] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()  # tokens that an ending would split, and that are whole

    @classmethod
    def of(cls, tokens: Iterable[Token]) -> MultiwordTable:
        """Learn the table from tokens with their words."""
        counts: dict[str, Counter[Words]] = defaultdict(Counter)
        for token in tokens:
            counts[token.text.lower()][tuple(word.lower() for word in token.words)] += 1
        best = {form: readings.most_common(1)[0][0] for form, readings in counts.items()}
        whole = {form: words for form, words in best.items() if len(words) > 1}
        endings = _endings(best)
        kept = {form for form, words in best.items() if len(words) == 1 and _ending_of(form, endings)}
        return cls(whole, endings, frozenset(kept))

    def words(self, text: str) -> Words:
        """Return the words of a token with its capitals where these are clear; the token itself if it is one word.

        >>> table = MultiwordTable.of([Token("don't", 0, 5, ("do", "n't"))])
        >>> table.words("Don't"), table.words("dogs")
        (('Do', "n't"), ('dogs',))
        """
        lower = text.lower()
        if lower in self.whole:
            return _with_capitals(text, self.whole[lower])
        if lower not in self.seen:
            ending = _ending_of(lower, self.endings)
            if ending:
                return _with_capitals(text, (lower[: -len(ending)], *self.endings[ending]))
        return (text,)

    def to_json(self) -> dict[str, object]:
        """Return the plain values that `from_json` reads."""
        return {"whole": self.whole, "endings": self.endings, "seen": sorted(self.seen)}

    @classmethod
    def from_json(cls, stored: StoredConfig) -> MultiwordTable:
        """Invert `to_json`."""
        tables = [{form: tuple(words) for form, words in stored[name].items()} for name in ("whole", "endings")]
        return cls(tables[0], tables[1], frozenset(stored["seen"]))


def _endings(best: Mapping[str, Words]) -> dict[str, Words]:
    """Return the endings that are nearly always cut off, with the words that they are."""
    split: dict[str, Counter[Words]] = defaultdict(Counter)
    for form, words in best.items():
        if len(words) > 1 and "".join(words) == form:
            for at in range(1, len(words)):
                split["".join(words[at:])][words[at:]] += 1
    often = {ending: readings for ending, readings in split.items() if SHORTEST <= len(ending) <= LONGEST}
    totals = Counter(
        form[-size:]
        for form in best
        for size in range(SHORTEST, LONGEST + 1)
        if size < len(form) and form[-size:] in often
    )
    return {
        ending: readings.most_common(1)[0][0]
        for ending, readings in often.items()
        if readings.most_common(1)[0][1] >= max(OFTEN, ENOUGH * totals[ending])
    }


def _ending_of(form: str, endings: Mapping[str, Words]) -> str:
    candidates = (form[-size:] for size in range(min(LONGEST, len(form) - 1), SHORTEST - 1, -1))
    return next((ending for ending in candidates if ending in endings), "")


def _with_capitals(text: str, words: Words) -> Words:
    """Return words of a token that are spelled like it when put together have its letters; others begin like it."""
    if "".join(words) == text.lower() and len(text) == len(text.lower()):
        places = [sum(map(len, words[:at])) for at in range(len(words) + 1)]
        return tuple(text[first:last] for first, last in pairwise(places))
    return (words[0].capitalize(), *words[1:]) if text[:1].isupper() else words


NO_MULTIWORD = MultiwordTable({}, {})


class LearnedRules(TokeniserModel):
    """Tokens and sentences of raw text, by rules and the habits of a file of tokens."""

    KIND = "LearnedRules"

    def __init__(self, habits: Habits, multiword: MultiwordTable = NO_MULTIWORD) -> None:
        self.habits, self.multiword = habits, multiword
        self.metrics = {}

    @classmethod
    def fit(cls, sentences: Sequence[Sequence[str]], multiword: MultiwordTable = NO_MULTIWORD) -> Self:
        """Learn from sentences of tokens; the text that they come from is not needed."""
        document = plausible_text(sentences)
        if not document.sentences:
            raise TrellisworkError("expected tokens to learn from, got none; check the data")
        return cls(Habits.of(document), multiword)

    def tokenise(self, text: str) -> list[list[Token]]:
        """Return the sentences of a text; a blank line always ends one."""
        sentences = HabitTokeniser(self.habits).tokenise(text)
        if not self.multiword.whole:
            return sentences
        return [[replace(token, words=self.multiword.words(token.text)) for token in tokens] for tokens in sentences]

    @property
    def n_parameters(self) -> int:
        return len(self.habits.cuts) + len(self.habits.ends)

    def describe(self, top: int = 20) -> Description:
        sizes = {
            "habits of cutting": len(self.habits.cuts),
            "habits of ending sentences": len(self.habits.ends),
            "multi-word tokens": len(self.multiword.whole),
        }
        return Description("rules with the habits of a file of tokens", {}, {}, {}, [("habits", sizes)])

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        config = {
            "rules": VERSION,
            "cuts": _written(self.habits.cuts),
            "ends": _written(self.habits.ends),
            "multiword": self.multiword.to_json(),
        }
        write_model(directory, StoredModel(self.KIND, config, {}, self.metrics, model_card(self), dict(extra or {})))

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; what is missing or does not fit is a `ModelError`."""
        stored = read_model(directory, cls.KIND)
        try:
            if stored.config["rules"] != VERSION:
                raise ValueError(f"rules of version {VERSION} expected, {stored.config['rules']!r} found")
            habits = Habits(_counts(stored.config["cuts"]), _counts(stored.config["ends"]))
            tokeniser = cls(habits, MultiwordTable.from_json(stored.config["multiword"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{directory}: config.json does not fit ({error}); copy it again") from error
        tokeniser.metrics = dict(stored.metrics)
        return tokeniser


def _written(counts: Counts) -> dict[str, str]:
    """Return counts for JSON, each on a line."""
    return {key: f"{yes}/{n}" for key, (yes, n) in counts.items()}


def _counts(stored: Mapping[str, str]) -> Counts:
    """Invert `_written`, with checks."""
    counts: Counts = {}
    for key, written in stored.items():
        yes, n = map(int, written.split("/"))
        if not 0 <= yes <= n or n == 0:
            raise ValueError(f"{written!r} of {key!r}")
        counts[key] = yes, n
    return counts
