"""JSON lines: round trip and errors that name the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trelliswork.data import Sentence, json_text, read_jsonl, reader_for
from trelliswork.errors import DataError

Write = Callable[..., Path]


def test_round_trip(write: Write) -> None:
    written = [
        Sentence(("Zoë", "sings"), ("B-PER", "O"), (("NNP", "VBZ"),)),
        Sentence(("Hi",), ("O",), (("UH",),)),
    ]
    path = write("\n".join(json_text(sentence) for sentence in written), "train.jsonl")
    back = list(reader_for(path)(path))
    assert [(s.words, s.tags, s.features) for s in back] == [(s.words, s.tags, s.features) for s in written]
    assert "Zoë" in path.read_text(encoding="utf-8")
    assert [s.line for s in back] == [1, 3]
    assert back[1].line_of(0) == back[1].line and back[0].line_of(1) == 1  # a sentence is one line


def test_tags_are_optional_when_not_wanted(write: Write) -> None:
    path = write('{"tokens": ["a"], "id": 7}\n', "x.jsonl")
    assert next(read_jsonl(path, with_tags=False)).tags is None
    with pytest.raises(DataError, match=r'x\.jsonl:1: expected the key "tags", got tokens, id'):
        list(read_jsonl(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"tokens": ["a" 1]}', ":2:17: not valid JSON"),
        ("[1]", ":2: expected a JSON object, got a list"),
        ('{"tokens": "a", "tags": []}', ':2: expected a list of strings in "tokens", got a string'),
        ('{"tokens": ["a", 3], "tags": []}', ':2: expected a string at "tokens"[1], got a number'),
        ('{"tokens": ["a", ""], "tags": []}', ':2: expected a string at "tokens"[1], got an empty string'),
        ('{"tokens": ["a"], "tags": []}', ":2: expected 1 tags, one per token; got 0"),
        ('{"tokens": [], "tags": []}', ":2: expected at least one token"),
        ('{"tokens": ["a"], "tags": ["O"], "features": [[]]}', ':2: expected 1 values at "features"[0]'),
    ],
)
def test_bad_lines(write: Write, line: str, message: str) -> None:
    path = write('{"tokens": ["ok"], "tags": ["O"]}\n' + line + "\n", "x.jsonl")
    with pytest.raises(DataError) as caught:
        list(read_jsonl(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_empty(write: Write) -> None:
    with pytest.raises(DataError, match="the file is empty"):
        list(read_jsonl(write("\n", "x.jsonl")))
