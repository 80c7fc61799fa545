"""The trials of `trelliswork tune`: train with the settings of a trial, score on the dev sentences."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.cli.messages import Shown, progress_shown
from trelliswork.cli.training import learn, make_recipe, prepare
from trelliswork.data import Choices
from trelliswork.errors import ModelError
from trelliswork.models.recipe import RunOptions
from trelliswork.runtime.threads import use_threads
from trelliswork.training.exclusive import HISTORY, exclusive
from trelliswork.training.progress import BarProgress, Progress
from trelliswork.training.result import read_history
from trelliswork.training.trials import Attempt

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options


class Trials:
    """The data, read once, and the model's own settings; with several seeds, the first is kept and watched, and the
    mean of all counts."""

    def __init__(self, options: Options, choices: Choices) -> None:
        use_threads(options["threads"])
        self.options, self.metric = options, "score"
        recipe = make_recipe(options)
        self.steps, self.unpruned_steps = recipe.steps, recipe.unpruned_steps
        self.material = prepare(recipe, options, choices)
        self.own_settings = {**options, **recipe.settings()}

    def size(self) -> dict[str, int]:
        """Of the data."""
        parts = {"train": self.material.train, "dev": self.material.dev}
        return {f"{name}_tokens": sum(map(len, sentences)) for name, sentences in parts.items()}

    def run(self, attempt: Attempt, folder: Path) -> float:
        """Train as a trial says, keep the model in the folder; its dev score."""
        options = {**self.options, **attempt.settings}
        recipe = make_recipe(options)
        recipe.begin(self.material, _silent)
        if attempt.resumed:
            _report_again(attempt, folder)
        scores = []
        for i in range(options["seeds"]):
            own = folder if i == 0 else None
            told = attempt.report if i == 0 else None
            run = RunOptions(own, options["seed"] + i, self._progress(attempt), attempt.resumed and i == 0, told)
            with exclusive(own):
                _, result = learn(recipe, run, options)
            if result.interrupted:
                raise KeyboardInterrupt
            self.metric = result.metric
            scores.append(result.best_score or 0.0)
        return sum(scores) / len(scores)

    def _progress(self, attempt: Attempt) -> Progress:
        if progress_shown() is not Shown.bar or self.options["quiet"]:
            return Progress()
        return TrialBar(f"trial {attempt.number} ({attempt.number + 1} of {self.options['trials']})")


def _silent(text: str) -> None:
    """Nothing new is to be said about data that were described before."""


def _report_again(attempt: Attempt, folder: Path) -> None:
    """Report the scores of a trial that was stopped, as far as they were not reported."""
    with suppress(FileNotFoundError, ModelError):  # killed before the first line, or within one
        for record in read_history(folder / HISTORY):
            attempt.report(record.epoch, record.score)


class TrialBar(BarProgress):
    """A bar for each epoch of a trial, or over its iterations; no line stays."""

    def __init__(self, trial: str) -> None:
        super().__init__()
        self.trial = trial

    def title(self, text: str) -> str:
        return f"{self.trial}, {text}"

    def note(self, text: str, **fields: object) -> None:
        """Of a trial, only its end is told."""
