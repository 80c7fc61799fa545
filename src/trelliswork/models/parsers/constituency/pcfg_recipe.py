"""`trelliswork train --model pcfg`: rules are counted, in seconds."""

from __future__ import annotations

import time
from typing import Any

from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.models.parsers.constituency.pcfg import TreebankGrammar
from trelliswork.models.parsers.constituency.pcfg_config import GrammarConfig
from trelliswork.models.recipe import Material, Note, Options, Recipe, Run
from trelliswork.models.taggers.features.recipe import LearningResult

_OF_NETWORKS = {"resume": False, "tensorboard": None, "seeds": 1}


class GrammarResult(LearningResult):
    """How long it took, and what came of it."""

    @property
    def summary(self) -> str:
        return f"counted in {self.seconds:.1f} s: {self.size}"


class GrammarRecipe(Recipe):
    """A grammar is counted in one go: there is nothing to resume, and no seed."""

    steps, learns_from = "passes", "brackets"

    def __init__(self, options: Options) -> None:
        self.options = options
        for option, default in _OF_NETWORKS.items():
            if options.get(option, default) != default:
                raise TrellisworkError(f"--{option} is for networks, and a grammar is counted in one go: leave it out")
        self.config = GrammarConfig(**settings_given(options, GrammarConfig))

    def settings(self) -> dict[str, Any]:
        return options_of(self.config)

    def search_values(self) -> dict[str, Any]:
        return self.config.to_dict()

    def read_files(self) -> None:
        """There are none."""

    def begin(self, material: Material, note: Note) -> None:
        self.material, self._note = material, note

    def learn(self, run: Run) -> tuple[TreebankGrammar, GrammarResult]:
        began = time.perf_counter()
        grammar = TreebankGrammar.fit(self.material.train, self.config)
        result = GrammarResult(best_epoch=1, seconds=time.perf_counter() - began, size=grammar.size)
        for text in grammar.notes(self.material.train, self.material.dev):
            self._note(text)
        self.material.told(grammar)
        grammar.metrics["training"] = {"seconds": round(result.seconds, 1)}
        grammar.metrics["dev"] = scores = grammar.evaluate(self.material.dev)
        if run.on_score is not None:
            run.on_score(1, scores["score"])
        if run.folder is not None:
            grammar.save(run.folder)
        result.best_score, result.metric = scores["score"], scores["metric"]
        return grammar, result
