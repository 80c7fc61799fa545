"""Tag schemes: reading, writing, converting, recognising, and the patterns behind span probabilities."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from trelliswork.errors import TrellisworkError
from trelliswork.tags import schemes

SPAN_SCHEMES = ("IOB1", "IOB2", "IOBES")
SEQEVAL_SCHEMES = {"IOB1": IOB1, "IOB2": IOB2, "IOBES": IOBES}
KINDS = ("X", "Y")


def inventory(scheme: str) -> list[str]:
    roles = "BIES" if scheme == "IOBES" else "BI"
    return ["O", *(f"{role}-{kind}" for kind in KINDS for role in roles)]


@st.composite
def span_sets(draw: st.DrawFn) -> tuple[list[tuple[int, int, str]], int]:
    spans, position = [], 0
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(KINDS)), max_size=5)
    ):
        start = position + gap
        position = start + length
        spans.append((start, position, kind))
    return spans, position + draw(st.integers(0, 2))


def any_tags(scheme: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(inventory(scheme)), min_size=1, max_size=10)


def half_open(entities: list[tuple[str, int, int]]) -> list[tuple[int, int, str]]:
    return sorted((start, end + 1, kind) for kind, start, end in entities)


def strict_seqeval(tags: list[str], scheme: str) -> list[tuple[int, int, str]]:
    entities = Entities([tags], SEQEVAL_SCHEMES[scheme]).entities[0]
    return sorted((entity.start, entity.end, entity.tag) for entity in entities)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bio", "IOB2"), ("BIOES", "IOBES"), ("bilou", "IOBES"), ("Plain", "plain"), ("iob1", "IOB1")],
)
def test_aliases(name: str, expected: str) -> None:
    assert schemes.canonical(name) == expected


def test_unknown_scheme_lists_the_choices() -> None:
    with pytest.raises(TrellisworkError, match=r"IOB1, IOB2, IOBES, plain.*got 'IOBX'"):
        schemes.canonical("IOBX")


def test_reading_by_hand() -> None:
    tags = ["B-X", "I-X", "I-Y", "O", "I-X"]
    assert schemes.spans_of(tags, "IOB2") == [(0, 2, "X"), (2, 3, "Y"), (4, 5, "X")]
    assert schemes.spans_of(tags, "IOB2", "strict") == [(0, 2, "X")]
    assert schemes.spans_of(["B-X", "I-X", "O"], "IOBES", "strict") == []
    assert schemes.spans_of(["U-X", "B-Y", "L-Y"], "BILOU", "strict") == [(0, 1, "X"), (1, 3, "Y")]
    assert schemes.spans_of(["I-creative-work"], "IOB1", "strict") == [(0, 1, "creative-work")]
    assert schemes.spans_of(["B", "I", "O"], "IOB2") == [(0, 2, "")]
    assert schemes.spans_of(["NN", "B-X"], "plain") == []


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
@given(data=st.data())
def test_generous_reading_is_seqevals_default(scheme: str, data: st.DataObject) -> None:
    tags = data.draw(any_tags(scheme))
    assert schemes.spans_of(tags, scheme) == half_open(get_entities(tags))


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
@given(data=st.data())
def test_strict_reading_is_seqevals_strict(scheme: str, data: st.DataObject) -> None:
    tags = data.draw(any_tags(scheme))
    assert schemes.spans_of(tags, scheme, "strict") == strict_seqeval(tags, scheme)


@given(span_sets())
def test_strict_iob1_is_seqevals_on_legal_tags(case: tuple[list[tuple[int, int, str]], int]) -> None:
    tags = schemes.tags_of(*case, "IOB1")
    if tags:
        assert schemes.spans_of(tags, "IOB1", "strict") == strict_seqeval(tags, "IOB1")


@pytest.mark.parametrize("policy", schemes.POLICIES)
@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
@given(case=span_sets())
def test_writing_and_reading_are_inverse(
    scheme: str, policy: str, case: tuple[list[tuple[int, int, str]], int]
) -> None:
    spans, n = case
    tags = schemes.tags_of(spans, n, scheme)
    assert len(tags) == n
    assert schemes.spans_of(tags, scheme, policy) == spans
    assert schemes.violations(tags, scheme) == []


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(SPAN_SCHEMES, 2)))
@given(case=span_sets())
def test_conversion_is_lossless(source: str, target: str, case: tuple[list[tuple[int, int, str]], int]) -> None:
    tags = schemes.tags_of(*case, source)
    assert schemes.convert(schemes.convert(tags, source, target), target, source) == tags


def test_conversion_and_writing_refuse() -> None:
    with pytest.raises(TrellisworkError, match="IOB2 to plain"):
        schemes.convert(["B-X"], "IOB2", "plain")
    with pytest.raises(TrellisworkError, match="overlap"):
        schemes.tags_of([(0, 2, "X"), (1, 3, "Y")], 3, "IOB2")
    with pytest.raises(TrellisworkError, match=r"in 0\.\.2"):
        schemes.tags_of([(0, 3, "X")], 2, "IOB2")
    assert schemes.convert(["NN"], "plain", "plain") == ["NN"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["B-NP", "I-NP", "O", "B-NP", "B-VP"]], "IOB2"),
        ([["I-NP", "I-NP", "O"], ["I-NP", "B-NP", "I-VP"]], "IOB1"),
        ([["I-NP", "O"]], "IOB1"),
        ([["O", "O"], ["B-X", "O"]], "IOB2"),
        ([["O", "O"]], "IOB2"),
        ([["B-X", "E-X", "S-Y"]], "IOBES"),
        ([["U-X", "O", "B-Y", "L-Y"]], "IOBES"),
        ([["S-X"]], "IOBES"),
        ([["DT", "NN"], ["B-NP"]], "plain"),
        ([["B-X", "I-don't", "NN"]], "plain"),
        ([["B", "I", "O"]], "IOB2"),
        ([["B-X", "I-X"], ["B-X", "I-X"], ["O", "I-X"]], "IOB2"),  # one slip does not change the scheme
        ([], "plain"),
    ],
)
def test_inference(rows: list[list[str]], expected: str) -> None:
    assert schemes.infer_scheme(rows) == expected


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
@given(data=st.data())
def test_inference_never_breaks_more_rules_than_the_truth(scheme: str, data: st.DataObject) -> None:
    rows = [schemes.tags_of(*case, scheme) for case in data.draw(st.lists(span_sets(), min_size=1, max_size=4))]
    if any(rows):
        guess = schemes.infer_scheme(rows)
        assert not any(schemes.violations(row, guess) for row in rows) or guess == "IOB2"
        assert guess in SPAN_SCHEMES


@pytest.mark.parametrize(
    ("tags", "scheme", "expected"),
    [
        (["O", "I-NP"], "IOB2", [(1, "I-NP after O: a span starts with B-NP in IOB2")]),
        (["I-NP"], "IOB2", [(0, "I-NP at the start: a span starts with B-NP in IOB2")]),
        (["B-X", "I-Y"], "IOB2", [(1, "I-Y after B-X: a span starts with B-Y in IOB2")]),
        (["B-X", "I-X"], "IOBES", [(1, "the end after I-X: a span of several tokens ends with E-X in IOBES")]),
        (["O", "E-X"], "IOBES", [(1, "E-X after O: a span starts with B-X or S-X in IOBES")]),
        (["B-X"], "IOB1", []),
        (["NN", "B-X"], "plain", []),
    ],
)
def test_violations(tags: list[str], scheme: str, expected: list[tuple[int, str]]) -> None:
    assert schemes.violations(tags, scheme) == expected


def test_violations_name_a_tag_that_does_not_fit() -> None:
    (violation,) = schemes.violations(["B-X", "NN"], "IOB2")
    assert violation == (1, "'NN' does not fit IOB2: expected O or a tag that starts with B/I")


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
def test_allowed_transitions_are_the_sequences_without_violations(scheme: str) -> None:
    tags = inventory(scheme)
    pairs, starts, ends = schemes.allowed_transitions(tags, scheme)
    for path in itertools.product(range(len(tags)), repeat=3):
        legal = starts[path[0]] and ends[path[-1]] and all(pairs[a][b] for a, b in itertools.pairwise(path))
        assert legal == (schemes.violations([tags[i] for i in path], scheme) == [])


def test_allowed_transitions_of_plain_and_misfit_tags() -> None:
    assert schemes.allowed_transitions(["DT", "NN"], "plain") == ([[True] * 2] * 2, [True] * 2, [True] * 2)
    with pytest.raises(TrellisworkError, match="'NN' does not fit IOB2"):
        schemes.allowed_transitions(["B-X", "NN"], "IOB2")


def matches(pattern: schemes.SpanPattern, path: tuple[int, ...], start: int, end: int) -> bool:
    before_ok = pattern.at_start if start == 0 else pattern.before is None or path[start - 1] in pattern.before
    after_ok = pattern.at_end if end == len(path) else pattern.after is None or path[end] in pattern.after
    if end - start == 1:
        return before_ok and after_ok and path[start] in pattern.single
    middle = all(label in pattern.inside for label in path[start + 1 : end - 1])
    return before_ok and after_ok and middle and path[start] in pattern.first and path[end - 1] in pattern.last


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
@given(data=st.data())
def test_span_patterns_are_disjoint_and_equal_the_strict_reading(scheme: str, data: st.DataObject) -> None:
    tags = inventory(scheme)
    path = tuple(data.draw(st.lists(st.integers(0, len(tags) - 1), min_size=1, max_size=6)))
    spans = schemes.spans_of([tags[i] for i in path], scheme, "strict")
    for kind in KINDS:
        patterns = schemes.span_patterns(tags, scheme, kind)
        for start, end in itertools.combinations(range(len(path) + 1), 2):
            n_matching = sum(matches(pattern, path, start, end) for pattern in patterns)
            assert n_matching == ((start, end, kind) in spans), (path, start, end)


def test_span_patterns_refuse_plain_and_unknown_labels() -> None:
    with pytest.raises(TrellisworkError, match="plain tags have no spans"):
        schemes.span_patterns(["NN"], "plain", "NN")
    with pytest.raises(TrellisworkError, match=r"\(X, Y\); got 'Z'"):
        schemes.span_patterns(inventory("IOB2"), "IOB2", "Z")
