"""Files of known answers: how they are read and described, by what a model learns from (`Model.learns_from`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from trelliswork.data import Choices, ColumnFormat, Sentence, open_pairs, read_treebank
from trelliswork.data.media import is_recording
from trelliswork.data.readers import InputKind, open_tagged
from trelliswork.data.recordings import RECORDINGS, open_recordings
from trelliswork.data.treebank import NOTHING, is_projective
from trelliswork.errors import DataError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.language.config import PLAIN_TEXT, WORD_PAIRS
from trelliswork.reading import name_of

Opened = tuple[ColumnFormat | None, Iterable[Sentence]]
SHOWN_KINDS = {"jsonl": "JSON", "csv": "CSV", "crfsuite": "CRFsuite's attributes", "parquet": "Parquet", "brat": "BRAT"}

# Imported when such a file is read: models over features need no torch.
BRACKETS = "trelliswork.data.brackets:read_brackets"
EVENTS, CHECKED = "trelliswork.data.events:events_of", "trelliswork.data.events:check_record"
BOUNDS = "trelliswork.data.events:sentences_in"


class GoldFiles(NamedTuple):
    """Kind of gold files: the functions that open them, describe their size, and note what else is worth knowing."""

    open: Callable[[str, Choices, InputKind], Opened]
    size: Callable[[Sequence[Sentence]], str]
    notes: Callable[[Sequence[Sentence]], list[str]] = lambda sentences: []
    tells_tokens: bool = True  # whether they show how a text is cut into sentences and words


def open_trees(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Return the sentences of a treebank; a file that is none by its name is an error.

    Args:
        path: The file.
        choices: Columns that the user has named.
        kind: Format of the file.

    Returns:
        The layout, and the sentences with heads.
    """
    if kind != "conll":
        problem = f"expected a treebank in CoNLL-U, with heads and labels, got {SHOWN_KINDS.get(kind, kind)}"
        raise DataError(name_of(path), f"{problem}; convert it to .conllu")
    return read_treebank(path, choices)


def open_brackets(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Return the sentences of a treebank in brackets; a file that is something else by its name is an error.

    Args:
        path: The file.
        choices: Columns that the user has named.
        kind: Format of the file.

    Returns:
        The layout, and the sentences with brackets.
    """
    conllu = str(path).lower().removesuffix(".gz").endswith((".conllu", ".conll"))
    if conllu or kind not in ("brackets", "conll"):
        got = "CoNLL columns" if conllu else SHOWN_KINDS.get(kind, kind)
        problem = f"expected trees in brackets, as the Penn Treebank has them, got {got}"
        raise DataError(name_of(path), f"{problem}; give a .mrg or .ptb file")
    return None, named(BRACKETS)(path, detail=choices.detail)


def open_events(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Open sentences with entities and events, each record checked; a file that is not JSON is an error.

    Args:
        path: The file.
        choices: Names of members that the user has given.
        kind: Format of the file.

    Returns:
        The layout, and the sentences with events.
    """
    if kind != "jsonl":
        problem = f"expected JSON lines with tokens, tags and events, got {SHOWN_KINDS.get(kind, 'columns')}"
        raise DataError(name_of(path), f"{problem}; convert it to .jsonl")
    format, stream = open_tagged(path, choices, kind)
    return format, map(named(CHECKED), stream)


def open_strings(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Return pairs of strings; a file that is something else by its name is an error.

    Args:
        path: The file.
        choices: Columns that the user has named.
        kind: Format of the file.

    Returns:
        The layout, and the pairs.
    """
    if kind not in ("conll", "pairs"):
        problem = f"expected pairs, a source, a tab and a target on each line, got {SHOWN_KINDS.get(kind, kind)}"
        raise DataError(name_of(path), f"{problem}; convert it to .tsv")
    return open_pairs(path, choices)


def open_plain_text(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Return the sentences of plain text, as a language model reads it.

    Args:
        path: The file.
        choices: How the text is cut into words.
        kind: Format of the file.

    Returns:
        The layout, and the sentences.
    """
    return None, choices.pairs.sentences(path)


def open_manifest(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Return recordings with their transcripts; a file that is something else by its name is an error.

    Args:
        path: The manifest.
        choices: Columns that the user has named, how transcripts are cut, and the folder of the recordings.
        kind: Format of the file.

    Returns:
        The layout, and the recordings.
    """
    if kind not in ("conll", "recordings") or is_recording(path):
        problem = "expected a manifest, a file, a tab and its transcript on each line, got"
        raise DataError(name_of(path), f"{problem} {SHOWN_KINDS.get(kind, 'a recording')}; write a .tsv file")
    return open_recordings(path, choices)


def size_of_recordings(recordings: Sequence[Sentence]) -> str:
    """Describe the recordings: their number, and the symbols of their transcripts."""
    n_symbols = sum(len(each.target or ()) for each in recordings)
    return f"{count(len(recordings), 'recording')}, {count(n_symbols, 'symbol')}"


def open_word_pairs(path: str, choices: Choices, kind: InputKind) -> Opened:
    """Return pairs of words with similarities, which word vectors are judged by.

    Args:
        path: The file.
        choices: Not read: the columns are always two words and a number.
        kind: Format of the file; not read.

    Returns:
        No layout, and the pairs.
    """
    return None, named("trelliswork.models.language.vectors:read_word_pairs")(path)


def size_of_pairs(pairs: Sequence[Sentence]) -> str:
    """Describe the pairs: their number, the different sources, and the symbols on each side."""
    n_sources, symbols = len({pair.words for pair in pairs}), sum(map(len, pairs))
    written = sum(len(pair.target or ()) for pair in pairs)
    sources = "" if n_sources == len(pairs) else f" of {count(n_sources, 'source')}"
    return f"{count(len(pairs), 'pair')}{sources}, {symbols:,} and {written:,} symbols"


def notes_on_pairs(pairs: Sequence[Sentence]) -> list[str]:
    """Note that sentences are cut at blanks alone, if their last words have a full stop on them."""
    n_glued = sum(any(map(_ends_glued, (pair.words, pair.target or ()))) for pair in pairs)
    if 2 * n_glued < len(pairs):
        return []
    fix = "--source-units words --target-units words cuts it off, and joins it again in answers"
    return [f"note: in {n_glued:,} of {len(pairs):,} pairs punctuation is part of the last word; {fix}"]


def _ends_glued(symbols: Sequence[str]) -> bool:
    """Return whether the last of several symbols is a word with the end of a sentence on it."""
    return len(symbols) > 1 and len(symbols[-1]) > 1 and symbols[-1][0].isalnum() and symbols[-1][-1] in ".!?…。؟।"


def size_of_events(sentences: Sequence[Sentence]) -> str:
    """Describe the number of events and arguments."""
    events_of = named(EVENTS)
    events = [event for each in sentences for event in events_of(each)]
    n_arguments, n_sentences = (
        sum(len(event.arguments) for event in events),
        sum(map(len, map(named(BOUNDS), sentences))),
    )
    size, n_tokens = size_in_tokens(sentences), sum(map(len, sentences))
    if n_sentences > len(sentences):
        size = f"{count(len(sentences), 'document')}, {count(n_sentences, 'sentence')}, {count(n_tokens, 'token')}"
    return f"{size}, {count(len(events), 'event')}, {count(n_arguments, 'argument')}"


def size_in_tokens(sentences: Sequence[Sentence]) -> str:
    """Describe the number of sentences and tokens."""
    return f"{count(len(sentences), 'sentence')}, {count(sum(map(len, sentences)), 'token')}"


def size_of_trees(sentences: Sequence[Sentence]) -> str:
    """Describe the number of words and labels, and the share of trees that are not projective."""
    n_words, n_labels = sum(map(len, sentences)), len({label for each in sentences for label in each.tags or ()})
    n_crossing = sum(not is_projective(each.heads or ()) for each in sentences)
    shape = "all trees are projective"
    if n_crossing:
        share = f"{100 * n_crossing / len(sentences):.1f}%"
        shape = f"{count(n_crossing, 'tree')} ({share}) {'is' if n_crossing == 1 else 'are'} not projective"
    return f"{count(len(sentences), 'sentence')}, {count(n_words, 'word')}, {count(n_labels, 'label')}; {shape}"


def size_of_brackets(sentences: Sequence[Sentence]) -> str:
    """Describe the number of words, labels and constituents."""
    labels = Counter(label for each in sentences for *_, label in each.brackets or ())
    shapes = f"{count(labels.total(), 'constituent')} of {count(len(labels), 'label')}"
    return f"{size_in_tokens(sentences)}, {shapes}"


def notes_on_labels(sentences: Sequence[Sentence]) -> list[str]:
    """Note that labels are missing, all of them or some."""
    empty = [(each, i) for each in sentences for i, label in enumerate(each.tags or ()) if label == NOTHING]
    if not empty:
        return []
    if len(empty) == sum(map(len, sentences)):
        return ["note: the treebank has no labels (column 8 is _ throughout); the parser learns heads alone"]
    sentence, i = empty[0]
    place = f"{sentence.file}:{sentence.line_of(i)}"
    return [f"note: {count(len(empty), 'word')} without a label, the first at {place}; _ is learned as a label"]


def notes_on_tags(sentences: Sequence[Sentence]) -> list[str]:
    """Note that a label stands right above a word, where its tag may be missing."""
    labels = {label for each in sentences for *_, label in each.brackets or ()}
    bare = [(each, i) for each in sentences for i, tag in enumerate(each.tags or ()) if tag in labels]
    if not bare:
        return []
    sentence, i = bare[0]
    tag, place = (sentence.tags or ())[i], f"{sentence.file}:{sentence.line_of(i)}"
    shown = f"({tag} {sentence.words[i]}) at {place}"
    return [
        f"note: {count(len(bare), 'word')} with a label of constituents for a tag, the first is {shown}; "
        "if its tag is missing, add it"
    ]


GOLD_FILES = {
    "tags": GoldFiles(open_tagged, size_in_tokens),
    "heads": GoldFiles(open_trees, size_of_trees, notes_on_labels),
    "brackets": GoldFiles(open_brackets, size_of_brackets, notes_on_tags),
    "events": GoldFiles(open_events, size_of_events, tells_tokens=False),
    PLAIN_TEXT: GoldFiles(open_plain_text, size_in_tokens, tells_tokens=False),
    WORD_PAIRS: GoldFiles(open_word_pairs, lambda pairs: count(len(pairs), "word pair"), tells_tokens=False),
    "pairs": GoldFiles(open_strings, size_of_pairs, notes_on_pairs, tells_tokens=False),
    RECORDINGS: GoldFiles(open_manifest, size_of_recordings, tells_tokens=False),
}
