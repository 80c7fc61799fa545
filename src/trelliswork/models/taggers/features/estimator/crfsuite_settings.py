"""CRFsuite's learners and their settings by its own names, None standing for its default; its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus, Learner
from trelliswork.models.taggers.features.learners.config import ALGORITHMS as OUR_ALGORITHMS
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import check_complete, learner_of
from trelliswork.models.taggers.features.learners.likelihood import LikelihoodLearner
from trelliswork.models.taggers.features.learners.online import OnlineLearner, Rule
from trelliswork.models.taggers.features.learners.sgd import StochasticDescent
from trelliswork.runtime.arrays import Array
from trelliswork.training.lbfgs import LBFGS, dot

Settings = Mapping[str, Any]

_CALIBRATION = tuple(f"calibration_{name}" for name in ("eta", "rate", "samples", "candidates", "max_trials"))
_LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
_PA_RULES: tuple[Rule, ...] = ("pa", "pa-1", "pa-2")
# The settings of each learner, in addition to those of the weights and of the number of iterations.
SETTINGS = {
    "lbfgs": ("c1", "c2", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
    "l2sgd": ("c2", "period", "delta", *_CALIBRATION),
    "ap": ("epsilon",),
    "pa": ("epsilon", "pa_type", "c", "error_sensitive", "averaging"),
    "arow": ("epsilon", "variance", "gamma"),
}
PROBABILISTIC = ("lbfgs", "l2sgd")  # can learn from unknown labels and sentence weights
_OURS = ("c1", "c2")  # of the learners that CRFsuite lacks
_TOLD = tuple(dict.fromkeys(name for names in SETTINGS.values() for name in names))
ALGORITHMS = (*SETTINGS, *(name for name in OUR_ALGORITHMS if name not in (*SETTINGS, "sgd", "perceptron")))


def check(settings: Settings) -> None:
    """Refuse what no learner can use, and what the chosen one would ignore."""
    algorithm = _or(settings["algorithm"], "lbfgs")
    if algorithm not in ALGORITHMS:
        raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {algorithm!r}")
    for name in _TOLD:
        if settings[name] is not None and name not in SETTINGS.get(algorithm, _OURS):
            takers = " or ".join(each for each, names in SETTINGS.items() if name in names)
            raise ScoreError(f"{name} is not a setting of the algorithm {algorithm}; leave it out or choose {takers}")
    if _or(settings["linesearch"], "MoreThuente") not in _LINE_SEARCHES:
        raise ScoreError(f"linesearch must be one of {', '.join(_LINE_SEARCHES)}; got {settings['linesearch']!r}")
    if _or(settings["pa_type"], 1) not in range(3):
        raise ScoreError(f"pa_type must be 0, 1 or 2; got {settings['pa_type']!r}")
    _check_numbers(settings)


def _check_numbers(settings: Settings) -> None:
    whole = ("max_iterations", "num_memories", "period", "max_linesearch", *_CALIBRATION[2:])
    for name in (*_TOLD, "max_iterations", "min_freq"):
        value = settings[name]
        if value is None or name in ("linesearch", "pa_type", "error_sensitive", "averaging"):
            continue
        is_whole = name in whole
        kinds = int | np.integer if is_whole else int | float | np.number
        if not isinstance(value, kinds) or isinstance(value, bool):
            wanted = "a whole number" if is_whole else "a number"
            raise ScoreError(f"{name} must be {wanted}; got {value!r}")
        lowest = 1 if is_whole else 0
        if not lowest <= value < np.inf:
            raise ScoreError(f"{name} must be at least {lowest} and finite; got {value!r}")


def attribute_settings(settings: Settings) -> LearningConfig:
    """Return the settings of the choice of attributes and weights; learners have settings of their own."""
    return LearningConfig(
        c1=_or(settings["c1"], 0.0), c2=_or(settings["c2"], 1.0), min_count=_or(settings["min_freq"], 0.0),
        all_states=bool(settings["all_possible_states"]), all_transitions=bool(settings["all_possible_transitions"]),
        cutoff=_or(settings["cutoff"], 0), hash_bits=settings["hash_bits"], induce=_or(settings["induce"], 0),
        constrained=False,
    )  # fmt: skip


def iterations(corpus: Corpus, parameters: Parameters, settings: Settings) -> Iterator[tuple[Array, Record]]:
    """Yield the weights after every iteration, and what CRFsuite's log says of it.

    Args:
        corpus: the data to learn from.
        parameters: the weights that there are.
        settings: by the names that CRFsuite has for them.

    Returns:
        The weights, and a record of the log.
    """
    algorithm = _or(settings["algorithm"], "lbfgs")
    if algorithm not in PROBABILISTIC:
        check_complete(algorithm, corpus, PROBABILISTIC)
    for progress in _learner(algorithm, settings).learn(corpus, parameters):
        weights = progress.weights
        norm = float(np.sqrt(dot(weights, weights)))
        record: Record = {"num": progress.iteration, "loss": progress.loss, "feature_norm": norm}
        if progress.gradient_norm is not None:
            record |= {"error_norm": progress.gradient_norm, "active_features": int(np.count_nonzero(weights))}
        yield weights, record


def _learner(algorithm: Any, settings: Settings) -> Learner:
    if algorithm == "lbfgs":
        return LikelihoodLearner(_lbfgs(settings))
    if algorithm == "l2sgd":
        return _sgd(settings)
    if algorithm in SETTINGS:
        return _online(algorithm, settings)
    config = LearningConfig(
        algorithm, c1=_or(settings["c1"], 0.0), c2=_or(settings["c2"], 1.0),
        max_iterations=settings["max_iterations"], seed=settings["random_state"],
    )  # fmt: skip
    return learner_of(config)


def _lbfgs(settings: Settings) -> LBFGS:
    return LBFGS(
        l2=_or(settings["c2"], 1.0), l1=_or(settings["c1"], 0.0), memory=_or(settings["num_memories"], 6),
        epsilon=_or(settings["epsilon"], 1e-5), delta=_or(settings["delta"], 1e-5), period=_or(settings["period"], 10),
        max_iterations=_or(settings["max_iterations"], 1 << 30), max_line_search=_or(settings["max_linesearch"], 20),
    )  # fmt: skip


def _sgd(settings: Settings) -> StochasticDescent:
    eta, rate, samples, candidates, max_trials = (settings[name] for name in _CALIBRATION)
    return StochasticDescent(
        l2=_or(settings["c2"], 1.0), max_epochs=_or(settings["max_iterations"], 1000),
        period=_or(settings["period"], 10), delta=_or(settings["delta"], 1e-6), rate=_or(eta, 0.1),
        factor=_or(rate, 2.0), n_sentences=_or(samples, 1000), n_candidates=_or(candidates, 10),
        max_trials=_or(max_trials, 20), seed=settings["random_state"],
    )  # fmt: skip


def _online(algorithm: str, settings: Settings) -> OnlineLearner:
    rules: dict[str, Rule] = {"ap": "perceptron", "pa": _PA_RULES[_or(settings["pa_type"], 1)], "arow": "arow"}
    return OnlineLearner(
        rules[algorithm], max_epochs=_or(settings["max_iterations"], 100), epsilon=_or(settings["epsilon"], 0.0),
        averaging=_or(settings["averaging"], True), error_sensitive=_or(settings["error_sensitive"], True),
        aggressiveness=_or(settings["gamma" if algorithm == "arow" else "c"], 1.0),
        variance=_or(settings["variance"], 1.0), seed=settings["random_state"],
    )  # fmt: skip


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


# The log of a CRF that learns, under the names that CRFsuite's log has.


Record = dict[str, Any]


class LabelScore(NamedTuple):
    """The counts of a label: right, predicted and true; shares are None for a label that does not occur."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass
class TrainingLog:
    """One record an iteration: num, loss, time, feature_norm, where they exist error_norm and active_features, and
    with development data scores, avg_precision, avg_recall, avg_f1, item_accuracy_float, instance_accuracy_float."""

    iterations: list[Record] = field(default_factory=list)
    featgen_num_features: int = 0
    training_seconds: float = 0.0

    @property
    def last_iteration(self) -> Record | None:
        return self.iterations[-1] if self.iterations else None

    def __len__(self) -> int:
        return len(self.iterations)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.iterations)

    def __getitem__(self, i: int) -> Record:
        return self.iterations[i]


def scores_of(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Sequence[str]) -> Record:
    """Return scores of labels and sentences; averages are over all labels, those that the data lacks count as 0.

    Args:
        gold: the right labels of each sentence.
        predicted: those of the model.
        labels: the labels to score.

    Returns:
        Scores by the names of CRFsuite's log.

    >>> scores_of([["A", "B"]], [["A", "A"]], ["A", "B"])["avg_recall"]
    0.5
    """
    pairs = Counter(pair for y, z in zip(gold, predicted, strict=True) for pair in zip(y, z, strict=True))
    true, n_predicted = Counter[str](), Counter[str]()
    for (y, z), n in pairs.items():
        true[y] += n
        n_predicted[z] += n
    scores = {label: _score(pairs[label, label], n_predicted[label], true[label]) for label in labels}
    right = sum(n for (y, z), n in pairs.items() if y == z)
    whole = sum(list(y) == list(z) for y, z in zip(gold, predicted, strict=True))
    averages = {
        f"avg_{name}": sum(getattr(each, name) or 0.0 for each in scores.values()) / max(len(labels), 1)
        for name in ("precision", "recall", "f1")
    }
    shares = {
        "item_accuracy_float": right / max(pairs.total(), 1),
        "instance_accuracy_float": whole / max(len(gold), 1),
    }
    return {"scores": scores, **averages, **shares}


def _score(match: int, model: int, ref: int) -> LabelScore:
    if ref == 0:
        return LabelScore(match, model, ref, None, None, None)
    return LabelScore(match, model, ref, match / model if model else 0.0, match / ref, 2 * match / (model + ref))


def iteration_line(record: Record) -> str:
    """Return one line about an iteration."""
    parts = [f"Iter {record['num']:<3}", f"time={record['time']:<5.2f}", f"loss={record['loss']:<8.2f}"]
    if "active_features" in record:
        parts.append(f"active={record['active_features']:<5}")
    if "scores" in record:
        parts += [f"{name}={record[f'avg_{key}']:.3f}" for name, key in _AVERAGES]
        parts.append(f"Acc(item/seq)={record['item_accuracy_float']:.3f} {record['instance_accuracy_float']:.3f}")
    return "  ".join([*parts, f"feature_norm={record['feature_norm']:.2f}"])


_AVERAGES = (("precision", "precision"), ("recall", "recall"), ("F1", "f1"))


def score_table(scores: dict[str, LabelScore]) -> str:
    """Return the scores of each label, for people."""
    width = max([len("Label"), *map(len, scores)])
    head = f"{'Label':<{width}}  Precision  Recall     F1  Support"
    rows = [
        f"{label:<{width}}  {each.precision or 0:>9.3f}  {each.recall or 0:>6.3f}  {each.f1 or 0:>5.3f}  {each.ref:>7}"
        for label, each in sorted(scores.items())
    ]
    return "\n".join(["=" * len(head), head, "-" * len(head), *rows, "-" * len(head)])
