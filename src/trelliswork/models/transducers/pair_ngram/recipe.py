"""`trelliswork train --model pair-ngram`: aligned and counted, in seconds to minutes."""

from __future__ import annotations

import time
import unicodedata
from dataclasses import replace
from typing import Any

from trelliswork.data import Choices, PairFormat, Sentence
from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.models.recipe import Material, Note, Options, Recipe, Run
from trelliswork.models.taggers.features.recipe import LearningResult
from trelliswork.models.transducers.config import PairFiles
from trelliswork.models.transducers.pair_ngram.config import PairNgramConfig
from trelliswork.models.transducers.pair_ngram.model import PairNgram

_OF_NETWORKS = {"resume": False, "tensorboard": None, "seeds": 1}


class CountingResult(LearningResult):
    """How long it took, and what came of it."""

    @property
    def summary(self) -> str:
        return f"aligned and counted in {self.seconds:.1f} s: {self.size}"


class PairNgramRecipe(Recipe):
    """n-grams are counted in one go: there is nothing to resume, and no seed."""

    steps, learns_from = "passes", "pairs"

    def __init__(self, options: Options) -> None:
        self.options = options
        for option, default in _OF_NETWORKS.items():
            if options.get(option, default) != default:
                raise TrellisworkError(f"--{option} is for networks, and n-grams are counted in one go: leave it out")
        self.config = PairNgramConfig(**settings_given(options, PairNgramConfig))
        self.files = PairFiles(**settings_given(options, PairFiles))

    def layout(self, choices: Choices) -> Choices:
        return replace(choices, pairs=self.files.format)

    def settings(self) -> dict[str, Any]:
        return options_of(self.config) | options_of(self.files)

    def search_values(self) -> dict[str, Any]:
        return self.config.to_dict()

    def read_files(self) -> None:
        """There are none."""

    def begin(self, material: Material, note: Note) -> None:
        self.material, self._note = material, note

    def learn(self, run: Run) -> tuple[PairNgram, CountingResult]:
        began = time.perf_counter()
        model, scores = self._fitted(self.material.choices.pairs or PairFormat())
        result = CountingResult(best_epoch=1, seconds=time.perf_counter() - began, size=model.size)
        for text in model.notes(self.material.train, self.material.dev):
            self._note(text)
        self.material.told(model)
        model.metrics["training"] = {"seconds": round(result.seconds, 1)}
        model.metrics["dev"] = scores
        if run.on_score is not None:
            run.on_score(1, scores["score"])
        if run.folder is not None:
            model.save(run.folder)
        result.best_score, result.metric = scores["score"], scores["metric"]
        return model, result

    def _fitted(self, format: PairFormat) -> tuple[PairNgram, dict[str, Any]]:
        """A model, and its scores on the dev data. An open normal form is the one that is better there."""
        train, dev = self.material.train, self.material.dev
        model = PairNgram.fit(train, self.config, format=format)
        scores = model.evaluate(dev)
        if format.normal_form != "auto" or not any(map(_decomposes, (*train, *dev))):
            return model, scores
        nfd = replace(format, normal_form="NFD")
        other = PairNgram.fit([nfd.recut(pair, format) for pair in train], self.config, format=nfd)
        of_other = other.evaluate([nfd.recut(pair, format) for pair in dev])
        chosen = "NFD" if of_other["score"] > scores["score"] else "NFC"
        found = f"NFC {100 * scores['score']:.2f}, NFD {100 * of_other['score']:.2f}"
        self._note(f"symbols in {chosen}, the better form on the dev data ({found} {scores['metric']}); answers are "
                   "spelt as the training targets are")  # fmt: skip
        if chosen == "NFD":
            # In place: whoever reports on the model judges it by the same pairs.
            train[:], dev[:] = ([nfd.recut(pair, format) for pair in pairs] for pairs in (train, dev))
            return other, of_other
        model.format = replace(format, normal_form="NFC")
        return model, scores


def _decomposes(pair: Sentence) -> bool:
    """Whether the two normal forms of a pair have different symbols."""
    symbols = (*pair.words, *(pair.target or ()))
    return not all(symbol.isascii() or unicodedata.is_normalized("NFD", symbol) for symbol in symbols)
