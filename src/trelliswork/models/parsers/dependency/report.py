"""The report of dependency parsers: attachment scores, by label and by distance, and the calibration of arcs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trelliswork.data import Sentence
from trelliswork.data.treebank import is_projective
from trelliswork.logs import count
from trelliswork.metrics import Score, confusion
from trelliswork.metrics.attachment import (
    Attachment,
    arcs_by_label,
    attachment,
    attachment_where,
    content_score,
    heads_by_distance,
)
from trelliswork.models.base import Arc, Report
from trelliswork.models.examined import Examined, Example

MOST_LABELS = 12  # in the table of labels


def report_of(
    sentences: Sequence[Sentence],
    gold: Sequence[Sequence[Arc]],
    predicted: Sequence[Sequence[Arc]],
    sure: Sequence[Sequence[float]],
    tags: Mapping[str, float],
) -> Report:
    """Return attachment scores, by label and by distance, and the calibration of arcs.

    Every word counts, and labels with their subtypes; one that the parser has never seen is a mistake.

    Args:
        sentences: The sentences.
        gold: Gold (head, label) of each word.
        predicted: Predicted ones.
        sure: Probability of each predicted arc.
        tags: Scores of the columns that are predicted on the same encoder, by name.

    Returns:
        The report.
    """
    total, content = attachment(gold, predicted), content_score(gold, predicted)
    crossing = attachment_where(gold, predicted, lambda heads: not is_projective(heads))
    labels, distances = arcs_by_label(gold, predicted), heads_by_distance(gold, predicted)
    examined = _examined(sentences, gold, predicted, sure)
    rows = [*_summary(total, content), *_lines_of_tags(tags), *_crossing(crossing)]
    record: dict[str, object] = {**total.to_dict(), "clas": content.f1, **tags}
    record["not_projective"] = crossing.to_dict() if crossing.n_trees else None
    if (calibration := examined.calibration()) is not None:
        error = calibration.expected_error
        record["calibration"] = {"of": "labelled arcs", "expected_error": error}
        rows.append(f"{'calibration error':<24}{100 * error:6.2f}   of the probabilities of labelled arcs")
    record |= {"by_label": _records(labels), "by_distance": _records(distances)}
    tables = ["", *_table("label", labels), "", *_table("distance of head", distances)]
    return Report("\n".join([*rows, *tables]), record, {"": examined})


def _summary(scores: Attachment, content: Score) -> list[str]:
    shown = {
        "UAS": (scores.uas, "words with the right head"),
        "LAS": (scores.las, "with the right label too"),
        "CLAS": (content.f1, "F1 of content words; subtypes of labels left out"),
        "label accuracy": (scores.label_accuracy, "whatever the head"),
        "exact trees": (scores.exact, ""),
    }
    return [f"{name:<24}{100 * share:6.2f}   {about}".rstrip() for name, (share, about) in shown.items()]


def _lines_of_tags(tags: Mapping[str, float]) -> list[str]:
    return [f"{name.replace('_', ' '):<24}{100 * share:6.2f}" for name, share in tags.items()]


def _crossing(scores: Attachment) -> list[str]:
    if not scores.n_trees:
        return []
    accuracies = f"UAS {100 * scores.uas:.2f}, LAS {100 * scores.las:.2f}"
    return [
        f"{count(scores.n_trees, 'tree')} that {'is' if scores.n_trees == 1 else 'are'} not projective: {accuracies}"
    ]


def _examined(
    sentences: Sequence[Sentence],
    gold: Sequence[Sequence[Arc]],
    predicted: Sequence[Sequence[Arc]],
    sure: Sequence[Sequence[float]],
) -> Examined:
    """Return the arcs of each sentence, predicted and gold."""
    examples = [
        Example(sentence.words, _parts(given), _parts(right), ps)
        for sentence, right, given, ps in zip(sentences, gold, predicted, sure, strict=True)
    ]
    labels = ([[label for _, label in tree] for tree in trees] for trees in (gold, predicted))
    return Examined("LAS", "arcs", examples, confusion(*labels))


def _parts(arcs: Sequence[Arc]) -> list[tuple[int, int, str, int]]:
    return [(i, i + 1, label, head) for i, (head, label) in enumerate(arcs)]


def _table(title: str, scores: Mapping[str, Score]) -> list[str]:
    """Return precision, recall and F1 of the first rows."""
    rows = [f"{title:<18}{'words':>8}{'precision':>11}{'recall':>8}{'F1':>8}"]
    for name, score in list(scores.items())[:MOST_LABELS]:
        ratios = f"{100 * score.precision:>11.2f}{100 * score.recall:>8.2f}{100 * score.f1:>8.2f}"
        rows.append(f"{name:<18}{score.gold:>8,}{ratios}")
    more = len(scores) - MOST_LABELS
    return [*rows, *([f"... and {more} labels that are rarer (--json has all)"] if more > 0 else [])]


def _records(scores: Mapping[str, Score]) -> dict[str, dict[str, float]]:
    return {
        name: {"precision": each.precision, "recall": each.recall, "f1": each.f1, "support": each.gold}
        for name, each in scores.items()
    }
