"""Random machines give what OpenFst (by pynini) gives, passed over in its text format."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.contract.machines import random_machine, summed
from trelliswork.fst import Acceptor, Transducer, read_acceptor, read_transducer, write_att
from trelliswork.semirings import Log, Max
from trelliswork.structures.automata import passes, structure
from trelliswork.structures.automata.compose import compose
from trelliswork.structures.automata.determinise import determinise, minimise, push
from trelliswork.structures.automata.epsilon import remove_epsilon
from trelliswork.structures.automata.rational import concatenate, invert, project, star, union
from trelliswork.structures.automata.search import best_paths
from trelliswork.structures.automata.structure import Machine

pynini = pytest.importorskip("pynini", reason="pynini (OpenFst) is a peer for tests only: install the [peers] extra")
import pywrapfst  # noqa: E402 - comes with pynini

SEEDS = range(10)


def theirs(machine: Machine, folder: Path, arc_type: str = "log64") -> Any:
    """The machine as OpenFst's."""
    write_att(Transducer.from_machine(machine), folder / "machine.att")
    compiler = pywrapfst.Compiler(arc_type=arc_type)
    compiler.write((folder / "machine.att").read_text())
    return compiler.compile()


def ours(fst: Any, folder: Path) -> Machine:
    """OpenFst's machine as ours, to the six digits that it prints; empty if it has no states."""
    text = fst.print(show_weight_one=True)
    (folder / "back.att").write_text(text or "0 Infinity\n")
    return read_transducer(folder / "back.att").machine


def log_z(fst: Any) -> float:
    if fst.start() < 0:
        return -math.inf
    return -float(pywrapfst.shortestdistance(fst, reverse=True, delta=1e-14)[fst.start()])


def close(found: float, wanted: float) -> None:
    assert found == wanted or found == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_operations_have_the_total_of_openfst(seed: int, cyclic: bool, tmp_path: Path) -> None:
    a, b = (random_machine(seed + more, cyclic=cyclic) for more in (0, 40))
    x, y = theirs(a, tmp_path), theirs(b, tmp_path)
    close(passes.log_partition(a).item(), log_z(x))
    close(passes.log_partition(compose(a, b)).item(), log_z(pywrapfst.compose(x.arcsort("olabel"), y)))
    close(passes.log_partition(union(a, b)).item(), log_z(x.copy().union(y)))
    close(passes.log_partition(concatenate(a, b)).item(), log_z(x.copy().concat(y)))
    close(passes.log_partition(structure.reverse(a)).item(), log_z(pywrapfst.reverse(x)))
    close(passes.log_partition(project(invert(a), "input")).item(), log_z(x.copy().invert().project("input")))
    close(passes.log_partition(remove_epsilon(a)).item(), log_z(x.copy().rmepsilon()))


@pytest.mark.parametrize("seed", SEEDS)
def test_compositions_have_the_strings_of_openfst(seed: int, tmp_path: Path) -> None:
    a, b = random_machine(seed), random_machine(seed + 40)
    x, y = theirs(a, tmp_path), theirs(b, tmp_path)
    joint = ours(pywrapfst.compose(x.arcsort("olabel"), y), tmp_path)
    assert summed(compose(a, b)) == pytest.approx(summed(joint), abs=1e-4)


def test_star_has_the_total_of_openfst(tmp_path: Path) -> None:
    """With weights low enough to converge."""
    machine = random_machine(1, cyclic=True)
    low = machine.with_scores(machine.weights - 3, machine.initial - 2, machine.final)
    close(passes.log_partition(star(low)).item(), log_z(theirs(low, tmp_path).closure()))


@pytest.mark.parametrize("seed", SEEDS)
def test_determinised_and_minimised_acceptors_are_those_of_openfst(seed: int, tmp_path: Path) -> None:
    """Equal strings and equally many states, in the tropical and the log semiring."""
    quiet = remove_epsilon(random_machine(seed, n=6, arcs=14, acceptor=True))
    for semiring, arc_type in ((Max(), "standard"), (Log(), "log64")):
        single = determinise(quiet, semiring)
        other = pywrapfst.determinize(theirs(quiet, tmp_path, arc_type).rmepsilon())
        assert summed(single) == pytest.approx(summed(ours(other, tmp_path)), abs=1e-4)
        # OpenFst has no initial weights: its first state cannot be joined with another that goes on alike.
        assert other.minimize().num_states() - minimise(single, semiring).n_states in (0, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_pushed_weights_are_those_of_openfst(seed: int, tmp_path: Path) -> None:
    machine = random_machine(seed)
    other = theirs(machine, tmp_path).push(reweight_type="to_initial", remove_total_weight=True)
    pushed = push(machine)
    found, wanted = summed(pushed), summed(ours(other, tmp_path))
    total = passes.log_partition(machine).item()
    assert {pair: score - total for pair, score in found.items()} == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_paths_are_those_of_openfst(seed: int, tmp_path: Path) -> None:
    machine = random_machine(seed, n=6, arcs=14)
    other = ours(pywrapfst.shortestpath(theirs(machine, tmp_path, "standard"), nshortest=4), tmp_path)
    wanted = sorted((-score for *_, score in best_paths(other, 4)))
    assert sorted(-score for *_, score in best_paths(machine, 4)) == pytest.approx(wanted, abs=1e-5)


def test_openfst_reads_what_is_written(tmp_path: Path) -> None:
    words = Acceptor.from_strings(["ab", "abb", "b"])
    write_att(words, tmp_path / "a.att")
    table = pywrapfst.SymbolTable()
    for number, name in enumerate(words.symbols or ()):
        table.add_symbol(name, number)
    compiler = pywrapfst.Compiler(acceptor=True, isymbols=table)
    compiler.write((tmp_path / "a.att").read_text())
    (tmp_path / "b.att").write_text(compiler.compile().print(isymbols=table, acceptor=True))
    assert read_acceptor(tmp_path / "b.att", words.symbols).count == 3
