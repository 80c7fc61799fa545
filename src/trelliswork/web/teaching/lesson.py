"""A lesson: sentences without tags, the decisions about them, and which comes next.

In decisions an arc is written as in pins, `2:nsubj`: the head, words counted from 1 and 0 being the root, and label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from trelliswork.data.treebank import tree_problem
from trelliswork.errors import DataError, OutputError
from trelliswork.web.problems import Problem
from trelliswork.web.teaching.journal import Form, Journal, Record, sync_folder
from trelliswork.writing import atomic_write

SENTENCES, TAUGHT, TREES, SKIPPED = "sentences.jsonl", "taught.jsonl", "taught.conllu", "skipped.jsonl"
ARCS = "arcs"  # what a parser answers with
UNKNOWN = "?"  # the tag of a token that nobody has confirmed, as `train --partial` reads it

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
            raise DataError(self.taught.path, "expected decisions about the sentences of this folder, got others")
        self.scores: dict[int, Score] = {}

    @classmethod
    def begun(cls, folder: Path, model: str, sentences: Sequence[Mapping[str, Any]], answers: str = "tags") -> Lesson:
        """Return a lesson that is new, or the one that is there already if it has the same sentences.

        `answers` is what the list of models says that the model answers with.
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

    def progress(self) -> dict[str, Any]:
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

    def at(self, number: int) -> dict[str, Any]:
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

    def undo(self) -> dict[str, Any]:
        """Take the last decision back."""
        if not self.taught.records:
            raise Problem(409, "there is no decision to take back")
        record = self.taught.pop()
        self.decided.discard(record["id"])
        return {"id": record["id"], "tags": [None if tag == UNKNOWN else tag for tag in record["tags"]]}


def _read_sentences(path: Path) -> tuple[str, str, list[dict[str, Any]]]:
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
    """Refuse what is no whole tree with labels that the parser knows."""
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
    """Refuse words that no line of CoNLL-U can hold."""
    for token in tokens:
        if not token.strip() or re.search(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", token):
            raise Problem(422, f"body.content: expected words without tabs and line breaks, got {token[:50]!r}")


def _written(record: Record) -> bytes:
    rows = [f"{_ID}{record['id']}"]
    for i, (token, arc) in enumerate(zip(record["tokens"], record["tags"], strict=True), 1):
        head, label = _arc(arc)
        rows.append(f"{i}\t{token}\t_\t_\t_\t_\t{head}\t{label}\t_\t_")
    return "\n".join(rows).encode()


def _read(block: bytes) -> Record:
    """Read a block of CoNLL-U, as `_written` gives it.

    >>> _read(_written({"id": 3, "tokens": ["She", "sings"], "tags": ["2:nsubj", "0:root"]}))
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


CONLLU = Form(b"\n\n", _written, _read)
