"""Settings for the layout of a file that is not open yet: columns by number or by name, fields of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from trelliswork.data.json_shapes import JsonFields
from trelliswork.errors import DataError

Column = int | str  # a number from 1, or a name
Detail = Literal["labels", "functions", "traces"]  # of trees in brackets, each with what comes before it
# What to do about columns that new text does not have.
WORDS_ALONE = "or train with --feature-columns none on the words alone, or with --predict-columns"
CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")


@dataclass(frozen=True)
class Choices:
    """Settings of the user for reading a file; None leaves one to inference.

    Columns are numbered from 1, or named as in a CSV header.

    `fallback` is the layout that a model was trained on. It holds where the user says nothing, and for files of the
    same kind only: `conllu` tells which kind that was. `tokeniser` finds the words of JSON records that are text.
    `detail` is how much is read of trees in brackets.
    """

    delimiter: str | None = None
    word_column: Column | None = None
    tag_column: Column | None = None
    feature_columns: tuple[Column, ...] | None = None
    scheme: str | None = None
    fields: JsonFields = field(default_factory=JsonFields)
    fallback: Choices | None = None
    conllu: bool | None = None
    may_lack: bool = False  # columns in addition to the words; the model predicts them
    numbered: bool = False  # ids of CoNLL-U must count the words from 1, as heads name words by them
    most_columns: int | None = None  # that a model was trained on; lines of more words may be text
    are_columns: bool = False  # the file is known to have columns
    detail: Detail = "labels"
    tokeniser: Any = field(default=None, compare=False, repr=False)
    folder: str | None = None  # that paths in a manifest are relative to; None is its own
    pairs: Any = None  # the `PairFormat` by which texts of pairs are cut, or what a language model reads texts by

    def completed(self, conllu: bool) -> Choices:
        """Return the choices with the columns of the fallback, if it is about files of this kind."""
        other = self.fallback
        if other is None or other.conllu not in (None, conllu):
            return replace(self, fallback=None)
        features = other.feature_columns if self.feature_columns is None else self.feature_columns
        return replace(
            self,
            word_column=self.word_column or other.word_column,
            tag_column=self.tag_column or other.tag_column,
            feature_columns=features,
            fallback=None,
        )


def is_constant(values: Sequence[str]) -> bool:
    """Return whether a column has the same value for every token, such as _.

    >>> is_constant(["_", "_"]), is_constant(["NNP", "VBZ"])
    (True, False)
    """
    return len(set(values)) == 1 and len(values) > 1


def column_number(column: Column, names: Sequence[str], role: str, file: str, line: int | None = None) -> int:
    """Return the number of a column; a name that is not among `names` is an error that lists them.

    Args:
        column: A number from 1, or a name.
        names: The names of the columns, if they have any.
        role: What the column holds, for messages.
        file: The file, for messages.
        line: The line of the header, for messages.

    Returns:
        The number of the column, from 1.

    >>> column_number("upos", CONLLU_NAMES, "tag", "a.conllu")
    4
    """
    if isinstance(column, int):
        return column
    numbers = [i for i, name in enumerate(names, 1) if name.lower() == column.lower()]
    if numbers:
        return numbers[0]
    if not names:
        raise DataError(file, f"expected the number of the {role} column, got {column!r}; the columns have no names")
    fix = f", {WORDS_ALONE}" if role == "feature" else ""
    problem = f"expected a column {column!r} for the {role}, got {', '.join(names)}; choose one of these{fix}"
    raise DataError(file, problem, line=line)
