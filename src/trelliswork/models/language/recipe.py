"""`trelliswork train --model ngram`: read as a stream, counted and smoothed in seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trelliswork.data import Choices
from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import count
from trelliswork.models.language.config import PLAIN_TEXT, NgramConfig, TextConfig, TextFiles
from trelliswork.models.language.corpus import Reading, learned_reading, read_corpus
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.recipe import Material, Note, Options, Recipe, Run
from trelliswork.models.taggers.features.recipe import LearningResult
from trelliswork.runtime.scratch import Scratch
from trelliswork.structures.automata.ngram_arrays import check_smoothing

_OF_NETWORKS = {"resume": False, "tensorboard": None, "seeds": 1}


class CountingResult(LearningResult):
    """How long it took, and what came of it."""

    @property
    def summary(self) -> str:
        return f"counted in {self.seconds:.1f} s: {self.size}"


class NgramRecipe(Recipe):
    """n-grams are counted in one go: there is nothing to resume, and no seed."""

    steps, learns_from = "passes", PLAIN_TEXT

    def __init__(self, options: Options) -> None:
        for option, default in _OF_NETWORKS.items():
            if options.get(option, default) != default:
                raise TrellisworkError(f"--{option} is for networks, and n-grams are counted in one go: leave it out")
        self.config = NgramConfig(**settings_given(options, NgramConfig))
        self.text = TextConfig(**settings_given(options, TextConfig))
        self.files = TextFiles(**settings_given(options, TextFiles))
        check_smoothing(self.config.smoothing, self.config.order, None, self.config.least_counts)
        self.scratch = Scratch.at(self.config.counts_on_disk)

    def layout(self, choices: Choices) -> Choices:
        return replace(choices, pairs=Reading(self.text.units, self.files.pretokenised, None, choices.tokeniser))

    def settings(self) -> dict[str, Any]:
        return options_of(self.config) | options_of(self.text) | options_of(self.files)

    def search_values(self) -> dict[str, Any]:
        return self.config.to_dict() | self.text.to_dict()

    def read_files(self) -> None:
        """There are none."""

    def begin(self, material: Material, note: Note) -> None:
        files: Sequence[str] = material.train  # type: ignore[assignment]
        self.reading = learned_reading(files, material.choices.pairs, self.text.merges)
        self.corpus = read_corpus(files, self.reading, self.text.least_count, self.scratch)
        n, n_different = self.corpus.n_tokens, len(self.corpus.names)
        self.about = {**material.about, "train_sentences": self.corpus.n_sentences, "train_tokens": n}
        sentences = count(self.corpus.n_sentences, "sentence")
        note(f"train: {sentences}, {n:,} {self.reading.units}, {n_different:,} different")
        if n + self.corpus.n_sentences < 2 * self.config.order:
            note(f"note: the text is hardly longer than the order ({self.config.order}): most n-grams are never seen")
        if not material.dev:
            note("dev: none; all text is learned from (--dev FILE prints the perplexity of another)")
        self.material = material

    def learn(self, run: Run) -> tuple[NgramLanguageModel, CountingResult]:
        began = time.perf_counter()
        model = NgramLanguageModel.fit(self.corpus, self.config, format=self.reading)
        result = CountingResult(best_epoch=1, seconds=time.perf_counter() - began, size=model.size)
        self.material._replace(about=self.about).told(model)
        model.metrics["training"] = {"seconds": round(result.seconds, 1)}
        if self.material.dev:
            model.metrics["dev"] = scores = model.evaluate(self.material.dev)
            result.best_score, result.metric = scores["score"], scores["metric"]
        if run.on_score is not None:
            if result.best_score is None:
                raise TrellisworkError("expected text to compare language models on, got none; add --dev FILE")
            run.on_score(1, result.best_score)
        if run.folder is not None:
            model.save(run.folder)
        return model, result
