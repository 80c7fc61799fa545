"""What is known of trees: heads and labels of some words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from trelliswork.data import Sentence, Vocabulary
from trelliswork.errors import TrellisworkError
from trelliswork.runtime.shapes import Bool

Pins = Mapping[int, tuple[int | None, str | None]]


def allowed_arcs(sentences: Sequence[Sentence], pins: Sequence[Pins], n: int) -> Bool[Tensor, "batch n+1 n+1"]:
    """True for each arc that the pins leave."""
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
    """(row, word, label) of each label that is known."""
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
