"""The semi-Markov distribution: labelled segmentations, every query exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions import segment_values as values
from trelliswork.distributions.base import Backend
from trelliswork.distributions.centring import centred_segments
from trelliswork.distributions.chain_inputs import keep_allowed
from trelliswork.distributions.checks import (
    KnownRows,
    check_edges,
    known_rows,
    known_values,
    label_index,
    one_dtype,
    whole_values,
)
from trelliswork.distributions.costs import moved_along, weighted_sum
from trelliswork.distributions.segment_scores import SegmentScores, check_factors, promote
from trelliswork.distributions.segment_values import Nested
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.structures.host_solver import solver_for
from trelliswork.structures.record import Solver
from trelliswork.structures.segments import structure
from trelliswork.structures.segments.factored import Factored
from trelliswork.structures.segments.solver import STRUCTURE


class SemiMarkov(SegmentScores):
    """p(s | x) with score = start[y_1] + Σ segments[i_j, d_j - 1, y_j] + Σ transitions[y_{j-1}, y_j] + end[y_m].

    Sarawagi and Cohen (2004), "Semi-Markov Conditional Random Fields for Information Extraction".

    `segments[b, i, d-1, y]` scores the segment that starts at token i, covers d tokens and is labelled y; those that
    would run past the row's `lengths` are not read. Without transitions labels are independent of one another. A
    forbidden part scores -inf. `SemiMarkov.factored` takes the scores of tokens, durations and boundaries instead.

    A value is, for each row, a list of (start, end, label), end exclusive; nested lists for more batch axes, ranks and
    samples. Everywhere a value is taken its tensor form is taken too: starts [..., n], the label where a segment starts
    and -1 elsewhere (`to_starts`, `from_starts`).

    >>> dist = SemiMarkov(torch.zeros(1, 5, 3, 2), torch.zeros(2, 2))
    >>> dist.count, dist.argmax
    (tensor([152.], dtype=torch.float64), [[(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (4, 5, 0)]])

    Args:
        segments: scores of segments [*batch, n, k, c].
        transitions: scores of pairs of labels [c, c], indexed [from, to]; None for none.
        start: scores of the first label [c]; None for 0.
        end: scores of the last label [c]; None for 0.
        lengths: the number of tokens of each row; None if all rows are full.
        max_lengths: the longest segment of each label [c]; None for k.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """

    _structure = STRUCTURE
    _noun = "segmentation"
    _advice = "allow segments that cover the row and transitions between their labels"

    def __init__(
        self,
        segments: Float[Tensor, "*batch n k c"],
        transitions: Float[Tensor, "c c"] | None = None,
        start: Float[Tensor, "c"] | None = None,
        end: Float[Tensor, "c"] | None = None,
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        max_lengths: Int[Tensor, "c"] | Sequence[int] | None = None,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        self.segments, self.transitions, self.start, self.end = promote(segments, transitions, start, end)
        self._factors = None
        self._set_up(self.segments.shape, lengths, max_lengths, backend, validate_args)

    @classmethod
    def factored(
        cls,
        tokens: Float[Tensor, "*batch n c"],
        durations: Float[Tensor, "k c"],
        starts: Float[Tensor, "*batch n c"] | None = None,
        ends: Float[Tensor, "*batch n c"] | None = None,
        transitions: Float[Tensor, "c c"] | None = None,
        start: Float[Tensor, "c"] | None = None,
        end: Float[Tensor, "c"] | None = None,
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        max_lengths: Int[Tensor, "c"] | Sequence[int] | None = None,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ) -> SemiMarkov:
        """Build it from segments scored by sums: the segment of tokens i..j-1 labelled y scores

            starts[i, y] + tokens[i, y] + ... + tokens[j-1, y] + ends[j-1, y] + durations[j-i-1, y]

        The kernels compute it when they read it, so log Z, its gradient, the best and the k best segmentations,
        samples and probabilities need no tensor [n, k, c]: a long text is no problem. Queries about single segments
        (`marginals`, `expected`, `entropy`, `span_probability`) make one.

        Args:
            tokens: the score of each token in a segment of each label.
            durations: the score of each duration, d at index d-1, in a segment of each label.
            starts: what a segment of each label adds if it starts at a token; None for 0.
            ends: what a segment of each label adds if it ends at a token; None for 0.
            transitions: scores of pairs of labels, indexed [from, to]; None for 0.
            start: scores of the first label; None for 0.
            end: scores of the last label; None for 0.
            lengths: the number of tokens of each row; None if all rows are full.
            max_lengths: the longest segment of each label; None for k.
            backend: "kernel", "torch" or "auto".
            validate_args: whether scores are checked; None as torch.distributions does.
        """
        c = tokens.shape[-1]
        start = tokens.new_zeros(c) if start is None else start
        end = tokens.new_zeros(c) if end is None else end
        check_factors(tokens, durations, starts, ends)
        check_edges(transitions, {"start": start, "end": end}, c, "label")
        self = cls.__new__(cls)
        moved = one_dtype((tokens, durations, starts, ends, transitions, start, end))
        self.transitions, self.start, self.end = moved[4:]
        shape = (*tokens.shape[:-1], len(durations), c)
        nothing = torch.empty(0, dtype=torch.long, device=tokens.device)
        self._factors = Factored.of(moved, nothing)
        self._set_up(torch.Size(shape), lengths, max_lengths, backend, validate_args)
        return self

    # --- values ----------------------------------------------------------------------------------------------

    def from_starts(self, starts: Int[Tensor, "*samples *batch n"]) -> Nested:
        """Return the tensor form as lists of (start, end, label), nested as [*samples, *batch]."""
        shape = starts.shape[:-1]
        flat = starts.reshape(-1, *self.event_shape)
        lengths = self._lengths.repeat(len(flat) // max(len(self._lengths), 1))
        segments: Nested = values.nested(values.to_lists(flat, lengths), shape)
        return segments

    def to_starts(self, value: Tensor | Nested) -> Int[Tensor, "*samples *batch n"]:
        """Return a value in its tensor form, checked: a segment that is too long or out of place is named."""
        if not isinstance(value, Tensor):
            value = values.from_lists(value, self._lengths, self.batch_shape, *self.event_shape)
        starts = whole_values("starts", value, (*self.batch_shape, *self.event_shape))
        k, c = self._shape[-2:]
        longest = torch.full((c,), k, device=starts.device) if self.max_lengths is None else self.max_lengths
        values.check_starts(starts.reshape(-1, len(self._lengths), *self.event_shape), self._lengths, longest)
        return starts

    def to_parts(self, value: Tensor | Nested) -> Float[Tensor, "*samples *batch n k c"]:
        """Return 1 at the segments of a value, 0 elsewhere: shaped like `marginals`."""
        starts = self.to_starts(value)
        n, k, c = self._shape[-3:]
        flat = starts.reshape(-1, n)
        lengths = self._lengths.repeat(len(flat) // max(len(self._lengths), 1))
        place = torch.arange(n, device=flat.device)
        begins = (flat >= 0) & (place < lengths[:, None])
        row, first = begins.nonzero(as_tuple=True)
        parts = torch.zeros(len(flat), n, k, c, dtype=self.dtype, device=flat.device)
        parts[row, first, (structure.ends_of(flat, lengths) - place)[row, first] - 1, flat[row, first]] = 1
        return parts.reshape(*starts.shape, k, c)

    def from_parts(self, parts: Float[Tensor, "*samples *batch n k c"]) -> Nested:
        """Return the value whose segments are marked in `parts`."""
        marked, label = parts.amax(-2).max(-1)
        return self.from_starts(self.to_starts(torch.where(marked > 0, label, -1)))

    # --- queries ---------------------------------------------------------------------------------------------

    def log_prob(self, value: Tensor | Nested) -> Float[Tensor, "*samples *batch"]:
        """Return log p(s | x) = score(s) - log Z; -inf for a forbidden segmentation, never above 0."""
        fused = self._fused_log_prob(value) if self._is_plain else None
        return super().log_prob(value) if fused is None else fused

    def _fused_log_prob(self, value: Tensor | Nested) -> Float[Tensor, "batch"] | None:
        """Return `log_prob` in one kernel; None where the general way is needed instead."""
        starts = value if isinstance(value, Tensor) else self.to_starts(value)
        if starts.dtype != torch.long or starts.shape != (*self.batch_shape, *self.event_shape):
            return None
        log_prob: Tensor | None = self._solver.fused_log_prob(starts)
        return log_prob

    @cached_property
    def _is_plain(self) -> bool:
        """Return whether kernels read the scores of segments as they are: one batch axis, float32 or float64."""
        is_flat = self._factors is None and len(self.batch_shape) == 1
        return is_flat and self.backend == "kernel" and self.dtype == self._working_dtype

    def _read(self, value: Tensor | Nested, check: bool) -> Int[Tensor, "*samples *batch n"]:
        return self.to_starts(value)

    def _written(self, values: Tensor) -> Nested:
        return self.from_starts(values)

    @property
    def marginals(self) -> Float[Tensor, "*batch n k c"]:
        """p(segment (i, d, y) | x) at [..., i, d-1, y]; 0 for segments that are not read. Differentiable."""
        return self._batched(self._marginals()[0])

    @property
    def token_marginals(self) -> Float[Tensor, "*batch n c"]:
        """p(token t lies in a segment labelled y | x) at [..., t, y]; 0 behind a row's end. Differentiable."""
        reaching = self._marginals()[0].flip(2).cumsum(2).flip(2)  # [i, d-1]: segments from i of d tokens and more
        n, k = reaching.shape[1:3]
        moved = [torch.nn.functional.pad(reaching[:, : n - d, d], (0, 0, d, 0)) for d in range(min(k, n))]
        return self._batched(torch.stack(moved).sum(0))

    def _marginals(self) -> tuple[Tensor, Tensor]:
        """Return posteriors of segments, and the expected number of each pair of neighbouring labels."""
        posteriors: tuple[Tensor, Tensor] = self._solver.marginals()
        return posteriors

    def sample_starts(
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Int[Tensor, "*samples *batch n"]:
        """Return `sample` in its tensor form."""
        return self._sampled(sample_shape, generator)

    def expected(
        self,
        costs: Float[Tensor, "*batch n k c"] | None = None,
        transitions: Float[Tensor, "c c"] | None = None,
        start: Float[Tensor, "c"] | None = None,
        end: Float[Tensor, "c"] | None = None,
    ) -> Float[Tensor, "*batch"]:
        """Return E[Σ costs of segments + transitions[y_{j-1}, y_j] + start[y_1] + end[y_m]].

        Args:
            costs: costs of segments: start, duration less 1, label; None for 0, here and below.
            transitions: costs of pairs of labels, indexed [from, to].
            start: costs of the first label.
            end: costs of the last label.
        """
        return self._batched(self._expected(self._costs(costs, transitions, start, end)))

    def _costs(
        self,
        costs: Tensor | None = None,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> tuple[Tensor | None, ...]:
        segments = self.start.new_zeros(()).expand(self._shape) if costs is None else costs
        given = SemiMarkov(segments, transitions, start, end, lengths=self.lengths, validate_args=False)
        return given._parts.scores

    @property
    def _scores(self) -> tuple[Tensor | None, ...]:
        return self._parts.double().scores

    def _expected(self, costs: tuple[Tensor | None, ...]) -> Float[Tensor, "rows"]:
        by_segment, by_arc, by_start, by_end = costs
        assert by_segment is not None and by_start is not None and by_end is not None
        if by_arc is not None and self.transitions is None:
            return self._first_order()._expected(costs)
        segments, arcs = self._marginals()
        result = (
            weighted_sum(segments, by_segment, 1)
            + weighted_sum(segments[:, 0].sum(1), by_start, 1)
            + weighted_sum(torch.where(self._at_end, segments, 0.0).sum((1, 2)), by_end, 1)
        )
        return result if by_arc is None else result + weighted_sum(arcs, by_arc, 1)

    @property
    def _at_end(self) -> Bool[Tensor, "rows n k 1"]:
        """True at the segments that end their row."""
        (n, k), device = self._shape[-3:-1], self.start.device
        lasts = torch.arange(1, n + 1, device=device)[:, None] + torch.arange(k, device=device)
        return (lasts == self._lengths[:, None, None])[..., None]

    def _covariance(self, costs: tuple[Tensor | None, ...], others: tuple[Tensor | None, ...]) -> Float[Tensor, "rows"]:
        """Compute it as the base does; rows share transitions, so two costs of them are looked at row by row."""
        if costs[1] is None and others[1] is None:
            return super()._covariance(costs, others)
        if self.transitions is None:
            return self._first_order()._covariance(costs, others)
        if others[1] is None or len(self._lengths) == 1:
            return super()._covariance(costs, others)
        if costs[1] is None:
            return super()._covariance(others, costs)
        segments, (mine, *my_shared), (its, *its_shared) = self._parts.double().segments, costs, others
        assert mine is not None and its is not None
        rows = [self._log_z[:0]]
        for row in range(len(self._lengths)):
            alone = self._like(segments[None, row], self.transitions, self.start, self.end, self._lengths[None, row])
            rows.append(alone._covariance((mine[None, row], *my_shared), (its[None, row], *its_shared)))
        return torch.cat(rows)

    def _tilted(self, costs: tuple[Tensor | None, ...], t: Float[Tensor, "rows"]) -> SemiMarkov:
        """Tilt as the base does.

        Costs of the start and the end become costs of the segments there, which no rows share.
        """
        by_segment, by_arc, by_start, by_end = costs
        segments, transitions, start, end = self._parts.double().scores
        assert by_segment is not None and by_start is not None and by_end is not None
        at_start = (torch.arange(segments.shape[1], device=t.device) == 0)[:, None, None]
        at_edges = at_start * torch.where(start > -INF, by_start.double(), 0.0)
        at_edges = at_edges + self._at_end * torch.where(end > -INF, by_end.double(), 0.0)
        if transitions is not None and by_arc is not None:
            transitions = moved_along(transitions, by_arc, t)
        return self._with_solver((moved_along(segments, by_segment.double() + at_edges, t), transitions, start, end))

    def _rescored(self, scores: Any) -> Solver:
        return solver_for(self._structure, self.backend, self._parts.with_scores(*scores))

    def _centred(self) -> SemiMarkov:
        return SemiMarkov(
            *centred_segments(self._parts), lengths=self._lengths, backend=self.backend, validate_args=False
        )

    def span_probability(
        self, first: int, last: int, label: int | str, *, labels: Sequence[str] | None = None
    ) -> Float[Tensor, "*batch"]:
        """Return P(tokens first..last-1 are exactly one segment with this label), each row; `labels` names labels.

        >>> dist.span_probability(2, 4, "PER", labels=["O", "PER"])

        Args:
            first: the first token of the segment.
            last: the token behind it.
            label: its index, or its name among `labels`.
            labels: the name of each label.

        Returns:
            [*batch].
        """
        n, k, c = self._shape[-3:]
        index = label_index(label, labels)
        if not 0 <= first < last <= n or index is None or not 0 <= index < c:
            raise ScoreError(
                f"a span must be first < last within 0..{n}, with a label in 0..{c - 1}; got {(first, last, label)}"
            )
        marginals = self.marginals
        if last - first > k:
            return marginals.new_zeros(self.batch_shape)
        return marginals[..., first, last - first - 1, index]

    # --- constraints -----------------------------------------------------------------------------------------

    def constrain(
        self,
        partial: Bool[Tensor, "*batch n k c"] | Int[Tensor, "*batch n"] | KnownRows | None = None,
        *,
        transitions: Bool[Tensor, "c c"] | None = None,
        start: Bool[Tensor, "c"] | None = None,
        end: Bool[Tensor, "c"] | None = None,
    ) -> SemiMarkov:
        """Return only the segmentations that agree: everything else scores -inf.

        Args:
            partial: True for each allowed segment; or the label of each token, -100 (any negative) where it is unknown;
                or for each row the segments (start, end, label) that are known, a label of None for any. None if
                nothing is known.
            transitions: True for pairs of labels that may follow one another, indexed [from, to].
            start: True for labels that may be the first.
            end: True for labels that may be the last.
        """
        own = self.transitions if transitions is None else self._first_order().transitions
        own = None if own is None else keep_allowed("transitions", own, transitions, 2)
        edges = keep_allowed("start", self.start, start, 1), keep_allowed("end", self.end, end, 1)
        if partial is None:
            return self._like(None, own, *edges)
        if self._factors is not None and isinstance(partial, Tensor) and partial.dtype != torch.bool:
            labels = self._known_labels(partial)[..., None]
            agree = (labels < 0) | (labels == torch.arange(self._shape[-1], device=labels.device))
            tokens = torch.where(agree.reshape(self._factors.tokens.shape), self._factors.tokens, -INF)
            return self._like(replace(self._factors, tokens=tokens), own, *edges)
        return self._like(torch.where(self._allowed(partial), self.segments, -INF), own, *edges)

    def _allowed(self, partial: Tensor | KnownRows) -> Bool[Tensor, "*batch n k c"]:
        shape, device = self._shape, self.start.device
        n, k, c = shape[-3:]
        if not isinstance(partial, Tensor):
            known = known_rows(partial, self.batch_shape, "segments")
            return values.allowed_by_segments(known, n, k, c, device).reshape(shape)
        if partial.dtype == torch.bool:
            if partial.shape != shape:
                raise ScoreError(f"allowed segments must be {tuple(shape)}, True = allowed; got {tuple(partial.shape)}")
            return partial
        return values.allowed_by_tokens(self._known_labels(partial), k, c).reshape(shape)

    def _known_labels(self, partial: Tensor) -> Int[Tensor, "rows n"]:
        """Return labels of tokens, flat and checked; negative where unknown."""
        shape, device = self._shape, self.start.device
        n, _, c = shape[-3:]
        if partial.dtype.is_floating_point or partial.shape != shape[:-2]:
            raise ScoreError(
                f"partial labels must be whole numbers {tuple(shape[:-2])}, -100 = unknown; "
                f"got {partial.dtype} {tuple(partial.shape)}"
            )
        real = torch.arange(n, device=device) < self._lengths[:, None]
        return known_values("partial labels", partial.reshape(-1, n), real, c)

    def _divided(self, t: float) -> SemiMarkov:
        transitions = None if self.transitions is None else self.transitions / t
        parts: Tensor | Factored = self.segments / t if self._factors is None else self._factors.divided(t)
        return self._like(parts, transitions, self.start / t, self.end / t)

    def _comparable(self, other: SemiMarkov) -> bool:
        return self._shape == other._shape and torch.equal(self._lengths, other._lengths)

    def _first_order(self) -> SemiMarkov:
        """Return the same distribution with transitions: scores of 0 if there are none."""
        if self.transitions is not None:
            return self
        return self._like(None, self.start.new_zeros(self._shape[-1], self._shape[-1]), self.start, self.end)

    def _like(
        self,
        parts: Tensor | Factored | None,
        transitions: Tensor | None,
        start: Tensor,
        end: Tensor,
        lengths: Tensor | None = None,
    ) -> SemiMarkov:
        """Return other scores, the same limits; without parts the scores of segments stay as they were given."""
        options: dict[str, Any] = dict(
            lengths=self.lengths if lengths is None else lengths,
            max_lengths=self.max_lengths, backend=self.backend, validate_args=False,
        )  # fmt: skip
        own = (self._factors or self.segments) if parts is None else parts
        if isinstance(own, Tensor):
            return SemiMarkov(own, transitions, start, end, **options)
        return SemiMarkov.factored(own.tokens, own.durations, own.starts, own.ends, transitions, start, end, **options)

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        """Of the tensor form."""
        return constraints.independent(constraints.integer_interval(-1, self._shape[-1] - 1), 1)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> SemiMarkov:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        segments = self.segments.expand(*shape, *self._shape[-3:])
        return self._like(segments, self.transitions, self.start, self.end, self.lengths.expand(shape))

    def __repr__(self) -> str:
        n, k, c = self._shape[-3:]
        return f"SemiMarkov(batch_shape={tuple(self.batch_shape)}, n={n}, k={k}, c={c}, backend={self.backend!r})"
