"""Gold tags as a model reads them: in its scheme, and only tags that it knows; and what is worth saying about them.

>>> labels, gold, sets = partial_gold([("B-NP", "?", "O|B-VP")])
>>> list(labels), gold.tolist(), sets.tolist()
(['B-NP', 'O', 'B-VP'], [0, -1, -2], [[True, True, True], [False, True, True]])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from trelliswork.data import Sentence
from trelliswork.errors import DataError
from trelliswork.logs import count
from trelliswork.models.taggers.labels import OR, Labels
from trelliswork.runtime.arrays import Array
from trelliswork.tags.schemes import canonical, convert, infer_scheme, split_tag, violations

SHOWN = 20  # tags, of which a model may know thousands


def in_scheme_of(labels: Labels, sentences: Sequence[Sentence], scheme: str | None) -> tuple[list[Sentence], str]:
    """Return gold tags rewritten in the scheme of the model, and the scheme they were in.

    `scheme` is inferred when None. Tags of a wholly different kind are left alone, to be reported one by one.

    Args:
        labels: the labels of the model.
        sentences: gold data.
        scheme: the scheme of its tags, inferred when None.

    Returns:
        The sentences in the scheme of the model, and the scheme that they had.
    """
    wanted = labels.data_scheme
    own = canonical(scheme) if scheme else infer_scheme(sentence.tags or () for sentence in sentences)
    if "plain" in (own, wanted):
        return list(sentences), wanted
    if own == wanted and not any(_is_respelled(sentence) for sentence in sentences):
        return list(sentences), own
    return [replace(each, tags=tuple(convert(each.tags or (), own, wanted))) for each in sentences], own


def _is_respelled(sentence: Sentence) -> bool:
    """Return whether L and U stand for E and S."""
    return any(split_tag(tag)[0] in ("L", "U") for tag in sentence.tags or ())


def require_known(labels: Labels, sentences: Sequence[Sentence]) -> None:
    """Refuse gold tags that the model cannot predict, naming the first."""
    for sentence in sentences:
        unknown = first_unknown(labels, sentence)
        if unknown:
            line, tag = unknown
            known = ", ".join(labels.data_tags[:SHOWN]) + (" ..." if len(labels.data_tags) > SHOWN else "")
            problem = f"the model does not know the tag {tag!r}, only {known}; correct it or train on data that has it"
            raise DataError(sentence.file, problem, line=line)


def first_unknown(labels: Labels, sentence: Sentence) -> tuple[int, str] | None:
    """Return line and name of the first tag that the model does not know.

    A tag of a known type is known: I-LST may be missing in training where B-LST is not.
    """
    known = set(labels.data_tags)
    types = {split_tag(tag)[1] for tag in known} - {""} if labels.has_spans else set()
    for i, tag in enumerate(sentence.tags or ()):
        if tag not in known and split_tag(tag)[1] not in types:
            return sentence.line_of(i), tag
    return None


def unknown_note(labels: Labels, dev: Sequence[Sentence]) -> list[str]:
    """Return a note on the dev tags that the training data lacks: the model can never get them right."""
    unknown = [(sentence, first) for sentence in dev if (first := first_unknown(labels, sentence))]
    if not unknown:
        return []
    sentence, (line, tag) = unknown[0]
    n = count(len(unknown), "dev sentence")
    place = f"first {tag!r} at {sentence.file}:{line}"
    return [f"note: {n} with tags that the training data lacks, {place}; they count as mistakes"]


def broken_note(labels: Labels, train: Sequence[Sentence]) -> list[str]:
    """Return a note on the training tags that break their scheme; each is read as a span of its own."""
    scheme = labels.data_scheme
    broken = [(each, at, why) for each in train for at, why in violations(each.tags or (), scheme)]
    if not broken:
        return []
    sentence, at, why = broken[0]
    n = count(len(broken), "training tag")
    place = f"first at {sentence.file}:{sentence.line_of(at)} ({why})"
    return [
        f"note: {n} broke the {scheme} scheme, {place}; read as conlleval reads them; see all with trelliswork check"
    ]


# Tags that are not known: ? stands for any tag, B-NP|B-VP for one of these.

Choice = frozenset[str] | None  # the labels that are possible; None: every label
UNKNOWN = "?"


def choices_of_tag(tag: str) -> str | Choice:
    """Return a tag that is known, the set of those that are possible, or None for all.

    >>> choices_of_tag("O"), choices_of_tag("?"), sorted(choices_of_tag("A|B"))
    ('O', None, ['A', 'B'])
    """
    if tag == UNKNOWN:
        return None
    if OR not in tag or tag == OR:
        return tag
    tags = frozenset(part for part in tag.split(OR) if part)
    if UNKNOWN in tags:
        return None
    return tags if len(tags) > 1 else next(iter(tags), tag)


def partial_gold(sentences: Iterable[Sequence[str]]) -> tuple[dict[str, int], Array, Array]:
    """Return labels in the order in which they appear, and codes and sets as `observed` has them."""
    return encode([[choices_of_tag(tag) for tag in tags] for tags in sentences])


def encode(sentences: Sequence[Sequence[str | Choice]]) -> tuple[dict[str, int], Array, Array]:
    """Return the same from tags, sets of tags, and None."""
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
    """Return the scheme that the known tags are written in."""
    return infer_scheme(run for tags in sentences for run in _known_runs(tags))


def is_known(tags: Sequence[str]) -> bool:
    """Return whether every tag is known."""
    return all(isinstance(choices_of_tag(tag), str) for tag in tags)


def _known_runs(tags: Sequence[str]) -> Iterator[list[str]]:
    """Yield the stretches of known tags; one that begins inside a span gets the tag that may have come before."""
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
