"""One trial of `trelliswork tune`: train with the settings of the trial, score on the dev sentences."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch

from trelliswork.cli import train_features, train_network
from trelliswork.cli.config_file import config_text
from trelliswork.cli.kernels import prepare_kernels
from trelliswork.cli.train_data import config_first
from trelliswork.cli.train_features import SCORED_EVERY, IterationBar, Report
from trelliswork.cli.train_network import Material, Plan
from trelliswork.data import Choices
from trelliswork.errors import ModelError
from trelliswork.models import FeatureTagger
from trelliswork.models.taggers.features.learners.base import Progress as Iteration
from trelliswork.models.taggers.networks.presets import PRESETS
from trelliswork.training import train
from trelliswork.training.exclusive import exclusive
from trelliswork.training.finished import read_history
from trelliswork.training.folder_names import HISTORY
from trelliswork.training.progress import BarProgress, EpochRecord, Progress
from trelliswork.training.trials import Attempt

Options = Mapping[str, Any]


class Trials(Protocol):
    """Models of one kind: the data, read once, the model's own settings, what its steps are called, and how many of
    them a trial has before it may be ended."""

    metric: str
    steps: str
    unpruned_steps: int

    def size(self) -> dict[str, int]:
        """Of the data."""

    def own_settings(self) -> dict[str, Any]:
        """What the model would be trained with."""

    def run(self, attempt: Attempt, folder: Path) -> float:
        """Train as a trial says, keep the model in the folder; its dev score."""


def make_trials(options: Options, choices: Choices) -> Trials:
    """Those of the model that is named."""
    return (NetworkTrials if options["model"] in PRESETS else FeatureTrials)(options, choices)


class NetworkTrials:
    """Trials of networks; with several seeds, the first is kept and watched, and the mean of all counts."""

    steps, unpruned_steps = "epochs", 2

    def __init__(self, options: Options, choices: Choices) -> None:
        torch.set_num_threads(options["threads"])
        self.options, self.plan = options, train_network.plan_of(options)
        self.material = train_network.read_material(options, choices, self.plan, quiet=options["quiet"])
        material = train_network.fitting(self.material, self.plan, options)
        tagger = train_network.build(self.plan, material, options, self.plan.learning.seed)
        train_network.describe(tagger, material, options, options["quiet"])
        schemes = [head.labels.data_scheme for head in tagger.heads.values()]
        self.metric = "score" if len(schemes) > 1 else "accuracy" if schemes == ["plain"] else "f1"
        prepare_kernels(tagger, quiet=options["quiet"])

    def size(self) -> dict[str, int]:
        return _size(self.material)

    def own_settings(self) -> dict[str, Any]:
        return {**self.plan.network.to_dict(), **self.plan.learning.to_dict()}

    def run(self, attempt: Attempt, folder: Path) -> float:
        options = {**self.options, **attempt.settings}
        plan = train_network.plan_of(options)
        material = train_network.fitting(self.material, plan, options, quiet=True)
        if attempt.resumed:
            _report_again(attempt, folder)
        scores = []
        for i in range(options["seeds"]):
            own = replace(plan, learning=replace(plan.learning, seed=plan.learning.seed + i))
            scores.append(self._score_of(own, material, options, attempt, folder if i == 0 else None))
        return sum(scores) / len(scores)

    def _score_of(
        self, plan: Plan, material: Material, options: Options, attempt: Attempt, folder: Path | None
    ) -> float:
        """Of one training, which is watched if it has a folder."""
        tagger, learning = train_network.build(plan, material, options, plan.learning.seed), plan.learning
        shown = TrialBar(_title(attempt, options)) if _shows_bars(options) else Progress()
        if folder is None:
            result = train(tagger, material.train, material.dev, learning, progress=shown)
        else:
            with (
                exclusive(folder),
                config_first(folder, train_network.settings_text(folder, tagger, learning, options)),
            ):
                result = train(
                    tagger, material.train, material.dev, learning, out=folder, resume=attempt.resumed, progress=shown,
                    on_epoch=lambda record: attempt.report(record.epoch, record.score), locked=True,
                )  # fmt: skip
        if result.interrupted:
            raise KeyboardInterrupt
        return result.best_score or 0.0


def _report_again(attempt: Attempt, folder: Path) -> None:
    """What a trial that was stopped had found, as far as it was not told."""
    with suppress(FileNotFoundError, ModelError):  # killed before the first line, or within one
        for record in read_history(folder / HISTORY):
            attempt.report(record.epoch, record.score)


class FeatureTrials:
    """Trials of models over features."""

    steps, unpruned_steps = "iterations", 30

    def __init__(self, options: Options, choices: Choices) -> None:
        train_features.check_options(options)
        self.options = options
        self.material = train_features.read_material(options, choices, quiet=options["quiet"])
        self.metric = "score"

    def size(self) -> dict[str, int]:
        return _size(self.material)

    def own_settings(self) -> dict[str, Any]:
        return dict(self.options)

    def run(self, attempt: Attempt, folder: Path) -> float:
        options = {**self.options, **attempt.settings, "out": str(folder)}
        config = train_features.learning_of(options)
        report = self._watch(attempt, options, config.max_iterations)
        with exclusive(folder), config_first(folder, config_text(options)), report:
            tagger = train_features.fit(self.material, config, report)
            train_features.finish_fit(tagger, self.material, report, options)
            tagger.save(folder)
        self.metric = tagger.metrics["dev"]["metric"]
        return float(tagger.metrics["dev"]["score"])

    def _watch(self, attempt: Attempt, options: Options, max_iterations: int | None) -> Report:
        """A report without lines, which ends a trial that is not worth going on."""
        bar = IterationBar(max_iterations) if _shows_bars(options) else None

        class Watch(Report):
            def __enter__(self) -> Report:
                if bar is not None:
                    bar.start()
                return self

            def __exit__(self, *_: object) -> None:
                if bar is not None:
                    bar.stop()

            def __call__(self, progress: Iteration, tagger: FeatureTagger) -> bool:
                if progress.iteration % SCORED_EVERY == 0:
                    attempt.report(progress.iteration, tagger.evaluate(self.dev)["score"])
                if bar is not None:
                    bar.show(
                        progress.iteration,
                        f"{_title(attempt, options)}, {train_features.describe(progress)}",
                        stays=False,
                    )
                return super().__call__(progress, tagger)

        return Watch(self.material.dev, quiet=True)


def _title(attempt: Attempt, options: Options) -> str:
    return f"trial {attempt.number} ({attempt.number + 1} of {options['trials']})"


def _shows_bars(options: Options) -> bool:
    return sys.stderr.isatty() and not options["quiet"]


def _size(material: Any) -> dict[str, int]:
    parts = {"train": material.train, "dev": material.dev}
    return {f"{name}_tokens": sum(map(len, sentences)) for name, sentences in parts.items()}


class TrialBar(BarProgress):
    """A bar for each epoch of a trial; no line stays."""

    def __init__(self, trial: str) -> None:
        super().__init__()
        self.trial = trial

    def title(self, epoch: int, n_epochs: int) -> str:
        return f"{self.trial}, {super().title(epoch, n_epochs)}"

    def epoch(self, record: EpochRecord) -> None:
        self._dev = "" if record.score is None else f", dev {record.metric} {100 * record.score:.2f}"

    def note(self, text: str) -> None:
        """Of a trial, only its end is told."""
