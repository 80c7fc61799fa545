"""Clique templates: scores shared by many factors, and the two standard ways to unroll them over positions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float

Clique = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CliqueTemplate:
    """Factors over `cliques` that share their scores: the gradient by the scores sums over all cliques.

    `scores` is [s_1, ..., s_m], one axis for each variable of a clique, or [*batch, s_1, ..., s_m]. With `by_clique` it
    has one more axis before these, one entry for each clique: many factors of one shape in one tensor, nothing shared.

    >>> transitions = CliqueTemplate([(0, 1), (1, 2), (2, 3)], torch.zeros(5, 5))
    """  # [S4.78-79]

    cliques: Sequence[Clique]
    scores: Float[Tensor, "*batch *sizes"]
    by_clique: bool = False

    def __post_init__(self) -> None:
        cliques = tuple(tuple(int(variable) for variable in clique) for clique in self.cliques)
        object.__setattr__(self, "cliques", cliques)
        if len({len(clique) for clique in cliques}) > 1 or any(not clique for clique in cliques):
            raise ScoreError(
                f"the cliques of a template must all have the same number of variables, one at least; "
                f"got {sorted({len(clique) for clique in cliques})}; make one template for each kind of clique"
            )

    def with_scores(self, scores: Tensor) -> CliqueTemplate:
        return CliqueTemplate(self.cliques, scores, self.by_clique)


Factor = CliqueTemplate | tuple[Sequence[int], Tensor]


def unroll(scores: Tensor, offsets: Sequence[int], n: int, *, by_clique: bool = False) -> CliqueTemplate:
    """Return a template over positions: cliques (t + offsets[0], t + offsets[1], ...) for every t where all are there.

    >>> unroll(transitions, (0, 1), 4).cliques
    ((0, 1), (1, 2), (2, 3))

    Args:
        scores: [*sizes], shared by all cliques, or [cliques, *sizes] of each.
        offsets: the positions of a clique relative to its first.
        n: the number of positions.
        by_clique: whether `scores` has an axis of cliques in front.
    """
    cliques = [tuple(t + offset for offset in offsets) for t in range(-min(offsets), n - max(offsets))]
    return CliqueTemplate(cliques, scores, by_clique)


def skip_chain(
    transitions: Float[Tensor, "c c"], skip: Float[Tensor, "c c"], keys: Sequence[Hashable | None]
) -> list[CliqueTemplate]:
    """Return a chain with edges between neighbouring mentions of the same key, for `FactorGraph(emissions, ...)`.

    `keys` has one entry a position, such as the word where it is capitalised, and None where nothing is to be joined.

    Args:
        transitions: [c, c], scores of neighbouring positions.
        skip: [c, c], scores of neighbouring mentions of a key.
        keys: the key of each position, or None.

    Returns:
        Two templates: of neighbours and of mentions.
    """
    edges = list(_repeats(keys))
    chain = unroll(transitions, (0, 1), len(keys))
    return [chain, CliqueTemplate(edges, skip)] if edges else [chain]


def _repeats(keys: Sequence[Hashable | None]) -> Iterable[Clique]:
    """Yield each position that has a key, with the last one before it that has the same."""
    seen: dict[Hashable, int] = {}
    for position, key in enumerate(keys):
        if key is not None:
            if key in seen:
                yield seen[key], position
            seen[key] = position


def factorial_chain(
    n: int,
    transitions: Sequence[Float[Tensor, "c c"]],
    couplings: Sequence[Float[Tensor, "c d"]],
) -> list[CliqueTemplate]:
    """Return several chains side by side, tied at each position: factors for `FactorGraph(emissions, ..., sizes=...)`.

    Chain i at position t is variable t * m + i, with m = len(transitions) chains. `couplings[i]` scores chains i and
    i+1 at the same position, [values of i, values of i+1].

    Args:
        n: the number of positions.
        transitions: [c, c] of each chain.
        couplings: [c, d] of each two neighbouring chains.

    Returns:
        A template for each chain and each coupling.
    """
    m = len(transitions)
    if len(couplings) != m - 1:
        raise ScoreError(
            f"couplings must be one fewer than the chains, {m - 1}: one between each chain and the next; "
            f"got {len(couplings)}"
        )
    along = [
        CliqueTemplate([((t - 1) * m + i, t * m + i) for t in range(1, n)], scores)
        for i, scores in enumerate(transitions)
    ]
    across = [
        CliqueTemplate([(t * m + i, t * m + i + 1) for t in range(n)], scores) for i, scores in enumerate(couplings)
    ]
    return [*(along if n > 1 else []), *across]
