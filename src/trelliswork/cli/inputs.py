"""Reading the files that commands are given, in the layout that the model was trained on."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import Any

from trelliswork.cli.visible import visible
from trelliswork.data import Choices, ColumnFormat, CsvFormat, file_kind
from trelliswork.data.files import name_of
from trelliswork.data.readers import InputKind
from trelliswork.errors import DataError
from trelliswork.models.base import Model

DATA = "data"  # the entry of a model's metrics that says what it was trained on


def kind_of(path: str, wanted: str | None = None, tagger: Model | None = None) -> InputKind:
    """How to read `path`: as the user says, by the suffix, or as the only thing that the model can read."""
    kind: InputKind = wanted if wanted is not None else file_kind(path)  # type: ignore[assignment]
    if tagger is not None and tagger.reads == "attributes":
        return "crfsuite" if kind == "conll" and wanted is None else kind
    if tagger is not None and kind == "crfsuite":
        problem = "expected words and columns, as the model was trained on, got a CRFsuite file of attributes"
        raise DataError(name_of(path), f"{problem}; give CoNLL columns, CSV or JSON lines")
    return kind


def layout(format: ColumnFormat | None, kind: InputKind) -> str:
    """How a file is read, in one line."""
    if format is not None:
        return format.describe()
    return "attributes as CRFsuite has them" if kind == "crfsuite" else "JSON lines"


def choices_of(tagger: Any, given: Choices, kind: InputKind = "conll") -> Choices:
    """The layout a model expects: what the user says, else what it was trained on, else columns in order.

    Columns of CSV files are found by name; those of other files are not where a CSV file had them.
    """
    stored = stored_format(tagger)
    if kind == "csv":
        return replace(given, **_names_in(stored))
    stored = {} if "names" in stored else stored
    n_features = tagger.n_columns
    word = given.word_column or stored.get("word_column") or 1
    features = given.feature_columns
    if features is None:
        after = range(word + 1, word + 1 + n_features)
        features = tuple(stored["feature_columns"]) if "feature_columns" in stored else tuple(after)
    tag = given.tag_column or stored.get("tag_column")
    return replace(given, word_column=word, tag_column=tag, feature_columns=features)


def _names_in(stored: dict[str, Any]) -> dict[str, Any]:
    """The names that the columns of a CSV file had in training; nothing for other files."""
    names, word, tag = stored.get("names"), stored.get("word_column"), stored.get("tag_column")
    if not names or not word:
        return {}
    return {
        "word_name": names[word - 1],
        "tag_name": names[tag - 1] if tag else None,
        "feature_names": tuple(names[i - 1] for i in stored.get("feature_columns") or ()),
    }


def text_in_columns(format: ColumnFormat, tagger: Any) -> str | None:
    """A question to the user, if a file that is read as columns has more of them than the model was trained on."""
    trained_on = stored_format(tagger).get("n_columns") or tagger.n_columns + 2
    if format.n_columns <= trained_on or isinstance(format, CsvFormat):
        return None
    return (
        f"reading {format.n_columns} columns, the words from column {format.word_column}; the model was trained on "
        f"{trained_on}. If the file is plain text, one sentence a line, add --text"
    )


def stored_format(tagger: Any) -> dict[str, Any]:
    """The column layout that `train` noted in the model; empty if it read no columns."""
    data = tagger.metrics.get(DATA)
    format = data.get("format") if isinstance(data, dict) else None
    return format if isinstance(format, dict) else {}


def format_to_store(format: ColumnFormat | None) -> dict[str, Any] | None:
    """The inverse of `stored_format`."""
    return None if format is None else asdict(format)


def say(text: str, *, quiet: bool = False) -> None:
    """A line about what is being done, beside the result: on standard error."""
    if not quiet:
        print(visible(text), file=sys.stderr, flush=True)
