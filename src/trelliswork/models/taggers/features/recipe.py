"""`trelliswork train --model crf` and the other models over features, which need no torch, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, FeatureFunction, Templates
from trelliswork.data.crfsuite import ATTRIBUTES, is_crfsuite
from trelliswork.data.readers import file_kind, open_untagged
from trelliswork.data.settings import options_of, settings_given
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.base import Scores
from trelliswork.models.catalogue import NETWORK, entry_of
from trelliswork.models.recipe import LearningResult, Material, Note, Options, Recipe, RunOptions
from trelliswork.models.taggers.evaluation import evaluate_tags
from trelliswork.models.taggers.features.attribute_tagger import AttributeTagger
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf.array_chain import is_worth_listing
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.learners.base import Progress as Step
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.induction import Round
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.models.taggers.gold import is_known
from trelliswork.models.taggers.labels import tags_of_gold
from trelliswork.runtime.scratch import Scratch
from trelliswork.training.interrupts import Interrupts
from trelliswork.training.shares import answered, n_processes, sharing
from trelliswork.training.together import OneProcess, Where

SCORED_EVERY = 10  # iterations; scoring the dev sentences takes longer than one of them


class Sources(NamedTuple):
    """The sources of attributes, and sentences without tags to pre-train on."""

    templates: Templates | None
    features: FeatureFunction | None
    untagged: list[Sentence]


class FeatureRecipe(Recipe):
    """A model over features is trained in one go: there is nothing to resume."""

    steps, unpruned_steps = "iterations", 30

    def __init__(self, options: Options) -> None:
        self.options = options
        entry = entry_of(options["model"])
        for option, (default, reason) in _OF_NETWORKS.items():
            if options.get(option, default) != default:
                raise TrellisworkError(f"--{option} {reason}; leave it out, or choose one, such as --model {NETWORK}")
        given = settings_given(options, LearningConfig) | {"seed": options.get("seed", 0), **entry.values}
        self.config = LearningConfig(**{name: value for name, value in given.items() if name not in entry.without})

    def settings(self) -> dict[str, object]:
        """Return those whose defaults are not options, as other models have others."""
        return {name: value for name, value in options_of(self.config).items() if self.options.get(name) is None}

    def search_values(self) -> dict[str, object]:
        return self.config.to_dict()

    def read_files(self) -> Sources:
        template = self.options["template"]
        return Sources(None if template is None else Templates.read(template), self.options["function"], [])

    def read(self, material: Material, note: Note) -> Material:
        dev = material.dev
        if self.options["partial"]:
            dev = _fully_tagged(dev, self.options["dev"] or self.options["train"], note)
        path = self.options["pretrain"]
        untagged = [] if path is None else list(open_untagged(path, file_kind(path), material.choices)[1])
        if path is not None:
            note(f"pre-training on the clusters of {count(len(untagged), 'sentence')} of {path}")
        return material._replace(dev=dev, files=material.files._replace(untagged=untagged))

    def begin(self, material: Material, note: Note) -> None:
        self.material, self._note = material, note
        file, first = self.options["train"], material.train[0]
        given = self.options["template"] is None and isinstance(first.extra.get(ATTRIBUTES), list)
        self.kind = AttributeTagger if is_crfsuite(file) or given else FeatureTagger
        if not self.options["partial"]:
            scheme = self.config.constrained and material.scheme not in (None, "plain")
            for text in cost_notes((sentence.tags or () for sentence in material.train), self.config, scheme=scheme):
                note(text)

    def learn(self, run: RunOptions) -> tuple[FeatureTagger, LearningResult]:
        material, sources, config = self.material, self.material.files, self.config
        scheme = self.options["scheme"] if self.options["partial"] else material.scheme
        where = Where(all_together(), Scratch.at(self.options.get("scratch")))
        shared = sharing(where.together.in_shares)
        with run.progress, Interrupts(wait=True) as interrupts, shared:
            report = _Report(run, interrupts, material.dev, config.max_iterations, where.together)
            data = TaggedData(material.train, scheme, self.options["partial"], untagged=sources.untagged, where=where)
            tagger = self.kind.fit(
                data, config, templates=sources.templates, features=sources.features, on_progress=report.step,
                on_round=report.round,
            )  # fmt: skip
            result = report.result
            train = () if self.options["partial"] else material.train  # what is unknown breaks no scheme
            for text in tagger.notes(train, material.dev):
                self._note(text)
            material.annotate(tagger)
            tagger.metrics["training"] = {"iterations": result.best_epoch, "seconds": round(result.seconds, 1)}
            tagger.metrics["dev"] = scores = tagger.evaluate(material.dev)
            if run.folder is not None:
                tagger.save(run.folder)
        result.best_score, result.metric = scores["score"], scores["metric"]
        result.size, result.interrupted = tagger.size, report.interrupted
        return tagger, result


_OF_NETWORKS = {
    "resume": (False, "goes on with a network, and a CRF over features is trained in one go"),
    "tensorboard": (None, "is for networks, and a CRF over features has no epochs"),
    "seeds": (1, "is for networks, and weights over features hardly depend on the seed"),
}


def all_together() -> OneProcess:
    """Return the processes that torchrun has started; torch is imported only if there are several."""
    return named("trelliswork.training.process_arrays:all_processes")() if n_processes() > 1 else OneProcess()


class DevScores:
    """Scores of a tagger that goes on learning, on the same sentences each time: their attributes are made once."""

    def __init__(self, dev: Sequence[Sentence]) -> None:
        self._dev = dev
        self._rows: AttributeRows | None = None

    def of(self, tagger: FeatureTagger) -> Scores:
        """Return what `tagger.evaluate` returns; its attributes must keep their numbers."""
        predicted = answered(partial(self._tags, tagger), self._dev)
        return evaluate_tags([tags_of_gold(sentence) for sentence in self._dev], predicted, tagger.labels.data_scheme)

    def _tags(self, tagger: FeatureTagger, share: Sequence[Sentence]) -> list[list[str]]:
        if self._rows is None:
            self._rows = tagger.rows([sentence for sentence in share if len(sentence)])
        return tagger.tags_of(share, self._rows)


class _Report:
    """Tells how learning goes; Ctrl-C ends it after the iteration."""

    def __init__(
        self, run: RunOptions, interrupts: Interrupts, dev: list[Sentence], most: int | None, together: OneProcess
    ) -> None:
        self.run, self.interrupts, self.dev, self.most, self.together = run, interrupts, DevScores(dev), most, together
        self.wanted = together.from_first(run.progress.shows or run.on_score is not None)  # all evaluate, or none
        self.result, self.interrupted = LearningResult(), False
        self._began = self._last = time.perf_counter()

    def step(self, step: Step, tagger: FeatureTagger) -> bool:
        text = f"{step.line()}, {time.perf_counter() - self._last:.2f} s"
        scored = self.wanted and step.iteration % SCORED_EVERY == 0 and step.iteration != self.result.best_epoch
        fields: Scores = {"loss": step.loss, "score": None}
        if scored:
            scores = self.dev.of(tagger)
            text += f", dev {scores['metric']} {100 * scores['score']:.2f}"
            fields |= {"score": scores["score"], "metric": scores["metric"]}
            if self.run.on_score is not None:
                self.run.on_score(step.iteration, scores["score"])
        self.run.progress.iteration(step.iteration, text, most=self.most, stays=scored, **fields)
        self._last = time.perf_counter()
        self.result.best_epoch, self.result.seconds = step.iteration, self._last - self._began
        return self._ends()

    def round(self, report: Round) -> bool:
        gains = f", gains {report.gains[0]:.3g} to {report.gains[-1]:.3g}" if len(report.gains) else ""
        added = f"loss {report.loss:.6g}, {len(report.conjunctions)} conjunctions{gains}"
        self.run.progress.note(f"round {report.number} of {report.n_rounds}: {added}")
        return self._ends()

    def _ends(self) -> bool:
        """Return whether Ctrl-C was pressed in any process."""
        self.interrupted = self.together.any(self.interrupts.pending)
        return self.interrupted


def _fully_tagged(dev: list[Sentence], file: str, note: Note) -> list[Sentence]:
    """Return the dev sentences whose tags are all known: the others cannot be scored."""
    known = [sentence for sentence in dev if is_known(sentence.tags or ())]
    if not known:
        problem = "expected dev sentences whose tags are all known, to score the model on; got none"
        raise DataError(file, f"{problem}; name a --dev file that has some")
    if len(known) < len(dev):
        note(f"note: {count(len(dev) - len(known), 'dev sentence')} with unknown tags left out of the scores")
    return known


# The time that an iteration takes where there are many tags, announced before it begins.


SLOW = 10.0  # seconds
# Seconds of a token on one core: for each pair of states in a table, for each pair that is listed, and for each tag.
TABLE = {"lbfgs": 6e-10, "sgd": 8e-10}
DECODED = 4e-10  # the same where the best tags are looked for
LISTED, TAG = 1.2e-9, 1.5e-8


def cost_notes(tags: Iterable[Sequence[str]], config: LearningConfig, *, scheme: bool) -> Iterator[str]:
    """Return notes on whether pairs of tags are listed, and on how long an iteration takes if that is long.

    With a `scheme`, what it forbids is in a table.

    Args:
        tags: the tags of each sentence.
        config: the settings of learning.
        scheme: whether a tag scheme forbids some pairs.

    Returns:
        Notes.
    """
    kind, n_tokens, seen, pairs = kind_of(config.model), 0, set[str](), set[tuple[str, str]]()
    if kind.counted or not kind.transitions:
        return
    for each in tags:
        n_tokens += len(each)
        seen.update(each)
        pairs.update(pairwise(each))
    single = config.order == 1 and config.latent == 1 and not config.hidden_units and kind.normalised == "globally"
    listed = single and not config.all_transitions and not scheme and is_worth_listing(len(seen), len(pairs))
    if listed and config.algorithm == "lbfgs":
        which = f"{len(pairs):,} of {len(seen) ** 2:,} pairs follow one another"
        yield f"{len(seen):,} tags: {which} and have transition weights; the others share the score 0"
        seconds = n_tokens * (LISTED * len(pairs) + TAG * len(seen))
    else:
        states = len(pairs) + len(seen) if config.order == 2 else len(seen) * config.latent
        seconds = n_tokens * TABLE.get(config.algorithm, DECODED) * states**2
    if seconds > SLOW and kind.normalised == "globally":
        fixes = ["--algorithm lbfgs"] if listed and config.algorithm != "lbfgs" else []
        fixes += ["--order 1"] if config.order == 2 else []
        fixes += ["--latent 1"] if config.latent > 1 else []
        fixes += ["--model logistic", "--min-tag-count 10"]
        what = f"{len(seen):,} tags: about {_spoken(seconds)} an iteration on one core"
        yield f"{what}; consider {' or '.join(fixes)}"


def _spoken(seconds: float) -> str:
    """
    >>> _spoken(14.2), _spoken(200), _spoken(9000)
    ('14 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return count(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
