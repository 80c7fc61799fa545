"""Gold tags as a model reads them: in its scheme, and only tags that it knows; and what is worth saying about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trelliswork.data import Sentence
from trelliswork.errors import DataError
from trelliswork.models.base import count
from trelliswork.models.taggers.labels import Labels
from trelliswork.tags.schemes import canonical, convert, infer_scheme, split_tag, violations

SHOWN = 20  # tags, of which a model may know thousands


def in_scheme_of(labels: Labels, sentences: Sequence[Sentence], scheme: str | None) -> tuple[list[Sentence], str]:
    """Gold tags rewritten in the scheme of the model, and the scheme they were in.

    `scheme` is inferred when None. Tags of a wholly different kind are left alone, to be reported one by one.
    """
    wanted = labels.data_scheme
    found = canonical(scheme) if scheme else infer_scheme(sentence.tags or () for sentence in sentences)
    if "plain" in (found, wanted):
        return list(sentences), wanted
    if found == wanted and not any(_is_respelled(sentence) for sentence in sentences):
        return list(sentences), found
    return [replace(each, tags=tuple(convert(each.tags or (), found, wanted))) for each in sentences], found


def _is_respelled(sentence: Sentence) -> bool:
    """Whether L and U stand for E and S."""
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
    """Line and name of the first tag that the model does not know.

    A tag of a known type is known: I-LST may be missing in training where B-LST is not.
    """
    known = set(labels.data_tags)
    types = {split_tag(tag)[1] for tag in known} - {""} if labels.has_spans else set()
    for i, tag in enumerate(sentence.tags or ()):
        if tag not in known and split_tag(tag)[1] not in types:
            return sentence.line_of(i), tag
    return None


def unknown_note(labels: Labels, dev: Sequence[Sentence]) -> list[str]:
    """How many dev tags the training data lacks: the model can never get them right."""
    unknown = [(sentence, found) for sentence in dev if (found := first_unknown(labels, sentence))]
    if not unknown:
        return []
    sentence, (line, tag) = unknown[0]
    n = count(len(unknown), "dev sentence")
    place = f"first {tag!r} at {sentence.file}:{line}"
    return [f"note: {n} with tags that the training data lacks, {place}; they count as mistakes"]


def broken_note(labels: Labels, train: Sequence[Sentence]) -> list[str]:
    """How many training tags break their scheme; each is read as a span of its own."""
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
