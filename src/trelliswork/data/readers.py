"""Readers of files, chosen by name or by format."""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, cast

from trelliswork.data.brackets import is_brackets, read_brackets
from trelliswork.data.brat import is_brat, read_brat
from trelliswork.data.choices import Choices
from trelliswork.data.conll import ColumnFormat, open_conll, read_conll
from trelliswork.data.crfsuite import is_crfsuite, read_crfsuite
from trelliswork.data.csv_files import is_csv, open_csv, read_csv
from trelliswork.data.jsonl import read_jsonl
from trelliswork.data.pairs import open_sources
from trelliswork.data.recordings import open_new_recordings
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import tell
from trelliswork.plugins import Plugin, plugins_of
from trelliswork.reading import name_of, numbered_lines

FileKind = Literal["conll", "jsonl", "csv", "crfsuite", "brackets", "parquet", "brat"]
InputKind = FileKind | Literal["text", "pretokenised", "pairs", "recordings"]
_JSON_SUFFIXES = tuple(f".{name}{packed}" for name in ("jsonl", "ndjson", "json") for packed in ("", ".gz"))
_PARQUET_SUFFIXES = (".parquet", ".pq")


def read_parquet(path: str | Path, **how: object) -> Iterator[Sentence]:
    """Return the sentences of a Parquet file, see `trelliswork.data.parquet`; pyarrow is imported now."""
    sentences: Iterator[Sentence] = named("trelliswork.data.parquet:read_parquet")(path, **how)
    return sentences


READERS: dict[FileKind, Callable[..., Iterator[Sentence]]] = {
    "conll": read_conll, "jsonl": read_jsonl, "csv": read_csv, "crfsuite": read_crfsuite,
    "brackets": read_brackets, "parquet": read_parquet, "brat": read_brat,
}  # fmt: skip


def is_jsonl(path: str | Path) -> bool:
    """Return whether a name ends as those of JSON files do: lines of records, or an array of them."""
    return str(path).lower().endswith(_JSON_SUFFIXES)


def file_kind(path: str | Path) -> FileKind:
    """Return the kind of a file by its suffix, also of another package's format; CoNLL columns if it is unknown."""
    if is_jsonl(path):
        return "jsonl"
    if is_brackets(path):
        return "brackets"
    if str(path).lower().endswith(_PARQUET_SUFFIXES):
        return "parquet"
    if is_brat(path):
        return "brat"
    if is_csv(path) or is_crfsuite(path):
        return "csv" if is_csv(path) else "crfsuite"
    return cast(FileKind, foreign_kind(path) or "conll")


def reader_for(path: str | Path) -> Callable[..., Iterator[Sentence]]:
    """Return the function that reads a file, such as `read_jsonl`, by its name.

    >>> reader_for("dev.jsonl.gz").__name__, reader_for("dev.csv").__name__, reader_for("dev.txt").__name__
    ('read_jsonl', 'read_csv', 'read_conll')
    """
    kind = file_kind(path)
    return READERS[kind] if kind in READERS else partial(read_foreign, kind)


def open_tagged(
    path: str, choices: Choices, kind: InputKind | None = None
) -> tuple[ColumnFormat | None, Iterator[Sentence]]:
    """Return the sentences of a tagged file, and its layout if it has columns.

    Args:
        path: A file.
        choices: What is known of its layout.
        kind: Its format; None is that of its name.

    Returns:
        Its layout if it has columns, and its sentences.
    """
    kind = kind or file_kind(path)
    if kind in foreign_formats():
        return None, read_foreign(kind, path)
    if kind == "csv":
        return open_csv(path, choices)
    if kind == "jsonl":
        return None, read_jsonl(path, fields=choices.fields, tokeniser=choices.tokeniser)
    if kind == "parquet":
        return None, read_parquet(path, fields=choices.fields, tokeniser=choices.tokeniser)
    if kind == "brat":
        return None, read_brat(path, tokeniser=choices.tokeniser)
    if kind == "brackets":
        return None, read_brackets(path, detail=choices.detail)
    return (None, read_crfsuite(path)) if kind == "crfsuite" else open_conll(path, choices)


def open_untagged(
    path: str, kind: InputKind, choices: Choices, keep: Callable[[bytes], None] | None = None
) -> tuple[ColumnFormat | None, Iterator[Sentence]]:
    """Return the sentences of a file whose tags, if any, do not matter; `keep` is given all bytes that are read.

    Raw text is read by `trelliswork.text.read_text`.

    Args:
        path: The file, or - for standard input.
        kind: Format of the file.
        choices: Columns and layout that the user has named.
        keep: Called with all bytes that are read, so that they can be written back; None if they need not.

    Returns:
        The layout, where there are columns, and the sentences, which are read as they are asked for.
    """
    if kind in foreign_formats():
        return None, read_foreign(kind, path, with_tags=False)
    if kind == "csv":
        return open_csv(path, choices, with_tags=False, keep=keep)
    if kind == "jsonl":
        return None, read_jsonl(path, with_tags=False, fields=choices.fields, tokeniser=choices.tokeniser, keep=keep)
    if kind == "parquet":
        return None, read_parquet(path, with_tags=False, fields=choices.fields, tokeniser=choices.tokeniser)
    if kind == "brat":
        return None, read_brat(path, with_tags=False, tokeniser=choices.tokeniser)
    if kind == "crfsuite":
        return None, read_crfsuite(path, with_tags=False)
    if kind == "brackets":
        return None, read_brackets(path, detail=choices.detail)
    if kind == "pretokenised":
        return None, read_pretokenised(path)
    if kind == "pairs":
        return open_sources(path, choices)
    if kind == "recordings":
        return open_new_recordings(path, choices)
    return open_conll(path, choices, with_tags=False, keep=keep)


def read_pretokenised(path: str) -> Iterator[Sentence]:
    """Yield one sentence a line, tokens apart by white space; empty lines are skipped."""
    name = name_of(path)
    n_sentences = 0
    for number, line in numbered_lines(path):
        words = tuple(line.split())
        if words:
            n_sentences += 1
            yield Sentence(words, line=number, file=name)
    if n_sentences == 0:
        raise DataError(name, "expected at least one line of text, got none; the file is empty")


# Formats of data files that other packages bring (entry points `trelliswork.formats`).

FORMATS = "formats"
OWN = {  # names of built-in formats, and suffixes of their files
    "conll", "conllu", "txt", "tsv", "csv", "json", "jsonl", "ndjson", "parquet", "pq", "crfsuite", "brackets", "mrg",
    "ptb", "prd", "trees", "text", "pretokenised", "pairs", "recordings", "html", "pretty", "lexicon",
}  # fmt: skip


class FileFormat(ABC):
    """A format of files with one sentence after another; its name is also the suffix of its files.

    The entry point names a subclass, which is made without arguments. See examples/plugin.

    >>> from trelliswork.data import FileFormat, Sentence
    >>> class Slash(FileFormat):
    ...     def read(self, path, *, with_tags=True):
    ...         for line in open(path, encoding="utf-8"):
    ...             words, tags = zip(*(token.split("/") for token in line.split()))
    ...             yield Sentence(words, tags)
    ...
    ...     def text(self, sentence):
    ...         return " ".join(map("/".join, zip(sentence.words, sentence.tags))) + "\\n"
    >>> Slash().text(Sentence(("Anna", "sleeps"), ("B-PER", "O")))
    'Anna/B-PER sleeps/O\\n'
    """

    @abstractmethod
    def read(self, path: str, *, with_tags: bool = True) -> Iterator[Sentence]:
        """Return the sentences of a file; with `with_tags=False` tags may be missing. What is wrong is a
        `DataError`.
        """

    def text(self, sentence: Sentence) -> str | None:
        """Return a tagged sentence as it is written to a file; None if files are only read."""
        return None


@functools.cache
def foreign_formats() -> Mapping[str, Plugin]:
    """Return the formats of other packages by name; those with the name of a built-in one are not used."""
    formats: dict[str, Plugin] = {}
    for name, plugin in plugins_of(FORMATS).items():
        if name in OWN:
            problem = (
                f"the format {name!r} of the package {plugin.package} is not used: a built-in format has this name"
            )
            tell(f"{problem}; remove the package with pip uninstall {plugin.package}", level=logging.WARNING)
        else:
            formats[name] = plugin
    return formats


def foreign_kind(path: str | Path) -> str | None:
    """Return the format of another package that a file has by its suffix."""
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    return suffix[1:] if suffix[1:] in foreign_formats() else None


def foreign_format(name: str) -> FileFormat | None:
    """Return the format of another package with this name."""
    plugin = foreign_formats().get(name)
    if plugin is None:
        return None
    kind = plugin.load()
    if not (isinstance(kind, type) and issubclass(kind, FileFormat)):
        problem = f"expected a subclass of trelliswork.data.FileFormat for the format {name!r}, got {kind!r}"
        raise TrellisworkError(f"{problem}; {plugin.fix}")
    return kind()


def read_foreign(name: str, path: str, *, with_tags: bool = True) -> Iterator[Sentence]:
    """Yield the sentences of a file in a format of another package; a mistake of its reader is an error that names
    it.

    Args:
        name: Name of the format, as the package registers it.
        path: The file.
        with_tags: Whether there are tags to read.

    Returns:
        An iterator over the sentences.
    """
    format = foreign_format(name)
    assert format is not None
    try:
        yield from format.read(path, with_tags=with_tags)
    except (TrellisworkError, OSError):
        raise
    except Exception as error:
        plugin = foreign_formats()[name]
        why = f"the format {name!r} of the package {plugin.package} {plugin.version} failed"
        raise TrellisworkError(f"{path}: {why}: {type(error).__name__}: {error}; {plugin.fix}") from error
