"""A tokeniser learned from tokens alone: rules, corrected by how a file cuts, as `trelliswork.text.habits` has it.

>>> tokeniser = LearnedRules.fit([["the", "well", "-", "known", "plan"], ["a", "long", "-", "term", "one"]] * 3)
>>> tokeniser.predict("a short-lived plan")[0].inputs
['a', 'short', '-', 'lived', 'plan']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.card import model_card
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.models.tokenisers.base import TokeniserModel
from trelliswork.models.tokenisers.multiword import MultiwordTable
from trelliswork.text import Token
from trelliswork.text.habits import Counts, Habits, HabitTokeniser
from trelliswork.text.rules import VERSION
from trelliswork.text.spacing import plausible_text

NO_MULTIWORD = MultiwordTable({}, {})


class LearnedRules(TokeniserModel):
    """Tokens and sentences of raw text, by rules and the habits of a file of tokens."""

    KIND = "LearnedRules"

    def __init__(self, habits: Habits, multiword: MultiwordTable = NO_MULTIWORD) -> None:
        self.habits, self.multiword = habits, multiword
        self.metrics: dict[str, Any] = {}

    @classmethod
    def fit(cls, sentences: Sequence[Sequence[str]], multiword: MultiwordTable = NO_MULTIWORD) -> Self:
        """Learn from sentences of tokens; the text that they come from is not needed."""
        document = plausible_text(sentences)
        if not document.sentences:
            raise TrellisworkError("expected tokens to learn from, got none; check the data")
        return cls(Habits.of(document), multiword)

    def tokenise(self, text: str) -> list[list[Token]]:
        """The sentences of a text; a blank line always ends one."""
        found = HabitTokeniser(self.habits).tokenise(text)
        if not self.multiword.whole:
            return found
        return [[replace(token, words=self.multiword.words(token.text)) for token in tokens] for tokens in found]

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
    def load(cls, directory: str | Path, *, features: Any = None) -> Self:
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
    """Counts for JSON, each on a line."""
    return {key: f"{yes}/{n}" for key, (yes, n) in counts.items()}


def _counts(stored: Mapping[str, str]) -> Counts:
    """The inverse, checked."""
    counts: Counts = {}
    for key, written in stored.items():
        yes, n = map(int, written.split("/"))
        if not 0 <= yes <= n or n == 0:
            raise ValueError(f"{written!r} of {key!r}")
        counts[key] = yes, n
    return counts
