"""The linear-chain distribution: tag sequences, every query exact."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions.base import Backend, StructuredDistribution, uses_kernels
from trelliswork.distributions.centring import centred
from trelliswork.distributions.chain_inputs import (
    are_plain,
    check_scores,
    check_tags,
    keep_allowed,
    layout_of,
    plain_arrays,
    promote,
)
from trelliswork.distributions.checks import allowed_values, cast, whole_values
from trelliswork.distributions.costs import moved_along, weighted_sum
from trelliswork.distributions.spans import Span, Summed, Whole, add_up, in_groups, span_chains, windows_of
from trelliswork.errors import ScoreError
from trelliswork.runtime import bridge
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import any_seen, as_array
from trelliswork.semirings import Log
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.likelihood import log_likelihood
from trelliswork.structures.chain.solver import STRUCTURE, ChainArrays, run_best
from trelliswork.structures.chain.structure import ArcsBy, Chain
from trelliswork.structures.host_solver import solver_for
from trelliswork.structures.masks import Layout

GROUP_SCORES = 1 << 22  # 32 MB


class LinearChain(StructuredDistribution[Tensor]):
    """p(tags | x) with score = start[y_1] + Σ emissions[t, y_t] + Σ transitions[y_{t-1}, y_t] + end[y_L].

    Lafferty, McCallum and Pereira (2001), "Conditional Random Fields: Probabilistic Models for Segmenting and Labeling
    Sequence Data".

    A forbidden tag or transition scores -inf. Masked positions are skipped and their neighbours touch; transitions by
    position belong to the position they lead into. Values are tags [..., batch, n]; what stands at invalid positions is
    ignored going in and 0 coming out.

    >>> chain = LinearChain(torch.zeros(1, 3, 2), torch.zeros(2, 2))
    >>> chain.log_partition.exp(), chain.count
    (tensor([8.]), tensor([8.], dtype=torch.float64))

    Args:
        emissions: scores of the tags at each position.
        transitions: scores of pairs of tags, indexed [from, to], shared or by position.
        start: scores of the first tag; None for 0.
        end: scores of the last tag; None for 0.
        lengths: the number of positions of each row; None if a mask says it or all rows are full.
        mask: True at valid positions, which may have holes; None if lengths say it.
        backend: "kernel" (CPU), "torch" (any device), or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """  # [S4.57; S4.81]

    has_enumerate_support = True
    _structure = STRUCTURE
    _noun = "tag sequence"
    _best_by_tensors = True
    _same = "the same shape, lengths and mask"
    _advice = "allow at least one tag at each position and a transition between neighbours"

    def __init__(
        self,
        emissions: Float[Tensor, "*batch n c"],
        transitions: Float[Tensor, "c c"] | Float[Tensor, "*batch n-1 c c"],
        start: Float[Tensor, "c"] | None = None,
        end: Float[Tensor, "c"] | None = None,
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        mask: Bool[Tensor, "*batch n"] | None = None,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        scores, checked = (emissions, transitions, start, end), validate_args is None or validate_args
        plain = checked and are_plain(scores) and uses_kernels(backend, emissions)
        self._plan = plain_arrays(scores, lengths, mask) if plain else None
        if self._plan is not None:
            self.emissions, self.transitions = emissions, transitions
            self.start = torch.from_numpy(self._plan.start) if start is None else start
            self.end = torch.from_numpy(self._plan.end) if end is None else end
            self.dtype, self.backend = emissions.dtype, "kernel"
            # What `Distribution.__init__` does without checks, which takes as long as a kernel looks for NaN.
            self._batch_shape, self._event_shape, self._validate_args = emissions.shape[:1], emissions.shape[1:2], False
            return
        self.emissions, self.transitions, self.start, self.end = promote(*scores)
        batch_shape, (n, _) = self.emissions.shape[:-2], self.emissions.shape[-2:]
        self._layout = layout_of(batch_shape, n, self.emissions.device, lengths, mask)
        super().__init__(self.emissions, batch_shape, [n], backend)
        if checked:
            arrays = self._solver.given if self.backend == "kernel" else None
            check_scores((self.emissions, self.transitions, self.start, self.end), arrays)

    # --- the parts, flat and compact -------------------------------------------------------------------------

    _plan: ChainArrays | None
    """The arrays of a plain batch, checked: what kernels read as it is. None: the general way, by `_chain`."""

    @cached_property
    def _layout(self) -> Layout:
        assert self._plan is not None
        return Layout(torch.from_numpy(self._plan.lengths))

    @cached_property
    def _solver(self) -> Any:
        if self._plan is not None:
            return self._structure.kernels(self._chain, self._plan)
        return solver_for(self._structure, self.backend, self._chain)

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_layout": self._layout, "_plan": None}

    @cached_property
    def _chain(self) -> Chain:
        """One batch axis, valid positions first, float32 at least."""
        n, c = self.emissions.shape[-2:]
        emissions, transitions = self.emissions, self.transitions
        if emissions.dim() != 3:
            emissions = emissions.reshape(-1, n, c)
        emissions = self._layout.compact(emissions)
        if transitions.dim() > 2:
            transitions = transitions.reshape(self.batch_shape.numel(), n - 1, c, c)
            if self._layout.order is not None:  # arcs belong to the position they lead into
                lead = transitions.new_zeros(len(transitions), 1, c, c)
                transitions = self._layout.compact(torch.cat([lead, transitions], 1))[:, 1:]
        dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
        start, end = cast(self.start, dtype), cast(self.end, dtype)
        return Chain(cast(emissions, dtype), cast(transitions, dtype), start, end, self._layout.lengths)

    @cached_property
    def _precise(self) -> Chain:
        return self._chain.double()

    def _by_row(self, values: Tensor) -> Int[Tensor, "rows n"]:
        rows = super()._by_row(values)
        return rows if self._layout.order is None else self._layout.compact(rows).contiguous()

    def _in_batch(self, values: Tensor, lead: Sequence[int]) -> Tensor:
        if self._layout.order is not None and values.numel():
            values = torch.stack([self._layout.spread(each) for each in values.reshape(-1, *self._layout.order.shape)])
        return super()._in_batch(values, lead)

    def _read(self, value: Tensor, check: bool) -> Int[Tensor, "*samples *batch n"]:
        tags = whole_values("tags", value, (*self.batch_shape, *self.event_shape))
        if check:
            check_tags(tags, self.valid, self._chain.c)
        return tags

    @property
    def _solved(self) -> tuple[Chain]:
        return (self._chain,)

    @property
    def _lengths(self) -> Int[Tensor, "rows"]:  # type: ignore[override]
        return self._layout.lengths

    # --- queries ---------------------------------------------------------------------------------------------

    def argmax_lists(self) -> list[list[int]]:
        """Return `argmax` of each row as a list of its valid positions."""
        if self._plan is not None:
            tags, possible = run_best(self._plan)
            lengths = self._plan.lengths
        else:
            bridge.require_numbers("what gives lists, such as decode,")
            tags, possible, lengths = (as_array(each) for each in (*self._solver.best(), self._lengths))
        if not possible.all():
            self._require_values(torch.from_numpy(possible))
        return [row[:length] for row, length in zip(tags.tolist(), lengths.tolist(), strict=True)]

    def log_prob(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """Return log p(tags | x) = score(tags) - log Z; -inf for forbidden tags, never above 0."""
        fused = None if self._plan is None else self._fused_log_prob(self._plan, value)
        return super().log_prob(value) if fused is None else fused

    def _fused_log_prob(self, plan: ChainArrays, tags: Tensor) -> Float[Tensor, "batch"] | None:
        """Return `log_prob` in one kernel; None where tags are several for a row or wrong, or a row is wide."""
        if not isinstance(tags, Tensor) or tags.dtype != torch.long or tags.shape != self.emissions.shape[:2]:
            return None
        return log_likelihood((self.emissions, self.transitions, self.start, self.end), plan, tags)

    @property
    def marginals(self) -> Float[Tensor, "*batch n c"]:
        """p(y_t = j | x) at [..., t, j]; 0 at invalid positions. Differentiable."""
        return self._batched(self._layout.spread(self._marginals("batch")[0]))

    @property
    def pairwise_marginals(self) -> Float[Tensor, "*batch n-1 c c"]:
        """p(y before t = i, y_t = j | x) at [..., t-1, i, j]; 0 where no arc leads into position t."""
        pairs = self._marginals("position")[1]
        if self._layout.order is not None:
            lead = pairs.new_zeros(len(pairs), 1, *pairs.shape[2:])
            pairs = self._layout.spread(torch.cat([lead, pairs], 1))[:, 1:]
        return self._batched(pairs)

    def _marginals(self, arcs_by: ArcsBy) -> tuple[Tensor, Tensor]:
        """Return unary posteriors, and arc posteriors summed as asked; compact."""
        posteriors: tuple[Tensor, Tensor] = self._solver.marginals(arcs_by)
        return posteriors

    def expected(
        self,
        costs: Float[Tensor, "*batch n c"] | None = None,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> Float[Tensor, "*batch"]:
        """Return E[Σ_t costs[t, y_t] + Σ transitions[y_{t-1}, y_t] + start[y_1] + end[y_L]].

        Args:
            costs: costs of the tags at each position; None for 0, here and below.
            transitions: costs [c, c] of pairs of tags, indexed [from, to], or by position [*batch, n-1, c, c].
            start: costs [c] of the first tag.
            end: costs [c] of the last tag.
        """
        return self._batched(self._expected(self._costs(costs, transitions, start, end)))

    def _costs(
        self,
        costs: Tensor | None = None,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        n, c = self.emissions.shape[-2:]
        if costs is not None and costs.shape != self.emissions.shape:
            raise ScoreError(
                f"costs must be {tuple(self.emissions.shape)} like the emissions; got {tuple(costs.shape)}"
            )
        given = LinearChain(
            self.emissions.new_zeros(n, c).expand(self.emissions.shape) if costs is None else costs,
            self.emissions.new_zeros(c, c) if transitions is None else transitions,
            start,
            end,
            validate_args=False,
        )
        given._layout = self._layout
        return given._chain.scores

    @property
    def _scores(self) -> tuple[Tensor, ...]:
        return self._precise.scores

    def _expected(self, costs: tuple[Tensor | None, ...]) -> Float[Tensor, "rows"]:
        emissions, transitions, start, end = (cost for cost in costs if cost is not None)
        shared = transitions.dim() == 2
        unary, arcs = self._marginals("row" if shared else "position")
        rows = torch.arange(len(unary), device=unary.device)
        last = unary[rows, self._layout.lengths - 1]
        return (
            weighted_sum(unary, emissions, 1)
            + weighted_sum(arcs, transitions, 1)  # [c, c] or [rows, n-1, c, c]
            + weighted_sum(unary[:, 0], start, 1)
            + weighted_sum(last, end, 1)
        )

    def _tilted(self, costs: tuple[Tensor | None, ...], t: Float[Tensor, "rows"]) -> LinearChain:
        """Tilt as the base does.

        What rows share, such as transitions, is written out for each position before it is moved.
        """
        by_tag, by_arc, by_start, by_end = (cost.double() for cost in costs if cost is not None)
        emissions, transitions, start, end = self._scores
        place, lengths = torch.arange(emissions.shape[1], device=t.device), self._layout.lengths[:, None]
        by_start, by_end = torch.where(start > -INF, by_start, 0.0), torch.where(end > -INF, by_end, 0.0)
        at_edges = (place == 0)[:, None] * by_start + (place == lengths - 1)[..., None] * by_end
        if by_arc.dim() > 2 or any_seen(by_arc != 0):
            if transitions.dim() == 2:
                transitions = transitions.expand(len(emissions), len(place) - 1, *transitions.shape)
            transitions = moved_along(transitions, by_arc, t)
        return self._with_solver((moved_along(emissions, by_tag + at_edges, t), transitions, start, end))

    def _centred(self) -> LinearChain:
        """Return the same distribution with centred scores."""
        return self._like(
            centred(self.emissions, 1), centred(self.transitions, 2), centred(self.start, 1), centred(self.end, 1)
        )

    # --- constraints -----------------------------------------------------------------------------------------

    def constrain(
        self,
        partial: Int[Tensor, "*batch n"] | Bool[Tensor, "*batch n c"] | None = None,
        *,
        transitions: Bool[Tensor, "c c"] | None = None,
        start: Bool[Tensor, "c"] | None = None,
        end: Bool[Tensor, "c"] | None = None,
    ) -> LinearChain:
        """Return only the sequences that agree: everything else scores -inf.

        Args:
            partial: tags, with -100 (any negative) where the tag is unknown, or True for each allowed tag of each
                position; None if nothing is known.
            transitions: True for pairs of tags that may follow one another, indexed [from, to].
            start: True for tags that may be the first.
            end: True for tags that may be the last.
        """
        emissions = self.emissions
        if partial is not None:
            emissions = torch.where(allowed_values(partial, emissions, self.valid), emissions, -INF)
        return self._like(
            emissions,
            keep_allowed("transitions", self.transitions, transitions, 2),
            keep_allowed("start", self.start, start, 1),
            keep_allowed("end", self.end, end, 1),
        )

    def token_log_probs(
        self, partial: Int[Tensor, "*batch n"] | Bool[Tensor, "*batch n c"]
    ) -> Float[Tensor, "*batch n"]:
        """Return log p(y_t agrees | y_1..y_{t-1} agree, x): each position's share; the shares sum to `log_prob_of_set`.

        `partial` is as in `constrain`. From the constrained α and the free β:
        log p(y_1..y_t agree) = log Σ_j α'_t(j) β_t(j) - log Z. Invalid positions have share 0.
        """
        given = self._centred()
        log, free, kept = Log(), given._precise, given.constrain(partial)._precise
        alphas, betas = structure.forward(kept, log), structure.backward(free, log)
        prefixes = log.sum(torch.stack(alphas, 1) + torch.stack(betas, 1), dim=-1)
        before = torch.cat([structure.log_partition(free)[:, None], prefixes[:, :-1]], 1)
        # Where a prefix is impossible, so is all that follows: the first such share says so, the rest add nothing.
        possible = prefixes > -INF
        share = torch.where(possible, log_ratio(prefixes, before), torch.where(before > -INF, -INF, 0.0))
        return self._batched(self._layout.spread(torch.where(free.token_mask, share, 0.0)))

    def _divided(self, t: float) -> LinearChain:
        return self._like(self.emissions / t, self.transitions / t, self.start / t, self.end / t)

    def _comparable(self, other: LinearChain) -> bool:
        return self.emissions.shape == other.emissions.shape and torch.equal(self.valid, other.valid)

    def _like(self, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> LinearChain:
        """Return other scores in the same layout."""
        new = LinearChain(emissions, transitions, start, end, backend=self.backend, validate_args=False)
        new._layout = self._layout
        return new

    def span_probability(
        self, first: int, last: int, label: str, *, tags: Sequence[str], scheme: str = "IOB2"
    ) -> Float[Tensor, "*batch"]:
        """Return P(tokens first..last-1 are exactly one `label` span), each row; `tags` names the tag indices.

        >>> chain.span_probability(2, 4, "PER", tags=["O", "B-PER", "I-PER"], scheme="IOB2")

        Args:
            first: the first token of the span.
            last: the token behind it.
            label: the label of the span.
            tags: the name of each tag index.
            scheme: the scheme of these names, such as IOB2.
        """
        rows = range(len(self._chain.lengths))
        probabilities = self.span_probabilities([[(first, last, label)] for _ in rows], tags=tags, scheme=scheme)
        return self._batched(torch.cat(probabilities))

    def span_probabilities(
        self, spans: Sequence[Sequence[Span]], *, tags: Sequence[str], scheme: str = "IOB2"
    ) -> list[Float[Tensor, "spans"]]:
        """Return `span_probability` of each row's own spans (start, end, label), in one pass.

        Args:
            spans: for each row its spans (start, end, label), end exclusive.
            tags: the name of each tag index.
            scheme: the scheme of these names, such as IOB2.
        """
        if self._layout.order is not None:
            raise ScoreError("spans are counted in tokens; got a mask with holes; drop the masked positions first")
        log_z, counts = self._log_z, [len(row) for row in spans]
        if len(counts) != len(log_z):
            raise ScoreError(f"spans must be one list for each of the {len(log_z)} rows; got {len(counts)} lists")
        owned = [(row, span) for row, each in enumerate(spans) for span in each]
        if not owned:
            return [log_z.new_zeros(0, dtype=self.dtype) for _ in spans]
        # Each span takes scores of its tokens, transitions by position included: thousands of spans go in groups.
        c, rows = self._chain.c, windows_of(self._precise)
        by_token = c if self._chain.transitions.dim() == 2 else c + c * c
        groups = in_groups([rows.width(span) for _, span in owned], by_token, GROUP_SCORES)
        log_probs = torch.cat(
            [self._span_log_probs([owned[i] for i in group], rows, log_z, list(tags), scheme) for group in groups]
        )
        back = torch.tensor([i for group in groups for i in group], device=log_probs.device).argsort()
        return list(log_probs[back].exp().to(self.dtype).split(counts))

    def _span_log_probs(
        self,
        owned: list[tuple[int, Span]],
        rows: Whole | Summed,
        log_z: Float[Tensor, "rows"],
        tags: list[str],
        scheme: str,
    ) -> Float[Tensor, "spans"]:
        """Return log P of each (row, span)."""
        owner = torch.tensor([row for row, _ in owned], device=log_z.device)
        log_weights = [
            LinearChain(*chain.scores, lengths=chain.lengths, backend=self.backend, validate_args=False)._log_z
            for chain in span_chains(*rows.windows([span for _, span in owned], owner), tags, scheme)
        ]
        return log_ratio(add_up(log_weights), log_z[owner])

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        c = self.emissions.shape[-1]
        return constraints.independent(constraints.integer_interval(0, c - 1), 1)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> LinearChain:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        transitions = self.transitions
        if transitions.dim() > 2:
            transitions = transitions.expand(*shape, *transitions.shape[-3:])
        mask = self.valid.expand(*shape, *self.event_shape)
        emissions = self.emissions.expand(*shape, *self.emissions.shape[-2:])
        return LinearChain(
            emissions, transitions, self.start, self.end, mask=mask, backend=self.backend, validate_args=False
        )

    @property
    def valid(self) -> Bool[Tensor, "*batch n"]:
        """True at the positions that lengths or mask keep."""
        return self._layout.spread(self._chain.token_mask).reshape(*self.batch_shape, *self.event_shape)

    def enumerate_support(self, expand: bool = True) -> Int[Tensor, "values *batch n"]:
        """Return all c^n tag sequences; rows must have the same length, and at most a million sequences."""
        n, c = self.emissions.shape[-2:]
        if not bool(self.valid.all()):
            raise ScoreError("enumerate_support needs rows without padding or holes; enumerate ragged rows one by one")
        if c**n > 1_000_000:
            raise ScoreError(f"{c} tags at {n} positions are {c**n:.1e} sequences; use sample or top_k instead")
        grid = torch.cartesian_prod(*[torch.arange(c, device=self.emissions.device)] * n).reshape(-1, n)
        values = grid.reshape(-1, *[1] * len(self.batch_shape), n)
        return values.expand(-1, *self.batch_shape, -1) if expand else values

    def __repr__(self) -> str:
        n, c = self.emissions.shape[-2:]
        return f"LinearChain(batch_shape={tuple(self.batch_shape)}, n={n}, c={c}, backend={self.backend!r})"
