"""How good trees are, in words and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from trelliswork.data import Sentence
from trelliswork.metrics import calibration
from trelliswork.metrics.attachment import Arc, Attachment, attachment
from trelliswork.models.base import Report

MOST_LABELS = 12  # in the table of labels


def report_of(
    sentences: Sequence[Sentence],
    gold: Sequence[Sequence[Arc]],
    found: Sequence[Sequence[Arc]],
    sure: Sequence[Sequence[float]],
    tags: Mapping[str, float],
) -> Report:
    """Attachment scores, those of the most frequent labels, and the calibration of arcs."""
    scores = attachment(gold, found)
    record = {**scores.to_dict(), **tags}
    rows = [*_summary(scores), *(f"{name.replace('_', ' '):<24}{100 * share:6.2f}" for name, share in tags.items())]
    outcomes = [
        (p, a == b) for right, given, ps in zip(gold, found, sure, strict=True)
        for a, b, p in zip(right, given, ps, strict=False)
    ]  # fmt: skip
    if outcomes:
        error = calibration(outcomes).expected_error
        record["calibration"] = {"of": "labelled arcs", "expected_error": error}
        rows.append(f"{'calibration error':<24}{100 * error:6.2f}   of the probabilities of labelled arcs")
    return Report("\n".join([*rows, "", *_by_label(gold, found)]), record)


def _summary(scores: Attachment) -> list[str]:
    shown = {
        "UAS": (scores.uas, "words with the right head"),
        "LAS": (scores.las, "with the right label too"),
        "label accuracy": (scores.label_accuracy, "whatever the head"),
        "exact trees": (scores.exact, ""),
    }
    return [f"{name:<24}{100 * share:6.2f}   {about}".rstrip() for name, (share, about) in shown.items()]


def _by_label(gold: Sequence[Sequence[Arc]], found: Sequence[Sequence[Arc]]) -> list[str]:
    """Precision, recall and F1 of the most frequent labels, the head counted too."""
    n_gold: Counter[str] = Counter(label for tree in gold for _, label in tree)
    n_found: Counter[str] = Counter(label for tree in found for _, label in tree)
    pairs = (pair for trees in zip(gold, found, strict=True) for pair in zip(*trees, strict=True))
    right: Counter[str] = Counter(a[1] for a, b in pairs if a == b)
    rows = [f"{'label':<16}{'words':>8}{'precision':>11}{'recall':>8}{'F1':>8}"]
    for label, n in n_gold.most_common(MOST_LABELS):
        precision, recall = right[label] / max(n_found[label], 1), right[label] / n
        f1 = 2 * right[label] / (n + n_found[label])
        rows.append(f"{label:<16}{n:>8,}{100 * precision:>11.2f}{100 * recall:>8.2f}{100 * f1:>8.2f}")
    if len(n_gold) > MOST_LABELS:
        rows.append(f"... and {len(n_gold) - MOST_LABELS} labels that are rarer")
    return rows
