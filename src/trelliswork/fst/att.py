"""OpenFst's text format (AT&T): one arc or final state per line, weights as costs, symbol tables in separate files.

    source target input output [cost]       an arc of a transducer
    source target label [cost]              an arc of an acceptor
    state [cost]                            a final state

The initial state is that of the first line. A cost is a negative log score; the default is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import torch

from trelliswork.distributions.acceptor import Acceptor, Transducer
from trelliswork.errors import DataError, OutputError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.runtime.arrays import INF
from trelliswork.structures.automata.build import only
from trelliswork.structures.automata.rational import single_initial
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.automata.symbols import EPSILON_NAMES, Symbols
from trelliswork.writing import atomic_write

MOST = 2**31 - 1  # largest state and label number, as in OpenFst
FEW = 1_000_000  # state numbers below may have gaps; far above, a gap is taken for a mistake before memory is allocated


def read_symbols(path: str | Path) -> Symbols:
    """Read a symbol table: one `symbol number` per line, epsilon as 0 and the others numbered from 1 without gaps."""
    name_of_number: dict[int, str] = {}
    names: set[str] = set()
    for line, text in numbered_lines(path):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != 2 or not _is_number(fields[1]):
            raise DataError(name_of(path), f"expected `symbol number`; got {_short(text)}", line=line)
        if int(fields[1]) in name_of_number or fields[0] in names:
            raise DataError(name_of(path), f"{text!r}: symbol or number occurs twice; remove one", line=line)
        name_of_number[int(fields[1])] = fields[0]
        names.add(fields[0])
    if name_of_number.get(0, EPSILON_NAMES[0]) not in EPSILON_NAMES:
        raise DataError(name_of(path), f"number 0 must be epsilon ({EPSILON_NAMES[0]}); got {name_of_number[0]!r}")
    numbers = sorted({0, *name_of_number})
    if numbers != list(range(len(numbers))):
        gap = next(i for i, number in enumerate(numbers) if i != number)
        raise DataError(name_of(path), f"symbols must be numbered without gaps; {gap} is missing")
    return Symbols(name_of_number[number] for number in numbers[1:])


def write_symbols(symbols: Symbols, path: str | Path) -> None:
    """Write a symbol table in OpenFst's format."""
    with atomic_write(path) as file:
        file.writelines(f"{_name(symbols, number)}\t{number}\n" for number in range(len(symbols)))


def read_acceptor(path: str | Path, symbols: Symbols | Iterable[str] | None = None) -> Acceptor:
    """Read an acceptor with float64 weights; labels are symbols if a table is given, else numbers."""
    table = _table(symbols)
    machine = _Reader(path, "acceptor", (table, table)).machine()
    return Acceptor.from_machine(machine, table)


def read_transducer(
    path: str | Path,
    input_symbols: Symbols | Iterable[str] | None = None,
    output_symbols: Symbols | Iterable[str] | None = None,
) -> Transducer:
    """Read a transducer with float64 weights.

    Args:
        path: The file.
        input_symbols: Symbol table of the input labels; without one they are numbers.
        output_symbols: Symbol table of the output labels.
    """
    tables = _table(input_symbols), _table(output_symbols)
    machine = _Reader(path, "transducer", tables).machine()
    return Transducer.from_machine(machine, *tables)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MOST)) and int(text) <= MOST


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _table(symbols: Symbols | Iterable[str] | None) -> Symbols | None:
    return symbols if symbols is None or isinstance(symbols, Symbols) else Symbols(symbols)


class _Reader:
    """Arcs and final states of one file, collected line by line."""

    def __init__(
        self,
        path: str | Path,
        kind: Literal["acceptor", "transducer"],
        tables: tuple[Symbols | None, Symbols | None],
    ):
        self.path, self.tables = path, tables
        self.n_labels = 1 if kind == "acceptor" else 2
        self.arcs: list[tuple[int, int, int, int]] = []
        self.weights: list[float] = []
        self.ends: dict[int, float] = {}
        self.first: int | None = None
        self.highest = (-1, 0)  # the highest state, and its line
        for line, text in numbered_lines(path):
            if fields := text.split():
                self._take(fields, line)

    def _take(self, fields: list[str], line: int) -> None:
        state = self._state(fields[0], line)
        self.first = state if self.first is None else self.first
        if len(fields) <= 2:
            if state in self.ends:
                self._fail(f"state {state} is declared final twice; remove one line", line)
            self.ends[state] = self._weight(fields[1:], line)
            return
        if len(fields) not in (2 + self.n_labels, 3 + self.n_labels):
            wanted = "label" if self.n_labels == 1 else "input output"
            self._fail(f"expected `source target {wanted} [cost]` or `state [cost]`; got {len(fields)} fields", line)
        labels_end = 2 + self.n_labels
        labels = [self._label(each, side, line) for side, each in enumerate(fields[2:labels_end])]
        self.arcs.append((state, self._state(fields[1], line), labels[0], labels[-1]))
        self.weights.append(self._weight(fields[labels_end:], line))

    def _state(self, text: str, line: int) -> int:
        if not _is_number(text):
            self._fail(f"a state must be a whole number from 0 to {MOST}; got {_short(text)}", line)
        self.highest = max(self.highest, (int(text), line))
        return int(text)

    def _label(self, text: str, side: int, line: int) -> int:
        table = self.tables[side]
        if table is None and not _is_number(text):
            wanted = f"without a symbol table, a label must be a whole number up to {MOST}"
            self._fail(f"{wanted}; got {_short(text)}; give the table", line)
        if table is not None and text not in table:
            self._fail(f"{text!r} is not in the symbol table; add it or correct its spelling", line)
        return int(text) if table is None else table.number(text)

    def _weight(self, fields: list[str], line: int) -> float:
        if not fields:
            return 0.0
        try:
            cost = float(fields[0])
        except ValueError:
            cost = math.nan
        if math.isnan(cost) or cost == -INF:
            self._fail(f"a cost must be a number, or Infinity to forbid the arc; got {fields[0]!r}", line)
        return -cost

    def _fail(self, problem: str, line: int) -> NoReturn:
        raise DataError(name_of(self.path), problem, line=line)

    def machine(self) -> Machine:
        if self.first is None:
            raise DataError(name_of(self.path), "expected at least one state; got an empty file")
        source, target, read, written = np.array(self.arcs, np.int64).reshape(-1, 4).T.copy()
        n = 1 + self.highest[0]
        if n > max(FEW, 100 * (len(self.arcs) + len(self.ends))):
            self._fail(
                f"states must be numbered without wide gaps; got {n - 1} in a file of few states", self.highest[1]
            )
        final = torch.full((n,), -INF, dtype=torch.float64)
        for state, weight in self.ends.items():
            final[state] = weight
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return Machine(source, target, read, written, weights, only(n, self.first, torch.float64), final)


def write_att(automaton: Acceptor | Transducer, path: str | Path) -> None:
    """Write the text format, with symbols for labels if there are tables.

    The format has a single initial state: several become one with epsilon arcs to them.
    """
    machine = single_initial(automaton.machine)
    sides = (machine.input,) if isinstance(automaton, Acceptor) else (machine.input, machine.output)
    tables = (automaton.symbols,) if isinstance(automaton, Acceptor) else automaton._tables
    weights, _, final = machine.arrays
    lines = {q: [f"{q}\t{_cost(final[q])}\n"] if final[q] > -INF else [] for q in range(machine.n_states)}
    for arc, (source, target) in enumerate(zip(machine.source.tolist(), machine.target.tolist(), strict=True)):
        labels = (
            str(side[arc]) if table is None else _name(table, int(side[arc]))
            for side, table in zip(sides, tables, strict=True)
        )
        lines[source].append("\t".join([str(source), str(target), *labels, _cost(weights[arc])]) + "\n")
    with atomic_write(path) as file:
        if not lines.get(0):
            file.write("0\tInfinity\n")  # the first line names the initial state, even if no arc leaves it
        for lines_of_state in lines.values():
            file.writelines(lines_of_state)


def _name(table: Symbols, number: int) -> str:
    """Return the name of a symbol, which must fit in one field of a line."""
    name = table.name(number)
    if name.split() != [name]:
        raise OutputError(f"symbols must not contain spaces, which separate fields; got {name!r}; rename it")
    return name


def _cost(weight: float) -> str:
    return "Infinity" if weight == -INF else repr(float(-weight) + 0.0)
