"""The page: sections in the order in which a reader asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trelliswork.cli.report.charts import line_chart
from trelliswork.cli.report.html import heading, scrolling, section, table, whole_page
from trelliswork.cli.report.marking import analysis_items, marked_example
from trelliswork.cli.report.sections import by_label, confusions, trust

if TYPE_CHECKING:
    from trelliswork.cli.story import Outcome
    from trelliswork.models.taggers.scores import Scores
    from trelliswork.training import EpochRecord

TITLE = "Finding names with a neural CRF"


def report_page(outcome: Outcome) -> str:
    """A whole HTML page that needs nothing but itself."""
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


def _summary(name: str, scores: Scores) -> list[str]:
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
