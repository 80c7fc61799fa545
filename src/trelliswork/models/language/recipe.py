"""`trelliswork train --model ngram`: read as a stream, counted and smoothed in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trelliswork.data import Choices
from trelliswork.data.settings import options_of, settings_given
from trelliswork.logs import count
from trelliswork.models.base import Scores
from trelliswork.models.language.config import TextConfig, TextFiles
from trelliswork.models.language.corpus import TextReading, learned_reading, read_corpus
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.recipe import CountingRecipe, Material, Note, Options
from trelliswork.runtime.scratch import Scratch
from trelliswork.structures.automata.ngram_arrays import check_smoothing


class NgramRecipe(CountingRecipe):
    """The n-grams of a text."""

    what = "n-grams are"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.text = TextConfig(**settings_given(options, TextConfig))
        self.files = TextFiles(**settings_given(options, TextFiles))
        check_smoothing(self.config.smoothing, self.config.order, None, self.config.least_counts)
        self.scratch = Scratch.at(self.config.counts_on_disk)

    def layout(self, choices: Choices) -> Choices:
        return replace(choices, pairs=TextReading(self.text.units, self.files.pretokenised, None, choices.tokeniser))

    def settings(self) -> dict[str, object]:
        return options_of(self.config) | options_of(self.text) | options_of(self.files)

    def search_values(self) -> dict[str, object]:
        return self.config.to_dict() | self.text.to_dict()

    def begin(self, material: Material, note: Note) -> None:
        files: Sequence[str] = material.train  # type: ignore[assignment]
        self.reading = learned_reading(files, material.choices.pairs, self.text.merges)
        self.corpus = read_corpus(files, self.reading, self.text.least_count, self.scratch)
        n, n_different = self.corpus.n_tokens, len(self.corpus.names)
        about = {**material.about, "train_sentences": self.corpus.n_sentences, "train_tokens": n}
        sentences = count(self.corpus.n_sentences, "sentence")
        note(f"train: {sentences}, {n:,} {self.reading.units}, {n_different:,} different")
        if n + self.corpus.n_sentences < 2 * self.config.order:
            note(f"note: the text is not much longer than the order ({self.config.order}): most n-grams are never seen")
        if not material.dev:
            note("dev: none; all text is learned from (--dev FILE prints the perplexity of another)")
        self.material, self._note = material._replace(about=about), note

    def fitted(self) -> tuple[NgramLanguageModel, Scores]:
        model = NgramLanguageModel.fit(self.corpus, self.config, format=self.reading)
        return model, model.evaluate(self.material.dev) if self.material.dev else {}
