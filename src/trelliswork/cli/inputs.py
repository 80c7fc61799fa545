"""The model in a folder, and the files that commands are given, read in the layout that it was trained on."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from trelliswork.cli.messages import say
from trelliswork.data import Choices, ColumnFormat, JsonFields, Sentence, file_kind
from trelliswork.data.readers import InputKind, open_untagged
from trelliswork.data.recordings import RECORDINGS
from trelliswork.errors import DataError, ModelError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.models import load
from trelliswork.models.base import Model
from trelliswork.models.language.config import PLAIN_TEXT, WORD_PAIRS
from trelliswork.models.loading import place
from trelliswork.reading import name_of
from trelliswork.runtime.compilation import before_compiling
from trelliswork.text import RuleTokeniser, read_text

if TYPE_CHECKING:
    from trelliswork.data.attributes import FeatureFunction

Keep = Callable[[bytes], None] | None
ANNOUNCE = "trelliswork.cli.compiling:announce_compiling"  # imports numba, which takes a while
Stored = dict[str, Any]  # as the JSON of a model has it
DATA = "data"  # the entry of a model's metrics that says what it was trained on


def load_reader(folder: str, features: FeatureFunction | None, device: str = "auto") -> Model:
    """Load the model in a folder, unless it reads something else than words, which no file of sentences has.

    Args:
        folder: Folder of the model.
        features: Function that its attributes come from; None for none.
        device: Name of a device, or auto.

    Returns:
        The model.
    """
    model = load_on(folder, features, device)
    if model.reads not in ("words", "attributes", "text", RECORDINGS):
        kind = type(model).__name__
        raise ModelError(
            f"{folder}: expected a model that reads words, got one that reads {model.reads}; "
            f'use it from Python: {kind}.load("{folder}").predict(sequences)'
        )
    return model


def load_on(folder: str, features: FeatureFunction | None, device: str) -> Model:
    """Load the model in a folder onto a device, which is reported unless it is the CPU.

    Args:
        folder: Folder of the model.
        features: Function that its attributes come from; None for none.
        device: Name of a device, or auto.

    Returns:
        The model.
    """
    model = load(folder, features=features)
    placed = place(model, device)
    if placed != "cpu":
        say(f"{folder}: on {placed}")
    return model


def announce_compiling(*, quiet: bool = False) -> None:
    """Say from now on when kernels are compiled, without importing numba if they are all there."""

    def announce() -> None:
        named(ANNOUNCE)(quiet=quiet)

    if "numba" in sys.modules:
        announce()
    else:
        before_compiling(announce)


def expanded(given: Sequence[str]) -> list[str]:
    """Return the files that FILE... stands for, in order: a quoted pattern is all files that match it, sorted."""
    files: list[str] = []
    for each in given:
        if each == "-" or not glob.has_magic(each) or Path(each).exists():
            files.append(each)
            continue
        matching = [path for path in sorted(glob.glob(each, recursive=True)) if Path(path).is_file()]
        if not matching and not {"*", "?"} & set(each):  # a name with brackets
            matching = [each]
        if not matching:
            raise TrellisworkError(f"expected files to read, got none that match {each}; check the pattern")
        files += matching
    return files


def require_different(files: Sequence[str]) -> None:
    """Refuse a file that is given twice, by whatever names."""
    seen: dict[str, str] = {}
    for file in files:
        first = seen.setdefault(file if file == "-" else os.path.realpath(file), file)
        if first is not file:
            names = file if first == file else f"{first} and {file}, which are the same file"
            raise TrellisworkError(f"expected each file once, got {names}; leave one out")


def kind_of(path: str, wanted: str | None = None, tagger: Model | None = None) -> InputKind:
    """Return how to read `path`: as the user says, by the suffix, or as the only thing that the model can read.

    Args:
        path: The file, or - for standard input.
        wanted: The format that the user has named; None to go by the suffix.
        tagger: The model that reads it; None for none.

    Returns:
        The format.
    """
    if tagger is not None and tagger.reads == "text":
        return "text"
    if tagger is not None and tagger.learns_from == WORD_PAIRS:
        return "pairs"
    if tagger is not None and tagger.learns_from == PLAIN_TEXT:
        return "pretokenised" if tagger.format.pretokenised or wanted == "pretokenised" else "text"
    if tagger is not None and tagger.learns_from == RECORDINGS:
        if wanted is not None:
            raise TrellisworkError(
                f"a recognizer reads recordings and manifests of them, got --from {wanted}; leave it out"
            )
        return "recordings"
    if tagger is not None and tagger.learns_from == "pairs":
        return _kind_of_pairs(path, wanted)
    kind: InputKind = wanted if wanted is not None else file_kind(path)  # type: ignore[assignment]
    if tagger is not None and tagger.reads == "attributes":
        return "crfsuite" if kind == "conll" and wanted is None else kind
    if tagger is not None and kind == "crfsuite":
        problem = "expected words and columns, as the model was trained on, got a CRFsuite file of attributes"
        raise DataError(name_of(path), f"{problem}; give CoNLL columns, CSV or JSON lines")
    return kind


def _kind_of_pairs(path: str, wanted: str | None) -> InputKind:
    """Sources are lines of text or columns of a table, whatever the name of the file."""
    if wanted in (None, "conll", "text", "pretokenised") and (wanted or file_kind(path) in ("conll", "brackets")):
        return "pairs"
    problem = f"expected a source on each line, or columns with tabs between them, got {wanted or file_kind(path)}"
    raise DataError(name_of(path), f"{problem}; give a .txt or .tsv file")


def layout(format: ColumnFormat | None, kind: InputKind) -> str:
    """Describe in one line how a file is read."""
    if format is not None:
        return format.describe()
    shown = {
        "jsonl": "JSON lines",
        "crfsuite": "attributes as CRFsuite has them",
        "brackets": "trees in brackets",
        "parquet": "Parquet",
        "brat": "BRAT standoff, texts and their annotations",
        "text": "plain text",
        "pretokenised": "a sentence on each line",
        "pairs": "two words and their similarity on each line",
    }
    return shown.get(kind, f"the format {kind}")


def open_new(
    path: str, kind: InputKind, choices: Choices, keep: Keep = None, **how: Any
) -> tuple[ColumnFormat | None, Iterator[Sentence]]:
    """Return the sentences of a file whose tags, if any, do not matter; `how` raw text is read, see `read_text`.

    Args:
        path: The file, or - for standard input.
        kind: Its format.
        choices: Columns and layout.
        keep: Called with all bytes that are read; None if they need not be kept.
        how: How raw text is read, see `read_text`.

    Returns:
        The layout, where there are columns, and the sentences.
    """
    if kind == "text":
        return None, read_text(path, choices.tokeniser, **how)
    return open_untagged(path, kind, choices, keep)


def choices_of(tagger: Model, given: Choices, kind: InputKind = "conll") -> Choices:
    """Return the layout a model expects: what the user says, else what it was trained on, else columns in order.

    Args:
        tagger: The model.
        given: Columns and layout that the user has named.
        kind: Format of the file. Columns of CSV files are found by name; those of other files are not where a CSV file
            had them.

    Returns:
        The layout, complete.
    """
    stored = stored_format(tagger)
    fields = JsonFields.parse(_data_of(tagger).get("fields") or ()).under(given.fields)
    tokeniser = tagger.tokeniser or given.tokeniser or RuleTokeniser()
    fallback, may_lack = _trained_on(stored, kind, tagger.n_columns), tagger.column_taggers is not None
    numbered = tagger.learns_from == "heads"
    return replace(
        given, fields=fields, tokeniser=tokeniser, fallback=fallback, may_lack=may_lack, numbered=numbered,
        most_columns=stored.get("n_columns") or tagger.n_columns + 2,
        pairs=tagger.format, detail=_data_of(tagger).get("detail") or given.detail,
    )  # fmt: skip


def _trained_on(stored: Stored, kind: InputKind, n_features: int) -> Choices:
    names, columns = stored.get("names"), stored.get("feature_columns")
    word, tag = stored.get("word_column"), stored.get("tag_column")
    if kind == "csv":
        if not names or not word:
            return Choices(feature_columns=None if n_features else ())
        features = tuple(names[i - 1] for i in columns or ())
        return Choices(None, names[word - 1], names[tag - 1] if tag else None, features)
    if names or not word:
        return Choices(None, 1, None, tuple(range(2, 2 + n_features)), conllu=False)
    features = tuple(range(word + 1, word + 1 + n_features)) if columns is None else tuple(columns)
    return Choices(None, word, tag, features, conllu=bool(stored.get("conllu")))


def stored_format(tagger: Model) -> Stored:
    """Return the column layout that `train` noted in the model; empty if it read no columns."""
    format = _data_of(tagger).get("format")
    return format if isinstance(format, dict) else {}


def _data_of(tagger: Model) -> Stored:
    data = tagger.metrics.get(DATA)
    return data if isinstance(data, dict) else {}


def format_to_store(format: ColumnFormat | None) -> dict[str, object] | None:
    """Return the inverse of `stored_format`."""
    return None if format is None else asdict(format)


# The feature function of --features, the only code that a command takes from the current folder.


def given_function(path: str | None) -> FeatureFunction | None:
    """Import the function MODULE:FUNCTION of an option; an installed module goes before one of this folder."""
    if path is None:
        return None
    top = path.partition(":")[0].partition(".")[0]
    with _importable_from_here(top):
        try:
            function: FeatureFunction = named("trelliswork.data.attributes:FeatureFunction").of(path)  # needs numba
            return function
        except ModelError as error:
            if not _is_in_current_folder(missing := _missing_module(error)):
                raise
            problem = f"imports {missing!r}, and only {top!r} is taken from the current folder"
            fix = "put both into one package (a folder), or set PYTHONPATH=."
            raise ModelError(f"the feature function {path} {problem}; {fix}") from error


def _missing_module(error: ModelError) -> str:
    cause = error.__cause__
    return (cause.name or "") if isinstance(cause, ModuleNotFoundError) else ""


def _is_in_current_folder(module: str) -> bool:
    """Return whether the current folder has a module of that name."""
    return bool(module) and PathFinder.find_spec(module, [os.getcwd()]) is not None


@contextmanager
def _importable_from_here(name: str) -> Iterator[None]:
    """Inside, the module or package of this name is found in the current folder, and nothing else there is.

    With the folder on `sys.path`, every library that looks for an optional module would run a file of that name.
    """
    finder = _Finder(name)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds one top-level name in the current folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [os.getcwd()]) if name == self.name else None
