"""A lesson: sentences without tags, the decisions about them, and which comes next.

In decisions an arc is written as in pins, `2:nsubj`: the head, words counted from 1 and 0 being the root, and label.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.data.treebank import tree_problem
from trelliswork.errors import DataError, OutputError
from trelliswork.web.problems import Problem
from trelliswork.writing import atomic_write


class Form(NamedTuple):
    """Format of a record; `end` follows each and is in none. `decode` raises ValueError for anything else."""

    end: bytes
    encode: Callable[[JsonObject], bytes]
    decode: Callable[[bytes], JsonObject]


def _line(record: JsonObject) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()


def _object(line: bytes) -> JsonObject:
    try:
        record = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError("expected an object")
    return record


JSON_LINES = Form(b"\n", _line, _object)


class Journal:
    """A file of records. `append` returns when a record is on the disk, `pop` when the last one is gone.

    What a crash left half written is cut off when the file is opened: it was never acknowledged. The file is
    locked, so that a second server does not write into it.

    >>> journal = Journal("decisions.jsonl")                     # doctest: +SKIP
    >>> journal.append({"id": 3, "tags": ["O"]})                 # doctest: +SKIP
    >>> journal.pop()                                            # doctest: +SKIP
    {'id': 3, 'tags': ['O']}
    """

    def __init__(self, path: str | Path, form: Form = JSON_LINES) -> None:
        self.path, self._form = Path(path), form
        is_new = not self.path.exists()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(f"{path}: cannot be opened: {error.strerror}; check the folder of --teach") from error
        try:
            self._lock()
            if is_new:
                sync_folder(self.path.parent)
            self.records, self._starts, self._size = self._read()
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(f"{self.path}: another server writes into it; stop that one") from error

    def _read(self) -> tuple[list[JsonObject], list[int], int]:
        """Return the records, where each begins, and where the last ends; half a record behind is cut off."""
        text, end = self.path.read_bytes(), self._form.end
        size = text.rfind(end) + len(end) if end in text else 0
        if size < len(text):
            self._cut(size)
        records, starts, place = [], [], 0
        for piece in text[:size].split(end)[:-1]:
            try:
                records.append(self._form.decode(piece))
            except ValueError as error:
                number = text.count(b"\n", 0, place) + 1
                raise DataError(self.path, "expected a decision, got something else", line=number) from error
            starts.append(place)
            place += len(piece) + len(end)
        return records, starts, size

    def append(self, record: JsonObject) -> None:
        """Write a record; if that fails, the file is as it was."""
        line = self._form.encode(record) + self._form.end
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._cut(self._size)
            problem = f"{self.path}: cannot be written: {error.strerror}; the decision was not kept"
            raise OutputError(f"{problem}; check the space on the disk") from error
        self.records.append(record)
        self._starts.append(self._size)
        self._size += len(line)

    def pop(self) -> JsonObject:
        """Take the last record off the file."""
        self._cut(self._starts[-1])
        self._size = self._starts.pop()
        return self.records.pop()

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    def close(self) -> None:
        """Let another one write."""
        os.close(self._file)


def sync_folder(folder: str | Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


SENTENCES, TAUGHT, TREES, SKIPPED = "sentences.jsonl", "taught.jsonl", "taught.conllu", "skipped.jsonl"
ARCS = "arcs"  # what a parser answers with
UNKNOWN = "?"  # the tag of a token that has not been confirmed, as `train --partial` reads it

Score = Mapping[str, float]  # by the name of the ranking, the most useful sentence having the highest


class Lesson:
    """The sentences of a folder, each decided, put off, or still to come.

    `taught.jsonl` has a line for each decided sentence, which `trelliswork train` reads: its tokens and tags. Of a
    parser it is `taught.conllu` with the whole tree of each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.model, self.answers, self.sentences = _read_sentences(folder / SENTENCES)
        self.taught = Journal(folder / TREES, CONLLU) if self.answers == ARCS else Journal(folder / TAUGHT)
        self._skipped = Journal(folder / SKIPPED)
        self.decided = {record["id"] for record in self.taught.records}
        self.put_off = [record["id"] for record in self._skipped.records]
        if not all(0 <= each < len(self.sentences) for each in (*self.decided, *self.put_off)):
            raise DataError(self.taught.path, "expected decisions about the sentences of this folder, found others")
        self.scores: dict[int, Score] = {}

    @classmethod
    def begin(cls, folder: Path, model: str, sentences: Sequence[Mapping[str, Json]], answers: str = "tags") -> Lesson:
        """Return a lesson that is new, or the one that is there already if it has the same sentences.

        `answers` is what the list of models says that the model answers with.

        Args:
            folder: The folder of the lesson.
            model: The name of the model that is taught.
            sentences: The sentences as records.
            answers: What the model answers with, as the list of models says.

        Returns:
            The lesson, open.
        """
        path = folder / SENTENCES
        if path.exists():
            lesson = cls(folder)
            if lesson.model == model and [dict(each) for each in sentences] == lesson.sentences:
                return lesson
            lesson.close()
            problem = f"there is a set {folder.name!r} with other sentences or another model"
            raise Problem(409, f"{problem}; open it by its name alone, or give this one another name")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made: {error.strerror}; choose another --teach") from error
        with atomic_write(path) as file:
            file.write(json.dumps({"model": model, "answers": answers}) + "\n")
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in sentences)
        sync_folder(folder)
        return cls(folder)

    def close(self) -> None:
        """Let another server take it up."""
        self.taught.close()
        self._skipped.close()

    def progress(self) -> JsonObject:
        """Return the progress of the lesson."""
        known = sum(tag != UNKNOWN for record in self.taught.records for tag in record["tags"])
        remaining = self._remaining()
        return {
            "name": self.name, "model": self.model, "total": len(self.sentences), "decided": len(self.decided),
            "skipped": len(set(self.put_off) - self.decided), "remaining": len(remaining),
            "ranked": sum(each in self.scores for each in remaining), "known_tokens": known,
            "file": str(self.taught.path),
        }  # fmt: skip

    def _remaining(self) -> list[int]:
        gone = self.decided | set(self.put_off)
        return [each for each in range(len(self.sentences)) if each not in gone]

    def next(self, by: str) -> int | None:
        """Return the sentence to decide now; those that were put off come last. None if all are decided."""
        remaining = self._remaining() or [each for each in dict.fromkeys(self.put_off) if each not in self.decided]
        if not remaining or by == "order":
            return remaining[0] if remaining else None
        return max(remaining, key=lambda each: (self.scores[each][by] if each in self.scores else -1.0, -each))

    def unscored(self) -> list[int]:
        """Return the sentences that are still to come and have no score."""
        return [each for each in self._remaining() if each not in self.scores]

    def at(self, number: int) -> JsonObject:
        """Return a sentence by its number."""
        if not 0 <= number < len(self.sentences):
            raise Problem(404, f"expected a sentence of 0..{len(self.sentences) - 1}, got {number}")
        return self.sentences[number]

    def decide(self, number: int, tags: Sequence[str | None]) -> None:
        """Write what is known of a sentence; it is on the disk when this returns."""
        sentence = self.at(number)
        written = [UNKNOWN if tag is None else tag for tag in tags]
        if number in self.decided:
            if any(each["id"] == number and each["tags"] == written for each in self.taught.records):
                return  # sent again by a client that lost the answer
            raise Problem(409, f"sentence {number} is decided already; undo that first")
        if len(tags) != len(sentence["tokens"]):
            raise Problem(422, f"body.tags: expected {len(sentence['tokens'])} tags, got {len(tags)}; null is unknown")
        if not any(tag is not None for tag in tags):
            raise Problem(422, "body.tags: expected at least one tag that is known; skip the sentence instead")
        kept = {"tokens": sentence["tokens"]} if self.answers == ARCS else sentence
        self.taught.append({**kept, "tags": written, "id": number})
        self.decided.add(number)

    def skip(self, number: int) -> None:
        """Put a sentence off."""
        self.at(number)
        if number in self.decided:
            raise Problem(409, f"sentence {number} is decided already; undo that first")
        self._skipped.append({"id": number})
        self.put_off.append(number)

    def undo(self) -> JsonObject:
        """Take the last decision back."""
        if not self.taught.records:
            raise Problem(409, "there is no decision to take back")
        record = self.taught.pop()
        self.decided.discard(record["id"])
        return {"id": record["id"], "tags": [None if tag == UNKNOWN else tag for tag in record["tags"]]}


def _read_sentences(path: Path) -> tuple[str, str, list[JsonObject]]:
    try:
        head, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        return head["model"], head.get("answers", "tags"), lines
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(path, f"expected the sentences of a lesson, got something else ({error})") from error


# Dependency trees that were taught, as CoNLL-U: a parser learns from whole trees, so that every word has its arc.

_ARC = re.compile(r"(\d{1,9}):(.+)", re.DOTALL)
_ID = "# sent_id = "


def _arc(text: str) -> tuple[int, str]:
    match = _ARC.fullmatch(text)
    if match is None:
        raise ValueError(f"expected an arc such as 2:nsubj, got {text!r}")
    return int(match[1]), match[2]


def check_arcs(arcs: Sequence[str | None], tokens: Sequence[str], labels: Collection[str]) -> None:
    """Refuse arcs that are not a whole tree with labels that the parser knows.

    Args:
        arcs: The arc of each word, such as 2:nsubj; None is unknown.
        tokens: The words.
        labels: The labels that the parser knows.
    """
    if missing := sum(arc is None for arc in arcs):
        problem = f"expected an arc for every word, as a parser learns from whole trees; {missing} of them are unknown"
        raise Problem(422, f"body.tags: {problem}; confirm them, or skip the sentence")
    heads = []
    for i, arc in enumerate(arcs):
        try:
            head, label = _arc(arc or "")
        except ValueError as error:
            raise Problem(422, f"body.tags[{i}]: {error}") from error
        if label not in labels:
            raise Problem(422, f"body.tags[{i}]: expected one of the labels {', '.join(labels)}; got {label!r}")
        heads.append(head)
    broken = tree_problem(heads, tokens) if len(heads) == len(tokens) else None
    if broken is not None:
        raise Problem(422, f"body.tags[{broken[0]}]: {broken[1]}")


def check_words(tokens: Sequence[str]) -> None:
    """Refuse words that a line of CoNLL-U cannot hold."""
    for token in tokens:
        if not token.strip() or re.search(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", token):
            raise Problem(422, f"body.content: expected words without tabs and line breaks, got {token[:50]!r}")


def _conllu_block(record: JsonObject) -> bytes:
    rows = [f"{_ID}{record['id']}"]
    for i, (token, arc) in enumerate(zip(record["tokens"], record["tags"], strict=True), 1):
        head, label = _arc(arc)
        rows.append(f"{i}\t{token}\t_\t_\t_\t_\t{head}\t{label}\t_\t_")
    return "\n".join(rows).encode()


def _read_conllu_block(block: bytes) -> JsonObject:
    """Read a block of CoNLL-U, as `_conllu_block` gives it.

    >>> _read_conllu_block(_conllu_block({"id": 3, "tokens": ["She", "sings"], "tags": ["2:nsubj", "0:root"]}))
    {'id': 3, 'tokens': ['She', 'sings'], 'tags': ['2:nsubj', '0:root']}
    """
    first, *lines = block.decode().split("\n")
    rows = [line.split("\t") for line in lines]
    if not first.startswith(_ID) or any(len(row) != 10 for row in rows):
        raise ValueError("expected a sentence of CoNLL-U with its number")
    return {
        "id": int(first.removeprefix(_ID)),
        "tokens": [row[1] for row in rows],
        "tags": [f"{row[6]}:{row[7]}" for row in rows],
    }


CONLLU = Form(b"\n\n", _conllu_block, _read_conllu_block)
