"""`trelliswork train --model pair-ngram`: aligned and counted, in seconds to minutes."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from trelliswork.data import Choices, PairFormat, Sentence
from trelliswork.data.settings import options_of, settings_given
from trelliswork.models.base import Scores
from trelliswork.models.recipe import CountingRecipe, CountingResult, Options
from trelliswork.models.transducers.config import PairFiles
from trelliswork.models.transducers.pair_ngram.model import PairNgram


class AligningResult(CountingResult):
    """Duration of aligning and counting, and the size of the model."""

    @property
    def summary(self) -> str:
        return f"aligned and {super().summary}"


class PairNgramRecipe(CountingRecipe):
    """n-grams of aligned pairs, in the normal form that is better on the dev data."""

    what, result = "n-grams are", AligningResult

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.files = PairFiles(**settings_given(options, PairFiles))

    def layout(self, choices: Choices) -> Choices:
        return replace(choices, pairs=self.files.format)

    def settings(self) -> dict[str, object]:
        return super().settings() | options_of(self.files)

    def fitted(self) -> tuple[PairNgram, Scores]:
        format = self.material.choices.pairs or PairFormat()
        train, dev = self.material.train, self.material.dev
        model = PairNgram.fit(train, self.config, format=format)
        scores = model.evaluate(dev)
        if format.normal_form != "auto" or not any(map(_decomposes, (*train, *dev))):
            return model, scores
        nfd = replace(format, normal_form="NFD")
        other = PairNgram.fit([nfd.recut(pair, format) for pair in train], self.config, format=nfd)
        of_other = other.evaluate([nfd.recut(pair, format) for pair in dev])
        chosen = "NFD" if of_other["score"] > scores["score"] else "NFC"
        compared = f"NFC {100 * scores['score']:.2f}, NFD {100 * of_other['score']:.2f}"
        self._note(f"symbols in {chosen}, the better form on the dev data ({compared} {scores['metric']}); answers are "
                   "spelt as the training targets are")  # fmt: skip
        if chosen == "NFD":
            # In place: whoever reports on the model judges it by the same pairs.
            train[:], dev[:] = ([nfd.recut(pair, format) for pair in pairs] for pairs in (train, dev))
            return other, of_other
        model.format = replace(format, normal_form="NFC")
        return model, scores


def _decomposes(pair: Sentence) -> bool:
    """Return whether the two normal forms of a pair have different symbols."""
    symbols = (*pair.words, *(pair.target or ()))
    return not all(symbol.isascii() or unicodedata.is_normalized("NFD", symbol) for symbol in symbols)
