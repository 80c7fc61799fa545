"""Everything that is said about the quality of a dependency parser, from its answers and the gold trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trelliswork.data import Sentence
from trelliswork.data.arcs import is_projective
from trelliswork.errors import DataError
from trelliswork.metrics import Confusion, Score, confusion
from trelliswork.metrics.attachment import Arc, Attachment, attachment
from trelliswork.metrics.attachment_details import arcs_by_label, attachment_where, content_score, heads_by_distance
from trelliswork.models.base import Answer, Report, count
from trelliswork.models.examined import Examined, Example

SHOWN = 20  # labels


def gold_arcs(sentence: Sentence) -> list[Arc]:
    """The arcs of a sentence of a treebank."""
    if sentence.heads is None or sentence.tags is None:
        problem = "expected a sentence with heads and labels, got none; give a treebank in CoNLL-U"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return list(zip(sentence.heads, sentence.tags, strict=True))


def arc_report(answers: Sequence[Answer], gold: Sequence[Sentence]) -> Report:
    """UAS, LAS and more, by label and by distance, and how far the confidences are off.

    Every word counts, and labels with their subtypes; one that the parser has never seen is a mistake.
    """
    right, found = [gold_arcs(sentence) for sentence in gold], [list(answer.value) for answer in answers]
    total, content = attachment(right, found), content_score(right, found)
    crossing = attachment_where(right, found, lambda heads: not is_projective(heads))
    labels, distances = arcs_by_label(right, found), heads_by_distance(right, found)
    examined = examined_arcs(answers, gold, right)
    sure = examined.calibration()
    columns = _column_accuracy(answers, gold)
    rows = [
        ("UAS", total.uas, "words with the right head"),
        ("LAS", total.las, "words with the right head and label"),
        ("CLAS", content.f1, "F1 of content words, subtypes of labels left out"),
        ("label accuracy", total.label_accuracy, ""),
        ("whole trees", total.exact, f"without a mistake, of {total.n_trees:,}"),
        *((name, share, "") for name, share in columns.items()),
    ]
    lines = [f"{name:<20}{100 * share:6.2f}   {told}".rstrip() for name, share, told in rows]
    if crossing.n_trees:
        of = f"UAS {100 * crossing.uas:.2f}, LAS {100 * crossing.las:.2f}"
        lines.append(f"{count(crossing.n_trees, 'tree')} that {_are(crossing.n_trees)} not projective: {of}")
    if sure is not None:
        error = 100 * sure.expected_error
        lines.append(f"{'calibration error':<20}{error:6.2f}   how far arc confidences are off, on average")
    lines += ["", *_table("label", labels), "", *_table("distance of head", distances)]
    record = {
        "metric": "LAS", "score": total.las, **total.to_dict(), "clas": content.f1, **_lower(columns),
        "not_projective": crossing.to_dict() if crossing.n_trees else None,
        "calibration": None if sure is None else {"of": "arcs", "expected_error": sure.expected_error},
        "by_label": _records(labels), "by_distance": _records(distances),
    }  # fmt: skip
    return Report("\n".join(lines), record, {"": examined})


def arc_scores(total: Attachment) -> dict[str, Any]:
    """What `evaluate` gives: LAS is what counts."""
    return {"metric": "LAS", "score": total.las, **total.to_dict()}


def examined_arcs(answers: Sequence[Answer], gold: Sequence[Sentence], right: Sequence[Sequence[Arc]]) -> Examined:
    """The arcs of each sentence, found and gold."""
    examples = [
        Example(sentence.words, _parts(answer.value), _parts(arcs), [part.probability for part in answer.parts])
        for answer, sentence, arcs in zip(answers, gold, right, strict=True)
    ]
    return Examined("LAS", "arcs", examples, _confused(answers, gold))


def _confused(answers: Sequence[Answer], gold: Sequence[Sentence]) -> Confusion:
    return confusion([list(each.tags or ()) for each in gold], [[label for _, label in each.value] for each in answers])


def _parts(arcs: Sequence[Arc]) -> list[tuple[int, int, str, int]]:
    return [(i, i + 1, label, head) for i, (head, label) in enumerate(arcs)]


def _column_accuracy(answers: Sequence[Answer], gold: Sequence[Sentence]) -> dict[str, float]:
    """The share of words whose other columns, such as UPOS, are right."""
    names = [name for name in (answers[0].columns if answers else ()) if all(name in each.columns for each in gold)]
    shares = {}
    for name in names:
        pairs = zip(answers, gold, strict=True)
        right = [a == b for each, true in pairs for a, b in zip(each.columns[name], true.columns[name], strict=True)]
        shares[name] = sum(right) / max(len(right), 1)
    return shares


def _lower(columns: Mapping[str, float]) -> dict[str, float]:
    return {name.lower(): share for name, share in columns.items()}


def _table(title: str, scores: Mapping[str, Score]) -> list[str]:
    width = max(len(title), *(len(name) for name in list(scores)[:SHOWN]), 8)
    lines = [f"{title:{width}}  precision  recall      F1  support"]
    for name, score in list(scores.items())[:SHOWN]:
        ratios = f"{100 * score.precision:9.2f}  {100 * score.recall:6.2f}  {100 * score.f1:6.2f}"
        lines.append(f"{name:{width}}  {ratios}  {score.gold:7d}")
    return [*lines, *([f"and {len(scores) - SHOWN} more, which --json has"] if len(scores) > SHOWN else [])]


def _records(scores: Mapping[str, Score]) -> dict[str, dict[str, float]]:
    return {
        name: {"precision": each.precision, "recall": each.recall, "f1": each.f1, "support": each.gold}
        for name, each in scores.items()
    }


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
