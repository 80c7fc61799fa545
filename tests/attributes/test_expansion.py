"""Attributes block by block are those of the whole, and where each one is can be told."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.data.attributes import AttributeRows, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.templates import Column, expand

TEMPLATES = ["U0:%x[-1,0]", "B", "U1:%x[0,0.lower]/%x[1,1]", "U2"]
LENGTHS = np.array([3, 0, 1, 5, 2])


def columns() -> list[Column]:
    random = np.random.default_rng(0)
    return [Column.of(random.choice(["Aé", "b", "cc"], LENGTHS.sum()).tolist()) for _ in range(2)]


@pytest.mark.parametrize("skip_outside", [False, True])
@pytest.mark.parametrize("tokens_at_a_time", [1, 4, 1000])
def test_blocks_are_the_whole(skip_outside: bool, tokens_at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trelliswork.data.attributes.templates.TOKENS_AT_A_TIME", tokens_at_a_time)
    templates, data, wanted = Templates.parse(TEMPLATES, skip_outside=skip_outside), columns(), [0, 2, 3]
    all_keys, present = templates.keys(LENGTHS, data)
    keys, counts, places = expand(templates, wanted, LENGTHS, data)
    assert keys.tolist() == all_keys[:, wanted][present[:, wanted]].tolist()
    assert counts.tolist() == present[:, wanted].sum(1).tolist()
    listed = places[np.arange(len(keys))]
    assert listed.tolist() == [[t, wanted[k]] for t, k in np.argwhere(present[:, wanted])]
    assert keys_of(templates.names(listed, LENGTHS, data)).tolist() == keys.tolist()


def test_pieces_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = AttributeRows(np.array([3]), np.array([0, 2, 2, 5]), np.array([3, 0, 3, 1, 0], np.int32))
    for at_a_time in (1, 2, 100):
        monkeypatch.setattr("trelliswork.data.attributes.rows.ENTRIES_AT_A_TIME", at_a_time)
        pieces = list(rows.pieces())
        assert [e for entries, _ in pieces for e in range(entries.start, entries.stop)] == [0, 1, 2, 3, 4]
        assert np.concatenate([tokens for _, tokens in pieces]).tolist() == rows.tokens().tolist() == [0, 0, 2, 2, 2]
        assert rows.counts(5).tolist() == [2, 1, 0, 2, 0]


def test_strangers_are_left_out() -> None:
    ids, values = np.array([-1, 0, 2, -1, 1], np.int32), np.arange(5.0)
    known = AttributeRows(np.array([3]), np.array([0, 2, 4, 5]), ids, values).known()
    assert (known.offsets.tolist(), known.ids.tolist()) == ([0, 1, 2, 3], [0, 2, 1])
    assert known.values is not None and known.values.tolist() == [1, 2, 4]
