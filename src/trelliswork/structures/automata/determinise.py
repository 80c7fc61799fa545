"""Determinisation, pushing and minimisation of acceptors: smaller machines of the same weighted strings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Array
from trelliswork.semirings import Max, Semiring
from trelliswork.structures.automata.structure import LOG, Machine, check_semiring, forward, reverse, trim

# Transducers as acceptors of pairs: input and output become one symbol, and back.


def encode(machine: Machine) -> tuple[Machine, Array]:
    """Return an acceptor of numbered pairs, and the pairs [numbers, 2]; number 0 is ε:ε."""
    both = np.stack([machine.input, machine.output], 1)
    pairs, number = np.unique(np.concatenate([[[0, 0]], both]), axis=0, return_inverse=True)
    number = number.reshape(-1)[1:]
    return replace(machine, input=number, output=number), pairs


def decode(machine: Machine, pairs: Array) -> Machine:
    """Return the way back from `encode`."""
    return replace(machine, input=pairs[machine.input, 0], output=pairs[machine.output, 1])


DIGITS = 9  # weights that agree so far are one weight
JoinWeights = Callable[[list[float]], float]
Subset = tuple[tuple[int, float], ...]  # states with what their paths still owe


def determinise(machine: Machine, semiring: Semiring = LOG, limit: int = 100_000) -> Machine:
    """Leave at most one path for each string, by weighted subsets of an epsilon-free acceptor.

    Args:
        machine: an acceptor without epsilon.
        semiring: with `Log` equal strings add up, with `Max` the best path stays.
        limit: how many states the result may have; more are an error. Machines with cycles may have no finite answer.

    Returns:
        The machine, its weights without gradients.
    """
    check_semiring(semiring, "determinisation")
    machine = trim(machine)
    if bool((machine.input != machine.output).any()) or bool((machine.input == 0).any()):
        raise ScoreError("determinisation needs an acceptor without epsilon; project it and remove epsilon first")
    join: JoinWeights = max if isinstance(semiring, Max) else np.logaddexp.reduce
    _, initial, final = machine.arrays
    start, owed = _normalise([(q, initial[q]) for q in np.flatnonzero(initial > -INF).tolist()], join)
    number, queue, arcs = {_key(start): 0}, [start], list[tuple[int, int, int, float]]()
    ends = []
    for place, subset in enumerate(queue):  # the queue grows while it is read
        ends.append(float(join([owes + final[q] for q, owes in subset])) if subset else -INF)
        for label, arrivals in _steps(machine, subset):
            reached, weight = _normalise([(q, float(join(each))) for q, each in arrivals.items()], join)
            key = _key(reached)
            if key not in number:
                number[key] = len(queue)
                queue.append(reached)
                if len(queue) > limit:
                    raise ScoreError(
                        f"determinisation needs more than {limit} states: raise `limit`, or the machine has cycles "
                        "whose weights differ between paths of the same string (no finite deterministic machine exists)"
                    )
            arcs.append((place, number[key], label, weight))
    return trim(_assemble(arcs, ends, owed if start else -INF, machine.weights))


def _steps(machine: Machine, subset: Subset) -> Iterator[tuple[int, dict[int, list[float]]]]:
    offsets, order = machine.out
    weights = machine.arrays[0]
    by_symbol: dict[int, dict[int, list[float]]] = {}
    for q, owes in subset:
        for arc in order[offsets[q] : offsets[q + 1]].tolist():
            arrivals = by_symbol.setdefault(int(machine.input[arc]), {})
            arrivals.setdefault(int(machine.target[arc]), []).append(owes + float(weights[arc]))
    yield from sorted(by_symbol.items())


def _normalise(arrivals: list[tuple[int, float]], join: JoinWeights) -> tuple[Subset, float]:
    """Return the common weight taken out: what is left is owed by each state."""
    if not arrivals:
        return (), -INF
    weight = float(join([score for _, score in arrivals]))
    return tuple(sorted((q, score - weight) for q, score in arrivals)), weight


def _key(subset: Subset) -> Subset:
    return tuple((q, round(owes, DIGITS) + 0.0) for q, owes in subset)


def _assemble(arcs: list[tuple[int, int, int, float]], ends: list[float], start: float, like: Tensor) -> Machine:
    table = np.array([arc[:3] for arc in arcs], np.int64).reshape(-1, 3)
    source, target, label = (np.ascontiguousarray(column) for column in table.T)
    initial = like.new_full((len(ends),), -INF)
    initial[0] = start
    weights = like.new_tensor([arc[3] for arc in arcs])
    return Machine(source, target, label, label, weights, initial, like.new_tensor(ends))


def push(machine: Machine, semiring: Semiring = LOG) -> Machine:
    """Return weights moved as far as possible to the front: what is ahead of each state, its end included, totals 1.

    All paths keep their scores, and in the log semiring arcs and ends of a state become its
    probabilities. Differentiable.
    """
    check_semiring(semiring, "pushing")
    machine = trim(machine)
    if machine.n_states == 0:
        return machine
    ahead = forward(reverse(machine.double()), semiring)
    source, target = torch.from_numpy(machine.source), torch.from_numpy(machine.target)
    scores = (
        machine.weights.double() + ahead[target] - ahead[source],
        machine.initial.double() + ahead,
        machine.final.double() - ahead,
    )
    return machine.with_scores(*(each.to(machine.weights.dtype) for each in scores))


def minimise(machine: Machine, semiring: Semiring = LOG) -> Machine:
    """Return the smallest deterministic machine of the same weighted strings: push, then join states that go on alike.

    Takes a deterministic acceptor. Weights that agree to 9 digits count as equal; they come out without gradients.
    """
    dtype = machine.weights.dtype
    with torch.no_grad():
        machine = push(machine.double(), semiring)
    _require_deterministic(machine)
    weights, _, final = machine.arrays
    letters = [(int(x), round(float(w), DIGITS) + 0.0) for x, w in zip(machine.input, weights, strict=True)]
    ends = [round(float(f), DIGITS) + 0.0 if f > -INF else -INF for f in final]
    blocks = _refine(machine, letters, ends)
    n_blocks = int(blocks.max(initial=-1)) + 1
    chosen = np.unique(blocks, return_index=True)[1]  # one state stands for each block
    arcs = np.flatnonzero(np.isin(machine.source, chosen))
    kept = machine.kept_arcs(arcs)
    initial = machine.initial.new_full((n_blocks,), -INF)
    for q in np.flatnonzero(machine.arrays[1] > -INF).tolist():
        initial[blocks[q]] = machine.initial[q]
    return replace(
        kept, source=blocks[kept.source], target=blocks[kept.target], weights=kept.weights.to(dtype),
        initial=initial.to(dtype), final=machine.final[torch.from_numpy(chosen)].to(dtype),
    )  # fmt: skip


def _require_deterministic(machine: Machine) -> None:
    pairs = np.stack([machine.source, machine.input], 1)
    starts = int((machine.arrays[1] > -INF).sum())
    if len(np.unique(pairs, axis=0)) < len(pairs) or starts > 1 or bool((machine.input == 0).any()):
        raise ScoreError("minimisation needs a deterministic acceptor without epsilon; call determinise() first")


def _refine(machine: Machine, letters: list[tuple[int, float]], ends: list[float]) -> Array:
    """Return blocks of states that no string tells apart (Moore): split until nothing splits."""
    offsets, order = machine.out
    blocks = _number(ends)
    while True:
        signatures = [
            (int(blocks[q]), *sorted((*letters[a], int(blocks[machine.target[a]])) for a in _arcs(offsets, order, q)))
            for q in range(machine.n_states)
        ]
        finer = _number(signatures)
        if finer.max(initial=-1) == blocks.max(initial=-1):
            return blocks
        blocks = finer


def _arcs(offsets: Array, order: Array, q: int) -> list[int]:
    arcs: list[int] = order[offsets[q] : offsets[q + 1]].tolist()
    return arcs


def _number(keys: Sequence[Hashable]) -> Array:
    number: dict[object, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
