"""Weighted acceptors and transducers: distributions over strings and over pairs of strings, and their algebra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import torch
from torch import Tensor

from trelliswork.distributions import automaton_inputs as inputs
from trelliswork.distributions.automaton import Automaton, Path
from trelliswork.distributions.automaton_inputs import Ends, Label, Spelling, Table, names_of, numbers_of, symbols_of
from trelliswork.distributions.base import Backend
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array, Float
from trelliswork.semirings import Log, Max, Semiring
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.automata import build, rational, search, structure
from trelliswork.structures.automata import compose as composition
from trelliswork.structures.automata import determinise as smaller
from trelliswork.structures.automata.determinise import decode, encode
from trelliswork.structures.automata.epsilon import remove_epsilon
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.automata.symbols import Symbols, unify

String = str | Sequence[Label]
LOG = Log()
PREFIXES = 100_000


class _Algebra(Automaton):
    """The operations that acceptors and transducers have in common."""

    def _join_tables(self, other: Self) -> tuple[Machine, tuple[Symbols | None, Symbols | None]]:
        """Return the other machine with labels in one table with ours, and those tables."""
        if type(other) is not type(self):
            raise ScoreError(f"expected another {type(self).__name__}; got {type(other).__name__}; use to_transducer()")
        machine, tables = other.machine, []
        for side, left, right in zip(("input", "output"), self._tables, other._tables, strict=True):
            table, moved = unify(left, right)
            machine = machine if moved is None else _relabel(machine, **{side: moved})
            tables.append(table)
        return machine, (tables[0], tables[1])

    def _made(self, machine: Machine, tables: tuple[Symbols | None, Symbols | None]) -> Self:
        made = self._like(machine)
        made._tables = tables
        return made

    def union(self, other: Self) -> Self:
        """Return strings of either; weights of strings of both add up."""
        machine, tables = self._join_tables(other)
        return self._made(rational.union(self.machine, machine), tables)

    def concatenate(self, other: Self) -> Self:
        """Return a string of this and then one of the other."""
        machine, tables = self._join_tables(other)
        return self._made(rational.concatenate(self.machine, machine), tables)

    def star(self) -> Self:
        """Return any number of strings of this, one after the other; none as well (Kleene)."""
        return self._like(rational.star(self.machine))

    def reverse(self) -> Self:
        """Return every string backwards."""
        return self._like(structure.reverse(self.machine))

    def connect(self) -> Self:
        """Drop states and arcs that lie on no path."""
        return self._like(structure.trim(self.machine))

    def remove_epsilon(self, semiring: Semiring = LOG) -> Self:
        """Drop arcs that read and write nothing; `Log` or `Max` joins their weights."""
        return self._like(remove_epsilon(self.machine, semiring))

    def push(self, semiring: Semiring = LOG) -> Self:
        """Return weights moved to the front; in the log semiring every state's arcs and end then sum to 1."""
        return self._like(smaller.push(self.machine, semiring))

    def compose(self, other: Automaton) -> Any:
        """Return x:z for all x:y of this and y:z of the other; acceptors are read as y:y."""  # [S2, WFST composition]
        if not isinstance(other, Automaton):
            raise ScoreError(
                f"compose() takes an acceptor or a transducer; got {type(other).__name__}; "
                "make a string one with Acceptor.from_string"
            )
        table, moved = unify(self._tables[1], other._tables[0])
        machine = other.machine
        if moved is not None:
            machine = _relabel(machine, input=moved, output=moved if isinstance(other, Acceptor) else None)
        outputs = table if isinstance(other, Acceptor) else other._tables[1]
        made = composition.compose(self.machine, machine)
        both = isinstance(self, Acceptor) and isinstance(other, Acceptor)
        kind: type[Automaton] = Acceptor if both else Transducer
        return _built(kind, made, (table if isinstance(self, Acceptor) else self._tables[0], outputs), self.backend)

    __or__, __add__, __matmul__ = union, concatenate, compose


class Acceptor(_Algebra):
    """Weighted strings: p(string) is proportional to the summed exp scores of its paths.

    Mohri, Pereira and Riley (2002), "Weighted Finite-State Transducers in Speech Recognition".

    `arcs` are (source, target, label); a label is a symbol, a number, or None for epsilon. `initial` and `final` are
    one state, several, a dictionary of weights or a tensor [states]. Weights are log scores, one for each arc.

    >>> a = Acceptor([(0, 1, "a"), (1, 1, "b")], [-1.0, -2.0], initial=0, final=1)
    >>> a.score("abb")
    tensor(-5.)

    Args:
        arcs: (source, target, label) with states counted from 0; a label is a symbol, a number, or None for epsilon.
        weights: log score of each arc [arcs]; None for 0.
        initial: the first states: one, several, a dictionary of scores, or scores [states].
        final: the last states, in the same forms.
        symbols: the names of the labels; None for numbers, or to collect the names from the arcs.
        n_states: the number of states; None for one more than the highest that is named.
        backend: "kernel", "torch" or "auto".
    """

    def __init__(
        self,
        arcs: Sequence[tuple[int, int, Label]],
        weights: Float[Tensor, "arcs"] | Sequence[float] | None = None,
        *,
        initial: Ends = 0,
        final: Ends,
        symbols: Table = None,
        n_states: int | None = None,
        backend: Backend = "auto",
    ):
        arcs = inputs.check_arcs(arcs, "source, target, label")
        table = symbols_of(symbols, (label for _, _, label in arcs))
        both = [(source, target, label, label) for source, target, label in arcs]
        super().__init__(
            inputs.machine_of(both, weights, initial, final, (table, table), n_states), (table, table), backend
        )

    @classmethod
    def from_machine(cls, machine: Machine, symbols: Symbols | None = None, backend: Backend = "auto") -> Acceptor:
        """Return the acceptor of a machine whose arcs read what they write.

        Args:
            machine: states and arcs, as the functions of `structures.automata` make them.
            symbols: the names of its labels; None for plain numbers.
            backend: "kernel", "torch" or "auto".
        """
        return _built(cls, machine, (symbols, symbols), backend)

    @classmethod
    def from_string(cls, string: String, symbols: Table = None, dtype: torch.dtype = torch.float32) -> Acceptor:
        """Return one string of weight 0.

        Args:
            string: characters, symbols or numbers.
            symbols: a table of the symbols; those of the string if not given.
            dtype: of the scores.

        Returns:
            An acceptor of this string alone.
        """
        inputs.check_string(string)
        table = symbols_of(symbols, string)
        numbers = numbers_of(string, table)
        return cls.from_machine(build.string(numbers, numbers, dtype), table)

    @classmethod
    def from_strings(
        cls,
        strings: Sequence[String],
        weights: Float[Tensor, "strings"] | Sequence[float] | None = None,
        symbols: Table = None,
    ) -> Acceptor:
        """Return some strings, as a tree that shares their prefixes; weights of equal strings add up.

        Args:
            strings: characters, symbols or numbers of each.
            weights: [strings], the log weight of each; 0 if not given.
            symbols: a table of the symbols; those of the strings if not given.

        Returns:
            An acceptor of these strings alone.
        """
        table = symbols_of(symbols, (label for string in strings for label in string))
        scores = inputs.tensor_of(weights, len(strings), "string")
        return cls.from_machine(build.trie([numbers_of(string, table) for string in strings], scores), table)

    @classmethod
    def from_emissions(cls, emissions: Float[Tensor, "n c"], symbols: Table = None) -> Acceptor:
        """Return all label sequences of length n, scored as by `LinearChain` without transitions.

        Label y is number y + 1.
        """
        if emissions.dim() != 2:
            raise ScoreError(f"emissions must be [n, c], one sentence; got {tuple(emissions.shape)}")
        inputs.check_scores(emissions.reshape(-1), "emissions", emissions.numel())
        table = None if symbols is None else symbols_of(symbols, ())
        if table is not None and len(table) != emissions.shape[1] + 1:
            raise ScoreError(f"symbols must name the {emissions.shape[1]} labels; got {len(table) - 1}")
        return cls.from_machine(build.lattice(emissions, range(1, emissions.shape[1] + 1)), table)

    @property
    def symbols(self) -> Symbols | None:
        return self._tables[0]

    def intersect(self, other: Acceptor) -> Acceptor:
        """Return the strings of both, weights multiplied (log scores added)."""
        if not isinstance(other, Acceptor):
            raise ScoreError("intersection takes two acceptors; compose() takes transducers")
        made: Acceptor = self.compose(other)
        return made

    __and__ = intersect

    def determinise(self, semiring: Semiring = LOG, limit: int = PREFIXES) -> Acceptor:
        """Return one path for each string; with cycles that may be impossible: an error beyond `limit` states."""
        return self._like(smaller.determinise(self.remove_epsilon(semiring).machine, semiring, limit))

    def minimise(self, semiring: Semiring = LOG) -> Acceptor:
        """Return the smallest deterministic machine; takes a deterministic one."""
        return self._like(smaller.minimise(self.machine, semiring))

    def to_transducer(self) -> Transducer:
        """Return the identity x:x on the strings of this."""
        return _built(Transducer, self.machine, self._tables, self.backend)

    def top_k_strings(
        self, k: int, *, summed: bool = True, limit: int = PREFIXES
    ) -> tuple[list[Spelling], Float[Tensor, "found"]]:
        """Return the k best strings, without duplicates, and their scores, best first; fewer if there are fewer.

        Args:
            k: how many strings to return, at least 1.
            summed: whether a string scores the log of the summed weights of its paths; if False it scores its best
                path.
            limit: how many prefixes the search may look at. The result is exact; if it needs more prefixes, it is an
                error.

        Returns:
            The strings as tuples of symbols, and their scores [found], `found` at most k.
        """
        if k < 1:
            raise ScoreError(f"k must be at least 1; got {k}; ask for one best string or more")
        with torch.no_grad():
            quiet = remove_epsilon(self._precise, LOG if summed else Max())
            best_strings = search.best_strings(quiet, k, summed=summed, limit=limit)
        strings = [names_of(labels, self.symbols) for labels, _ in best_strings]
        return strings, self._batched(torch.tensor([score for _, score in best_strings], dtype=torch.float64))

    def _with_value(self, value: String) -> Acceptor:
        return self._with_language(value)

    def _with_language(self, language: Acceptor | String) -> Acceptor:
        """Return a string, or the strings of an acceptor whatever their weights."""
        return self.intersect(_language(language, self.symbols, self.weights.dtype))


class Transducer(_Algebra):
    """Weighted pairs of strings; arcs are (source, target, input, output), epsilon (None) on either side.

    >>> t = Transducer([(0, 1, "a", "x"), (0, 1, "a", "y")], [0.0, 1.0], initial=0, final=1)
    >>> t.log_prob("y", given="a")
    tensor(-0.3133)

    Args:
        arcs: (source, target, input, output) with states counted from 0; None on either side is epsilon.
        weights: log score of each arc [arcs]; None for 0.
        initial: the first states: one, several, a dictionary of scores, or scores [states].
        final: the last states, in the same forms.
        input_symbols: the names of the labels that arcs read; None for numbers, or to collect them from the arcs.
        output_symbols: the names of the labels that arcs write, in the same way.
        n_states: the number of states; None for one more than the highest that is named.
        backend: "kernel", "torch" or "auto".
    """

    def __init__(
        self,
        arcs: Sequence[tuple[int, int, Label, Label]],
        weights: Float[Tensor, "arcs"] | Sequence[float] | None = None,
        *,
        initial: Ends = 0,
        final: Ends,
        input_symbols: Table = None,
        output_symbols: Table = None,
        n_states: int | None = None,
        backend: Backend = "auto",
    ):
        arcs = inputs.check_arcs(arcs, "source, target, input, output")
        tables = symbols_of(input_symbols, (a[2] for a in arcs)), symbols_of(output_symbols, (a[3] for a in arcs))
        super().__init__(inputs.machine_of(arcs, weights, initial, final, tables, n_states), tables, backend)

    @classmethod
    def from_machine(
        cls, machine: Machine, input_symbols: Symbols | None = None, output_symbols: Symbols | None = None
    ) -> Transducer:
        """Return the transducer of a machine.

        Args:
            machine: states and arcs, as the functions of `structures.automata` make them.
            input_symbols: the names of the labels that arcs read; None for plain numbers.
            output_symbols: the names of the labels that arcs write; None for plain numbers.

        Returns:
            A transducer that shares the weights of the machine.
        """
        return _built(cls, machine, (input_symbols, output_symbols), "auto")

    @property
    def input_symbols(self) -> Symbols | None:
        return self._tables[0]

    @property
    def output_symbols(self) -> Symbols | None:
        return self._tables[1]

    def invert(self) -> Transducer:
        """Return input and output exchanged."""
        return self._made(rational.invert(self.machine), (self._tables[1], self._tables[0]))

    def project(self, side: Literal["input", "output"]) -> Acceptor:
        """Return an acceptor of one side's strings."""
        if side not in ("input", "output"):
            raise ScoreError(f'side must be "input" or "output"; got {side!r}')
        table = self._tables[side == "output"]
        return _built(Acceptor, rational.project(self.machine, side), (table, table), self.backend)

    def determinise(self, semiring: Semiring = LOG, limit: int = PREFIXES) -> Transducer:
        """Return one path for each sequence of input:output symbols: a pair counts as one symbol."""
        machine, pairs = encode(remove_epsilon(self.machine, semiring))
        return self._like(decode(smaller.determinise(machine, semiring, limit), pairs))

    def minimise(self, semiring: Semiring = LOG) -> Transducer:
        """Return the smallest such machine; takes one from `determinise`."""
        machine, pairs = encode(self.machine)
        return self._like(decode(smaller.minimise(machine, semiring), pairs))

    def given(self, string: String | Acceptor) -> Transducer:
        """Return x ∘ T: only the paths that read this string (or a string of this acceptor, whatever its weight)."""
        return self._with_language((string, None))

    def log_prob(self, value: Any, given: String | None = None) -> Tensor:
        """Return log p of a `Path` or of a pair (x, y).

        With `given=x`, log p(y | x) = log Z(x, y) - log Z(x): all paths of y
        are summed. -inf where the machine does not map x to y."""  # [S2, WFST distribution]
        if given is None:
            return super().log_prob(value)
        reading = self.given(given)
        return self._batched(log_ratio(reading._with_language((None, value))._log_z, reading._log_z))

    def top_k_strings(
        self, k: int, *, given: String | None = None, summed: bool = True, limit: int = PREFIXES
    ) -> tuple[list[Spelling], Float[Tensor, "found"]]:
        """Return the k best outputs (of an input, if given) and their scores; see `Acceptor.top_k_strings`.

        Args:
            k: how many outputs to return, at least 1.
            given: the input whose outputs are asked for; None for the outputs of all inputs together.
            summed: whether an output scores the log of the summed weights of its paths; if False it scores its best
                path.
            limit: how many prefixes the search may look at; if it needs more, it is an error.

        Returns:
            The outputs as tuples of symbols, and their scores [found], `found` at most k.
        """
        machine = self if given is None else self.given(given)
        return machine.project("output").top_k_strings(k, summed=summed, limit=limit)

    def _with_value(self, value: tuple[String, String]) -> Transducer:
        if not isinstance(value, tuple) or len(value) != 2:
            raise ScoreError(f"a value of a transducer is a Path or a pair (input, output); got {value!r}")
        return self._with_language(value)

    def _with_language(self, language: tuple[Acceptor | String | None, Acceptor | String | None]) -> Transducer:
        """Return a pair of languages for input and output, None for any."""
        if not isinstance(language, tuple) or len(language) != 2:
            raise ScoreError(f"a transducer is constrained by a pair (input, output), None for any; got {language!r}")
        made, dtype = self, self.weights.dtype
        if language[0] is not None:
            made = _language(language[0], self.input_symbols, dtype).compose(made)
        if language[1] is not None:
            made = made.compose(_language(language[1], self.output_symbols, dtype))
        return made


def _built(kind: type[Any], machine: Machine, tables: tuple[Symbols | None, Symbols | None], backend: Backend) -> Any:
    made = object.__new__(kind)
    Automaton.__init__(made, machine, tables, backend)
    return made


def _relabel(machine: Machine, input: Array | None = None, output: Array | None = None) -> Machine:
    read = machine.input if input is None else input[machine.input]
    return replace(machine, input=read, output=machine.output if output is None else output[machine.output])


def _language(language: Acceptor | String, symbols: Symbols | None, dtype: torch.dtype) -> Acceptor:
    """Return each string of a language once, with weight 0."""
    if not isinstance(language, Acceptor):
        return Acceptor.from_string(language, symbols, dtype)
    machine = language.machine
    flat = machine.with_scores(*(torch.where(each > -torch.inf, 0.0, -torch.inf).to(dtype) for each in machine.scores))
    return Acceptor.from_machine(flat, language.symbols).determinise(Max())


__all__ = ["Acceptor", "Path", "Transducer"]
