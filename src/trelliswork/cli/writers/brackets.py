"""Constituency trees in brackets, one a line; and for reading, a constituent a line."""

from __future__ import annotations

from collections.abc import Iterator

from trelliswork.cli.writers.base import Writer
from trelliswork.data import Sentence
from trelliswork.data.brackets import bracket_text
from trelliswork.draw.svg import percent
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer
from trelliswork.structures.grammar.tree import Tree


class BracketWriter(Writer):
    """A line for each tree; several trees of a sentence stand one below the other, with an empty line behind them."""

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not sentence.words:
            return ""
        if not answer.has_brackets:
            raise TrellisworkError("the model gives no trees to write in brackets; add --format conll or jsonl")
        if answer.parts:
            raise TrellisworkError(
                "--confidence cannot be written in brackets; add --format jsonl, pretty or html, or leave it out"
            )
        found = [each.value for each in answer.alternatives] or [answer.value]
        return "".join(f"{bracket_text(tree)}\n" for tree in found) + ("\n" if answer.alternatives else "")


def tree_lines(answer: Answer) -> Iterator[str]:
    """A node a line, deeper ones further right, with its probability if it is known."""
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
