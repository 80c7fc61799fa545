"""The rules of tag schemes: which tag may follow which, and how the tags of a single span look.

The rules are stated once, in `_fault`: both the violations in a file and the transitions of a constrained model are
derived from it.

    >>> violations(["O", "I-NP"], "IOB2")
    [(1, 'I-NP after O: a span starts with B-NP in IOB2')]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from trelliswork.errors import TrellisworkError

Part = tuple[str, str]  # (role, type): role is one of B I E S O, type is "" for O

SCHEMES: tuple[str, ...] = ("IOB1", "IOB2", "IOBES", "plain")

_ALIASES = {"BIO": "IOB2", "BIOES": "IOBES", "BILOU": "IOBES"}
_BY_UPPER_NAME = {name.upper(): name for name in SCHEMES} | _ALIASES
_PREFIXES = {"IOB1": frozenset("OBI"), "IOB2": frozenset("OBI"), "IOBES": frozenset("OBIESLU")}
_SAME_ROLE = {"L": "E", "U": "S"}


def canonical(scheme: str) -> str:
    """Return the standard name of a scheme, given any of its names and spellings.

    >>> canonical("bio"), canonical("BILOU")
    ('IOB2', 'IOBES')
    """
    name = _BY_UPPER_NAME.get(scheme.upper())
    if name is None:
        choices = ", ".join([*SCHEMES, *_ALIASES])
        raise TrellisworkError(f"scheme must be one of {choices}; got {scheme!r}")
    return name


@lru_cache(maxsize=4096)  # a data set has few tags and many tokens
def split_tag(tag: str) -> tuple[str, str]:
    """Split a tag into prefix and type; the prefix is empty if the tag has none.

    >>> split_tag("B-NP"), split_tag("I-creative-work"), split_tag("O"), split_tag("B"), split_tag("NN")
    (('B', 'NP'), ('I', 'creative-work'), ('O', ''), ('B', ''), ('', 'NN'))
    """
    prefix, dash, kind = tag.partition("-")
    if tag == "O":
        return "O", ""
    if len(prefix) == 1 and prefix in "BIESLU" and (kind or not dash):
        return prefix, kind
    return "", tag


@lru_cache(maxsize=4096)
def part_of(tag: str, scheme: str) -> Part:
    """Return role and type of a tag; a tag that does not fit the scheme counts as outside (O).

    >>> part_of("L-PER", "IOBES"), part_of("L-PER", "IOB2")
    (('E', 'PER'), ('O', ''))
    """
    prefix, kind = split_tag(tag)
    if prefix not in _PREFIXES[scheme]:
        return "O", ""
    return _SAME_ROLE.get(prefix, prefix), kind


def continues(before: Part, here: Part) -> bool:
    """Return True if `here` continues the well-formed span that `before` belongs to."""
    return before[0] in "BI" and here[0] in "IE" and before[1] == here[1]


def violations(tags: Sequence[str], scheme: str) -> list[tuple[int, str]]:
    """Return the positions at which `tags` violate the scheme, each with the reason.

    >>> violations(["B-NP", "O"], "IOBES")
    [(1, 'O after B-NP: a span of several tokens ends with E-NP in IOBES')]
    """
    scheme = canonical(scheme)
    if scheme == "plain":
        return []
    faults = []
    before: str | None = None
    for i, tag in enumerate(tags):
        reason = _misfit(tag, scheme) or _fault(before, tag, scheme)
        if reason:
            faults.append((i, reason))
        before = tag
    reason = _fault(before, None, scheme)
    if reason:
        faults.append((len(tags) - 1, reason))
    return faults


def allowed_transitions(tags: Sequence[str], scheme: str) -> tuple[list[list[bool]], list[bool], list[bool]]:
    """Return which tags may follow which, which may start a sentence, and which may end one.

    Args:
        tags: The label inventory.

    Returns:
        `allowed[from][to]`, `starts[tag]` and `ends[tag]`, over indices of `tags`.

    >>> allowed_transitions(["O", "B-X", "I-X"], "IOB2")
    ([[True, True, False], [True, True, True], [True, True, True]], [True, True, False], [True, True, True])
    """
    scheme = canonical(scheme)
    if scheme == "plain":
        every = [True] * len(tags)
        return [list(every) for _ in tags], list(every), list(every)
    _require_fit(tags, scheme)
    pairs = [[_fault(before, tag, scheme) is None for tag in tags] for before in tags]
    starts = [_fault(None, tag, scheme) is None for tag in tags]
    ends = [_fault(tag, None, scheme) is None for tag in tags]
    return pairs, starts, ends


def unreachable(
    tags: Sequence[str], allowed: Sequence[Sequence[bool]], first: Sequence[bool], last: Sequence[bool]
) -> list[str]:
    """Return the tags that occur in no legal sequence; the other arguments are the result of `allowed_transitions`.

    >>> tags = ["O", "B-X", "I-Y"]
    >>> unreachable(tags, *allowed_transitions(tags, "IOB2"))
    ['I-Y']

    Args:
        tags: the name of each tag.
        allowed: whether tag j may follow tag i, [c][c].
        first: whether each tag may be the first.
        last: whether each tag may be the last.

    Returns:
        The names of these tags, in their order.
    """
    backwards = list(zip(*allowed, strict=True))
    both = _closure(allowed, first) & _closure(backwards, last)
    return [tag for i, tag in enumerate(tags) if i not in both]


def _closure(allowed: Sequence[Sequence[bool]], first: Sequence[bool]) -> set[int]:
    """Return the indices that can be reached from the `first` ones over `allowed` transitions."""
    waiting = [i for i, begins in enumerate(first) if begins]
    reached = set(waiting)
    while waiting:
        new = [j for j, follows in enumerate(allowed[waiting.pop()]) if follows and j not in reached]
        reached.update(new)
        waiting += new
    return reached


@lru_cache(maxsize=4096)
def _misfit(tag: str, scheme: str) -> str | None:
    prefix, _ = split_tag(tag)
    if prefix in _PREFIXES[scheme]:
        return None
    wanted = "/".join(sorted(_PREFIXES[scheme] - set("OLU")))
    return f"{tag!r} does not fit {scheme}: expected O or a tag that starts with {wanted}"


def _require_fit(tags: Sequence[str], scheme: str) -> None:
    for tag in tags:
        reason = _misfit(tag, scheme)
        if reason:
            raise TrellisworkError(f"{reason}; remove the tag or use the scheme 'plain'")


@lru_cache(maxsize=65536)  # a corpus has few distinct pairs of tags, each of which occurs many times
def _fault(before: str | None, tag: str | None, scheme: str) -> str | None:
    """Return the reason why `tag` may not follow `before`, or None if it may.

    Args:
        before: None at the start of a sentence.
        tag: None at the end of a sentence.
    """
    last = part_of(before, scheme) if before is not None else None
    here = part_of(tag, scheme) if tag is not None else None
    touches = last is not None and here is not None and last[0] != "O" and last[1] == here[1]
    place = f"{tag or 'the end'} {'at the start' if before is None else f'after {before}'}"
    if scheme == "IOBES":
        return _fault_iobes(last, here, place)
    if here is None:
        return None
    kind = _suffix(here)
    if scheme == "IOB2" and here[0] == "I" and not touches:
        return f"{place}: a span starts with B{kind} in IOB2"
    if scheme == "IOB1" and here[0] == "B" and before is not None and not touches:
        return f"{place}: a span that touches none of its own type starts with I{kind} in IOB1"
    return None


def _fault_iobes(last: Part | None, here: Part | None, place: str) -> str | None:
    edge: Part = ("O", "")  # the edges of a sentence count as outside
    if continues(last or edge, here or edge):
        return None
    if last is not None and last[0] in "BI":
        return f"{place}: a span of several tokens ends with E{_suffix(last)} in IOBES"
    if here is not None and here[0] in "IE":
        return f"{place}: a span starts with B{_suffix(here)} or S{_suffix(here)} in IOBES"
    return None


def _suffix(part: Part) -> str:
    return f"-{part[1]}" if part[1] else ""


@dataclass(frozen=True)
class SpanPattern:
    """One way for tokens i..j-1 to be exactly one span: the label indices allowed at each position.

    Attributes:
        before: Labels of the token before the span; None allows any.
        first: Labels of the first token of a span of several tokens.
        inside: Labels of the tokens between the first and the last.
        last: Labels of the last token of a span of several tokens.
        single: Labels of a span of one token.
        after: Labels of the token after the span; None allows any.
        at_start: Whether the pattern applies to a span at the start of a sentence.
        at_end: Whether the pattern applies to a span at the end of a sentence.
    """

    before: frozenset[int] | None
    first: frozenset[int]
    inside: frozenset[int]
    last: frozenset[int]
    single: frozenset[int]
    after: frozenset[int] | None
    at_start: bool = True
    at_end: bool = True


def span_patterns(tags: Sequence[str], scheme: str, label: str) -> list[SpanPattern]:
    """Return the event "these tokens are exactly one span of type `label`" as disjoint patterns over label indices.

    The patterns agree with `spans_of(..., policy="strict")`. IOB1 needs two of them: the first tag is B after a span of
    the same type (or, as in the shared-task script, at the start of the sentence) and I elsewhere. Since the first tags
    differ, no sequence is counted twice.

    Args:
        tags: The label inventory.
        label: Type of the span, such as "PER".

    >>> span_patterns(["O", "B-X", "I-X"], "IOB2", "X")[0].after
    frozenset({0, 1})
    """
    scheme = canonical(scheme)
    if scheme == "plain":
        raise TrellisworkError("plain tags have no spans; got scheme 'plain'; choose IOB1, IOB2 or IOBES")
    parts = [part_of(tag, scheme) for tag in tags]
    kinds = sorted({kind for role, kind in parts if role != "O"})
    if label not in kinds:
        raise TrellisworkError(f"label must be a span type of the tags ({', '.join(kinds)}); got {label!r}")
    begin, inside, last, single = (_indices(parts, role, label) for role in "BIES")
    if scheme == "IOBES":
        return [SpanPattern(None, begin, inside, last, single, None)]
    everything = frozenset(range(len(tags)))
    after = everything - inside  # a following I of the same type would make the span longer
    if scheme == "IOB2":
        return [SpanPattern(None, begin, inside, inside, begin, after)]
    own = begin | inside
    return [
        SpanPattern(own, begin, inside, inside, begin, after),
        SpanPattern(everything - own, inside, inside, inside, inside, after),
    ]


def _indices(parts: Sequence[Part], role: str, label: str) -> frozenset[int]:
    return frozenset(i for i, part in enumerate(parts) if part == (role, label))
