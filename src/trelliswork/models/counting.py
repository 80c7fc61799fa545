"""`trelliswork train` with a model whose parts are counted, in seconds to minutes."""

from __future__ import annotations

import time
from typing import Any

from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import Model, Scores
from trelliswork.models.catalogue import entry_of
from trelliswork.models.recipe import LearningResult, Material, Note, Options, Recipe, RunOptions

_OF_NETWORKS = {"resume": False, "tensorboard": None, "seeds": 1}


class CountingResult(LearningResult):
    """Seconds that counting took, and the scores that came of it."""

    @property
    def summary(self) -> str:
        return f"counted in {self.seconds:.1f} s: {self.size}"


class CountingRecipe(Recipe):
    """A model is counted in one go by its `fit`: there is nothing to resume, and no seed."""

    steps, what, result = "passes", "a grammar is", CountingResult

    def __init__(self, options: Options) -> None:
        self.options, entry = options, entry_of(options["model"])
        for option, default in _OF_NETWORKS.items():
            if options.get(option, default) != default:
                problem = f"--{option} is for networks, and {self.what} counted in one go"
                raise TrellisworkError(f"{problem}: leave it out")
        self.kind: Any = named(entry.home)
        config = named(entry.settings)
        self.config = config(**settings_given(options, config))

    def settings(self) -> dict[str, object]:
        return options_of(self.config)

    def search_values(self) -> dict[str, object]:
        values: dict[str, object] = self.config.to_dict()
        return values

    def read_files(self) -> None:
        """Return nothing: there are no other files."""

    def begin(self, material: Material, note: Note) -> None:
        self.material, self._note = material, note

    def fitted(self) -> tuple[Model, Scores]:
        """Return a model of the training data, and its scores on the dev data, if there are any."""
        model = self.kind.fit(self.material.train, self.config)
        return model, model.evaluate(self.material.dev)

    def learn(self, run: RunOptions) -> tuple[Model, CountingResult]:
        began = time.perf_counter()
        model, scores = self.fitted()
        result = self.result(best_epoch=1, seconds=time.perf_counter() - began, size=model.size)
        for text in model.notes(self.material.train, self.material.dev):
            self._note(text)
        self.material.annotate(model)
        model.metrics["training"] = {"seconds": round(result.seconds, 1)}
        if scores:
            model.metrics["dev"] = scores
            result.best_score, result.metric = scores["score"], scores["metric"]
        if run.on_score is not None:
            if result.best_score is None:
                raise TrellisworkError("expected data to compare models on, got none; add --dev FILE")
            run.on_score(1, result.best_score)
        if run.folder is not None:
            model.save(run.folder)
        return model, result
