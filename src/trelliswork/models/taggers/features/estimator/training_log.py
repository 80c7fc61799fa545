"""The log of a CRF that learns, under the names that CRFsuite's log has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    """One line about an iteration."""
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
