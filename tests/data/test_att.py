"""OpenFst's text format: what is written is read back, and what is wrong is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.machines import random_machine, summed
from trelliswork.errors import DataError, OutputError
from trelliswork.fst import (
    Acceptor,
    Symbols,
    Transducer,
    read_acceptor,
    read_symbols,
    read_transducer,
    write_att,
    write_symbols,
)


def test_a_transducer_comes_back(tmp_path: Path) -> None:
    for seed in range(8):
        machine = random_machine(seed)
        write_att(Transducer.from_machine(machine), tmp_path / "t.att")
        found = summed(read_transducer(tmp_path / "t.att").machine)
        assert found == pytest.approx(summed(machine), abs=1e-12)


def test_an_acceptor_with_symbols_comes_back(tmp_path: Path) -> None:
    given = Acceptor([(0, 1, "a"), (1, 1, None), (1, 0, "b")], [-1.0, -2.0, -3.5], final={1: -0.25})
    assert given.symbols is not None
    write_att(given, tmp_path / "a.att")
    write_symbols(given.symbols, tmp_path / "a.syms")
    assert (tmp_path / "a.att").read_text() == "0\t1\ta\t1.0\n1\t0.25\n1\t1\t<eps>\t2.0\n1\t0\tb\t3.5\n"
    assert (tmp_path / "a.syms").read_text() == "<eps>\t0\na\t1\nb\t2\n"
    symbols = read_symbols(tmp_path / "a.syms")
    assert symbols == given.symbols
    back = read_acceptor(tmp_path / "a.att", symbols)
    assert back.score("aba").item() == pytest.approx(given.score("aba").item())


def test_the_first_line_names_the_first_state(tmp_path: Path) -> None:
    (tmp_path / "t.att").write_text("2 0 1 3 0.5\n0\n")
    machine = read_transducer(tmp_path / "t.att")
    assert machine.log_prob((3,), given=(1,)).item() == 0.0
    assert machine.score(((1,), (3,))).item() == -0.5


def test_a_machine_without_paths_comes_back_empty(tmp_path: Path) -> None:
    write_att(Acceptor([(0, 1, 1)], final=2), tmp_path / "a.att")
    assert read_acceptor(tmp_path / "a.att").count == 0
    write_att(Acceptor([], final=0), tmp_path / "a.att")
    assert read_acceptor(tmp_path / "a.att").score(()).item() == 0.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1 1 1 0.5\nx 1 1 1\n", "t.att:2: a state must be a whole number"),
        ("0 1 1\n", "t.att:1: expected `source target input output"),
        ("0 1 1 1 0 9\n", "t.att:1: expected .* got 6 fields"),
        ("0 1 1 1\n1 much\n", "t.att:2: a cost must be a number"),
        ("0 1 1 1 nan\n", "t.att:1: a cost must be a number"),
        ("0 1 1 1 -inf\n", "t.att:1: a cost must be a number"),
        ("0 1 a 1\n", "t.att:1: without a symbol table, a label must be a whole number"),
        ("0 1 1 1\n1\n1 2.0\n", "t.att:3: state 1 is declared final twice"),
        ("", "t.att: expected at least one state"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "t.att").write_text(text)
    with pytest.raises(DataError, match=problem):
        read_transducer(tmp_path / "t.att")


def test_unknown_symbols_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.att").write_text("0 1 a\n0 1 z\n1\n")
    with pytest.raises(DataError, match=r"a.att:2: 'z' is not in the symbol table"):
        read_acceptor(tmp_path / "a.att", Symbols("ab"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a one\n", "s.txt:1: expected `symbol number`"),
        ("<eps> 0\na 1\nb 1\n", "s.txt:3: .* occurs twice"),
        ("a 0\n", "number 0 must be epsilon"),
        ("<eps> 0\na 2\n", "without gaps; 1 is missing"),
    ],
)
def test_bad_symbol_tables(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "s.txt").write_text(text)
    with pytest.raises(DataError, match=problem):
        read_symbols(tmp_path / "s.txt")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1 1\n1 99999999999 1\n", "a.att:2: a state must be a whole number from 0 to 2147483647"),
        ("0 1 1\n1 2000000000 1\n", "a.att:2: states must be numbered without wide gaps; got 2000000000"),
        (f"0 1 {'9' * 5000}\n", "a.att:1: without a symbol table, a label must be a whole number up to 2147483647"),
    ],
)
def test_numbers_beyond_all_bounds_are_named_with_their_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.att").write_text(text)
    with pytest.raises(DataError, match=problem):
        read_acceptor(tmp_path / "a.att")


def test_symbols_may_be_a_list(tmp_path: Path) -> None:
    (tmp_path / "a.att").write_text("0 1 b\n1\n")
    assert float(read_acceptor(tmp_path / "a.att", ["a", "b"]).score("b")) == 0


def test_symbols_with_blanks_are_not_written(tmp_path: Path) -> None:
    machine = Acceptor([(0, 1, "new york")], final=1)
    for write in (lambda path: write_att(machine, path), lambda path: write_symbols(machine.symbols, path)):
        with pytest.raises(OutputError, match=r"must not contain spaces.* got 'new york'; rename it"):
            write(tmp_path / "out")
    assert not list(tmp_path.iterdir())
