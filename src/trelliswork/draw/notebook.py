"""Display of objects in notebooks: tables, pictures and sentences as HTML, everything escaped.

>>> class Score(Rich):
...     def _shown(self) -> list[Piece]:
...         return [Table([("F1", 0.5)])]
>>> Score()._repr_html_().count("<td")
1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import NamedTuple, TypeAlias

from trelliswork.draw.svg import Drawing, clean

MOST_ROWS = 50  # of a table; the number of the others is shown
LEFT = "text-align:left;vertical-align:top"


class Table(NamedTuple):
    """Rows whose first cell names them, perhaps under a header."""

    rows: Sequence[Sequence[object]]
    header: Sequence[str] = ()


Piece: TypeAlias = Table | Drawing | str


class Rich:
    """A mixin: `_shown` says what a notebook shows under the name of the class."""

    __slots__ = ()

    def _shown(self) -> Sequence[Piece]:
        """Tables, pictures and sentences in their order; by default the plain fields and properties."""
        return [Table(plain_rows(self))]

    def _repr_html_(self) -> str:
        return framed(type(self).__name__, self._shown())


def framed(name: str, pieces: Iterable[Piece]) -> str:
    """Return pieces under a name as HTML, for classes that have ancestors enough without `Rich`."""
    return f'<div style="overflow-x:auto"><b>{escape(name)}</b>{"".join(map(_html, pieces))}</div>'


def plain_rows(shown: object) -> list[tuple[str, object]]:
    """Return the fields of a dataclass and the properties that are numbers, texts or truth values."""
    own = [field.name for field in fields(shown)] if is_dataclass(shown) else []
    computed = [name for name in dir(type(shown)) if isinstance(getattr(type(shown), name), property)]
    rows = [(name.replace("_", " "), getattr(shown, name)) for name in (*own, *computed) if not name.startswith("_")]
    return [(name, value) for name, value in rows if isinstance(value, bool | int | float | str)]


def cell(value: object) -> str:
    """Return a value as the text of a cell.

    >>> cell(0.98765), cell(1234567), cell(("B-PER", "O")), cell(None)
    ('0.9877', '1,234,567', 'B-PER, O', '')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value))
    return "" if value is None else str(value)


def _html(piece: Piece) -> str:
    if isinstance(piece, Drawing):
        return piece._repr_html_()
    if isinstance(piece, str):
        name = "pre" if "\n" in piece else "div"
        return f'<{name} style="{LEFT}">{_escape(piece)}</{name}>'
    head = _row("th", piece.header) if piece.header else ""
    rows = [_row("td", row) for row in piece.rows[:MOST_ROWS]]
    if len(piece.rows) > MOST_ROWS:
        rows.append(_row("td", (f"and {len(piece.rows) - MOST_ROWS:,} more",)))
    return f"<table>{head}{''.join(rows)}</table>"


def _row(name: str, cells: Iterable[object]) -> str:
    first, *rest = [_escape(cell(each)) for each in cells]
    others = "".join(f'<{name} style="{LEFT}">{each}</{name}>' for each in rest)
    return f'<tr><th style="{LEFT}">{first}</th>{others}</tr>'


def _escape(text: str) -> str:
    return "\n".join(escape(clean(line)) for line in text.split("\n"))
