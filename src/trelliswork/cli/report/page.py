"""The page: sections in the order in which a reader asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.cli.report.charts import MOST_LABELS, confusion_picture, line_chart, reliability_chart
from trelliswork.data import Sentence
from trelliswork.draw.svg import percent
from trelliswork.metrics import Calibration, Confusion, Score
from trelliswork.models.examined import Example, Part
from trelliswork.tags.schemes import spans_of

if TYPE_CHECKING:
    from trelliswork.cli.story import Outcome
    from trelliswork.models import Analysis
    from trelliswork.models.taggers.evaluation import TaggerScores
    from trelliswork.training import EpochRecord

TITLE = "Finding names with a neural CRF"


def report_page(outcome: Outcome) -> str:
    """Return a whole HTML page that needs nothing but itself."""
    return whole_page(
        TITLE,
        [
            _opening(outcome),
            _trellis(outcome),
            _analyses(outcome),
            _examples(outcome),
            by_label(outcome.examined.by_label(), "names"),
            _learning(outcome.history),
            confusions(outcome.model.confusion),
            trust(outcome.model.calibration, "names") if outcome.model.calibration is not None else "",
        ],
    )


def _opening(outcome: Outcome) -> str:
    corpus = outcome.corpus
    sizes = f"{len(corpus.train):,} sentences to train on, {len(corpus.dev):,} to stop on, {len(corpus.test):,} to test"
    header = ["on the test part", "token accuracy", "precision", "recall", "F1"]
    rows = [_summary("most frequent tag of each word", outcome.baseline), _summary("neural CRF", outcome.model)]
    lead = (
        f"The built-in corpus: {sizes}; {corpus.unseen:.0%} of the test words never occur in training, and many names "
        "are people, places, firms or products depending on their context."
    )
    return (
        f"{heading(TITLE, lead)}{table(header, rows, last_is_best=True)}\n"
        '<p class="note">In per cent. Precision, recall and F1 are of whole names: every word and the type must be '
        "right.</p>\n"
    )


def _summary(name: str, scores: TaggerScores) -> list[str]:
    spans = scores.spans
    ratios = [spans.precision, spans.recall, spans.f1] if spans is not None else []
    return [name, *(f"{100 * ratio:.1f}" for ratio in (scores.accuracy, *ratios))]


def _trellis(outcome: Outcome) -> str:
    intro = (
        "Every way to tag a sentence is a path from left to right. The model gives each path a probability; a circle "
        "adds up those of all paths through it. Point at a circle for its exact value."
    )
    return section("One sentence, all tags", intro, scrolling(outcome.explained.trellis().svg))


def _analyses(outcome: Outcome) -> str:
    items = analysis_items(outcome.explained.sentence, outcome.explained.analyses)
    total = sum(analysis.probability for analysis in outcome.explained.analyses)
    intro = f"The three most probable paths; together they hold {total:.0%} of all probability."
    return section("Three best analyses", intro, items)


def _examples(outcome: Outcome) -> str:
    intro = (
        "Names found in test sentences, each with the exact probability that these words are one name of this type: "
        "the least sure first, then the surest. Dashed ones are wrong."
    )
    body = "".join(map(marked_example, outcome.examples))
    return section("How sure of each name", intro, body)


def _learning(history: Sequence[EpochRecord]) -> str:
    if not history:
        return ""
    losses = [record.loss for record in history]
    charts = [line_chart(losses, "training loss per token", "{:g}".format, "loss {:.4f}".format)]
    scored = [100 * record.score for record in history if record.score is not None]
    if scored:
        charts.append(line_chart(scored, "dev F1 in %", "{:g}".format, "F1 {:.2f}%".format))
    body = '<div class="pair">' + "".join(scrolling(chart) for chart in charts) + "</div>"
    return section("Learning", "The loss is the mean of -log p(tags | words) per token, in nats.", body)


# Sentences with their spans marked, in HTML.

SCHEME = "IOB2"


def marked_example(example: Example, *, right: bool = True) -> str:
    """Return a paragraph with each predicted part, its label and probability; wrong and missed ones look different."""
    sure = dict(zip(example.found, example.confidences, strict=False))
    marks = []
    for part in example.found:
        is_right = part in example.right
        if right or not is_right:
            label = example.label(part)
            shown = f"{label} {percent(sure[part])}" if part in sure else label
            marks.append((part, shown, not is_right))
    missed = sorted(set(example.gold) - example.right)
    missed_parts = "; ".join(
        f"{example.text(part)} is {example.label(part)}" if part[2] else example.text(part) for part in missed
    )
    ending = f' <span class="missed">gold: {escape(missed_parts)}</span>' if missed_parts else ""
    return f'<p class="sentence" dir="auto">{_with_marks(example.words, marks, example.joint)}{ending}</p>\n'


def analysis_items(sentence: Sentence, analyses: Sequence[Analysis]) -> str:
    """Return a list of whole analyses with a bar for each probability."""
    items = []
    for analysis in analyses:
        marks = [(span, span[2], False) for span in spans_of(analysis.tags, SCHEME)]
        width = f"{100 * analysis.probability:.1f}%"
        items.append(
            f'<li><span class="percent">{100 * analysis.probability:.1f}%</span>'
            f'<span class="sentence">{_with_marks(sentence.words, marks)}</span>'
            f'<span class="bar"><i style="width:{width}"></i></span></li>\n'
        )
    return f'<ol class="analyses">\n{"".join(items)}</ol>'


def _with_marks(words: Sequence[str], parts: Sequence[tuple[Part, str, bool]], joint: str = " ") -> str:
    pieces: list[str] = []
    position = 0
    for (start, end, *_), shown, is_wrong in parts:
        pieces += map(escape, words[position:start])
        kind = ' class="wrong"' if is_wrong else ""
        label = f"<small>{escape(shown)}</small>" if shown else ""
        pieces.append(f"<mark{kind}>{escape(joint.join(words[start:end]))}{label}</mark>")
        position = end
    pieces += map(escape, words[position:])
    return joint.join(pieces)


# Sections that several pages have: scores by label, confusions, calibration, sentences with their mistakes.

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
    """Return the heat map, and the most frequent mistakes as a table."""
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
    """Return the reliability diagram."""
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
    """Return sentences with what was found in them; `right` shows what is right too.

    Args:
        title: Title of the section.
        intro: Sentence below it.
        examples: Sentences with gold and predicted parts.
        right: Whether what is right is shown too.

    Returns:
        The section.
    """
    if not examples:
        return ""
    return section(title, escape(intro), LEGEND, *(marked_example(each, right=right) for each in examples))


# The pieces of which pages are made: a page that needs nothing but itself, sections and tables.


def whole_page(title: str, sections: Iterable[str]) -> str:
    """Return a page with its styles inside; light or dark as the reader has it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: Trelliswork report</title>\n"
        f"<style>\n{_style('page.css')}{_style('picture.css')}</style>\n"
        f"</head>\n<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _style(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def heading(title: str, lead: str) -> str:
    """Return the title, and what the page is about."""
    return f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n'


def section(title: str, intro: str, *content: str) -> str:
    """Return a part of a page; `intro` is HTML."""
    return f"<section>\n<h2>{escape(title)}</h2>\n<p>{intro}</p>\n{''.join(content)}\n</section>\n"


def scrolling(drawing: str) -> str:
    """Wrap what may be wider than the page."""
    return f'<div class="scroll">{drawing}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, last_is_best: bool = False) -> str:
    """Return a table of texts.

    Args:
        header: Names of the columns.
        rows: Texts of each row.
        last_is_best: Whether the last row is set off as the best.

    Returns:
        The table.
    """
    listed = list(rows)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = []
    for i, row in enumerate(listed):
        kind = ' class="best"' if last_is_best and i == len(listed) - 1 else ""
        lines.append(f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return scrolling(f"<table><tr>{head}</tr>{''.join(lines)}</table>")
