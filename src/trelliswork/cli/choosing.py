"""The model that `train` and `tune` take when none is named: the data decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trelliswork.cli.config_file import CONFIG_FILE, MODEL_NAME, values_in
from trelliswork.data import file_kind
from trelliswork.data.choices import CONLLU_NAMES, Choices
from trelliswork.data.conll import format_of
from trelliswork.data.events import EVENTS as EVENTS_MEMBER
from trelliswork.data.jsonl import array_records, is_array, parse_record
from trelliswork.data.media import is_recording
from trelliswork.models.catalogue import NETWORK, entry_of
from trelliswork.reading import name_of, numbered_lines, require_file
from trelliswork.tags.schemes import infer_scheme

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options

SAMPLE = 2000  # lines that tell what a file is
FEWEST_WORDS, SHORTEST_WORD = 3, 3.0  # of sentences, on average; phones apart by blanks are shorter
HEAD = CONLLU_NAMES.index("HEAD")


class Data(NamedTuple):
    """Contents of a file: the model for it, a phrase that names them, and how to have it read as something else."""

    model: str
    phrase: str
    otherwise: str = ""


TAGS = Data("crf", "tagged words")
HEADS = Data("biaffine", "a treebank with heads", "--tag-column UPOS trains a tagger")
BRACKETS = Data("span-cky", "trees in brackets", "--model crf trains a tagger")
EVENTS = Data("joint-events", "sentences with events", "--model crf trains a tagger")
STRINGS = Data("edit", "pairs of strings", "--model crf trains a tagger")
RECORDINGS = Data("ctc", "recordings with transcripts")
SENTENCES = Data("seq2seq", "pairs of sentences", "--model edit is for words and names")


def chosen_model(options: Options) -> tuple[str, str]:
    """Return the model for the data that options name, and one line that says why."""
    out, init = str(options.get("out")), options.get("init")
    if options.get("resume") and (name := _trained_in(out, f"{out}/seed-{options.get('seed', 0)}")):
        return name, f"model: {name}, as in the run in {out} that is resumed"
    if init is not None and (name := _trained_in(str(init))):
        return name, f"model: {name}, as the network of --init {init}"
    data = _data_in(options)
    name, why = data.model, data.phrase
    vectors = next((f"--{each}" for each in ("vectors", "pretrained") if options.get(each)), "")
    if data is TAGS and vectors:
        name, why = NETWORK, f"{data.phrase} and {vectors}"
    others = f"{data.otherwise}, --model NAME another" if data.otherwise else "--model NAME chooses another"
    return name, f"model: {name} ({entry_of(name).phrase}), the default for {why}; {others}"


def _trained_in(*folders: str) -> str:
    """Return the model that the settings in the first of some folders name; empty if none has any."""
    files = [path for path in (Path(folder) / CONFIG_FILE for folder in folders) if path.is_file()]
    return str(values_in(str(files[0])).get(MODEL_NAME, "")) if files else ""


def _data_in(options: Options) -> Data:
    """Classify the training file by its name and its first lines."""
    path = str(options["train"])
    require_file(path)
    kind = file_kind(path)
    if kind == "brackets":
        return BRACKETS
    if kind not in ("conll", "jsonl") or options.get("tag_column") is not None or not Path(path).is_file():
        return TAGS  # standard input and pipes are read once
    return _data_in_columns(path) if kind == "conll" else _data_in_records(path)


def _data_in_records(path: str) -> Data:
    lines = array_records(path) if is_array(path) else numbered_lines(path)
    record = next((parse_record(line, path, number) for number, line in lines if line.strip()), {})
    return EVENTS if isinstance(record, dict) and record.get(EVENTS_MEMBER) is not None else TAGS


def _data_in_columns(path: str) -> Data:
    lines = list(islice(numbered_lines(path), SAMPLE))
    while lines and not lines[-1][1].strip():
        lines.pop()
    texts = [line for _, line in lines if line.strip() and not line.startswith("#")]
    if not texts or not all("\t" in line for line in texts):
        return TAGS
    format = format_of(lines, name_of(path), Choices(), with_tags=False)
    rows = [line.split("\t") for line in texts]
    if format.conllu:
        heads = {row[HEAD] for row in rows if len(row) > HEAD}
        return HEADS if any(head.isdecimal() and head != "0" for head in heads) else TAGS
    has_sentences = any(not line.strip() for _, line in lines)
    return TAGS if has_sentences else _pairs_in(rows)


def _pairs_in(rows: Sequence[Sequence[str]]) -> Data:
    """Return pairs, if most targets occur once; a column of tags has the same ones again and again.

    Sources that are all names of recordings make a manifest.
    """
    if all(is_recording(row[0].strip()) for row in rows):
        return RECORDINGS
    targets = [row[1].strip() for row in rows]
    if 2 * len(Counter(targets)) <= len(targets) or infer_scheme([targets]) != "plain":
        return TAGS
    return SENTENCES if all(_are_sentences([row[i] for row in rows]) for i in (0, 1)) else STRINGS


def _are_sentences(texts: Sequence[str]) -> bool:
    words = [word for text in texts for word in text.split()]
    return len(words) >= FEWEST_WORDS * len(texts) and sum(map(len, words)) >= SHORTEST_WORD * len(words)
