"""The label set of a tagger: from tags of the data to label indices and back.

>>> labels = Labels.from_sentences([Sentence(("Ann", "sings"), ("B-PER", "O"))])
>>> labels.scheme, labels.data_scheme, list(labels.vocabulary)
('IOBES', 'IOB2', ['O', 'B-PER', 'I-PER', 'E-PER', 'S-PER'])
>>> labels.tags(labels.indices(Sentence(("Ann", "Lee"), ("B-PER", "I-PER"))))
['B-PER', 'I-PER']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trelliswork.data import Sentence, Vocabulary
from trelliswork.errors import ConstraintError, DataError
from trelliswork.tags.schemes import (
    allowed_transitions,
    canonical,
    convert,
    infer_scheme,
    split_tag,
    violations,
)

Pin = str | Sequence[str]  # a tag, or those of which one is right, as O|B-NP or as a list
Pins = Mapping[int, Pin]  # token, counted from 0 -> what is known of its tag
OR = "|"  # between tags of which one is right
EDGE = -1  # the label before the first token and behind the last
_MEANING = {
    "IOB1": {"B": "BS", "I": "BIES"},
    "IOB2": {"B": "BS", "I": "IE"},
    "IOBES": {"L": "E", "U": "S"},
}
_ROLES = {"IOBES": "BIES", "IOB1": "BI", "IOB2": "BI"}


@dataclass(frozen=True)
class Labels:
    """`vocabulary` of the model's labels, written in `scheme`; the data is written in `data_scheme`."""

    vocabulary: Vocabulary
    scheme: str
    data_scheme: str

    @classmethod
    def from_sentences(
        cls, sentences: Sequence[Sentence], *, scheme: str | None = None, label_scheme: str = "IOBES"
    ) -> Labels:
        """Return the labels of tagged sentences; `scheme` is inferred when None.

        With span tags the set is completed with O and every role of each type, so that a span of any length,
        and a sentence without any, can be expressed.

        Args:
            sentences: tagged sentences.
            scheme: the scheme of their tags, inferred when None.
            label_scheme: the scheme of the labels: IOBES, or that of the data.

        Returns:
            The labels.
        """
        tags = [tags_of_gold(sentence) for sentence in sentences]
        data_scheme = canonical(scheme) if scheme is not None else infer_scheme(tags)
        seen = sorted({tag for sentence in tags for tag in sentence})
        if data_scheme == "plain":
            return cls(Vocabulary(seen), "plain", "plain")
        own_scheme = "IOBES" if label_scheme == "IOBES" else data_scheme
        kinds = sorted({split_tag(tag)[1] for tag in seen if tag != "O"})
        spans = [_join(role, kind) for kind in kinds for role in _ROLES[own_scheme]]
        return cls(Vocabulary(["O", *spans]), own_scheme, data_scheme)

    @classmethod
    def as_written(cls, tags: Sequence[Sequence[str]], scheme: str | None = None) -> Labels:
        """Return only the tags that occur, in that order; `scheme` is inferred when None."""
        scheme_found = canonical(scheme) if scheme is not None else infer_scheme(tags)
        return cls(Vocabulary(dict.fromkeys(tag for sentence in tags for tag in sentence)), scheme_found, scheme_found)

    @classmethod
    def from_stored(cls, labels: Sequence[str], scheme: str, data_scheme: str) -> Labels:
        """Return the inverse of writing the three down.

        Args:
            labels: the labels by number.
            scheme: the scheme in which they are written.
            data_scheme: the scheme of the data.

        Returns:
            The labels.
        """
        return cls(Vocabulary(labels), canonical(scheme), canonical(data_scheme))

    @property
    def has_spans(self) -> bool:
        """True if tags spell out spans."""
        return self.scheme != "plain"

    def indices(self, sentence: Sentence, *, constrained: bool = False) -> list[int]:
        """Return label indices of the gold tags; an unknown tag, or an illegal one if `constrained`, is an error."""
        tags = tags_of_gold(sentence)
        labels = list(tags)
        if self.scheme == "IOBES" or self.scheme != self.data_scheme:
            labels = convert(tags, self.data_scheme, self.scheme)  # also respells L and U as E and S
        for i, (tag, label) in enumerate(zip(tags, labels, strict=True)):
            if label not in self.vocabulary:
                problem = f"expected one of the {len(self.vocabulary)} known tags, got {tag!r} (token {i + 1})"
                raise DataError(sentence.file or "sentence", problem, line=sentence.line_of(i))
        if constrained and self.has_spans:
            self._refuse_illegal(labels, sentence)
        return self.vocabulary.indices(labels)

    def _refuse_illegal(self, labels: Sequence[str], sentence: Sentence) -> None:
        for i, reason in violations(labels, self.scheme)[:1]:
            raise ConstraintError(
                f"{sentence.file or 'sentence'}:{sentence.line_of(i)}: the constraints forbid the gold tag: {reason}; "
                'correct the tag, or train with label_scheme="IOBES" or constrained=False'
            )

    def tags(self, indices: Sequence[int]) -> list[str]:
        """Return tags, in the scheme of the data, that label indices stand for."""
        if self.scheme == "IOBES" and self.data_scheme == "IOB2" and self._is_legal(indices):
            return [self._begun_or_inside[i] for i in indices]
        labels = [self.vocabulary[i] for i in indices]
        return labels if self.scheme == self.data_scheme else convert(labels, self.scheme, self.data_scheme)

    def _is_legal(self, indices: Sequence[int]) -> bool:
        """Return whether each label may follow the one before it: then S means B, E means I, the rest stays."""
        return self._legal_pairs.issuperset(zip([EDGE, *indices], [*indices, EDGE], strict=True))

    @cached_property
    def _begun_or_inside(self) -> list[str]:
        """Return each label as it is in IOB2."""
        return [_join(*_begin_or_inside(label)) for label in self.vocabulary]

    @cached_property
    def _legal_pairs(self) -> set[tuple[int, int]]:
        pairs, starts, ends = allowed_transitions(self.vocabulary.to_list(), self.scheme)
        legal = {(before, after) for before, row in enumerate(pairs) for after, fits in enumerate(row) if fits}
        legal |= {(EDGE, label) for label, fits in enumerate(starts) if fits}
        return legal | {(label, EDGE) for label, fits in enumerate(ends) if fits} | {(EDGE, EDGE)}

    def one_of(self, tag: str | Sequence[str]) -> list[str]:
        """Return the tags that a pin leaves: itself, or several, as a sequence or with | between them.

        >>> Labels(Vocabulary(["O", "B-X", "I-X"]), "IOB2", "IOB2").one_of("O|B-X")
        ['O', 'B-X']
        """
        if not isinstance(tag, str):
            return list(tag)
        return [tag] if OR not in tag or tag in self.tag_groups else [each for each in tag.split(OR) if each]

    def meaning(self, tag: str | Sequence[str]) -> list[int]:
        """Return the labels that a tag of the data may stand for: in IOB2, B-X is B-X or S-X.

        IOB1 writes I-X wherever nothing of type X comes right before, so there I-X may also begin a span. O|B-X is one
        of these, unless a tag is called so.
        """
        if (several := self.one_of(tag)) != [tag] or not isinstance(tag, str):
            return sorted({label for each in several for label in self.meaning(each)})
        wanted = {tag}
        if self.scheme != self.data_scheme or self.scheme == "IOBES":
            role, kind = split_tag(tag)
            roles = _MEANING[self.data_scheme].get(role, role)
            wanted = {_join(each, kind) for each in roles}
        labels = [i for i, label in enumerate(self.vocabulary) if label in wanted]
        if not labels:
            raise DataError("tag", f"expected one of {', '.join(self.data_tags)}, got {tag!r}")
        return labels

    @property
    def data_tags(self) -> list[str]:
        """The tags that can come out, in the scheme of the data."""
        if self.scheme == self.data_scheme:
            return self.vocabulary.to_list()
        return list(dict.fromkeys(_join(*_begin_or_inside(label)) for label in self.vocabulary))

    @cached_property
    def tag_groups(self) -> dict[str, list[int]]:
        """The labels that mean each tag of the data."""
        tags = self.vocabulary.to_list() if self.scheme == self.data_scheme else self._begun_or_inside
        groups: dict[str, list[int]] = {tag: [] for tag in tags}
        for label, tag in enumerate(tags):
            groups[tag].append(label)
        return groups

    @cached_property
    def same_tag(self) -> list[list[int]]:
        """For each label, all labels that mean the same tag in the data: B and S both begin a span in IOB2."""
        if self.scheme == self.data_scheme:
            return [[i] for i in range(len(self.vocabulary))]
        groups: dict[tuple[str, str], list[int]] = {}
        keys = [_begin_or_inside(label) for label in self.vocabulary]
        for i, key in enumerate(keys):
            groups.setdefault(key, []).append(i)
        return [groups[key] for key in keys]


def tags_of_gold(sentence: Sentence) -> tuple[str, ...]:
    """Return the tags of a sentence that must have them."""
    if sentence.tags is None or len(sentence.tags) != len(sentence.words):
        got = "none" if sentence.tags is None else str(len(sentence.tags))
        problem = f"expected {len(sentence)} tags, got {got}; give a file with a tag column"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return sentence.tags


def _join(role: str, kind: str) -> str:
    return f"{role}-{kind}" if kind else role


def _begin_or_inside(label: str) -> tuple[str, str]:
    role, kind = split_tag(label)
    return {"S": "B", "E": "I"}.get(role, role), kind


def labels_described(labels: Labels, task: str = "") -> dict[str, str]:
    """Return the tags of the data and the labels that are learned, for people."""
    of = f" of {task}" if task else ""
    return {
        f"tags{of}": f"{len(labels.data_tags)} ({labels.data_scheme}): {', '.join(labels.data_tags)}",
        f"learned{of} as": f"{len(labels.vocabulary)} labels ({labels.scheme})",
    }


def record_of_labels(labels: Labels) -> dict[str, object]:
    """Return the same for programs."""
    return {"labels": labels.vocabulary.to_list(), "tags": labels.data_tags, "scheme": labels.data_scheme}


def missing_roles(tags: Sequence[str], scheme: str) -> list[str]:
    """Return the tags that spans of the types of some tags may need in addition to these.

    >>> missing_roles(["O", "I-X"], "IOB2")
    ['B-X']
    """
    kinds = dict.fromkeys(split_tag(tag)[1] for tag in tags if tag != "O")
    needed = [_join(role, kind) for kind in kinds for role in _ROLES.get(scheme, "")]
    return [tag for tag in needed if tag not in tags]
