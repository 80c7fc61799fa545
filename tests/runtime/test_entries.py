"""The list of entry kernels, and the kernels that wheels carry."""

from __future__ import annotations

from pathlib import Path

import pytest
from numba import types

from trelliswork.runtime import build, shipped
from trelliswork.runtime.entries import Entry, Use, read_entries, read_type, read_uses, write_type, write_uses
from trelliswork.runtime.kernel_cache import KernelCache
from trelliswork.runtime.kernel_math import highest
from trelliswork.runtime.shipped import Level, supported_levels

SMALL = Entry("trelliswork.runtime.kernel_math", "highest", '["float64/1", "int64"]')


def test_every_listed_kernel_is_there() -> None:
    entries = read_entries()
    assert len(entries) > 100
    for entry in entries:
        assert isinstance(entry.dispatcher._cache, KernelCache), entry
        assert Entry.of(entry.module, entry.name, entry.signature) == entry
        assert len(entry.signature) == entry.dispatcher.py_func.__code__.co_argcount, entry


@pytest.mark.parametrize(
    "kind",
    [
        types.int64, types.boolean, types.Array(types.uint8, 1, "C", readonly=True), types.Array(types.float32, 2, "A"),
        types.UniTuple(types.float64, 3), types.Tuple([types.int64, types.Array(types.float64, 4, "C")]),
    ],
)  # fmt: skip
def test_types_come_back(kind: types.Type) -> None:
    assert read_type(write_type(kind)) == kind


def test_the_list_does_not_depend_on_the_order(tmp_path: Path) -> None:
    uses = dict(list(read_uses().items())[:20]) | {SMALL: Use(1.5, frozenset({"train crf", "chain"}))}
    for name, order in {"a": uses, "b": dict(reversed(uses.items()))}.items():
        write_uses(order, tmp_path / name)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert read_uses(tmp_path / "a") == uses


def test_the_kernels_of_a_call_come_longest_first() -> None:
    uses = read_uses()
    chain = read_entries("chain")
    assert chain and all("chain" in uses[entry].calls for entry in chain)
    assert [uses[entry].seconds for entry in chain] == sorted((uses[entry].seconds for entry in chain), reverse=True)
    assert set(chain) | set(read_entries("ctc")) == set(read_entries("chain", "ctc")) < set(read_entries())


def test_types_that_no_list_can_hold_are_refused() -> None:
    with pytest.raises(TypeError, match="expected an array"):
        write_type(types.ListType(types.int64))


def test_the_lowest_level_has_all_kernels_and_a_better_one_those_that_commands_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best, lowest = shipped.X86
    monkeypatch.setattr(build, "levels", lambda: shipped.X86)
    assert build.entries_of(lowest) == read_entries()
    assert set(build.entries_of(best)) == {entry for entry, use in read_uses().items() if use.calls}


def test_a_shipped_kernel_is_used_where_its_instructions_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not supported_levels():
        pytest.skip("this processor has none of the levels that kernels are built for")
    level = supported_levels()[0]
    with monkeypatch.context() as patch:
        for name in (*level.settings, "NUMBA_CACHE_DIR"):  # which `compiled` sets for the processes that it starts
            patch.setenv(name, "")
        (file,) = build.build_level(level, [SMALL], 1, tmp_path).iterdir()
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    shipped.usable_folders.cache_clear()
    name = highest._cache.shipped_name(SMALL.signature)
    assert file.name == f"{name}{shipped.SUFFIX}" and shipped.read_shipped(name) is not None
    file.write_bytes(file.read_bytes()[:-9])
    assert shipped.read_shipped(name) is None, "a damaged file"
    monkeypatch.setattr(shipped, "levels", lambda: (Level(level.name, "x", ("no-such-instruction",)),))
    shipped.usable_folders.cache_clear()
    assert shipped.usable_folders() == []
    shipped.usable_folders.cache_clear()
