"""Formats of data files that other packages bring (entry points `trelliswork.formats`)."""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from trelliswork.data.sentence import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.logs import tell
from trelliswork.plugins import Plugin, plugins_of

FORMATS = "formats"
OWN = {  # names of built-in formats, and suffixes of their files
    "conll", "conllu", "txt", "tsv", "csv", "json", "jsonl", "ndjson", "parquet", "pq", "crfsuite", "brackets", "mrg",
    "ptb", "prd", "trees", "text", "pretokenised", "pairs", "html", "pretty", "lexicon",
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
        """The sentences of a file; with `with_tags=False` tags may be missing. What is wrong is a `DataError`."""

    def text(self, sentence: Sentence) -> str | None:
        """A tagged sentence as it is written to a file; None if files are only read."""
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
    """The format of another package that a file has by its suffix."""
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    return suffix[1:] if suffix[1:] in foreign_formats() else None


def foreign_format(name: str) -> FileFormat | None:
    """The format of another package with this name."""
    plugin = foreign_formats().get(name)
    if plugin is None:
        return None
    kind = plugin.load()
    if not (isinstance(kind, type) and issubclass(kind, FileFormat)):
        problem = f"expected a subclass of trelliswork.data.FileFormat for the format {name!r}, got {kind!r}"
        raise TrellisworkError(f"{problem}; {plugin.fix}")
    return kind()


def read_foreign(name: str, path: str, *, with_tags: bool = True) -> Iterator[Sentence]:
    """The sentences of a file in a format of another package; a mistake of its reader is an error that names it."""
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
