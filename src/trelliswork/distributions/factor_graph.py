"""General factor graphs: discrete variables with factors over any of them; exact by junction tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions import factor_inputs as inputs
from trelliswork.distributions.approximation import ApproximateQueries
from trelliswork.distributions.base import (
    Backend,
    StructuredDistribution,
)
from trelliswork.distributions.centring import centred
from trelliswork.distributions.chain_inputs import keep_allowed
from trelliswork.distributions.checks import allowed_values
from trelliswork.distributions.clique_templates import CliqueTemplate, Factor
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.structures.factors import structure
from trelliswork.structures.factors.elimination import JunctionTree, cheapest_elimination, junction_tree
from trelliswork.structures.factors.graph import Graph
from trelliswork.structures.factors.solver import STRUCTURE
from trelliswork.structures.factors.structure import Factors


class FactorGraph(ApproximateQueries, StructuredDistribution[Tensor]):
    """p(y | x) with score = Σ_v unary[v, y_v] + Σ_a factors_a[y_a].

    Kschischang, Frey and Loeliger (2001), "Factor Graphs and the Sum-Product Algorithm".

    `unary` scores each value of each variable. `factors` are pairs (variables, scores [s_1, ..., s_m]) or
    `CliqueTemplate`s, in which many factors share scores. `sizes` says how many values each variable has, all c if it
    is not given; entries of unary beyond are not read. `mask` is False where a row does not have a variable: it and the
    factors that touch it are left out there, so that rows may be ragged. A forbidden value or combination scores -inf.

    Exact queries run along a junction tree whose tables have at most `max_entries` numbers a row. What is beyond that
    has `propagate`, `gibbs` and `ad3`.

    A value is an assignment [*batch, n], one whole number a variable.

    >>> agree = torch.eye(2)
    >>> triangle = FactorGraph(torch.zeros(3, 2), [((0, 1), agree), ((1, 2), agree), ((0, 2), agree)])
    >>> triangle.count, triangle.argmax
    (tensor(8., dtype=torch.float64), tensor([0, 0, 0]))

    Args:
        unary: scores of the values of each variable [*batch, n, c].
        factors: pairs (variables, scores [*batch, s_1, ..., s_m]), or templates of such.
        sizes: the number of values of each variable; None for c.
        mask: True where a row has a variable [*batch, n]; None if every row has all.
        max_entries: how many numbers the tables of exact queries may have in a row.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """  # [S4.65-66, 76-79]

    _structure = STRUCTURE
    _noun = "assignment"
    _same = "the same variables, factors, mask and batch shape"
    _advice = "allow a value of each variable that its factors allow together"

    def __init__(
        self,
        unary: Float[Tensor, "*batch n c"],
        factors: Sequence[Factor] = (),
        *,
        sizes: Sequence[int] | Int[Tensor, "n"] | None = None,
        mask: Bool[Tensor, "*batch n"] | None = None,
        max_entries: int = 1 << 22,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        inputs.check_unary(unary)
        batch_shape, (n, c) = unary.shape[:-2], unary.shape[-2:]
        self.sizes = inputs.check_sizes(sizes, n, c)
        templates = inputs.as_templates(factors)
        for place, template in enumerate(templates):
            inputs.check_template(place, template, self.sizes, batch_shape, unary.device)
        self.unary, self.factors = inputs.promote(unary, templates)
        self.mask = mask
        self._present = inputs.check_mask(mask, batch_shape, n)
        self.max_entries = max_entries
        scopes = tuple(tuple(clique) for template in templates for clique in template.cliques)
        self._graph = Graph(self.sizes, c, scopes)
        super().__init__(self.unary, batch_shape, [n], backend)
        if validate_args is None or validate_args:
            inputs.check_scores(self.unary, self.factors, self._parts.flat, self.sizes)

    # --- the parts, flat -------------------------------------------------------------------------------------

    @cached_property
    def _parts(self) -> Factors:
        flat = inputs.flat_scores(self._graph, self.unary, self.factors, self.batch_shape, self._present)
        return Factors(self._graph, flat)

    @cached_property
    def _tree(self) -> JunctionTree:
        elimination = cheapest_elimination(self._graph)
        if elimination.n_entries > self.max_entries:
            raise ScoreError(
                f"exact inference needs cliques of {elimination.width + 1} variables (tree-width {elimination.width}) "
                f"and tables of {elimination.n_entries:,} numbers a row; the limit is max_entries={self.max_entries:,};"
                " raise it if memory allows, or approximate with propagate(), gibbs() or ad3()"
            )
        return junction_tree(self._graph)

    @property
    def tree_width(self) -> int:
        """Variables in the largest clique of the junction tree that was found, less one."""
        return cheapest_elimination(self._graph).width

    @property
    def is_narrow(self) -> bool:
        """Return whether exact queries need no more than `max_entries` numbers a row."""
        return cheapest_elimination(self._graph).n_entries <= self.max_entries

    @property
    def _solved(self) -> tuple[Factors, JunctionTree]:
        return self._parts, self._tree

    # --- values ----------------------------------------------------------------------------------------------

    def to_parts(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch n c"]:
        """Return 1 at the value of each variable, 0 elsewhere: shaped like `marginals`."""
        flat = inputs.check_values(value, self.batch_shape, self.sizes, self._present)
        parts = torch.nn.functional.one_hot(flat, self.unary.shape[-1]).to(self.dtype)
        parts = parts if self._present is None else parts * self._present[..., None]
        return parts.reshape(*value.shape, -1)

    def from_parts(self, parts: Float[Tensor, "*samples *batch n c"]) -> Int[Tensor, "*samples *batch n"]:
        """Return the value marked in `parts`."""
        return parts.argmax(-1)

    def _read(self, value: Tensor, check: bool) -> Int[Tensor, "*samples *batch n"]:
        return inputs.check_values(value, self.batch_shape, self.sizes, self._present).reshape(value.shape)

    def _score_rows(self, values: Int[Tensor, "rows n"]) -> Float[Tensor, "rows"]:
        return structure.path_score(self._parts, values)  # without a junction tree, which may be too large

    # --- queries ---------------------------------------------------------------------------------------------

    @property
    def marginals(self) -> Float[Tensor, "*batch n c"]:
        """p(y_v = x | x) of each variable; 0 beyond its size and where a row does not have it. Differentiable."""
        return self._batched(self._own(self._posteriors))

    def _own(self, flat: Float[Tensor, "rows scores"]) -> Float[Tensor, "rows n c"]:
        """Return the entries of the variables themselves."""
        n, c = self._graph.n, self._graph.c
        own = flat[:, : n * c].reshape(-1, n, c)
        return own if self._present is None else own * self._present[..., None]

    @property
    def factor_marginals(self) -> list[Float[Tensor, "*batch cliques *sizes"]]:
        """p(y_a | x) for each clique of each factor or template, in the order given."""
        return [self._batched(each) for each in self._by_template(self._posteriors)]

    def _by_template(self, flat: Float[Tensor, "rows scores"]) -> list[Float[Tensor, "rows cliques *sizes"]]:
        by_template, first = [], self._graph.n * self._graph.c
        for template in self.factors:
            shape = self._graph.shape(tuple(template.cliques[0])) if template.cliques else (0,)
            last = first + len(template.cliques) * torch.Size(shape).numel()
            tables = flat[:, first:last].reshape(len(flat), len(template.cliques), *shape)
            if self._present is not None and template.cliques:
                complete = self._present[:, torch.tensor(template.cliques, device=flat.device)].all(-1)
                tables = tables * complete.reshape(*complete.shape, *[1] * len(shape))
            by_template.append(tables)
            first = last
        return by_template

    def expected(
        self, costs: Float[Tensor, "*batch n c"] | None = None, factors: Sequence[Tensor | None] | None = None
    ) -> Float[Tensor, "*batch"]:
        """Return E[Σ costs of the variables' values + Σ costs of the factors' entries].

        `costs` are shaped like unary; `factors` has one entry for each factor given, shaped like its scores, or None.
        """
        return self._batched(self._expected(self._costs(costs, factors)))

    def _one_each(self, factors: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if len(factors) != len(self.factors):
            raise ScoreError(f"factors must be {len(self.factors)} tensors or None, one a factor; got {len(factors)}")
        return factors

    def _costs(self, costs: Tensor | None = None, factors: Sequence[Tensor | None] | None = None) -> tuple[Tensor]:
        given = [None] * len(self.factors) if factors is None else factors
        pairs = zip(self.factors, self._one_each(given), strict=True)
        templates = [each.with_scores(torch.zeros_like(each.scores) if cost is None else cost) for each, cost in pairs]
        own = torch.zeros_like(self.unary) if costs is None else costs
        if own.shape != self.unary.shape:
            raise ScoreError(f"costs must be {tuple(self.unary.shape)}, like unary; got {tuple(own.shape)}")
        return (self._like(own, templates)._parts.flat,)

    def _centred(self) -> FactorGraph:
        """Return the same distribution with centred scores of each variable and clique."""
        values = torch.arange(self.unary.shape[-1], device=self.unary.device)
        read = values < torch.tensor(self.sizes, device=values.device)[:, None]
        templates = [
            each.with_scores(centred(each.scores, len(each.cliques[0]))) for each in self.factors if each.cliques
        ]
        return self._like(centred(self.unary, 1, read), templates)

    def probability(self, known: Mapping[int, int]) -> Float[Tensor, "*batch"]:
        """Return P(each variable of `known` has its value), each row, whichever variables these are.

        >>> dist.probability({0: 2, 7: 2})
        """
        n = self._graph.n
        partial = torch.full((n,), -100, device=self.unary.device)
        for variable, value in known.items():
            if not 0 <= variable < n or not 0 <= value < self.sizes[variable]:
                raise ScoreError(f"known must map variables 0..{n - 1} to one of their values; got {variable}: {value}")
            partial[variable] = value
        return self.log_prob_of_set(partial.expand(*self.batch_shape, n)).exp()

    # --- constraints -----------------------------------------------------------------------------------------

    def constrain(
        self,
        partial: Bool[Tensor, "*batch n c"] | Int[Tensor, "*batch n"] | None = None,
        *,
        factors: Sequence[Bool[Tensor, "..."] | None] | None = None,
    ) -> FactorGraph:
        """Return only the assignments that agree: everything else scores -inf.

        `partial` is True for each allowed value; or holds the value of each variable, -100 (any negative) where it is
        unknown. `factors` has one entry for each factor given, True where allowed, shaped like its scores, or None.
        """
        unary, templates = self.unary, list(self.factors)
        if partial is not None:
            present = torch.ones(unary.shape[:-1], dtype=torch.bool, device=unary.device)
            present = present if self.mask is None else self.mask
            unary = torch.where(allowed_values(partial, unary, present), unary, -INF)
        if factors is not None:
            pairs = zip(templates, self._one_each(factors), strict=True)
            templates = [
                each.with_scores(keep_allowed("entries", each.scores, allowed, each.scores.dim()))
                for each, allowed in pairs
            ]
        return self._like(unary, templates)

    def _divided(self, t: float) -> FactorGraph:
        return self._like(self.unary / t, [each.with_scores(each.scores / t) for each in self.factors])

    def _comparable(self, other: FactorGraph) -> bool:
        same_graph = self._graph == other._graph and self.batch_shape == other.batch_shape
        return same_graph and _same_mask(self.mask, other.mask)

    def _like(self, unary: Tensor, factors: Sequence[CliqueTemplate]) -> FactorGraph:
        """Return other scores on the same graph."""
        return FactorGraph(
            unary, factors, sizes=self.sizes, mask=self.mask, max_entries=self.max_entries,
            backend=self.backend, validate_args=False,
        )  # fmt: skip

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        return constraints.independent(constraints.integer_interval(0, self.unary.shape[-1] - 1), 1)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> FactorGraph:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        mask = None if self.mask is None else self.mask.expand(*shape, *self.event_shape)
        templates = []
        for each in self.factors:
            n_axes = len(each.cliques[0]) + each.by_clique if each.cliques else each.scores.dim()
            tail = each.scores.shape[each.scores.dim() - n_axes :]
            shared = each.scores.dim() == n_axes
            templates.append(each if shared else each.with_scores(each.scores.expand(*shape, *tail)))
        return FactorGraph(
            self.unary.expand(*shape, *self.unary.shape[-2:]), templates, sizes=self.sizes, mask=mask,
            max_entries=self.max_entries, backend=self.backend, validate_args=False,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"FactorGraph(batch_shape={tuple(self.batch_shape)}, n={self._graph.n}, "
            f"factors={len(self._graph.scopes)}, backend={self.backend!r})"
        )


def _same_mask(mine: Tensor | None, other: Tensor | None) -> bool:
    if mine is None or other is None:
        return mine is other
    return torch.equal(mine, other)
