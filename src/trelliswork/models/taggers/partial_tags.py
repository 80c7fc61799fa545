"""Tags that are not known: ? stands for any tag, B-NP|B-VP for one of these.

>>> labels, gold, sets = partial_gold([("B-NP", "?", "O|B-VP")])
>>> list(labels), gold.tolist(), sets.tolist()
(['B-NP', 'O', 'B-VP'], [0, -1, -2], [[True, True, True], [False, True, True]])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from trelliswork.errors import DataError
from trelliswork.models.taggers.labels import OR
from trelliswork.tags.schemes import infer_scheme, split_tag

Array = np.ndarray[Any, Any]
Choice = frozenset[str] | None  # the labels that are possible; None: every label
UNKNOWN = "?"


def choices_of_tag(tag: str) -> str | Choice:
    """A tag that is known, the set of those that are possible, or None for all.

    >>> choices_of_tag("O"), choices_of_tag("?"), sorted(choices_of_tag("A|B"))
    ('O', None, ['A', 'B'])
    """
    if tag == UNKNOWN:
        return None
    if OR not in tag or tag == OR:
        return tag
    found = frozenset(part for part in tag.split(OR) if part)
    if UNKNOWN in found:
        return None
    return found if len(found) > 1 else next(iter(found), tag)


def partial_gold(sentences: Iterable[Sequence[str]]) -> tuple[dict[str, int], Array, Array]:
    """Labels in the order in which they appear, and codes and sets as `observed` has them."""
    return encode([[choices_of_tag(tag) for tag in tags] for tags in sentences])


def encode(sentences: Sequence[Sequence[str | Choice]]) -> tuple[dict[str, int], Array, Array]:
    """The same from tags, sets of tags, and None."""
    labels: dict[str, int] = {}
    numbers: dict[frozenset[str], int] = {}
    codes = list[int]()
    for tags in sentences:
        for tag in tags:
            if tag is None:
                codes.append(-1)
            elif isinstance(tag, str):
                codes.append(labels.setdefault(tag, len(labels)))
            else:
                for each in sorted(tag):
                    labels.setdefault(each, len(labels))
                codes.append(-2 - numbers.setdefault(tag, len(numbers)))
    if not labels:
        raise DataError("labels", "expected at least one label that is known, got none; label some tokens")
    sets = np.ones((1 + len(numbers), len(labels)), np.bool_)
    for choice, row in numbers.items():
        sets[1 + row] = [label in choice for label in labels]
    return labels, np.array(codes, np.int64), sets


def scheme_of(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme that the known tags are written in."""
    return infer_scheme(run for tags in sentences for run in _known_runs(tags))


def is_known(tags: Sequence[str]) -> bool:
    """Whether every tag is known."""
    return all(isinstance(choices_of_tag(tag), str) for tag in tags)


def _known_runs(tags: Sequence[str]) -> Iterator[list[str]]:
    """The stretches of known tags; one that begins inside a span gets the tag that may have come before."""
    run, broken = list[str](), False
    for tag in tags:
        if not isinstance(choices_of_tag(tag), str):
            if run:
                yield run
            run, broken = [], True
            continue
        if not run and broken and split_tag(tag)[0] == "I":
            run.append("B" + tag[1:])
        run.append(tag)
    if run:
        yield run
