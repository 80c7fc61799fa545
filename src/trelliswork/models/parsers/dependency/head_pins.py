"""Pins of dependency parsers: the head of a word, with its label or without."""

from __future__ import annotations

import re
from collections.abc import Collection

from trelliswork.errors import TrellisworkError

_VALUE = re.compile(r"(\d{1,9}|_)(?::(.+))?")


def head_pin(text: str, labels: Collection[str], n: int | None = None) -> tuple[int | None, str | None]:
    """The head and the label of `HEAD`, `HEAD:LABEL` or `_:LABEL`, words counted from 1 and 0 being the root.

    The label must be one that the parser knows, and the head one of the `n` words of the sentence, if that is known.

    >>> head_pin("2:nsubj", ["nsubj", "root"]), head_pin("0", ["nsubj", "root"])
    ((2, 'nsubj'), (0, None))
    """
    match = _VALUE.fullmatch(text.strip())
    if match is None or match[0] == "_":
        raise TrellisworkError(f"expected HEAD, HEAD:LABEL or _:LABEL, such as 0, 2:nsubj or _:nsubj; got {text!r}")
    head, label = None if match[1] == "_" else int(match[1]), match[2]
    if label is not None and label not in labels:
        raise TrellisworkError(f"expected one of the labels {', '.join(labels)}; got {label!r}")
    if n is not None and head is not None and head > n:
        raise TrellisworkError(f"expected a head in 0..{n}, as the sentence has {n} words; got {head}")
    return head, label
