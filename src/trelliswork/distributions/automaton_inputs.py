"""From what a user writes to a machine: arcs, labels, weights, first and last states; all checked."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.checks import refuse_not_scores
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Array
from trelliswork.structures.automata.structure import Machine, plain_scores
from trelliswork.structures.automata.symbols import EPSILON, Symbols

Spelling = tuple[Any, ...]
"""The symbols of a string: their names, or numbers where there is no table."""
Label = int | str | None
Ends = int | Iterable[int] | Mapping[int, float] | Tensor
Table = Symbols | Iterable[str] | None


def symbols_of(given: Table, labels: Iterable[Label]) -> Symbols | None:
    """Return the given table; without one, a table of the labels as they come, or None for plain numbers."""
    if given is not None:
        return given if isinstance(given, Symbols) else Symbols(given)
    names = [label for label in labels if isinstance(label, str)]
    return Symbols(names) if names else None


def number_of(label: Label, symbols: Symbols | None) -> int:
    """Return a label as a number; None is epsilon."""
    if label is None:
        return EPSILON
    if isinstance(label, str):
        if symbols is None:
            raise ScoreError(f"labels of this machine are numbers, it has no symbol table; got {label!r}")
        return symbols.number(label)
    if isinstance(label, bool) or not hasattr(label, "__index__"):
        raise ScoreError(f"a label must be a symbol, a whole number or None for epsilon; got {label!r}")
    number = operator.index(label)
    if number < 0 or (symbols is not None and number >= len(symbols)):
        bound = "" if symbols is None else f", below {len(symbols)}"
        raise ScoreError(f"labels must be 0 (epsilon) or more{bound}; got {number}")
    return number


def numbers_of(string: str | Sequence[Label], symbols: Symbols | None) -> list[int]:
    """Return a string (its characters are the symbols) or a list of symbols as numbers, without epsilon."""
    check_string(string)
    return [number for number in (number_of(each, symbols) for each in string) if number != EPSILON]


def check_string(string: object) -> None:
    if not isinstance(string, Sequence):
        raise ScoreError(f"expected a string or a list of symbols; got {type(string).__name__}")


def names_of(numbers: Iterable[int], symbols: Symbols | None) -> Spelling:
    """Return symbols of numbers, without epsilon; plain numbers if there is no table."""
    kept = (int(number) for number in numbers if number != EPSILON)
    return tuple(kept) if symbols is None else tuple(symbols.name(number) for number in kept)


def check_arcs(arcs: Iterable[Any], form: str) -> list[Any]:
    """Check that arcs have the fields that `form` names, the first two whole numbers."""
    n_fields = form.count(",") + 1
    if not isinstance(arcs, Iterable):
        raise ScoreError(f"arcs must be a list of ({form}); got {type(arcs).__name__}")
    arcs = list(arcs)
    for place, arc in enumerate(arcs):
        if not hasattr(arc, "__len__") or len(arc) != n_fields:
            raise ScoreError(f"an arc must be ({form}); got {arc!r} at {place}")
        if not all(isinstance(state, (int, np.integer)) and state >= 0 for state in arc[:2]):
            raise ScoreError(f"states must be whole numbers from 0; got {arc!r} at {place}")
    return arcs


def tensor_of(weights: Tensor | Sequence[float] | None, size: int, of: str = "arc") -> Tensor:
    """Return checked weights, one for each arc (or whatever there is); 0 if none are given.

    Args:
        weights: one number for each arc, in any float dtype; None for 0 everywhere.
        size: the number of arcs.
        of: what has the weights, for the sentence of an error.

    Returns:
        Weights [size].
    """
    try:
        scores = torch.zeros(size) if weights is None else torch.as_tensor(weights)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ScoreError(f"weights must be one number for each {of}; got {type(weights).__name__}: {error}") from error
    if not scores.is_floating_point():
        scores = scores.to(torch.get_default_dtype())
    check_scores(scores, "weights", size)
    return scores


def machine_of(
    arcs: Sequence[tuple[int, int, Label, Label]],
    weights: Tensor | Sequence[float] | None,
    initial: Ends,
    final: Ends,
    tables: tuple[Symbols | None, Symbols | None],
    n_states: int | None,
) -> Machine:
    """Return a checked machine of arcs (source, target, input, output).

    Args:
        arcs: (source, target, input, output) with states counted from 0; None as a label is epsilon.
        weights: a score for each arc; None for 0.
        initial: the first states: one, several, a mapping from states to scores, or scores [states].
        final: the last states, in the same forms.
        tables: the symbol tables of inputs and outputs; None where labels are plain numbers.
        n_states: the number of states; None for one more than the highest that is named.

    Returns:
        The machine, its labels as numbers.
    """
    table = np.array(
        [(s, t, number_of(i, tables[0]), number_of(o, tables[1])) for s, t, i, o in arcs], np.int64
    ).reshape(-1, 4)
    source, target, read, written = (np.ascontiguousarray(column) for column in table.T)
    scores = tensor_of(weights, len(source))
    initial, final = _states_of(initial, "initial"), _states_of(final, "final")
    n = _size_of(n_states, source, target, initial, final)
    first, last = (ends_of(ends, n, scores, name) for ends, name in ((initial, "initial"), (final, "final")))
    return Machine(source, target, read, written, scores, first, last)


def _size_of(n_states: int | None, source: Array, target: Array, initial: Ends, final: Ends) -> int:
    named = [int(source.max(initial=-1)), int(target.max(initial=-1)), *(_highest(ends) for ends in (initial, final))]
    n = max(named) + 1 if n_states is None else n_states
    if n < 0:
        raise ScoreError(f"n_states must be at least 0; got {n}")
    if max(named) >= n:
        raise ScoreError(f"states must lie in 0..{n - 1}; got {max(named)}")
    return n


def _states_of(ends: Any, name: str) -> int | list[int] | dict[int, float] | Tensor:
    """Return one state, several, or a dictionary of weights, each state a whole number; a tensor as it is."""
    if isinstance(ends, Tensor):
        return ends
    try:
        if hasattr(ends, "__index__"):
            return operator.index(ends)
        if isinstance(ends, Mapping):
            return {operator.index(q): weight for q, weight in ends.items()}
        return [operator.index(q) for q in ends]
    except TypeError as error:
        raise ScoreError(
            f"{name} must be a state, several, a dictionary from states to weights, or a tensor; got {ends!r}"
        ) from error


def _highest(ends: Ends) -> int:
    if isinstance(ends, Tensor):
        return len(ends) - 1
    return ends if isinstance(ends, int) else max((int(q) for q in ends), default=-1)


def ends_of(ends: Ends, n: int, like: Tensor, name: str) -> Tensor:
    """Return weights [states] from one state, several, a dictionary of weights, or a tensor as it is.

    Args:
        ends: a state, several states, a mapping from states to scores, or scores [n] themselves.
        n: the number of states.
        like: a tensor whose dtype and device the result has.
        name: `initial` or `final`, for the sentence of an error.

    Returns:
        Scores [n], -inf for states that are not named.
    """
    if isinstance(ends, Tensor):
        check_scores(ends, name, n)
        return ends.to(like.dtype)
    chosen = {ends: 0.0} if isinstance(ends, int) else ends if isinstance(ends, Mapping) else dict.fromkeys(ends, 0.0)
    if any(not 0 <= int(q) < n for q in chosen):
        raise ScoreError(f"{name} states must lie in 0..{n - 1}; got {sorted(chosen)}")
    weights = like.new_full((n,), -INF, requires_grad=False)
    for q, weight in chosen.items():
        weights[int(q)] = float(weight)
    check_scores(weights, name, n)
    return weights


def check_scores(scores: Tensor, name: str, size: int) -> None:
    """Refuse scores that are not `size` floats without NaN and +inf.

    Args:
        scores: the scores to check.
        name: what they are called, for the sentence of an error.
        size: how many there must be.
    """
    if scores.shape != (size,):
        raise ScoreError(f"{name} must be one number each, [{size}]; got {tuple(scores.shape)}")
    if not scores.is_floating_point():
        raise ScoreError(f"{name} must be floats; got {scores.dtype}; call .float() on them")
    if scores.device.type != "cpu":
        raise ScoreError(f"machines are on the CPU; {name} are on {scores.device}; move them with .cpu()")
    plain_scores(scores)  # an error under torch.vmap
    refuse_not_scores(name, scores)
