"""Answers as an HTML page that needs nothing but itself: spans or tags in colour, probabilities on hover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from trelliswork.cli.writers.base import Writer, answers_by_task, in_a_line, marked_spans
from trelliswork.data import Sentence
from trelliswork.data.raw_sentences import spaces_after
from trelliswork.draw.svg import DARK, colour_of
from trelliswork.models.base import Answer

TINT, DARK_TINT = "38", "55"  # how much of a colour is behind a word, in 00..ff
MANY = 60  # labels in the legend


class PageWriter(Writer):
    """A page with a title and a legend; `labels` and `schemes` are by task.

    Args:
        title: Title of the page.
        subtitle: Sentence below it.
        labels: Labels of each task, for the legend.
        schemes: Scheme of the tags of each task.
    """

    def __init__(
        self, title: str, subtitle: str, labels: Mapping[str, Sequence[str]], schemes: Mapping[str, str]
    ) -> None:
        self.title, self.subtitle, self.labels, self.schemes = title, subtitle, labels, schemes

    def begin(self) -> str:
        style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
            f'<h1>{escape(self.title)}</h1>\n<p class="note">{escape(self.subtitle)}</p>\n{self._legend()}'
        )

    def _legend(self) -> str:
        rows = []
        for task, names in ((task, names) for task, names in self.labels.items() if names):
            shown = "".join(f"<li>{_mark(name, escape(name), '')}</li>" for name in names[:MANY])
            more = f"<li>and {len(names) - MANY:,} more</li>" if len(names) > MANY else ""
            title = f"<b>{escape(task)}</b> " if task else ""
            rows.append(f'<div class="legend" role="note" aria-label="Legend">{title}<ul>{shown}{more}</ul></div>\n')
        return "".join(rows)

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if answer.has_arcs or answer.has_brackets:
            return _trees(replace(answer, inputs=sentence.words))
        lines = []
        for task, each in answers_by_task(answer).items():
            title = f"<b>{escape(task)}</b> " if task else ""
            lines.append(f'<p dir="auto">{title}{self._mark_spans(sentence, each, task)}</p>\n')
            others = "".join(self._other(sentence, each, i, task) for i in range(len(each.alternatives)))
            lines.append(f"<ol>{others}</ol>\n" if others else "")
        return "".join(lines)

    def _other(self, sentence: Sentence, answer: Answer, i: int, task: str) -> str:
        """Return one of the best analyses."""
        other = answer.alternatives[i]
        shown = self._mark_spans(sentence, replace(answer, value=other.value, parts=(), spans=()), task)
        return f"<li>{100 * other.probability:.1f}% {shown}</li>"

    def end(self) -> str:
        return "</main>\n</body>\n</html>\n"

    def _mark_spans(self, sentence: Sentence, answer: Answer, task: str) -> str:
        if not isinstance(answer.value, list):
            shown = in_a_line(answer.value)
            text = sentence.text if answer.is_string and sentence.text else " ".join(sentence.words)
            picture = f'<div class="tree">{answer.draw().svg}</div>' if answer.is_string and answer.parts else ""
            return f"{escape(text)} {_mark(shown, escape(shown), '')}{picture}"
        gaps = [" " if space else "" for space in spaces_after(sentence)] if sentence.offsets else []
        gaps = [*(gaps or [" "] * (len(sentence) - 1)), ""]
        pieces = self._tags if self.schemes[task] == "plain" else self._spans
        return "".join(pieces(sentence, answer, gaps, self.schemes[task]))

    def _tags(self, sentence: Sentence, answer: Answer, gaps: Sequence[str], scheme: str) -> Iterator[str]:
        for i, (word, tag) in enumerate(zip(sentence.words, answer.value, strict=True)):
            sure = answer.parts[i].probability if answer.parts else None
            yield _mark(tag, f"{escape(word)}<small>{escape(tag)}</small>", _hover(tag, sure)) + (gaps[i] or "\u200b")

    def _spans(self, sentence: Sentence, answer: Answer, gaps: Sequence[str], scheme: str) -> Iterator[str]:
        words, position = [escape(word) + gap for word, gap in zip(sentence.words, gaps, strict=True)], 0
        for each in marked_spans(sentence, answer, scheme):
            yield "".join(words[position : each.start])
            inside, position = "".join(words[each.start : each.end]), each.end
            text = f"{inside.rstrip(' ')}<small>{escape(each.label)}</small>"
            yield _mark(each.label, text, _hover(each.label, each.probability)) + gaps[each.end - 1]
        yield "".join(words[position:])


def _mark(label: str, html: str, hover: str) -> str:
    """In the colour that the label has in every picture."""
    colour, title = colour_of(label), f' title="{escape(hover)}"' if hover else ""
    style = f"--tint:{colour}{TINT};--dark-tint:{DARK[colour]}{DARK_TINT}"
    return f'<mark style="{style}"{title}>{html}</mark>'


def _trees(answer: Answer) -> str:
    """Return a picture of the tree, or of each of the best with its probability."""
    if not answer.alternatives:
        return f'<div class="tree">{answer.draw().svg}</div>\n'
    items = [
        f'<li>{100 * (each.probability or 0):.1f}%<div class="tree">{each.draw().svg}</div></li>\n'
        for each in answer.analyses
    ]
    return f"<ol>{''.join(items)}</ol>\n"


def _hover(label: str, probability: float | None) -> str:
    return label if probability is None else f"{label}: probability {probability:.4f}"
