"""Derivations of a grammar in plain torch: CKY over any semiring, all spans of one width at once.

A derivation of a row is a binary tree of symbols: each token has a lexical symbol, each wider node a rule. Its score is
the sum of root[symbol], rules[r] and lexical[i, symbol], and nodes[i, j, symbol] where such scores are given.

Any device, differentiable as often as you like; `kernels.py` is faster and tested against it. See `math.md`.
"""  # [S2, CKY]

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Float, Int
from trelliswork.runtime.autograd import recording
from trelliswork.semirings import Log, Semiring
from trelliswork.structures.constituency.structure import nodes_of
from trelliswork.structures.grammar.grammar import Grammar

RuleKey = tuple[int, int, int]  # parent, left, right


@dataclass(frozen=True, eq=False)
class RuleTable:
    """The rules of a grammar as arrays. Pairs are the right-hand sides that occur, each once.

    `pair_ranges[l, r]` are two ranges of pairs whose left symbol can be above one token (l = 0) or more (l = 1), and
    whose right symbol can be above one (r = 0) or more (r = 1).
    """

    n_symbols: int
    n_phrases: int
    first_lexical: int
    lefts: np.ndarray  # (pairs,)
    rights: np.ndarray  # (pairs,)
    pair_of: np.ndarray  # (rules,)
    parents: np.ndarray  # (rules,)
    starts: np.ndarray  # (phrases + 1,): the rules of each phrase
    pair_ranges: np.ndarray  # (2, 2, 2, 2)
    rule_index: dict[RuleKey, int]

    @staticmethod
    def of(grammar: Grammar) -> RuleTable:
        rules = np.array(grammar.rules, np.int64).reshape(-1, 3)
        first, phrases = grammar.first_lexical, grammar.n_phrases

        def kind(symbols: np.ndarray) -> np.ndarray:
            return (symbols >= first).astype(np.int64) + (symbols >= phrases)  # only phrase, both, only lexical

        pairs = np.unique(rules[:, 1:], axis=0)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], kind(pairs[:, 1]), kind(pairs[:, 0])))]
        place = {(int(a), int(b)): i for i, (a, b) in enumerate(pairs)}
        pair_of = np.array([place[int(a), int(b)] for _, a, b in rules], np.int64)
        groups = kind(pairs[:, 0]) * 3 + kind(pairs[:, 1])
        ranges = np.zeros((2, 2, 2, 2), np.int64)
        for wide_left, wide_right, half in np.ndindex(2, 2, 2):
            lowest = 3 * (half + 1 - wide_left) + 1 - wide_right
            ranges[wide_left, wide_right, half] = np.searchsorted(groups, [lowest, lowest + 2])
        return RuleTable(
            len(grammar.symbols), phrases, first, np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]),
            pair_of, np.ascontiguousarray(rules[:, 0]), np.searchsorted(rules[:, 0], np.arange(phrases + 1)), ranges,
            grammar.rule_index,
        )  # fmt: skip

    def groups(self, device: torch.device) -> Int[Tensor, "phrases most"]:
        """The rules of each phrase; the number of rules fills up."""
        sizes = np.diff(self.starts)
        places = np.full((self.n_phrases, max(sizes.max(initial=1), 1)), len(self.parents), np.int64)
        for phrase, size in enumerate(sizes):
            places[phrase, :size] = np.arange(self.starts[phrase], self.starts[phrase] + size)
        return torch.from_numpy(places).to(device)


@dataclass(frozen=True, eq=False)
class Productions:
    """Scores of a batch. An axis of `rules` and `root` that is 1 is shared by all rows, or all spans."""

    rules: Float[Tensor, "batch n n rules"]  # [row, first token, last token, rule]
    lexical: Float[Tensor, "batch n lexical"]
    root: Float[Tensor, "batch symbols"]
    nodes: Float[Tensor, "batch n n symbols"] | None  # added to each node over tokens i..j
    lengths: Int[Tensor, "batch"]
    table: RuleTable

    @property
    def n(self) -> int:
        return self.lexical.shape[1]

    @property
    def part_scores(self) -> Float[Tensor, "batch n n symbols"]:
        """The nodes of `detached`."""
        assert self.nodes is not None
        return self.nodes

    @property
    def scores(self) -> tuple[Tensor | None, ...]:
        return self.rules, self.lexical, self.root, self.nodes

    def with_scores(
        self, rules: Tensor | None, lexical: Tensor | None, root: Tensor | None, nodes: Tensor | None
    ) -> Productions:
        """Return the same rows with other scores.

        Args:
            rules: scores of the binary rules; not None, and neither are the next two.
            lexical: scores of the symbols above each word.
            root: scores of the root symbols.
            nodes: scores that every node adds; None for 0.

        Returns:
            New productions.
        """
        assert rules is not None and lexical is not None and root is not None
        return replace(self, rules=rules, lexical=lexical, root=root, nodes=nodes)

    def with_zero_nodes(self) -> Productions:
        """Node scores of 0 if there are none: the derivative by them is the posterior of each node."""
        if self.nodes is not None:
            return self
        shape = (len(self.lengths), self.n, self.n, self.table.n_symbols)
        return replace(self, nodes=self.lexical.new_zeros(shape, dtype=torch.float64))

    def detached(self) -> Productions:
        """All scores in float64, the nodes as a leaf to differentiate by."""
        rules, lexical, root, nodes = (
            None if each is None else each.detach().double() for each in self.with_zero_nodes().scores
        )
        assert nodes is not None
        return self.with_scores(rules, lexical, root, nodes.requires_grad_())


def total(parts: Productions, semiring: Semiring) -> Tensor:
    """⊕ over all derivations of ⊗ of their rules: log Z for `Log`. Padding is not read.

    `inside[w][..., i, a]` are all derivations of tokens i..i+w from symbol a.
    """  # [S2, CKY; S2, WCFG]
    table, n, device = parts.table, parts.n, parts.lexical.device
    lefts, rights, pair_of = (torch.from_numpy(each).to(device) for each in (table.lefts, table.rights, table.pair_of))
    groups = table.groups(device)
    like = parts.lexical.detach().double()
    rules = semiring.lift(parts.rules.double())
    nodes = None if parts.nodes is None else semiring.lift(parts.nodes.double())
    real = (torch.arange(n, device=device) < parts.lengths[:, None])[..., None]
    lexical = semiring.lift(torch.where(real, parts.lexical.double(), -INF))
    inside = [_at_nodes(semiring, _pad(semiring, lexical, table.first_lexical, 0, like), nodes, 0)]
    for w in range(1, n):
        pairs = _pairs_of_width(semiring, inside, w, lefts, rights)
        span_rules = rules if rules.shape[-2] == 1 else rules.diagonal(w, -3, -2).transpose(-1, -2)[..., None, :, :]
        weighed = semiring.times(pairs[..., pair_of], span_rules[..., 0, :, :])  # (batch, spans, rules)
        phrases = semiring.sum(_pad(semiring, weighed, 0, 1, like)[..., groups], dim=-1)
        symbols = _pad(semiring, phrases, 0, table.n_symbols - table.n_phrases, like)
        inside.append(_at_nodes(semiring, symbols, nodes, w))
    whole = torch.stack([each[..., 0, :] for each in inside], -1)  # (batch, symbols, n)
    index = (parts.lengths - 1)[:, None, None].expand(*whole.shape[:-1], 1)
    return semiring.sum(semiring.times(whole.gather(-1, index)[..., 0], semiring.lift(parts.root.double())), dim=-1)


def _pairs_of_width(semiring: Semiring, inside: list[Tensor], w: int, lefts: Tensor, rights: Tensor) -> Tensor:
    """⊕ over splits of left ⊗ right, for all spans of a width and all pairs: (batch, spans, pairs)."""
    n_spans = inside[0].shape[-2] - w
    ones = torch.stack([inside[s][..., :n_spans, :] for s in range(w)], -3)
    others = torch.stack([inside[w - 1 - s][..., s + 1 : s + 1 + n_spans, :] for s in range(w)], -3)
    return semiring.sum(semiring.times(ones[..., lefts], others[..., rights]), dim=-3)


def _pad(semiring: Semiring, elements: Tensor, before: int, after: int, like: Tensor) -> Tensor:
    """Return zeros before and behind along the last axis; elements may have leading axes of their own."""
    shape = elements.shape[semiring.zero((1,), like).dim() - 1 : -1]
    return torch.cat([semiring.zero((*shape, before), like), elements, semiring.zero((*shape, after), like)], -1)


def _at_nodes(semiring: Semiring, inside: Tensor, nodes: Tensor | None, w: int) -> Tensor:
    return inside if nodes is None else semiring.times(inside, nodes.diagonal(w, -3, -2).transpose(-1, -2))


def log_partition(parts: Productions) -> Float[Tensor, "batch"]:
    """log Z; -inf, with gradient 0, in rows without a derivation."""
    return total(parts, Log())


def marginals(parts: Productions) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the expected number of each rule, lexical symbol and root, and p(node): derivatives of log Z, by row."""
    batch = len(parts.lengths)
    again = torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in parts.scores)
    with recording(parts) as (parts,):
        full = parts.with_zero_nodes()
        nodes = full.nodes
        assert nodes is not None
        leaves = [each.double() for each in (full.rules, full.lexical, full.root, nodes)]
        leaves[0], leaves[2] = (each.expand(batch, *each.shape[1:]).clone() for each in (leaves[0], leaves[2]))
        leaves = [each if again and each.requires_grad else each.detach().requires_grad_() for each in leaves]
        log_z = log_partition(full.with_scores(*leaves))
        gradients = torch.autograd.grad(log_z.sum(), leaves, create_graph=again, materialize_grads=True)
    return tuple(each if again else each.detach() for each in gradients)  # type: ignore[return-value]


def decode(marks: Float[Tensor, "batch n n symbols"], parts: Productions) -> Int[Tensor, "batch nodes 3"]:
    return nodes_of(marks)


def path_score(parts: Productions, nodes: Int[Tensor, "batch nodes 3"]) -> Float[Tensor, "batch"]:
    """root + Σ rules + Σ lexical + Σ nodes of derivations (start, end, symbol), parents before children; -inf for one
    with a rule or a lexical symbol that the grammar does not have."""
    rows = [[tuple(node) for node in row if node[0] >= 0] for row in nodes.tolist()]
    return torch.stack([_row_score(parts, at, derivation) for at, derivation in enumerate(rows)])


def _row_score(parts: Productions, row: int, nodes: list[tuple[int, ...]]) -> Float[Tensor, ""]:
    used = _rules_of(nodes, parts.table.rule_index)
    leaves = [(start, symbol - parts.table.first_lexical) for start, end, symbol in nodes if end - start == 1]
    if any(rule < 0 for _, _, rule in used) or any(symbol < 0 for _, symbol in leaves):
        return parts.lexical.new_full((), -INF, dtype=torch.float64)
    rules = parts.rules[min(row, len(parts.rules) - 1)]
    by_span = rules.shape[0] > 1
    score = parts.root[min(row, len(parts.root) - 1), nodes[0][2]].double()
    score = score + _sum_at(parts.lexical[row], leaves)
    score = score + _sum_at(rules, [(i, j - 1, r) if by_span else (0, 0, r) for i, j, r in used])
    if parts.nodes is not None:
        score = score + _sum_at(parts.nodes[row], [(i, j - 1, symbol) for i, j, symbol in nodes])
    return score


def _rules_of(nodes: list[tuple[int, ...]], index: dict[RuleKey, int]) -> list[tuple[int, int, int]]:
    """(start, end, rule) of each wide node; the rule is -1 where the grammar has none."""
    rules, above = list[tuple[int, int, int]](), list[int]()
    for start, end, symbol in reversed(nodes):  # both children of a node wait on top, the left above
        if end - start > 1:
            rules.append((start, end, index.get((symbol, above.pop(), above.pop()), -1)))
        above.append(symbol)
    return rules


def _sum_at(scores: Tensor, places: Sequence[tuple[int, ...]]) -> Float[Tensor, ""]:
    """Return Σ of the scores at some places."""
    if not places:
        return scores.new_zeros((), dtype=torch.float64)
    return scores[torch.tensor(places, device=scores.device).unbind(-1)].double().sum()
