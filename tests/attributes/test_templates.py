"""Templates expand in bulk to the keys of the names that they spell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.data.attributes import KeyIndex, Templates, attribute_items, dicts, from_dicts
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.templates import Column
from trelliswork.errors import DataError

SENTENCES = [["Ann", "sings"], ["Öl"], ["The", "old", "Ann", "-", "2024"]]
TAGS = [["N", "V"], ["N"], ["D", "A", "N", ":", "C"]]
LENGTHS = np.array([len(each) for each in SENTENCES])
COLUMNS = [Column.of(x for each in rows for x in each) for rows in (SENTENCES, TAGS)]


def spelled(template: str, sentence: int, token: int) -> str:
    """What CRF++ makes of %x[-1,0], %x[0,0] and %x[2,1] in a template."""

    def at(rows: list[list[str]], shift: int) -> str:
        row, i = rows[sentence], token + shift
        return f"_B{i}" if i < 0 else f"_B+{i - len(row) + 1}" if i >= len(row) else row[i]

    text = template.replace("%x[-1,0]", at(SENTENCES, -1)).replace("%x[0,0]", at(SENTENCES, 0))
    return text.replace("%x[2,1]", at(TAGS, 2))


@pytest.mark.parametrize("template", ["U1:%x[0,0]", "U2:%x[-1,0]/%x[0,0]", "U3:a%x[2,1]b%x[-1,0]", "U4", "B"])
def test_keys_are_those_of_the_names(template: str) -> None:
    templates = Templates.parse([template])
    keys, present = templates.keys(LENGTHS, COLUMNS)
    names = [spelled(template, s, i) for s, row in enumerate(SENTENCES) for i in range(len(row))]
    assert present.all()
    assert keys[:, 0].tolist() == keys_of(list(names)).tolist()
    places = np.array([(t, 0) for t in range(len(names))])
    assert templates.names(places, LENGTHS, COLUMNS) == names


def test_outside_the_sentence_there_may_be_nothing() -> None:
    templates = Templates.parse(["U1:%x[-1,0]", "U2:%x[2,1]"], skip_outside=True)
    _, present = templates.keys(LENGTHS, COLUMNS)
    assert present[:, 0].tolist() == [False, True, False, False, True, True, True, True]
    assert present[:, 1].tolist() == [False, False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    ("spelling", "values"),
    [
        ("lower", ["ann", "sings", "öl", "the", "old", "ann", "-", "2024"]),
        ("shape", ["Xxx", "xxxxx", "Xx", "Xxx", "xxx", "Xxx", "-", "dddd"]),
        ("short", ["Xx", "x", "Xx", "Xx", "x", "Xx", "-", "d"]),
        ("prefix2", ["an", "si", "öl", "th", "ol", "an", "-", "20"]),
        ("suffix3", ["ann", "ngs", "öl", "the", "old", "ann", "-", "024"]),
    ],
)
def test_spellings(spelling: str, values: list[str]) -> None:
    keys, _ = Templates.parse([f"U:%x[0,0.{spelling}]"]).keys(LENGTHS, COLUMNS)
    assert keys[:, 0].tolist() == keys_of([f"U:{value}" for value in values]).tolist()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X1:%x[0,0]", "t:1: expected a template that begins with U or B, got 'X1:%x[0,0]'"),
        ("U1:%x[0]", "t:1:4: expected %x[row,column], got '%x[0]'"),
        ("U1:%x[0,0.colour]", "t:1: expected lower, shape, short, prefixN or suffixN after the column, got 'colour'"),
        ("# nothing", "t: expected at least one template such as U00:%x[0,0], got none"),
    ],
)
def test_a_bad_template_gets_a_sentence(line: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        Templates.parse([line], file="t")
    assert str(raised.value) == message


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match=r"U1:%x\[0,2\] asks for column 2; the data has columns 0..1"):
        Templates.parse(["U1:%x[0,2]"]).check(2)


def test_the_index_numbers_keys_in_order_however_many() -> None:
    keys = np.random.default_rng(0).integers(1, 5000, 20_000).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    index, known = KeyIndex(), dict[int, int]()
    wanted = [known.setdefault(key, len(known)) for key in keys.tolist()]
    assert index.add(keys[:7]).tolist() + index.add(keys[7:]).tolist() == wanted
    assert len(index) == len(known)
    assert index.keys().tolist() == list(known)
    assert index.find(np.array([12345678, keys[3]], np.uint64)).tolist() == [-1, wanted[3]]


def test_dicts_are_read_as_crfsuite_reads_them() -> None:
    tokens = [{"w": b"a", "n": 2, "b": False, "l": ["x", "y"], "d": {"k": 0.5, "s": "t"}}, ["plain", "names"], {}]
    lengths, counts, keys, values, names = from_dicts([tokens[:2], [], tokens[2:]])
    assert (lengths.tolist(), counts.tolist()) == ([2, 0, 1], [7, 2, 0])
    wanted = ["w:a", "n", "b", "l:x", "l:y", "d:k", "d:s:t", "plain", "names"]
    assert names.of(np.arange(9)) == wanted
    assert values is not None and values.tolist() == [1.0, 2.0, 0.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0]
    assert keys.tolist() == keys_of(wanted).tolist()


@pytest.mark.parametrize(("value", "got"), [(float("nan"), "NaN"), (float("inf"), "an infinite value")])
def test_a_value_that_is_no_number_is_named_with_its_place(value: float, got: str) -> None:
    with pytest.raises(DataError, match=f"sentence 2, token 1: expected a finite number for 'x', got {got}"):
        from_dicts([[{"x": 1.0}, {}], [{"y": "a", "x": value}]])


def test_a_value_of_another_kind_is_an_error() -> None:
    with pytest.raises(DataError, match="expected text, a number, a truth value or a list at 'x', got object"):
        from_dicts([[{"x": object()}]])


TEXTS = st.text("ab:\0é\ud800", max_size=2)  # a zero is what parts names, a lone surrogate no UTF-8
VALUES = st.one_of(
    TEXTS, st.booleans(), st.integers(-1, 2), st.sampled_from([0.5, 1.0]), st.lists(TEXTS, max_size=2),
    st.just(("x", "y")), st.just(np.float32(1)), st.just(np.str_("a")), st.just(b"b"),
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "a:b", "", "c\0"])
TOKENS = st.one_of(st.dictionaries(NAMES, VALUES, max_size=3), st.lists(NAMES, max_size=3))
LIKE = st.one_of(  # sentences whose tokens are of one kind, as most are
    st.lists(st.lists(st.dictionaries(NAMES, TEXTS, max_size=3), max_size=3), max_size=4),
    st.lists(st.lists(st.lists(TEXTS, max_size=3), max_size=3), max_size=4),
    st.lists(st.lists(st.dictionaries(NAMES, TEXTS | st.booleans() | st.floats(-2, 2)), max_size=3), max_size=4),
)


@given(st.lists(st.lists(TOKENS, max_size=3), max_size=3) | LIKE, st.integers(1, 4))
def test_all_tokens_together_say_what_each_says(sentences: list[list[Any]], n_tokens: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dicts, "TOKENS_AT_A_TIME", n_tokens)
        lengths, counts, keys, values, names = from_dicts(sentences)
    expected = [[*attribute_items(token)] for sentence in sentences for token in sentence]
    assert lengths.tolist() == [*map(len, sentences)] and counts.tolist() == [*map(len, expected)]
    flat = [item for items in expected for item in items]
    found = [1.0] * len(flat) if values is None else values.tolist()
    assert (values is None) == all(value == 1 for _, value in flat)
    backwards = np.arange(len(flat))[::-1]
    assert [*zip(names.of(backwards), found[::-1], strict=True)] == flat[::-1]
    assert keys.tolist() == keys_of([name for name, _ in flat]).tolist()
