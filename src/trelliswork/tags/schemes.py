"""Tag schemes: reading spans from tags, writing spans as tags, converting between schemes and recognising them.

A scheme marks where typed spans begin and end with a prefix on each tag:

    scheme   the spans NP = [0, 2) and NP = [2, 3) of four tokens
    IOB1     I-NP I-NP B-NP O      B only where a span touches an earlier one of its own type
    IOB2     B-NP I-NP B-NP O      B begins every span (also called BIO)
    IOBES    B-NP E-NP S-NP O      E ends a span, S is a span of one token (also BIOES; BILOU: L=E, U=S)
    plain    tags without spans, such as parts of speech

Spans are half-open `(start, end, type)`. The rules of which tag may follow which are in `scheme_rules`.

    >>> spans_of(["B-PER", "I-PER", "O", "B-LOC"], "IOB2")
    [(0, 2, 'PER'), (3, 4, 'LOC')]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trelliswork.errors import TrellisworkError
from trelliswork.tags.scheme_rules import (
    SCHEMES,
    Part,
    SpanPattern,
    allowed_transitions,
    canonical,
    continues,
    part_of,
    span_patterns,
    split_tag,
    unreachable,
    violations,
)

__all__ = [
    "POLICIES",
    "SCHEMES",
    "Span",
    "SpanPattern",
    "allowed_transitions",
    "canonical",
    "convert",
    "infer_scheme",
    "repair",
    "span_patterns",
    "spans_of",
    "split_tag",
    "tags_of",
    "unreachable",
    "violations",
]

Span = tuple[int, int, str]

POLICIES: tuple[str, ...] = ("conlleval", "strict")


def spans_of(tags: Sequence[str], scheme: str, policy: str = "conlleval") -> list[Span]:
    """Return the typed spans of a tag sequence; plain tags have none.

    Args:
        tags: One tag per token.
        scheme: IOB1, IOB2, IOBES (or an alias) or plain.
        policy: `"conlleval"` reads illegal sequences as the shared-task script does: a span begins wherever a type
            appears. `"strict"` counts only well-formed spans: B I* in IOB2, B I* E or S in IOBES.

    >>> spans_of(["O", "I-PER", "I-PER"], "IOB2"), spans_of(["O", "I-PER", "I-PER"], "IOB2", "strict")
    ([(1, 3, 'PER')], [])
    """
    scheme = canonical(scheme)
    if policy not in POLICIES:
        raise TrellisworkError(f"policy must be one of {', '.join(POLICIES)}; got {policy!r}")
    if scheme == "plain":
        return []
    if policy == "strict":
        return _read_strictly([part_of(tag, scheme) for tag in tags], scheme)
    # IOBES covers every prefix, so that a stray E- in IOB2 output is read as the shared-task script reads it.
    return _read_generously([part_of(tag, "IOBES") for tag in tags])


def _read_generously(parts: Sequence[Part]) -> list[Span]:
    spans: list[Span] = []
    start: int | None = None
    previous: Part = ("O", "")
    for i, (role, kind) in enumerate([*parts, ("O", "")]):  # the extra O ends a span at the end of the sentence
        ended = role in "OBS" or previous[0] in "ES" or kind != previous[1]
        if start is not None and ended:
            spans.append((start, i, previous[1]))
            start = None
        if start is None and role != "O":
            start = i
        previous = (role, kind)
    return spans


def _read_strictly(parts: Sequence[Part], scheme: str) -> list[Span]:
    spans: list[Span] = []
    i = 0
    while i < len(parts):
        before = parts[i - 1] if i else None
        if not _starts_strictly(before, parts[i], scheme):
            i += 1
            continue
        start = i
        i += 1
        while i < len(parts) and continues(parts[i - 1], parts[i]):
            i += 1
        if scheme != "IOBES" or parts[i - 1][0] in "ES":
            spans.append((start, i, parts[start][1]))
    return spans


def _starts_strictly(before: Part | None, here: Part, scheme: str) -> bool:
    role, kind = here
    if scheme != "IOB1":
        return role in "BS"
    # IOB1 writes B only where a span touches one of its type; conlleval also accepts it at the start of a sentence.
    touches = before is not None and before[0] != "O" and before[1] == kind
    return (role == "I" and not touches) or (role == "B" and (touches or before is None))


def tags_of(spans: Iterable[Span], n: int, scheme: str) -> list[str]:
    """Return the tags of `n` tokens with these spans, the inverse of `spans_of`; spans must not overlap.

    >>> tags_of([(0, 2, "NP"), (2, 3, "NP")], 4, "IOBES")
    ['B-NP', 'E-NP', 'S-NP', 'O']

    Args:
        spans: (start, end, label), end exclusive, in any order.
        n: the number of tokens.
        scheme: the name of a scheme, such as IOB2.

    Returns:
        A tag for each token.
    """
    scheme = canonical(scheme)
    tags = ["O"] * n
    previous: Span = (0, 0, "")
    for span in sorted(spans):
        _check_span(span, previous, n, scheme)
        start, end, kind = span
        touches = previous[1] == start and previous[1] > previous[0] and previous[2] == kind
        suffix = f"-{kind}" if kind else ""
        tags[start:end] = [role + suffix for role in _roles(end - start, scheme, touches)]
        previous = span
    return tags


def _roles(length: int, scheme: str, touches: bool) -> str:
    if scheme == "IOBES":
        return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    first = "B" if scheme == "IOB2" or touches else "I"
    return first + "I" * (length - 1)


def _check_span(span: Span, previous: Span, n: int, scheme: str) -> None:
    start, end, _ = span
    if scheme == "plain":
        raise TrellisworkError(f"plain tags cannot represent spans; got {span}; choose IOB1, IOB2 or IOBES")
    if not 0 <= start < end <= n:
        raise TrellisworkError(f"spans must lie in 0..{n} with start < end; got {span}")
    if start < previous[1]:
        raise TrellisworkError(f"spans must not overlap; got {previous} and {span}; drop one of them")


def convert(tags: Sequence[str], source: str, target: str) -> list[str]:
    """Rewrite `tags` from one scheme in another; the spans of legal input stay the same.

    >>> convert(["I-NP", "I-NP", "B-NP", "O"], "IOB1", "IOBES")
    ['B-NP', 'E-NP', 'S-NP', 'O']

    Args:
        tags: the tag of each token.
        source: the scheme that they are in.
        target: the scheme to write.

    Returns:
        A tag for each token.
    """
    source, target = canonical(source), canonical(target)
    if (source == "plain") != (target == "plain"):
        raise TrellisworkError(f"tags can be converted between IOB1, IOB2 and IOBES; got {source} to {target}")
    if source == "plain":
        return list(tags)
    return tags_of(spans_of(tags, source), len(tags), target)


def repair(tags: Sequence[str], scheme: str) -> list[str]:
    """Return tags that obey the rules of the scheme and have the spans that conlleval reads; legal tags do not change.

    >>> repair(["O", "I-NP", "I-NP"], "IOB2"), repair(["B-NP", "O"], "BILOU")
    (['O', 'B-NP', 'I-NP'], ['S-NP', 'O'])
    """
    return convert(tags, scheme, scheme) if violations(tags, scheme) else list(tags)


def infer_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """Infer the scheme of a collection of tag sequences.

    A tag that is neither O nor prefixed makes the whole collection plain, an E or S (L or U) prefix IOBES. Between IOB1
    and IOB2, the scheme with fewer violations is chosen, IOB2 on a tie.

    >>> infer_scheme([["B-NP", "I-NP", "O"]]), infer_scheme([["I-NP", "B-NP"]]), infer_scheme([["DT", "NN"]])
    ('IOB2', 'IOB1', 'plain')
    """
    has_tags = has_end_prefix = False
    broken_iob1 = broken_iob2 = 0
    for tags in sentences:
        before: Part | None = None
        for tag in tags:
            has_tags = True
            prefix = split_tag(tag)[0]
            if not prefix:
                return "plain"
            has_end_prefix = has_end_prefix or prefix in "ESLU"
            here = part_of(tag, "IOBES")
            touches = before is not None and before[0] != "O" and before[1] == here[1]
            broken_iob1 += here[0] == "B" and not touches
            broken_iob2 += here[0] == "I" and not touches
            before = here
    if not has_tags:
        return "plain"
    if has_end_prefix:
        return "IOBES"
    return "IOB1" if broken_iob1 < broken_iob2 else "IOB2"
