"""Sections that several pages have: scores by label, confusions, calibration, sentences with their mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from trelliswork.cli.report.charts import reliability_chart
from trelliswork.cli.report.html import scrolling, section, table
from trelliswork.cli.report.marking import marked_example
from trelliswork.cli.report.matrix import MOST_LABELS, confusion_picture
from trelliswork.metrics import Calibration, Confusion, Score
from trelliswork.models.examined import Example

MOST_ROWS = 100  # labels in a table


def by_label(scores: Mapping[str, Score], parts: str) -> str:
    """Precision, recall and F1 of each label; those of all labels together are elsewhere on the page."""
    shown = list(scores.items())[:MOST_ROWS]
    rows = [
        [label or "(untyped)", *percentages(each), f"{each.gold:,}", f"{each.predicted:,}"] for label, each in shown
    ]
    more = f" The {MOST_ROWS} most frequent of {len(scores):,}." if len(scores) > len(shown) else ""
    intro = f"Precision is the share of the predicted {parts} that are right, recall that of the gold ones found.{more}"
    header = ["label", "precision %", "recall %", "F1 %", "gold", "predicted"]
    return section(f"{parts.capitalize()} by label", intro, table(header, rows))


def percentages(score: Score) -> list[str]:
    """Precision, recall and F1."""
    return [f"{100 * ratio:.1f}" for ratio in (score.precision, score.recall, score.f1)]


def confusions(confusion: Confusion) -> str:
    """The heat map, and the most frequent mistakes as a table."""
    if not confusion.labels:
        return ""
    more = f" The {MOST_LABELS} most frequent tags." if len(confusion.labels) > MOST_LABELS else ""
    intro = (
        f"Tokens by gold tag (rows) and predicted tag (columns); a stronger colour is a larger share of the row.{more}"
    )
    worst = [[gold, predicted, f"{n:,}"] for gold, predicted, n in confusion.worst()]
    listed = table(["gold tag", "predicted as", "tokens"], worst) if worst else ""
    return section("What was taken for what", intro, scrolling(confusion_picture(confusion)), listed)


def trust(calibration: Calibration, parts: str) -> str:
    """The reliability diagram."""
    error = f"{100 * calibration.expected_error:.1f}"
    intro = (
        f"Of the {parts} given with 80% confidence, 80% should be right: dots on the dashed line. Larger dots mean "
        f"more {parts}. On average the confidence is off by {error} points (expected calibration error, ECE)."
    )
    return section("Can the confidences be trusted?", intro, scrolling(reliability_chart(calibration)))


LEGEND = (
    '<p class="note">Legend: <mark>right<small>label</small></mark> found, with its probability if there is one; '
    '<mark class="wrong">wrong<small>label</small></mark> found, but not there; '
    '<span class="missed">gold: what was missed</span>.</p>\n'
)


def sentences(title: str, intro: str, examples: Sequence[Example], *, right: bool) -> str:
    """Sentences with what was found in them; `right` shows what is right too."""
    if not examples:
        return ""
    return section(title, escape(intro), LEGEND, *(marked_example(each, right=right) for each in examples))
