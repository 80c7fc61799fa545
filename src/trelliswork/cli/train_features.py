"""`trelliswork train --model crf` and the other models over features."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trelliswork.cli.config_file import CONFIG_FILE, config_text
from trelliswork.cli.inputs import count, kind_of, open_untagged, say
from trelliswork.cli.kernels import prepare_feature_kernels, prepare_kernels
from trelliswork.cli.scores import score, score_text
from trelliswork.cli.train_data import check_folder, columns_of, known_tags, provenance, read_data
from trelliswork.data import atomic_write

if TYPE_CHECKING:
    from trelliswork.data import Choices, ColumnFormat, Sentence
    from trelliswork.models import FeatureTagger
    from trelliswork.models.feature_crf.induction import Round
    from trelliswork.models.feature_crf.learning import Progress

SCORED_EVERY = 10  # iterations; scoring the dev sentences takes longer than one of them


def train_features(
    train_file: str,
    dev_file: str | None,
    out: Path,
    choices: Choices,
    sources: tuple[str | None, str | None],
    learning: dict[str, Any],
    *,
    partial: bool = False,
    pretrain: str | None = None,
    force: bool,
    threads: int,
    quiet: bool,
) -> bool:
    """Read, learn, show the dev scores, save; Ctrl-C keeps the weights of the last iteration and makes it True.

    `sources` of attributes are a template file and the path of a function.
    """
    from trelliswork.data.attributes import FeatureFunction, Templates
    from trelliswork.models import AttributeTagger, FeatureTagger, LearningConfig
    from trelliswork.structures.threads import use_threads

    config = LearningConfig(**learning)
    check_folder(out, force)
    templates = None if sources[0] is None else Templates.read(sources[0])
    function = None if sources[1] is None else FeatureFunction.of(sources[1])
    use_threads(threads)
    prepare_feature_kernels(quiet=quiet)
    format, train, dev = read_data(train_file, dev_file, choices, quiet)
    scheme = choices.scheme or (format.scheme if format is not None and not partial else None)
    if partial:
        dev = fully_tagged(dev, dev_file or train_file)
    untagged = [] if pretrain is None else _read_untagged(pretrain, format, choices, quiet)
    kind = AttributeTagger if _has_attributes(train_file, train[0], sources[0]) else FeatureTagger
    with Report(dev, quiet, config.max_iterations) as report:
        tagger = kind.fit(
            train, config, templates=templates, features=function, scheme=scheme, partial=partial, pretrain=untagged,
            on_progress=report, on_round=report.on_round,
        )  # fmt: skip
    known_tags(tagger, dev)
    tagger.metrics["data"] = provenance(train_file, dev_file, train, dev, format)
    tagger.metrics["training"] = {"iterations": report.iterations, "seconds": round(report.seconds, 1)}
    prepare_kernels(quiet=quiet)
    scores = score(tagger, dev)
    tagger.metrics["dev"] = tagger.evaluate(dev)
    tagger.save(out)
    size = f"{count(tagger.n_parameters, 'weight')} of {count(len(tagger.names), 'attribute')}"
    print(f"{report.iterations} iterations, {report.seconds:.1f} s, {size}; on the dev sentences:\n")
    print(score_text(scores))
    print(f"\nmodel: {out}\nnext:  trelliswork tag {out} FILE --confidence")
    return report.interrupted


def write_config(options: Mapping[str, Any]) -> None:
    """Every setting of the run, beside the model that it made."""
    with atomic_write(Path(options["out"]) / CONFIG_FILE) as file:
        file.write(config_text(options))


def _has_attributes(file: str, sentence: Sentence, template: str | None) -> bool:
    """Whether the data bring their attributes: CRFsuite's do, JSON lines may."""
    from trelliswork.data.crfsuite import ATTRIBUTES, is_crfsuite

    return is_crfsuite(file) or (template is None and isinstance(sentence.extra.get(ATTRIBUTES), list))


def _read_untagged(path: str, format: ColumnFormat | None, choices: Choices, quiet: bool) -> list[Sentence]:
    """Sentences to pre-train on, in the layout of the training file; their tags, if any, are not read."""
    sentences = list(open_untagged(path, kind_of(path), columns_of(format, choices))[1])
    say(f"pre-training on the clusters of {count(len(sentences), 'sentence')} of {path}", quiet=quiet)
    return sentences


def fully_tagged(dev: list[Sentence], file: str) -> list[Sentence]:
    """The dev sentences whose tags are all known: the others cannot be scored."""
    from trelliswork.errors import DataError
    from trelliswork.models.partial_tags import is_known

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
        self.iterations, self.interrupted = 0, False
        self._bar = IterationBar(max_iterations) if sys.stderr.isatty() and not quiet else None
        self._began = self._last = time.perf_counter()

    def __enter__(self) -> Report:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        return self._last - self._began

    def _interrupt(self, *_: object) -> None:
        self.interrupted = True

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
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

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
