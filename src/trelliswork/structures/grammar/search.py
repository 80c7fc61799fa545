"""The k best derivations of a grammar: a chart of its symbols whose derivations are asked for lazily."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.derivation_kernels import PAIR
from trelliswork.structures.derivations import Plan
from trelliswork.structures.grammar.structure import RuleTable


def top_derivations(
    table: RuleTable, rules: Array, lexical: Array, root: Array, nodes: Array | None, k: int
) -> tuple[Array, Array]:
    """Return the k best derivations of a row, nodes [k, 2n-1, 3], and their scores [k], or all if there are fewer.

    The scores are rules [1 or n, 1 or n, rules], lexical [n, words], root [symbols] and nodes [n, n, symbols] or None.
    """
    n, n_symbols = len(lexical), len(root)
    nothing, whole = n_symbols, n_symbols + 1  # planes: the other part of the root, and the root above its symbol
    own, is_token = np.zeros((n_symbols + 2, n, n)), np.eye(n, dtype=bool)
    if nodes is not None:
        own[:n_symbols] = nodes.transpose(2, 0, 1)
    for symbol in range(n_symbols):
        if symbol >= table.n_phrases or table.starts[symbol] == table.starts[symbol + 1]:
            own[symbol, ~is_token] = -np.inf
        word = symbol - table.first_lexical
        own[symbol, is_token] += lexical[:, word] if word >= 0 else -np.inf
    lefts, rights = table.lefts[table.pair_of].tolist(), table.rights[table.pair_of].tolist()
    made = [(left, right, 0, 1, 1) for left, right in zip(lefts, rights, strict=True)]
    plan = Plan.of(
        *(made[table.starts[a] : table.starts[a + 1]] if a < table.n_phrases else [] for a in range(n_symbols)),
        [],
        [(a, nothing, 0, 0, PAIR) for a in range(n_symbols)],
    )
    weights = np.concatenate([rules, np.broadcast_to(root, (*rules.shape[:2], n_symbols))], 2)
    derivations, scores = plan.top(k, own, np.empty((0, n, n, 1)), (whole, 0, n - 1), 0, weights)
    return derivations[:, 1 : 2 * n, [1, 2, 0]] + np.array([0, 1, 0]), scores
