"""`trelliswork train --model crf`: a CRF over features."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trelliswork.cli.inputs import count, say
from trelliswork.cli.scores import score, score_text
from trelliswork.cli.train import check_folder, known_tags, provenance, read_data

if TYPE_CHECKING:
    from trelliswork.data import Choices, Sentence
    from trelliswork.models import FeatureTagger
    from trelliswork.models.feature_crf.learning import Progress

SCORED_EVERY = 10  # iterations; scoring the dev sentences takes longer than one of them


def train_features(
    train_file: str,
    dev_file: str | None,
    out: Path,
    choices: Choices,
    template: str | None,
    learning: dict[str, Any],
    *,
    force: bool,
    threads: int,
    quiet: bool,
) -> None:
    """Read, learn, show the dev scores, save; Ctrl-C keeps the weights of the last iteration."""
    import torch

    from trelliswork.data.attributes import Templates
    from trelliswork.models import AttributeTagger, FeatureTagger, LearningConfig

    config = LearningConfig(**learning)
    check_folder(out, force)
    templates = None if template is None else Templates.read(template)
    torch.set_num_threads(threads)
    format, train, dev = read_data(train_file, dev_file, choices, quiet)
    scheme = choices.scheme or (format.scheme if format is not None else None)
    kind = AttributeTagger if _has_attributes(train_file, train[0], template) else FeatureTagger
    with Report(dev, quiet) as report:
        tagger = kind.fit(train, config, templates=templates, scheme=scheme, on_progress=report)
    known_tags(tagger, dev)
    tagger.metrics["data"] = provenance(train_file, dev_file, train, dev, format)
    tagger.metrics["training"] = {"iterations": report.iterations, "seconds": round(report.seconds, 1)}
    scores = score(tagger, dev)
    tagger.metrics["dev"] = tagger.evaluate(dev)
    tagger.save(out)
    size = f"{count(tagger.n_parameters, 'weight')} of {count(len(tagger.crf.index), 'attribute')}"
    print(f"{report.iterations} iterations, {report.seconds:.1f} s, {size}; on the dev sentences:\n")
    print(score_text(scores))
    print(f"\nmodel: {out}\nnext:  trelliswork tag {out} FILE --confidence")
    if report.interrupted:
        raise typer.Exit(130)


def _has_attributes(file: str, sentence: Sentence, template: str | None) -> bool:
    """Whether the data bring their attributes: CRFsuite's do, JSON lines may."""
    from trelliswork.data.crfsuite import ATTRIBUTES, is_crfsuite

    return is_crfsuite(file) or (template is None and isinstance(sentence.extra.get(ATTRIBUTES), list))


class Report:
    """Says how learning goes, iteration by iteration; inside `with`, Ctrl-C ends it after the iteration."""

    def __init__(self, dev: list[Sentence], quiet: bool) -> None:
        self.dev, self.quiet = dev, quiet
        self.iterations, self.interrupted = 0, False
        self._began = self._last = time.perf_counter()

    def __enter__(self) -> Report:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def seconds(self) -> float:
        return self._last - self._began

    def _interrupt(self, *_: object) -> None:
        self.interrupted = True

    def __call__(self, progress: Progress, tagger: FeatureTagger) -> bool:
        now = time.perf_counter()
        norm = "" if progress.gradient_norm is None else f", gradient {progress.gradient_norm:.3g}"
        text = f"iteration {progress.iteration}: loss {progress.loss:.6g}{norm}, {now - self._last:.2f} s"
        if progress.iteration % SCORED_EVERY == 0 and not self.quiet:
            found = tagger.evaluate(self.dev)
            text += f", dev {found['metric']} {100 * found['score']:.2f}"
        say(text, quiet=self.quiet)
        self.iterations, self._last = progress.iteration, time.perf_counter()
        return self.interrupted
