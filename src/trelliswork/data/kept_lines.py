r"""A file given back as it is, with one column, cell or member of each token replaced: all other bytes stay.

The reader hands everything that it reads to `KeptLines`, which keeps it until the answers to a sentence are there.

>>> replaced_column("1\tAnn\tann\tX\n", "\t", 4, "PROPN")
'1\tAnn\tann\tPROPN\n'
>>> replaced_column("Ann  NNP\n", None, 3, "B-PER")
'Ann  NNP  B-PER\n'
>>> replaced_cell('Ann,"a, b",X\r\n', ",", 3, "B-PER")
'Ann,"a, b",B-PER\r\n'
>>> replaced_member('{"id": 1.0, "tags": ["X"]}\n', "tags", ["B-PER"])
'{"id": 1.0, "tags": ["B-PER"]}\n'
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Sequence

from trelliswork.data.json_values import Json
from trelliswork.data.sentence import Sentence

_TOKENS = re.compile(r"[^ \t\r\n]+")
_WHITE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
Change = Callable[[int, str], str]  # the i-th token of a sentence, and its line


class KeptLines:
    """The lines of a file between the reader, which is ahead, and the writer."""

    def __init__(self, *, quoted: bool = False) -> None:
        self._waiting: deque[str] = deque()
        self._n_written = 0
        self._wanted = True
        self._quoted = quoted  # whether cells in quotes may go over several lines

    def forget(self) -> None:
        """Keep nothing from now on: the file is written otherwise."""
        self._wanted = False
        self._waiting.clear()

    def keep(self, text: bytes) -> None:
        """Whole lines as they were read; that they are UTF-8 is for the reader to check."""
        if not self._wanted:
            return
        lines = text.decode("utf-8", errors="surrogateescape").split("\n")
        self._waiting.extend(line + "\n" for line in lines[:-1])
        if lines[-1]:
            self._waiting.append(lines[-1])

    def changed(self, sentence: Sentence, change: Change, other: Callable[[str], str] = str) -> str:
        """Return all lines up to the last one of a sentence, those of its tokens changed; `other` sees all others.

        Args:
            sentence: A sentence that was read from the lines.
            change: Gives the new line of the i-th token.
            other: Gives the new line of any other line.

        Returns:
            The lines up to the last one of the sentence.
        """
        places = {sentence.line_of(i): i for i in range(len(sentence))}
        last = max(places, default=0)
        out: list[str] = []
        while self._waiting and self._n_written < last:
            number = self._n_written + 1
            line = self._next()
            out.append(change(places[number], line) if number in places else other(line))
        return "".join(out)

    def changed_together(self, sentence: Sentence, change: Callable[[list[str]], str | None]) -> str | None:
        """Change all lines of a sentence at once, if they follow one another; see `changed`.

        None if they do not, or if `change` gives None; nothing is written then.
        """
        n_before = sentence.line - 1 - self._n_written
        if sentence.lines or self._quoted or n_before < 0:
            return None
        before = [self._waiting.popleft() for _ in range(n_before)]
        lines = [self._waiting.popleft() for _ in range(len(sentence))]
        text = change(lines)
        if text is None:
            self._waiting.extendleft(reversed(before + lines))
            return None
        self._n_written += len(before) + len(lines)
        return "".join(before) + text

    def whole(self, sentence: Sentence) -> tuple[str, list[tuple[int | None, str]]]:
        """Return the lines before a sentence, and all of its own up to the next blank line, each with its token's
        number.
        """
        places = {sentence.line_of(i): i for i in range(len(sentence))}
        last, own = max(places, default=0), []
        while self._waiting and (self._n_written < last or self._waiting[0].strip()):
            own.append((places.get(self._n_written + 1), self._next()))
        first = next((at for at in range(len(own), 0, -1) if not own[at - 1][1].strip()), 0)
        if self._waiting:
            self._next()
        return "".join(line for _, line in own[:first]), own[first:]

    def _next(self) -> str:
        """Return a line, or all lines of a row."""
        line = self._waiting.popleft()
        self._n_written += 1
        while self._quoted and line.count('"') % 2 and self._waiting:
            line += self._waiting.popleft()
            self._n_written += 1
        return line

    def rest(self) -> str:
        """Return the lines after the last sentence."""
        rest = "".join(self._waiting)
        self._n_written += len(self._waiting)
        self._waiting.clear()
        return rest


def replaced_column(line: str, delimiter: str | None, column: int, value: str) -> str:
    """Return a line with `value` in a column (from 1), or after its last one if it has fewer; None is any white
    space.

    Args:
        line: A line with its line end.
        delimiter: What stands between columns; None is white space.
        column: The number of the column, from 1.
        value: Its new value.

    Returns:
        The line.
    """
    body = line.rstrip("\r\n")
    if delimiter is None:
        spans = [match.span() for match in _TOKENS.finditer(body)]
        gap = body[spans[-2][1] : spans[-1][0]] if len(spans) > 1 else " "
    else:
        spans, gap = _between(body, delimiter), delimiter
    return _put(line, spans, column, value, gap)


def replaced_last(lines: list[str], delimiter: str, n_columns: int, column: int, values: Sequence[str]) -> str | None:
    r"""Return lines with values in their last column, or in one after it; None unless all are plain lines of
    `n_columns`.

    Args:
        lines: The lines of a sentence.
        delimiter: What stands between columns.
        n_columns: The number of columns of each line.
        column: The number of the column, from 1.
        values: The new value for each line.

    Returns:
        The lines as one text, or None.

    >>> replaced_last(["Ann NNP O\n", "sings VBZ O\n"], " ", 3, 3, ["B-PER", "O"])
    'Ann NNP B-PER\nsings VBZ O\n'
    """
    text = "".join(lines)
    whole = text.count(delimiter) == len(lines) * (n_columns - 1) and text.endswith("\n")
    if not whole or column < n_columns or "\r" in text or " \n" in text or f"{delimiter}\n" in text:
        return None
    heads = [line.rpartition(delimiter)[0] for line in lines] if column == n_columns else text[:-1].split("\n")
    return "".join([f"{head}{delimiter}{value}\n" for head, value in zip(heads, values, strict=True)])


def _between(body: str, delimiter: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for cell in body.split(delimiter):
        spans.append((start, start + len(cell)))
        start += len(cell) + len(delimiter)
    return spans


def replaced_cell(row: str, delimiter: str, column: int, value: str) -> str:
    """Return a row of a CSV file (whose cells in quotes may hold line ends) with `value` in a column.

    Args:
        row: A row with its line end.
        delimiter: The character between cells.
        column: The number of the column, from 1.
        value: Its new value.

    Returns:
        The row.
    """
    body, start, quoted = row.rstrip("\r\n"), 0, False
    spans = []
    for place, character in enumerate(body):
        quoted ^= character == '"'
        if character == delimiter and not quoted:
            spans.append((start, place))
            start = place + 1
    spans.append((start, len(body)))
    cell = io.StringIO()
    csv.writer(cell, delimiter=delimiter, lineterminator="").writerow([value])
    return _put(row, spans, column, cell.getvalue(), delimiter)


def _put(line: str, spans: list[tuple[int, int]], column: int, value: str, gap: str) -> str:
    """Put `value` in the place of a span, or after the last if there are fewer."""
    if column > len(spans):
        end = spans[-1][1]
        return line[:end] + gap + value + line[end:]
    start, end = spans[column - 1]
    return line[:start] + value + line[end:]


def replaced_member(line: str, key: str, value: Json) -> str:
    """Return a line that is one JSON object with `value` under a key; a new key comes last.

    Args:
        line: A JSON object on a line.
        key: The name of the member.
        value: Its new value.

    Returns:
        The line.
    """
    written = json.dumps(value, ensure_ascii=False)
    place = _after_white(line, line.index("{") + 1)
    is_empty = line[place] == "}"
    while line[place] != "}":
        name, place = _DECODER.raw_decode(line, place)
        start = _after_white(line, _after_white(line, place) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(line, start)
        if name == key:
            return line[:start] + written + line[end:]
        place = _after_white(line, end)
        if line[place] == ",":
            place = _after_white(line, place + 1)
    comma = "" if is_empty else ", "
    return f"{line[:place].rstrip()}{comma}{json.dumps(key, ensure_ascii=False)}: {written}{line[place:]}"


def _after_white(text: str, place: int) -> int:
    match = _WHITE.match(text, place)
    return place if match is None else match.end()
