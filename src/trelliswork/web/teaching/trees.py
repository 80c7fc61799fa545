"""Dependency trees that were taught, as CoNLL-U: a parser learns from whole trees, so that every word has its arc.

In decisions an arc is written as in pins, `2:nsubj`: the head, words counted from 1 and 0 being the root, and label.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from trelliswork.data.arcs import tree_problem
from trelliswork.web.problems import Problem
from trelliswork.web.teaching.journal import Form, Record

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
    found = []
    for i, arc in enumerate(arcs):
        try:
            head, label = _arc(arc or "")
        except ValueError as error:
            raise Problem(422, f"body.tags[{i}]: {error}") from error
        if label not in labels:
            raise Problem(422, f"body.tags[{i}]: expected one of the labels {', '.join(labels)}; got {label!r}")
        found.append(head)
    broken = tree_problem(found, tokens) if len(found) == len(tokens) else None
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
    """The inverse.

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
