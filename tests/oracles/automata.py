"""Every path of a small acyclic machine."""

from __future__ import annotations

from collections.abc import Iterator

from trelliswork.structures.automata.structure import Machine

INF = float("inf")
Path = tuple[int, tuple[int, ...]]


def paths(machine: Machine, longest: int = 12) -> Iterator[tuple[Path, float]]:
    """((first state, arcs), score) of every path above -inf with at most `longest` arcs."""
    weights, initial, final = (each.detach().double().tolist() for each in machine.scores)
    source, target = machine.source.tolist(), machine.target.tolist()

    def follow(state: int, arcs: tuple[int, ...], first: int, score: float) -> Iterator[tuple[Path, float]]:
        if score == -INF:
            return
        if final[state] > -INF:
            yield (first, arcs), score + final[state]
        if len(arcs) < longest:
            for arc, begin in enumerate(source):
                if begin == state:
                    yield from follow(target[arc], (*arcs, arc), first, score + weights[arc])

    for state, score in enumerate(initial):
        yield from follow(state, (), state, score)


def labels(machine: Machine, path: Path, side: str = "input") -> tuple[int, ...]:
    """What a path reads (or writes), without epsilon."""
    of = machine.input if side == "input" else machine.output
    return tuple(int(of[arc]) for arc in path[1] if of[arc])
