"""Answers for reading on a terminal: coloured spans in brackets, or word/TAG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from trelliswork.cli.messages import visible
from trelliswork.cli.writers.base import Target, Writer, answers_by_task, one_line, word_columns
from trelliswork.data import Sentence
from trelliswork.draw.dependencies import arc_lines
from trelliswork.draw.svg import PALETTE, percent
from trelliswork.draw.svg import colour_of as drawn_colour
from trelliswork.models.base import DEPREL, HEAD, Answer, PartProbability
from trelliswork.structures.grammar.tree import Tree
from trelliswork.tags.schemes import spans_of

TERMINAL = "blue", "red", "green", "magenta", "yellow", "cyan"  # nearest to those of pictures
COLOURS = dict(zip(PALETTE, TERMINAL, strict=True))


class PrettyWriter(Writer):
    """A line for each task, whose schemes are given by name; `render` turns rich text into characters."""

    def __init__(self, schemes: Mapping[str, str], render: Callable[[Text], str]) -> None:
        self.schemes, self.render, self.width = schemes, render, max(map(len, schemes))

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if answer.has_brackets:
            return self._trees(sentence.words, answer)
        if not answer.tasks and not isinstance(answer.value, list):
            return visible(one_line(sentence, answer))
        if answer.has_arcs:
            return self._trees(sentence.words, answer)
        answers = answers_by_task(answer)
        before = {task: f"{task:{self.width}}  " if task else "" for task in answers}
        return "".join(before[task] + self._lines(sentence.words, each, task) for task, each in answers.items())

    def _trees(self, words: Sequence[str], answer: Answer) -> str:
        """Return a line for each word with its arc, and an empty one; several trees have their probability above."""
        drawn: list[Text] = []
        for i, each in enumerate(answer.analyses, 1):
            drawn.append(Text(f"{i:3d}. {100 * (each.probability or 0):5.1f}%", style="dim"))
            drawn += _tree_lines(words, each)
        lines = drawn or _tree_lines(words, answer)
        return "".join(self.render(line) for line in [*lines, Text("")])

    def _lines(self, words: Sequence[str], answer: Answer, task: str) -> str:
        scheme = self.schemes[task]
        lines = [_mark_spans(words, answer.value, scheme, answer.parts, answer.spans)]
        for i, each in enumerate(answer.alternatives, 1):
            heading = Text(f"{i:3d}. {100 * each.probability:5.1f}%  ", style="dim")
            lines.append(heading + _mark_spans(words, each.value, scheme))
        return "".join(self.render(line) for line in lines)


def pretty_writer(schemes: Mapping[str, str], target: Target) -> PrettyWriter:
    """Return a writer in the colours that a stream can show."""
    console = Console(file=target, soft_wrap=True, highlight=False)

    def render(text: Text) -> str:
        with console.capture() as captured:
            console.print(text, soft_wrap=True)
        return captured.get()

    return PrettyWriter(schemes, render)


def _tree_lines(words: Sequence[str], answer: Answer) -> Iterator[Text]:
    if answer.has_brackets:
        yield from (Text(visible(line)) for line in tree_lines(answer))
        return
    shown = [visible(word) for word in words]
    width = max(map(cell_len, shown), default=0)
    others = [answer.columns[name] for name in word_columns(answer) if name not in (HEAD, DEPREL)]
    for i, lines in enumerate(arc_lines([head for head, _ in answer.value])):
        label, gap = visible(answer.value[i][1]), " " * (width - cell_len(shown[i]))
        sure = f" {percent(answer.parts[i].probability)}" if answer.parts else ""
        more = "".join(f"  {visible(column[i])}" for column in others)
        yield Text.assemble((lines, "dim"), shown[i], gap, (f"  {label}{sure}", colour_of(label)), (more, "dim"))


def _mark_spans(
    words: Sequence[str],
    tags: Sequence[str],
    scheme: str,
    parts: Sequence[PartProbability] = (),
    spans: Sequence[PartProbability] = (),
) -> Text:
    words, tags = [visible(word) for word in words], [visible(tag) for tag in tags]
    pieces = _plain_pieces(words, tags, parts) if scheme == "plain" else _span_pieces(words, tags, scheme, spans)
    return Text(" ").join(pieces)


def _plain_pieces(words: Sequence[str], tags: Sequence[str], parts: Sequence[PartProbability]) -> Iterator[Text]:
    for i, (word, tag) in enumerate(zip(words, tags, strict=True)):
        shown = f" {percent(parts[i].probability)}" if parts else ""
        yield Text.assemble(word, (f"/{tag}{shown}", colour_of(tag)))


def _span_pieces(
    words: Sequence[str], tags: Sequence[str], scheme: str, spans: Sequence[PartProbability]
) -> Iterator[Text]:
    sure = {(span.start, span.end): span.probability for span in spans}
    position = 0
    for start, end, label in spans_of(tags, scheme):
        yield from (Text(word) for word in words[position:start])
        shown = f" {percent(sure[start, end])}" if (start, end) in sure else ""
        yield Text.assemble(
            (f"[{' '.join(words[start:end])} ", f"bold {colour_of(label)}"), (f"{label}{shown}]", colour_of(label))
        )
        position = end
    yield from (Text(word) for word in words[position:])


def marked_text(words: Sequence[str], tags: Sequence[str], scheme: str, spans: Sequence[PartProbability]) -> str:
    """Return a sentence with its spans in brackets, without colour.

    Args:
        words: Words of the sentence.
        tags: Their tags.
        scheme: Scheme of the tags.
        spans: Spans with their probabilities; empty for none.

    Returns:
        The text.
    """
    return _mark_spans(words, tags, scheme, spans=spans).plain


def colour_of(label: str) -> str:
    """Return the colour that the label has in every picture, as far as a terminal has it."""
    return COLOURS.get(drawn_colour(label), "bright_black")


# Constituency trees in brackets, one a line; and for reading, a constituent a line.


def tree_lines(answer: Answer) -> Iterator[str]:
    """Yield a node a line, deeper ones further right, with its probability if it is known."""
    sure = {(each.start, each.end, each.label): each.probability for each in [*answer.spans, *answer.parts]}
    ends: list[int] = []
    nodes = zip(answer.value.subtrees, answer.value.spans(), strict=True)
    for node, (start, end, label) in nodes:
        while len(ends) > 1 and ends[-1] <= start:
            ends.pop()
        known = f" {percent(sure[start, end, label])}" if (start, end, label) in sure else ""
        words = "".join(f"  {child}" for child in node.children if not isinstance(child, Tree))
        yield f"{'  ' * len(ends)}{label}{known}{words}"
        if not words:
            ends.append(end)
