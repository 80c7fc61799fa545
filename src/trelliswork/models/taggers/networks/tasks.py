"""The names of the tasks of a model that learns several columns of tags."""

from __future__ import annotations

from collections.abc import Sequence

from trelliswork.data import ColumnFormat, CsvFormat, Sentence
from trelliswork.errors import TrellisworkError

MULTI_TASK = "multi-task"
_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def task_names(given: str | None, format: ColumnFormat | None, sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """Return the names of the tasks: as given, else those of the columns.

    Args:
        given: names with commas between them; None takes those of the columns.
        format: the layout of the file that was read.
        sentences: the training data.

    Returns:
        A name for each column of tags.

    >>> task_names("pos,chunk", None, [Sentence(("Ann",), ("B-NP",), (("NNP",),))])
    ('pos', 'chunk')
    """
    n = len(sentences[0].features) + 1
    if n < 2:
        raise TrellisworkError(
            f"--model {MULTI_TASK} needs two columns of tags or more, got one; name them with --tag-columns, or "
            "train another model"
        )
    if given is None:
        return _names_of_columns(format, n)
    names = tuple(name.strip() for name in given.split(","))
    if len(names) != n or len(set(names)) < n or not all(names):
        raise TrellisworkError(f"--tasks must be {n} different names, one for each column of tags; got {given!r}")
    return names


def _names_of_columns(format: ColumnFormat | None, n: int) -> tuple[str, ...]:
    if format is None or format.tag_column is None:
        return (*(f"features-{i}" for i in range(1, n)), "tags")
    columns = (*format.feature_columns, format.tag_column)
    if isinstance(format, CsvFormat):
        return tuple(format.names[i - 1] for i in columns)
    return tuple(_CONLLU[i - 1] if format.conllu else f"column-{i}" for i in columns)
