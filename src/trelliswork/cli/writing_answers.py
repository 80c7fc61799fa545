"""The writer that fits what was read, what is asked for, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from trelliswork.cli.inputs import stored_format
from trelliswork.cli.writers import (
    ArrayWriter,
    BracketWriter,
    ConlluWriter,
    ConllWriter,
    CsvWriter,
    ForeignWriter,
    JsonWriter,
    KeptColumns,
    KeptConllu,
    KeptCsv,
    KeptRecords,
    PageWriter,
    PairWriter,
    Writer,
)
from trelliswork.cli.writers.base import Target
from trelliswork.data import Choices, ColumnFormat, CsvFormat, FileFormat
from trelliswork.data.choices import CONLLU_NAMES, column_number
from trelliswork.data.json_shapes import Reading
from trelliswork.data.jsonl import is_array
from trelliswork.data.kept_lines import KeptLines
from trelliswork.data.readers import InputKind, foreign_format
from trelliswork.data.recordings import RECORDINGS
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import Model
from trelliswork.reading import name_of
from trelliswork.tags.scheme_rules import split_tag


class Output(StrEnum):
    """Output format."""

    conll = "conll"
    conllu = "conllu"
    csv = "csv"
    tsv = "tsv"
    lexicon = "lexicon"
    jsonl = "jsonl"
    json = "json"
    parquet = "parquet"
    brackets = "brackets"
    html = "html"
    pretty = "pretty"


_SUFFIXES = {
    ".conll": Output.conll, ".conllu": Output.conllu, ".csv": Output.csv, ".jsonl": Output.jsonl,
    ".ndjson": Output.jsonl, ".json": Output.json, ".html": Output.html, ".htm": Output.html,
    ".parquet": Output.parquet, ".pq": Output.parquet, ".mrg": Output.brackets, ".ptb": Output.brackets,
}  # fmt: skip
_PLAIN_SUFFIXES = (".txt", ".tsv")  # of columns and pairs
_SAME: dict[InputKind, Output] = {
    "csv": Output.csv, "jsonl": Output.jsonl, "parquet": Output.parquet, "brat": Output.jsonl,
}  # fmt: skip


# What models learn from whose answers are dependency trees, written as CoNLL-U; constituency trees; strings; events.
TREES, BRACKETS, STRINGS, EVENTS = ("heads",), "brackets", ("pairs", RECORDINGS), "events"
WITH_EVENTS = (Output.jsonl, Output.json, Output.parquet, Output.html, Output.pretty)  # what can hold events


def output_of(given: Output | None, out: str | None, file: str = "-", kind: InputKind = "conll") -> Output | None:
    """Return the format that is asked for, by name or by the name of the output; None is that of the input `file`.

    >>> output_of(None, "a.jsonl.gz"), output_of(None, "a.txt"), output_of(Output.conll, "a.tagged")
    (<Output.jsonl: 'jsonl'>, None, <Output.conll: 'conll'>)

    Args:
        given: The format that is named; None if none is.
        out: Name of the output; None for standard output.
        file: Name of the input.
        kind: Format of the input.

    Returns:
        The format, or None.
    """
    suffix = "" if out is None else _suffix(out)
    if given is not None or suffix in _SUFFIXES:
        return given or _SUFFIXES[suffix]
    is_plain = suffix in _PLAIN_SUFFIXES and kind not in _SAME
    if suffix not in ("", _suffix(file)) and not is_plain:
        problem = f"expected a name that ends with {', '.join(_SUFFIXES)}, which says the format, got {suffix}"
        raise TrellisworkError(f"--out {out}: {problem}; choose another, or add --format")
    return None


def _suffix(path: str) -> str:
    return Path(path.lower().removesuffix(".gz")).suffix


@dataclass
class Inputs:
    """A file of new text: what it is, and how it is read; once it is open, all bytes of it are in `kept`."""

    file: str
    kind: InputKind
    choices: Choices
    kept: KeptLines | None = None
    format: ColumnFormat | None = None

    @property
    def own(self) -> Output:
        """The format that it is in."""
        is_conllu = self.format is not None and self.format.conllu
        return _SAME.get(self.kind, Output.conllu if is_conllu else Output.conll)


def is_binary(wanted: Output | None, kind: InputKind) -> bool:
    """Return whether answers are written as bytes."""
    return (wanted or _SAME.get(kind)) is Output.parquet


def keeps(kind: InputKind, wanted: Output | None, top_k: int, model: Model) -> bool:
    """Return whether the file may come back as it is, so that its lines must be kept; several analyses are blocks.

    Those of trees have the lines of CoNLL-U again.

    Args:
        kind: Format of the input.
        wanted: Format of the output; None for the same.
        top_k: Number of analyses.
        model: The model that answers.
    """
    if model.learns_from in (BRACKETS, *STRINGS):
        return False
    top_k = 0 if model.learns_from in TREES else top_k
    if kind == "jsonl":
        return wanted in (None, Output.jsonl, Output.json)
    columns = {"conll": (None, Output.conll, Output.conllu), "csv": (None, Output.csv)}
    return wanted in columns.get(kind, ()) and not top_k


def writer_for(wanted: Output | None, inputs: Inputs, model: Model, top_k: int, target: Target) -> Writer:
    """Make the writer of the answers.

    Args:
        wanted: Format of the output; None for that of the input.
        inputs: What is known of the file.
        model: The model that answers.
        top_k: Number of analyses.
        target: Where to write.

    Returns:
        The writer.
    """
    if wanted is Output.json or (wanted is None and inputs.kind == "jsonl" and is_array(inputs.file)):
        return ArrayWriter(writer_for(Output.jsonl, inputs, model, top_k, target))
    if wanted is None and (foreign := foreign_format(inputs.kind)) is not None and _can_write(foreign):
        return ForeignWriter(inputs.kind, foreign)
    trees = model.learns_from in TREES
    wanted = wanted or _as_read(inputs, top_k, model)
    if model.learns_from == EVENTS and wanted not in WITH_EVENTS:
        formats = ", ".join(WITH_EVENTS[:-1])
        raise TrellisworkError(f"events cannot be written as {wanted}; add --format {formats} or {WITH_EVENTS[-1]}")
    if top_k and (wanted is Output.csv or (wanted is Output.conllu and not trees)):
        raise TrellisworkError(f"--top-k cannot be written as {wanted}; add --format conll, jsonl, html or pretty")
    if inputs.kept is not None and wanted is inputs.own and not (top_k and wanted is Output.conll):
        return _kept_writer(inputs, inputs.kept, model)
    if inputs.kept is not None:
        inputs.kept.forget()
    schemes = {name: head.scheme for name, head in model.heads.items()}
    format = inputs.format
    in_file = format is None  # places in a sentence of CoNLL-U say nothing without its text
    if wanted is Output.jsonl:
        return JsonWriter(schemes)
    if wanted is Output.parquet:
        source = inputs.file if inputs.kind == "parquet" else None
        writer: Writer = named("trelliswork.cli.writers.parquet:ParquetWriter")(model, JsonWriter(schemes), source)
        return writer
    if wanted in (Output.tsv, Output.lexicon):
        return PairWriter(probabilities=wanted is Output.tsv)
    if wanted is Output.brackets:
        return BracketWriter()
    if wanted is Output.conll:
        spaced = format is not None and format.n_columns > 1 and format.delimiter == " "
        return ConllWriter(" " if spaced else "\t", places=in_file)
    if wanted is Output.conllu:
        stored = stored_format(model)
        return ConlluWriter(stored.get("tag_column") if stored.get("conllu") and len(schemes) == 1 else None)
    if wanted is Output.csv:
        names = format.names if isinstance(format, CsvFormat) else ()
        columns = [names[i - 1] for i in format.feature_columns] if format is not None and names else ()
        return CsvWriter(columns, places=in_file)
    if wanted is Output.html:
        return _page(inputs, model, schemes)
    return named("trelliswork.cli.writers.pretty:pretty_writer")(schemes, target)


def _can_write(format: FileFormat) -> bool:
    return type(format).text is not FileFormat.text


def _as_read(inputs: Inputs, top_k: int, model: Model) -> Output:
    """Return the format of answers if none is asked for."""
    if inputs.own is Output.parquet:
        return Output.parquet
    if model.learns_from in STRINGS:
        return Output.tsv
    if model.learns_from == EVENTS:
        return Output.jsonl
    if model.learns_from == BRACKETS and inputs.own is not Output.jsonl:
        return Output.brackets
    trees = model.learns_from in TREES
    if trees and (inputs.kind in ("text", "pretokenised") or inputs.own is Output.conllu):
        return Output.conllu
    return inputs.own if inputs.own is Output.jsonl or not top_k else Output.conll


def _kept_writer(inputs: Inputs, kept: KeptLines, model: Model) -> Writer:
    format, several = inputs.format, any(model.heads)
    if format is None:
        if several:
            kept.forget()
            return JsonWriter({name: head.scheme for name, head in model.heads.items()})
        return KeptRecords(kept, Reading(inputs.choices.fields, inputs.choices.tokeniser), model.scheme)
    columns = _columns(inputs, format, list(model.heads))
    if isinstance(format, CsvFormat):
        names = list(model.heads) if several else [_tag_name(inputs.choices)]
        return KeptCsv(kept, format, columns, names)
    return (KeptConllu if format.conllu else KeptColumns)(kept, format, columns)


def _columns(inputs: Inputs, format: ColumnFormat, tasks: Sequence[str]) -> list[int | None]:
    """Return the columns for the tags of each task; None where there is no column for them."""
    is_csv = isinstance(format, CsvFormat)
    if is_csv and len(tasks) == 1:
        return [format.tag_column]
    choices = inputs.choices.completed(format.conllu)
    wanted = [*((choices.feature_columns or ()) if len(tasks) > 1 else ()), choices.tag_column]
    if choices.tag_column is None or len(wanted) != len(tasks):
        return [None] * len(tasks)
    if isinstance(format, CsvFormat):
        known = [name.lower() for name in format.names]
        named = [str(each).lower() for each in wanted]
        return [known.index(name) + 1 if name in known else None for name in named]
    names = CONLLU_NAMES if format.conllu else ()
    return [column_number(each, names, "tag", inputs.file) for each in wanted if each is not None]


def _tag_name(choices: Choices) -> str:
    """Return the name of a new column of tags."""
    asked = choices.completed(conllu=False).tag_column
    return asked if isinstance(asked, str) else "tag"


def _page(inputs: Inputs, model: Model, schemes: dict[str, str]) -> PageWriter:
    labels = {name: _labels(head) if model.learns_from == "tags" else [] for name, head in model.heads.items()}
    done = "parsed" if model.learns_from in TREES else "tagged"
    what = "an arc" if model.learns_from in TREES else "a mark"
    subtitle = f"Point at {what} for its probability, if --confidence was given."
    return PageWriter(f"{Path(name_of(inputs.file)).name}, {done}", subtitle, labels, schemes)


def _labels(head: Model) -> list[str]:
    """Return the labels of spans, or the tags if they are plain."""
    if head.scheme == "plain":
        return head.known_labels
    return list(dict.fromkeys(kind for tag in head.known_labels if (kind := split_tag(tag)[1])))
