"""The page: sections in the order in which a reader asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.cli.report.charts import line_chart, reliability_chart
from trelliswork.cli.report.marking import analysis_items, marked_sentence
from trelliswork.cli.report.matrix import confusion_picture

if TYPE_CHECKING:
    from trelliswork.cli.story import Outcome
    from trelliswork.models.taggers.scores import Scores
    from trelliswork.training import EpochRecord

TITLE = "Finding names with a neural CRF"


def report_page(outcome: Outcome) -> str:
    """A whole HTML page that needs nothing but itself."""
    sections = [
        _opening(outcome),
        _trellis(outcome),
        _analyses(outcome),
        _examples(outcome),
        _by_type(outcome.model),
        _learning(outcome.history),
        _confusion(outcome.model),
        _calibration(outcome.model),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}: Trelliswork report</title>\n<style>\n{_style('page.css')}{_style('picture.css')}</style>\n"
        f"</head>\n<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _style(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _section(title: str, intro: str, *content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n<p>{intro}</p>\n{''.join(content)}\n</section>\n"


def _scrolling(drawing: str) -> str:
    return f'<div class="scroll">{drawing}</div>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, last_is_best: bool = False) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = []
    for i, row in enumerate(rows):
        kind = ' class="best"' if last_is_best and i == len(rows) - 1 else ""
        lines.append(f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _opening(outcome: Outcome) -> str:
    corpus = outcome.corpus
    sizes = f"{len(corpus.train):,} sentences to train on, {len(corpus.dev):,} to stop on, {len(corpus.test):,} to test"
    header = ["on the test part", "token accuracy", "precision", "recall", "F1"]
    rows = [_summary("most frequent tag of each word", outcome.baseline), _summary("neural CRF", outcome.model)]
    return (
        f'<h1>{TITLE}</h1>\n<p class="lead">The built-in corpus: {sizes}; {corpus.unseen:.0%} of the test words '
        "never occur in training, and many names are people, places, firms or products depending on "
        f"their context.</p>\n{_table(header, rows, last_is_best=True)}\n"
        '<p class="note">In per cent. Precision, recall and F1 are of whole names: every word and the type must be '
        "right.</p>\n"
    )


def _summary(name: str, scores: Scores) -> list[str]:
    spans = scores.spans
    ratios = [spans.precision, spans.recall, spans.f1] if spans is not None else []
    return [name, *(f"{100 * ratio:.1f}" for ratio in (scores.accuracy, *ratios))]


def _trellis(outcome: Outcome) -> str:
    intro = (
        "Every way to tag a sentence is a path from left to right. The model gives each path a probability; a circle "
        "adds up those of all paths through it. Point at a circle for its exact value."
    )
    return _section("One sentence, all tags", intro, _scrolling(outcome.explained.trellis().svg))


def _analyses(outcome: Outcome) -> str:
    items = analysis_items(outcome.explained.sentence, outcome.explained.analyses)
    total = sum(analysis.probability for analysis in outcome.explained.analyses)
    intro = f"The three most probable paths; together they hold {total:.0%} of all probability."
    return _section("Three best analyses", intro, items)


def _examples(outcome: Outcome) -> str:
    intro = (
        "Names found in test sentences, each with the exact probability that these words are one name of this type: "
        "the least sure first, then the surest. Dashed ones are wrong."
    )
    body = "".join(marked_sentence(sentence, answer) for sentence, answer in outcome.examples)
    return _section("How sure of each name", intro, body)


def _by_type(scores: Scores) -> str:
    if scores.spans is None:
        return ""
    rows = [
        [kind, *(f"{100 * ratio:.1f}" for ratio in (each.precision, each.recall, each.f1)), f"{each.support:,}"]
        for kind, each in [*scores.spans.by_type.items(), ("all", scores.spans.overall)]
    ]
    table = _table(["type", "precision", "recall", "F1", "names"], rows, last_is_best=True)
    return _section("By type of name", "On the test part, in per cent.", table)


def _learning(history: Sequence[EpochRecord]) -> str:
    if not history:
        return ""
    losses = [record.loss for record in history]
    charts = [line_chart(losses, "training loss per token", "{:g}".format, "loss {:.4f}".format)]
    scored = [100 * record.score for record in history if record.score is not None]
    if scored:
        charts.append(line_chart(scored, "dev F1 in %", "{:g}".format, "F1 {:.2f}%".format))
    body = '<div class="pair">' + "".join(_scrolling(chart) for chart in charts) + "</div>"
    return _section("Learning", "The loss is the mean of -log p(tags | words) per token, in nats.", body)


def _confusion(scores: Scores) -> str:
    intro = "Tokens of the test part by gold and predicted tag; colour is the share of the row."
    return _section("What was taken for what", intro, _scrolling(confusion_picture(scores.confusion)))


def _calibration(scores: Scores) -> str:
    if scores.calibration is None:
        return ""
    error = f"{100 * scores.calibration.expected_error:.1f}"
    intro = (
        "Of the names given with 80% confidence, 80% should be right: dots on the dashed line. Larger dots mean "
        f"more names. On average the confidence is off by {error} percentage points (expected calibration error, ECE)."
    )
    return _section("Can the confidences be trusted?", intro, _scrolling(reliability_chart(scores.calibration)))
