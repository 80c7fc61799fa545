"""Known parts of dependency trees: heads and labels of some words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from trelliswork.data import Sentence, Vocabulary
from trelliswork.errors import TrellisworkError
from trelliswork.runtime.arrays import Bool

Pins = Mapping[int, tuple[int | None, str | None]]


def allowed_arcs(sentences: Sequence[Sentence], pins: Sequence[Pins], n: int) -> Bool[Tensor, "batch n+1 n+1"]:
    """Return a mask that is True for each arc that the pins leave.

    Args:
        sentences: Sentences of a batch.
        pins: Known heads and labels of each sentence.
        n: Number of words of the longest sentence.

    Returns:
        A mask [batch, n + 1, n + 1], by head and dependent.
    """
    allowed = torch.ones(len(sentences), n + 1, n + 1, dtype=torch.bool)
    for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
        for word, (head, _) in known.items():
            _check_word(word, sentence)
            if head is None:
                continue
            if not 0 <= head <= len(sentence) or head == word + 1:
                expected = (
                    f"the head of word {word + 1} must be another of the words 1..{len(sentence)}, or 0 (the root)"
                )
                raise TrellisworkError(f"{expected}; got {head}")
            allowed[row, :, word + 1] = False
            allowed[row, head, word + 1] = True
    return allowed


def pinned_labels(
    sentences: Sequence[Sentence], pins: Sequence[Pins], labels: Vocabulary
) -> Iterator[tuple[int, int, int]]:
    """Yield (row, word, label) of each label that is known.

    Args:
        sentences: Sentences of a batch.
        pins: Known heads and labels of each sentence.
        labels: Labels of the parser.
    """
    for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
        for word, (_, label) in known.items():
            _check_word(word, sentence)
            if label is None:
                continue
            if label not in labels:
                raise TrellisworkError(f"a pin must have one of the labels {', '.join(labels)}; got {label!r}")
            yield row, word, labels.index(label)


def _check_word(word: int, sentence: Sentence) -> None:
    if not 0 <= word < len(sentence):
        raise TrellisworkError(f"a pin must be on word 0..{len(sentence) - 1}; got {word}")


# Pins of dependency parsers: the head of a word, with its label or without.

_VALUE = re.compile(r"(\d{1,9}|_)(?::(.+))?")


def head_pin(text: str, labels: Collection[str], n: int | None = None) -> tuple[int | None, str | None]:
    """Read `HEAD`, `HEAD:LABEL` or `_:LABEL` as head and label, words counted from 1 and 0 being the root.

    The label must be one that the parser knows, and the head one of the `n` words of the sentence, if that is known.

    Args:
        text: The pin.
        labels: Labels of the parser.
        n: Number of words of the sentence, if it is known.

    Returns:
        Head and label, None where unknown.

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
