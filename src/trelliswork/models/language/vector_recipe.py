"""`trelliswork train --model vectors`: words of a text and their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trelliswork.data import Choices
from trelliswork.data.settings import options_of, settings_given
from trelliswork.logs import count
from trelliswork.models.base import Model, Scores
from trelliswork.models.catalogue import entry_of
from trelliswork.models.language.config import TextConfig, TextFiles
from trelliswork.models.language.corpus import TextReading, corpus_of
from trelliswork.models.language.vectors import WordVectorModel, spelt
from trelliswork.models.recipe import CountingRecipe, CountingResult, Material, Note, Options, RunOptions
from trelliswork.runtime.threads import n_threads


class VectorResult(CountingResult):
    """Seconds that learning took, and the size of the model."""

    @property
    def summary(self) -> str:
        return f"learned in {self.seconds:.1f} s: {self.size}"


class VectorRecipe(CountingRecipe):
    """The vectors of the words of a text."""

    what, result = "word vectors are learned or", VectorResult

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.text = TextConfig(**{**entry_of(options["model"]).values, **settings_given(options, TextConfig)})
        self.files = TextFiles(**settings_given(options, TextFiles))

    def layout(self, choices: Choices) -> Choices:
        reading = TextReading(pretokenised=self.files.pretokenised, tokeniser=choices.tokeniser)
        return replace(choices, pairs=reading)

    def settings(self) -> dict[str, object]:
        return options_of(self.config) | options_of(self.text) | options_of(self.files)

    def search_values(self) -> dict[str, object]:
        return self.config.to_dict() | self.text.to_dict()

    def begin(self, material: Material, note: Note) -> None:
        files: Sequence[str] = material.train  # type: ignore[assignment]
        self.reading: TextReading = material.choices.pairs
        self.corpus = corpus_of(self._lines(files), self.text.least_count)
        n_known, n = len(self.corpus.names) - 1, self.corpus.n_tokens
        about = {**material.about, "train_sentences": self.corpus.n_sentences, "train_tokens": n}
        shown = f"{n:,} words, {n_known:,} different ones seen {self.text.least_count} times or more"
        note(f"train: {count(self.corpus.n_sentences, 'sentence')}, {shown}")
        self.material, self._note = material._replace(about=about), note

    def _lines(self, files: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield sentences as vectors are learned for them; many words come again, and are spelt once."""
        spellings: dict[str, str] = {}
        for path in files:
            for line in self.reading.lines(path):
                for word in line:
                    if word not in spellings:
                        spellings[word] = spelt(word, self.config)
                yield [spellings[word] for word in line]

    def fitted(self) -> tuple[WordVectorModel, Scores]:
        model = WordVectorModel.fit(
            self.corpus, self.config, seed=self.run.seed, threads=n_threads(), progress=self.run.progress,
            format=self.reading,
        )  # fmt: skip
        return model, model.evaluate(self.material.dev) if self.material.dev else {}

    def learn(self, run: RunOptions) -> tuple[Model, CountingResult]:
        self.run = run
        return super().learn(run)
