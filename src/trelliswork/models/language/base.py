"""Base of all language models: log probabilities of tokens and sentences, and perplexity."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer, Model, PartProbability, Readable, Report, Scores
from trelliswork.models.language.config import PLAIN_TEXT
from trelliswork.models.language.corpus import STOP, UNKNOWN, TextReading
from trelliswork.runtime.arrays import Array

BANDS = (
    (0, "unknown"), (1, "seen once"), (2, "seen 2-9"), (10, "seen 10-99"), (100, "seen 100-999"),
    (1000, "seen 1,000 or more"),
)  # fmt: skip


class LanguageModel(Model):
    """p(sentence) as a product over its units and its end. `format` is how it reads text."""

    learns_from: ClassVar[str] = PLAIN_TEXT
    next_options = "--score"
    is_automaton: ClassVar[bool] = False  # whether it has a `machine`, by which constraints are met exactly
    format: TextReading
    names: list[str]  # of the units
    counts: Array  # of each in training

    @abstractmethod
    def log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        """Return log p(unit | the units before it) for the units of each sentence and its end, in one call."""

    def text_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        """Return the same for consecutive sentences of a text, which a model may read after each other."""
        return self.log_probs(sentences)

    @abstractmethod
    def next_log_probs(self, prefix: Sequence[str]) -> Array:
        """Return the log probabilities of every unit, in the order of `names`, and of the end after a prefix."""

    def predict(
        self, inputs: Readable, *, top_k: int = 1, pins: object = None, confidence: bool = True
    ) -> list[Answer]:
        """Return log p of each sentence; its parts are the units with their probabilities, the end as the last."""
        if pins is not None:
            raise TrellisworkError("a language model scores what it is given, and has nothing to pin; leave pins out")
        every = [self.format.cut(each) for each in self.sentences_of(inputs)]
        return [self._answer(units, logs) for units, logs in zip(every, self.log_probs(every), strict=True)]

    def _answer(self, units: Sequence[str], logs: Array) -> Answer:
        shown = [*units, STOP]
        parts = [
            PartProbability(i, i + 1, unit, p)
            for i, (unit, p) in enumerate(zip(shown, np.exp(np.minimum(logs, 0.0)).tolist(), strict=True))
        ]
        total = float(logs.sum())
        return Answer(total, math.exp(min(total, 0.0)), shown, parts)

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return perplexity with and without unknown units, bits for each character, and perplexity by frequency.

        The end of a sentence counts as a unit and as a character. `score` is minus the bits for each unit.
        """
        if not gold:
            raise TrellisworkError("perplexity needs at least one sentence; got none")
        every = [self.format.cut(each) for each in gold]
        logs = np.concatenate(self.text_log_probs(every))
        number = {name: i for i, name in enumerate(self.names) if name != UNKNOWN}
        seen = [*self.counts.tolist(), 0]
        count = np.array([seen[number.get(unit, -1)] for units in every for unit in (*units, STOP)])
        count[np.cumsum([len(units) + 1 for units in every]) - 1] = -1  # ends of sentences
        n_characters = sum(len(self.format.join(units)) + 1 for units in every)
        bands = {"end of sentence": count == -1}
        for (low, name), (high, _) in zip(BANDS, (*BANDS[1:], (math.inf, "")), strict=True):
            bands[name] = (count >= low) & (count < high)
        by_band = {name: {"n": int(which.sum()), "perplexity": perplexity(logs[which])} for name, which in bands.items()
                   if which.any()}  # fmt: skip
        bits = -float(logs.sum()) / math.log(2)
        return {
            "metric": "log2 p per unit", "score": -bits / len(logs), "perplexity": perplexity(logs),
            "perplexity_of_known": perplexity(logs[count != 0]), "unknown": int((count == 0).sum()),
            "bits_per_character": bits / n_characters, "units": len(logs), "characters": n_characters,
            "by_frequency": by_band,
        }  # fmt: skip

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return the scores on text, for people."""
        scores = self.evaluate(gold)
        rows = [
            ("perplexity", f"{scores['perplexity']:.2f}"),
            ("without unknown " + self.format.units, f"{scores['perplexity_of_known']:.2f}"),
            ("bits per character", f"{scores['bits_per_character']:.4f}"),
            ("unknown " + self.format.units, f"{scores['unknown']:,} of {scores['units']:,}"),
        ]
        lines = [f"{name:<28}{value:>14}" for name, value in rows]
        lines += ["", f"{'in training':<28}{self.format.units:>14}{'perplexity':>14}"]
        for name, band in scores["by_frequency"].items():
            lines.append(f"{name:<28}{band['n']:>14,}{band['perplexity']:>14,.1f}")
        return Report("\n".join(lines), dict(scores))

    def knows(self, word: str) -> bool | None:
        """Return whether a word was seen in training; None if the units are not words."""
        return word in self.names if self.format.units == "words" else None


def perplexity(log_probs: Array) -> float:
    """Return exp of minus the mean; infinite if something is impossible, and 1 if there is nothing."""
    mean = -float(log_probs.mean()) if len(log_probs) else 0.0
    return math.exp(mean) if mean < 700 else math.inf
