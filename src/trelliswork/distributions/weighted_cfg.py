"""Distributions over the derivations of a grammar: globally normalised (weighted) and locally (probabilistic)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions import grammar_inputs as inputs
from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.centring import centred_productions
from trelliswork.distributions.checks import KnownRows, cast, require_finite_totals
from trelliswork.distributions.costs import weighted_sum
from trelliswork.distributions.segment_values import Nested, nested
from trelliswork.distributions.span_values import allowed_by_nodes, to_lists
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Boolean
from trelliswork.structures.constituency.structure import nodes_of
from trelliswork.structures.grammar import structure
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.structures.grammar.solver import STRUCTURE
from trelliswork.structures.grammar.structure import RuleTable
from trelliswork.structures.grammar.tree import Tree


class WeightedCFG(StructuredDistribution[Nested]):
    """p(tree | words) = exp(score) / Z, over all derivations of a sentence by a grammar in normal form.

    score = root[symbol] + Σ rules[r] + Σ lexical[i, symbol] over the tree's rules and words. Give `sentences`, lists of
    words that the grammar's lexicon scores, or `lexical` scores [batch, n, lexical symbols] of your own, or both: then
    the words are only names. `rules` are the grammar's own, or scores [rules], [batch, rules] or, by span,
    [batch, n, n, rules] at [first, last token]; `root` [symbols] or [batch, symbols]; `nodes` [batch, n, n, symbols]
    adds to every node over tokens first..last. A score of -inf forbids. `unknown` [lexical symbols] scores words that
    the lexicon lacks.

    A value is a list of one `Tree` a row: a derivation, two nodes or one word below each node. `grammar.to_tree` makes
    the tree it stands for, `grammar.to_derivation` the way back.

    >>> grammar = Grammar.from_rules("S -> S S 1 | 'a' 1")
    >>> cfg = WeightedCFG(grammar, [["a", "a", "a"]])
    >>> cfg.count, str(cfg.argmax[0])
    (tensor([2.], dtype=torch.float64), '(S (S a) (S (S a) (S a)))')

    Args:
        grammar: the grammar in normal form.
        sentences: the words of each row; None if lexical scores are given.
        lexical: scores of the symbols above each word [batch, n, lexical symbols]; None for those of the lexicon.
        rules: scores of the rules; None for those of the grammar.
        root: scores of the root symbols; None for those of the grammar.
        nodes: scores that every node adds; None for 0.
        lengths: the number of words of each row; None if all rows are full.
        unknown: scores of words that the lexicon lacks; None if such a word is an error.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """  # [S2, WCFG]

    _structure = STRUCTURE
    _noun = "derivation"
    _same = "the same grammar, sentences and shape of rule scores"
    _advice = "allow rules that lead from a root symbol to its words"

    def __init__(
        self,
        grammar: Grammar,
        sentences: Sequence[Sequence[str]] | None = None,
        *,
        lexical: Float[Tensor, "batch n lexical"] | None = None,
        rules: Float[Tensor, "..."] | None = None,
        root: Float[Tensor, "..."] | None = None,
        nodes: Float[Tensor, "batch n n symbols"] | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
        unknown: Float[Tensor, "lexical"] | None = None,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        given = None if sentences is None else inputs.check_sentences(sentences)
        if given is not None and lengths is None:
            lengths = torch.tensor([len(each) for each in given])
        if lexical is None:
            if given is None:
                raise ScoreError("give sentences, or lexical scores [batch, n, lexical symbols]; got neither")
            lexical = grammar.lexical_scores(given, unknown)
        self.grammar = grammar
        table = _table_of(grammar)
        self._parts = inputs.productions(grammar, table, lexical, rules, root, nodes, lengths)
        dtype = lexical.dtype
        for part in (rules, root, nodes):
            dtype = dtype if part is None else torch.promote_types(dtype, part.dtype)
        lengths_found = self._parts.lengths.tolist()
        self.sentences = [[str(i) for i in range(n)] for n in lengths_found] if given is None else given
        if [len(each) for each in self.sentences] != lengths_found:
            raise ScoreError(
                f"sentences must have lengths {lengths_found}; got {[len(each) for each in self.sentences]}"
            )
        super().__init__(cast(lexical[:0], dtype), lexical.shape[:1], [2 * self._parts.n - 1, 3], backend)
        if validate_args is None or validate_args:
            inputs.check_scores(self._parts)

    # --- the parts -------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> Int[Tensor, "batch"]:
        return self._parts.lengths

    # --- values ----------------------------------------------------------------------------------------------

    def from_nodes(self, nodes: Int[Tensor, "*samples batch nodes 3"]) -> Nested:
        """Return nodes (start, end, symbol) as trees, nested as [*samples, batch]."""
        flat = nodes.reshape(-1, *self.event_shape)
        lists = to_lists(flat, self.lengths.tolist() * (len(flat) // len(self.lengths)))
        batch = len(self.sentences)
        trees = [inputs.to_tree(row, self.grammar.symbols, self.sentences[at % batch]) for at, row in enumerate(lists)]
        return nested(trees, nodes.shape[:-2])

    def to_nodes(self, value: Sequence[Tree]) -> list[inputs.Nodes]:
        """Return one tree a row as nodes (start, end, symbol), checked."""
        if isinstance(value, Tree) or len(value) != len(self.sentences):
            raise ScoreError(f"a value must be a list of {len(self.sentences)} trees, one a row; got {value!r:.80}")
        return [
            inputs.from_tree(tree, self.grammar, words, row)
            for row, (tree, words) in enumerate(zip(value, self.sentences, strict=True))
        ]

    def to_parts(self, value: Sequence[Tree]) -> Float[Tensor, "batch n n symbols"]:
        """Return 1 at the nodes of a value, 0 elsewhere: shaped like `marginals`."""
        n, size = self._parts.n, len(self.grammar.symbols)
        parts = torch.zeros(len(self.sentences), n, n, size, dtype=self.dtype, device=self.lengths.device)
        for row, nodes in enumerate(self.to_nodes(value)):
            for start, end, symbol in nodes:
                parts[row, start, end - 1, symbol] = 1
        return parts

    def from_parts(self, parts: Float[Tensor, "batch n n symbols"]) -> list[Tree]:
        """Return the trees whose nodes are marked in `parts`."""
        trees: list[Tree] = self.from_nodes(nodes_of(parts))
        self.to_nodes(trees)
        return trees

    # --- queries ---------------------------------------------------------------------------------------------

    def _read(self, value: Sequence[Tree], check: bool) -> Int[Tensor, "batch nodes 3"]:
        nodes = torch.full((*self.batch_shape, *self.event_shape), -1, device=self.lengths.device)
        for row, derivation in enumerate(self.to_nodes(value)):
            nodes[row, : len(derivation)] = torch.tensor(derivation, device=nodes.device)
        return nodes

    def _written(self, values: Tensor) -> Nested:
        return self.from_nodes(values)

    @property
    def marginals(self) -> Float[Tensor, "batch n n symbols"]:
        """p(tokens first..last come from this symbol | words) at [..., first, last, symbol]. Differentiable."""
        return self._batched(self._posteriors[3])

    @property
    def rule_counts(self) -> Float[Tensor, "batch rules"]:
        """Return the expected number of uses of each rule in the tree: the counts of one step of EM."""
        return self._batched(self._posteriors[0].flatten(1, 2).sum(1))

    @property
    def lexical_marginals(self) -> Float[Tensor, "batch n lexical"]:
        """p(word i comes from this symbol | words)."""
        return self._batched(self._posteriors[1])

    def span_probability(self, first: int, last: int, symbol: int | str | None = None) -> Float[Tensor, "batch"]:
        """Return P(tokens first..last-1 come from this symbol, or from any).

        Args:
            first: the first token of the node.
            last: the token behind it.
            symbol: its index or name; any if not given.

        Returns:
            [batch].
        """
        n, size = self._parts.n, len(self.grammar.symbols)
        if isinstance(symbol, str):
            if symbol not in self.grammar.symbol_index:
                raise ScoreError(f"symbol must be one of the grammar's; got {symbol!r}")
            symbol = self.grammar.symbol_index[symbol]
        if not 0 <= first < last <= n or (symbol is not None and not 0 <= symbol < size):
            raise ScoreError(
                f"a span must be first < last within 0..{n}, with a symbol in 0..{size - 1}; "
                f"got {(first, last, symbol)}"
            )
        by_symbol = self.marginals[:, first, last - 1]
        return by_symbol.sum(-1) if symbol is None else by_symbol[:, symbol]

    def _sampled(self, sample_shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        """Return samples in their tensor form, whole derivations: NaN leads to symbols without rules."""
        nodes = super()._sampled(sample_shape, generator)
        rows = (nodes[..., 0] >= 0).sum(-1).reshape(-1, len(self.lengths)) == 2 * self.lengths - 1
        require_finite_totals(torch.where(rows.all(0), 0.0, float("nan")))
        return nodes

    @property
    def recognised(self) -> Bool[Tensor, "batch"]:
        """Return whether the grammar derives each sentence at all: the recursion over truth values."""  # [S2, CKY]
        return structure.total(self._parts, Boolean())

    def expected(
        self,
        nodes: Float[Tensor, "batch n n symbols"] | None = None,
        *,
        rules: Float[Tensor, "..."] | None = None,
        lexical: Float[Tensor, "batch n lexical"] | None = None,
        root: Float[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch"]:
        """Return E[Σ costs of nodes, rules, words and root]; each is shaped like the scores of that kind.

        Args:
            nodes: [batch, n, n, symbols], at [first, last token].
            rules: shaped like the scores of rules.
            lexical: [batch, n, lexical symbols].
            root: [symbols] or [batch, symbols].

        Returns:
            [batch].
        """
        return self._batched(self._expected(self._costs(nodes, rules=rules, lexical=lexical, root=root)))

    def _costs(
        self,
        nodes: Tensor | None = None,
        *,
        rules: Tensor | None = None,
        lexical: Tensor | None = None,
        root: Tensor | None = None,
    ) -> tuple[Tensor | None, ...]:
        device = self._parts.lexical.device
        given = inputs.productions(
            self.grammar, self._parts.table, torch.zeros_like(self._parts.lexical) if lexical is None else lexical,
            torch.zeros_like(self.grammar.rule_scores, device=device) if rules is None else rules,
            torch.zeros_like(self.grammar.root_scores, device=device) if root is None else root, nodes, self.lengths,
        )  # fmt: skip
        return given.scores

    def _expected(self, costs: tuple[Tensor | None, ...]) -> Float[Tensor, "batch"]:
        total = torch.zeros(len(self.lengths), dtype=torch.float64, device=self.lengths.device)
        for posterior, cost in zip(self._posteriors, costs, strict=True):
            if cost is not None:
                weight = posterior
                if cost.dim() == 4 and cost.shape[1] == 1:
                    weight = posterior.flatten(1, 2).sum(1)[:, None, None]
                elif posterior.dim() == 4 and posterior.shape[1] < cost.shape[1]:
                    raise ScoreError("costs of rules by span need rule scores by span; expand the scores")
                total = total + weighted_sum(weight, cost.double(), 1)
        return total

    @property
    def _scores(self) -> tuple[Tensor | None, ...]:
        return tuple(None if each is None else each.double() for each in self._parts.with_zero_nodes().scores)

    def _centred(self) -> Self:
        return self._with_scores(*centred_productions(self._parts))

    def _divided(self, t: float) -> Self:
        parts = self._parts
        nodes = None if parts.nodes is None else parts.nodes / t
        return self._with_scores(parts.rules / t, parts.lexical / t, parts.root / t, nodes)

    def _comparable(self, other: WeightedCFG) -> bool:
        same_shape = self._parts.rules.shape == other._parts.rules.shape
        return self.grammar is other.grammar and self.sentences == other.sentences and same_shape

    # --- constraints -----------------------------------------------------------------------------------------

    def constrain(self, partial: Bool[Tensor, "batch n n symbols"] | KnownRows | None = None) -> Self:
        """Return only the derivations that agree: every other node scores -inf.

        `partial` is True for each allowed node; or lists for each row the nodes (start, end, symbol) that are known,
        end exclusive, a symbol by name or index or None for any: brackets, or a partial tree; or one `Tree` a row.
        """
        parts, n, size = self._parts, self._parts.n, len(self.grammar.symbols)
        if partial is None:
            return self._with_nodes(parts.nodes)
        if isinstance(partial, Tensor):
            shape = (len(self.sentences), n, n, size)
            if partial.dtype != torch.bool or partial.shape != shape:
                raise ScoreError(
                    f"allowed nodes must be bool {shape}, True = allowed; got {partial.dtype} {tuple(partial.shape)}"
                )
            allowed = partial
        else:
            if len(partial) != len(self.sentences):
                raise ScoreError(f"known nodes must be one list a row, {len(self.sentences)}; got {len(partial)}")
            known = [self._known(row, each) for row, each in enumerate(partial)]
            allowed = allowed_by_nodes(known, self.lengths.tolist(), n, size, self.lengths.device)
        nodes = parts.with_zero_nodes().nodes
        assert nodes is not None
        return self._with_nodes(torch.where(allowed, cast(nodes, parts.lexical.dtype), -INF))

    def _known(self, row: int, given: Tree | KnownRows) -> list[tuple[int, int, int | None]]:
        if isinstance(given, Tree):
            return [*inputs.from_tree(given, self.grammar, self.sentences[row], row)]
        index = self.grammar.symbol_index
        unknown = [symbol for _, _, symbol in given if isinstance(symbol, str) and symbol not in index]
        if unknown:
            raise ScoreError(f"{unknown[0]!r} at row {row} is not a symbol of the grammar")
        return [(i, j, index[symbol] if isinstance(symbol, str) else symbol) for i, j, symbol in given]

    def _with_nodes(self, nodes: Tensor | None) -> Self:
        """Return the same scores of rules and words, other scores of nodes."""
        parts = self._parts
        return self._with_scores(parts.rules, parts.lexical, parts.root, nodes)

    def _with_scores(self, rules: Tensor, lexical: Tensor, root: Tensor, nodes: Tensor | None) -> Self:
        """Return other scores for the same grammar and rows."""
        by_span, by_row = rules.shape[1] > 1, len(rules) > 1
        given = rules if by_span else rules[:, 0, 0] if by_row or len(self.sentences) == 1 else rules[0, 0, 0]
        made = type(self)(
            self.grammar, self.sentences, lexical=lexical, rules=given, root=root if len(root) > 1 else root[0],
            nodes=nodes, lengths=self.lengths, backend=self.backend, validate_args=False,
        )  # fmt: skip
        made.dtype = self.dtype
        return made

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        """Of nodes (start, end, symbol)."""
        return constraints.independent(
            constraints.integer_interval(-1, max(self._parts.n, len(self.grammar.symbols))), 2
        )

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Self:
        raise ScoreError("sentences stand in a list; repeat them instead of expanding the distribution")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(batch={len(self.sentences)}, n={self._parts.n}, "
            f"symbols={len(self.grammar.symbols)}, rules={self.grammar.n_rules}, backend={self.backend!r})"
        )


def _table_of(grammar: Grammar) -> RuleTable:
    """Return the rules of a grammar as arrays, made once a grammar."""
    table = grammar.__dict__.get("_table")
    if table is None:
        table = RuleTable.of(grammar)
        object.__setattr__(grammar, "_table", table)
    return table
