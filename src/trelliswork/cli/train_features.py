"""`trelliswork train --model crf` and the other models over features."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from trelliswork.cli.config_file import config_text
from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import count, kind_of, open_untagged, say
from trelliswork.cli.kernels import prepare_feature_kernels, prepare_kernels
from trelliswork.cli.scores import score, score_text
from trelliswork.cli.train_data import columns_of, config_first, known_tags, provenance, read_data, reserved, save_whole
from trelliswork.data import Choices, ColumnFormat, Sentence
from trelliswork.data.attributes import FeatureFunction, Templates
from trelliswork.data.crfsuite import ATTRIBUTES, is_crfsuite
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models import AttributeTagger, FeatureTagger, LearningConfig
from trelliswork.models.taggers.features.learners.base import Progress
from trelliswork.models.taggers.features.learners.induction import Round
from trelliswork.models.taggers.partial_tags import is_known
from trelliswork.runtime.threads import use_threads
from trelliswork.training.interrupts import Interrupts

SCORED_EVERY = 10  # iterations; scoring the dev sentences takes longer than one of them
LEARNED = (
    "algorithm", "c1", "c2", "max_iterations", "samples", "posterior", "temperature", "all_states", "all_transitions",
    "latent", "order", "smoothing", "cutoff", "hash_bits", "induce",
)  # fmt: skip

Options = Mapping[str, Any]


class Material(NamedTuple):
    """What to learn from, and the class that learns."""

    kind: type[FeatureTagger]
    format: ColumnFormat | None
    train: list[Sentence]
    dev: list[Sentence]
    scheme: str | None
    templates: Templates | None
    features: FeatureFunction | None
    partial: bool
    pretrain: list[Sentence]


def train_features(options: Options, choices: Choices) -> None:
    """Read, learn, show the dev scores, save; Ctrl-C keeps the weights of the last iteration."""
    check_options(options)
    out, quiet = Path(options["out"]), options["quiet"]
    config = learning_of(options)
    with reserved(out, options["force"]):
        material = read_material(options, choices, quiet=quiet)
        with Report(material.dev, quiet, config.max_iterations) as report, config_first(out, config_text(options)):
            tagger = fit(material, config, report)
            finish_fit(tagger, material, report, options)
            save_whole(tagger, out)
    size = f"{count(tagger.n_parameters, 'weight')} of {count(len(tagger.names), 'attribute')}"
    print(f"{report.iterations} iterations, {report.seconds:.1f} s, {size}; on the dev sentences:\n")
    print(score_text(score(tagger, material.dev)))
    print(f"\nmodel: {out}\nnext:  trelliswork tag {out} FILE --confidence")
    if report.interrupted:
        raise typer.Exit(130)


def check_options(options: Options) -> None:
    """Refuse what only networks have."""
    if options["resume"]:
        raise TrellisworkError(
            "--resume goes on with a network; a CRF over features is trained in one go: leave it out"
        )
    if options.get("tensorboard") is not None:
        raise TrellisworkError("--tensorboard is for networks; a CRF over features has no epochs: leave it out")
    if options["seeds"] > 1:
        raise TrellisworkError("--seeds is for networks; weights over features hardly depend on the seed: leave it out")


def learning_of(options: Options) -> LearningConfig:
    """How to learn, as the options say."""
    name = options["model"]
    learned = {key: options[key] for key in LEARNED} | {"min_count": options["min_freq"], "seed": options["seed"]}
    learned |= dict(model="crf", hidden_units=options["hidden_units"]) if name == "hucrf" else dict(model=name)
    return LearningConfig(**learned)


def read_material(options: Options, choices: Choices, *, quiet: bool) -> Material:
    """Sentences, and what makes attributes of them."""
    file, template, function, partial = (options[name] for name in ("train", "template", "features", "partial"))
    templates = None if template is None else Templates.read(template)
    features = given_function(function)
    use_threads(options["threads"])
    prepare_feature_kernels(quiet=quiet)
    format, train, dev = read_data(file, options["dev"], choices, quiet)
    scheme = choices.scheme or (format.scheme if format is not None and not partial else None)
    if partial:
        dev = fully_tagged(dev, options["dev"] or file)
    pretrain = options["pretrain"]
    untagged = [] if pretrain is None else _read_untagged(pretrain, format, choices, quiet)
    kind = AttributeTagger if _has_attributes(file, train[0], template) else FeatureTagger
    prepare_kernels(quiet=quiet)
    return Material(kind, format, train, dev, scheme, templates, features, partial, untagged)


def fit(material: Material, config: LearningConfig, report: Report) -> FeatureTagger:
    """Learn; `report` sees every iteration."""
    return material.kind.fit(
        material.train, config, templates=material.templates, features=material.features, scheme=material.scheme,
        partial=material.partial, pretrain=material.pretrain, on_progress=report, on_round=report.on_round,
    )  # fmt: skip


def finish_fit(tagger: FeatureTagger, material: Material, report: Report, options: Options) -> None:
    """What a model remembers of its making, its dev scores among it."""
    known_tags(tagger, material.dev)
    tagger.metrics["data"] = provenance(options["train"], options["dev"], material.train, material.dev, material.format)
    tagger.metrics["training"] = {"iterations": report.iterations, "seconds": round(report.seconds, 1)}
    tagger.metrics["dev"] = tagger.evaluate(material.dev)


def _has_attributes(file: str, sentence: Sentence, template: str | None) -> bool:
    """Whether the data bring their attributes: CRFsuite's do, JSON lines may."""
    return is_crfsuite(file) or (template is None and isinstance(sentence.extra.get(ATTRIBUTES), list))


def _read_untagged(path: str, format: ColumnFormat | None, choices: Choices, quiet: bool) -> list[Sentence]:
    """Sentences to pre-train on, in the layout of the training file; their tags, if any, are not read."""
    sentences = list(open_untagged(path, kind_of(path), columns_of(format, choices))[1])
    say(f"pre-training on the clusters of {count(len(sentences), 'sentence')} of {path}", quiet=quiet)
    return sentences


def fully_tagged(dev: list[Sentence], file: str) -> list[Sentence]:
    """The dev sentences whose tags are all known: the others cannot be scored."""
    known = [sentence for sentence in dev if is_known(sentence.tags or ())]
    if not known:
        problem = "expected dev sentences whose tags are all known, to score the model on; got none"
        raise DataError(file, f"{problem}; name a --dev file that has some")
    if len(known) < len(dev):
        say(f"note: {count(len(dev) - len(known), 'dev sentence')} with unknown tags left out of the scores")
    return known


class Report:
    """Says how learning goes, iteration by iteration; inside `with`, Ctrl-C ends it after the iteration.

    On a terminal a bar shows the iteration, and the lines with a dev score stay; elsewhere each iteration has a line.
    """

    def __init__(self, dev: list[Sentence], quiet: bool, max_iterations: int | None = None) -> None:
        self.dev, self.quiet = dev, quiet
        self.iterations, self._interrupts = 0, Interrupts(wait=True)
        self._bar = IterationBar(max_iterations) if sys.stderr.isatty() and not quiet else None
        self._began = self._last = time.perf_counter()

    def __enter__(self) -> Report:
        self._interrupts.__enter__()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._interrupts.__exit__()
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        return self._last - self._began

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed: this iteration is the last."""
        return self._interrupts.pending

    def __call__(self, progress: Progress, tagger: FeatureTagger) -> bool:
        text = f"{describe(progress)}, {time.perf_counter() - self._last:.2f} s"
        scored = progress.iteration % SCORED_EVERY == 0 and progress.iteration != self.iterations and not self.quiet
        if scored:
            found = tagger.evaluate(self.dev)
            text += f", dev {found['metric']} {100 * found['score']:.2f}"
        if self._bar is not None:
            self._bar.show(progress.iteration, text, stays=scored)
        elif progress.iteration != self.iterations:
            say(text, quiet=self.quiet)
        self.iterations, self._last = progress.iteration, time.perf_counter()
        return self.interrupted

    def on_round(self, found: Round) -> bool:
        gains = f", gains {found.gains[0]:.3g} to {found.gains[-1]:.3g}" if len(found.gains) else ""
        text = (
            f"round {found.number} of {found.n_rounds}: loss {found.loss:.6g}, {len(found.conjunctions)} conjunctions"
        )
        say(text + gains, quiet=self.quiet)
        return self.interrupted


def describe(progress: Progress) -> str:
    """The iteration with its numbers.

    >>> describe(Progress(3, weights, 12.5, 0.25))                       # doctest: +SKIP
    'iteration 3: loss 12.5, gradient 0.25'
    """
    parts = [f"loss {progress.loss:.6g}"]
    if progress.gradient_norm is not None:
        parts.append(f"gradient {progress.gradient_norm:.3g}")
    parts += [f"{name} {value:.3g}" for name, value in progress.measures.items()]
    return f"iteration {progress.iteration}: {', '.join(parts)}"


class IterationBar:
    """A bar over iterations, with the line of the last one; it pulses where nobody knows how many there will be."""

    def __init__(self, max_iterations: int | None) -> None:
        self._bar = RichProgress(
            BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=Console(stderr=True),
            transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("learning", total=max_iterations)

    def start(self) -> None:
        self._bar.start()

    def stop(self) -> None:
        self._bar.stop()

    def show(self, iteration: int, text: str, *, stays: bool) -> None:
        """The line of an iteration, beside the bar; also above it, if it is to stay."""
        self._bar.update(self._task, completed=iteration, description=text)
        if stays:
            self._bar.console.print(text, highlight=False, markup=False)
