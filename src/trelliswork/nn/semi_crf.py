"""The semi-CRF layer: labelled segmentations over segment scores, token scores or token encodings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trelliswork.distributions import SemiMarkov
from trelliswork.distributions.base import Backend
from trelliswork.distributions.checks import check_tensor
from trelliswork.errors import ScoreError
from trelliswork.nn.structured import StructuredLayer, check_reduction, lengths_of, reduce
from trelliswork.runtime.arrays import Bool, Float, Int

Segment = tuple[int, int, int | str]  # start, end (exclusive) and label, by its number or its name
Segmentations = Sequence[Sequence[Segment]] | Int[Tensor, "batch n"]  # a list for each row, or starts


class SemiCRF(StructuredLayer):
    """A semi-Markov CRF with learned transitions. What it is given decides how segments are scored:

    - scores [batch, n, k, c] of every segment, by start and duration 1..k (`max_length` = k);
    - scores [batch, n, c] of tokens: a segment adds up those of its tokens, and a learned score for its duration;
    - encodings [batch, n, encoding_dim], in a layer made with `encoding_dim`: linear scores of the tokens, of the first
      and of the last one, and a learned score for the duration.

    The last two never build a tensor [n, k, c]. `order=0` leaves out transitions between labels. `max_lengths` limits
    the segments of each label. Segmentations are lists of (start, end, label), end exclusive, or starts [batch, n].
    A layer made by `from_labels` knows the names of its labels, takes them and returns them. Rows are ragged by
    `lengths` or by a `mask` with padding on the right.

    Args:
        num_labels: Number of labels.
        max_length: Longest segment, in tokens.
        encoding_dim: Width of the encodings that the layer scores itself; None for scores.
        order: 1 for transitions between labels, 0 for none.
        max_lengths: Longest segment of each label.
        backend: Implementation: kernels, torch, or the faster one.

    >>> crf = SemiCRF.from_labels(["O", "PER", "LOC"], max_length=6, encoding_dim=64, outside="O")
    >>> loss = crf.loss(encodings, [[(0, 2, "PER")], [(3, 4, "LOC")]], lengths)   # gaps are "O"
    >>> crf.decode(encodings, lengths)
    [[(0, 2, 'PER'), (2, 3, 'O')], ...]

    Sarawagi and Cohen (2004), Semi-Markov conditional random fields for information extraction.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self,
        num_labels: int,
        max_length: int,
        *,
        encoding_dim: int | None = None,
        order: int = 1,
        max_lengths: Sequence[int] | None = None,
        backend: Backend = "auto",
    ) -> None:
        if num_labels < 1 or max_length < 1:
            raise ScoreError(f"num_labels and max_length must be at least 1; got {num_labels} and {max_length}")
        if order not in (0, 1):
            raise ScoreError(f"order must be 1 (transitions between labels) or 0 (none); got {order}")
        super().__init__()
        self.num_labels, self.max_length, self.backend = num_labels, max_length, backend
        self.encoding_dim, self.order = encoding_dim, order
        self.max_lengths = None if max_lengths is None else tuple(max_lengths)
        self.labels: tuple[str, ...] | None = None
        self.outside: int | None = None
        self.start_transitions = nn.Parameter(torch.empty(num_labels))
        self.end_transitions = nn.Parameter(torch.empty(num_labels))
        self.transitions = nn.Parameter(torch.empty(num_labels, num_labels)) if order else None
        self.durations = nn.Parameter(torch.empty(max_length, num_labels))
        self.token_scorer, self.start_scorer, self.end_scorer = (
            None if encoding_dim is None else nn.Linear(encoding_dim, num_labels, bias=bias)
            for bias in (True, False, False)
        )
        self.reset_parameters()

    @classmethod
    def from_labels(
        cls,
        labels: Sequence[str],
        max_length: int,
        *,
        outside: str | None = None,
        max_lengths: dict[str, int] | None = None,
        encoding_dim: int | None = None,
        order: int = 1,
        backend: Backend = "auto",
    ) -> SemiCRF:
        """Make a layer for named labels. Tokens that no gold segment covers are `outside`, each a segment of its own.

        `max_lengths` limits some labels; the others, but for `outside`, may be `max_length` long.

        Args:
            labels: Names of the labels, in the order of their numbers.
            max_length: Longest segment, in tokens.
            outside: Label of tokens that no gold segment covers.
            max_lengths: Longest segment of some labels.
            encoding_dim: Width of the encodings that the layer scores itself.
            order: 1 for transitions between labels, 0 for none.
            backend: Implementation: kernels, torch, or the faster one.

        Returns:
            The layer.
        """
        if len(set(labels)) < len(labels):
            raise ScoreError(f"labels must differ from one another; got {list(labels)}; name each once")
        limits = {**({} if outside is None else {outside: 1}), **(max_lengths or {})}
        for name in limits:
            if name not in labels:
                raise ScoreError(f"{name!r} must be one of the labels {list(labels)}; add it, or leave out its limit")
        longest = [limits.get(name, max_length) for name in labels] if limits else None
        crf = cls(len(labels), max_length, encoding_dim=encoding_dim, order=order, max_lengths=longest, backend=backend)
        crf.labels = tuple(labels)
        crf.outside = None if outside is None else list(labels).index(outside)
        return crf

    def reset_parameters(self) -> None:
        """Start from small scores, uniform in ±0.1; scorers as `nn.Linear` does."""
        for name in ("start_transitions", "end_transitions", "transitions", "durations"):
            parameter = getattr(self, name)
            if parameter is not None:
                nn.init.uniform_(parameter, -0.1, 0.1)
        for scorer in (self.token_scorer, self.start_scorer, self.end_scorer):
            if scorer is not None:
                scorer.reset_parameters()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_labels={self.num_labels}, max_length={self.max_length})"

    # --- queries ---------------------------------------------------------------------------------------------

    def forward(
        self,
        scores: Tensor,
        segments: Segmentations,
        lengths: Int[Tensor, "batch"] | None = None,
        reduction: str = "sum",
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Tensor:
        """Return the log likelihood of segmentations; its negative is the loss. A segment that is too long is an error.

        `reduction` is "none" (one value per row), "sum", "mean" (over rows) or "token_mean".

        Args:
            scores: Scores of segments, of tokens, or encodings, as the class describes them.
            segments: Gold segmentations: a list of (start, end, label) for each row, or starts [batch, n].
            lengths: Number of tokens of each row, [batch].
            reduction: Way to combine the rows.
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            A scalar, or [batch] without reduction.
        """
        # [S0, likelihood]
        check_reduction(reduction)
        self._validate(scores)
        lengths = lengths_of(mask, lengths, scores.shape[:2])
        dist = self._distribution(scores, lengths)
        log_probs = dist.log_prob(self._starts(dist, segments))
        return reduce(log_probs, reduction, lambda: dist.lengths.sum())

    def loss(
        self,
        scores: Tensor,
        segments: Segmentations,
        lengths: Int[Tensor, "batch"] | None = None,
        reduction: str = "sum",
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Tensor:
        """Return minus the log likelihood.

        Args:
            scores: Segment scores [batch, n, k, c], token scores [batch, n, c] or encodings [batch, n, d], as the layer
                was made.
            segments: For each row its segments (start, end, label); or the label at each token that starts a segment,
                negative elsewhere.
            lengths: Number of tokens of each row; None if a mask says it or all rows are full.
            reduction: Sum, mean, token_mean or none.
            mask: True at valid positions; None if lengths say it.

        Returns:
            A scalar, or [batch] without reduction.
        """
        return -self(scores, segments, lengths, reduction, mask=mask)

    def decode(
        self,
        scores: Tensor,
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> list[list[Segment]]:
        """Return the best segmentation of each row: lists of (start, end, label).

        Args:
            scores: Segment scores [batch, n, k, c], token scores [batch, n, c] or encodings [batch, n, d], as the layer
                was made.
            lengths: Number of tokens of each row; None if a mask says it or all rows are full.
            mask: True at valid positions; None if lengths say it.

        Returns:
            For each row its segments, which cover it.
        """
        return [self._named(row) for row in self.distribution(scores, lengths, mask=mask).argmax]

    def marginals(
        self,
        scores: Tensor,
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n k c"]:
        """Return p(segment | x) at [row, start, duration - 1, label].

        Args:
            scores: Scores of segments, of tokens, or encodings, as the class describes them.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            Probabilities, [batch, n, k, num_labels].
        """
        return self.distribution(scores, lengths, mask=mask).marginals

    def top_k(
        self,
        scores: Tensor,
        k: int,
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> tuple[list[list[list[Segment]]], Float[Tensor, "k batch"]]:
        """Return the k best segmentations of each row, best first, and their scores; -inf where there are fewer.

        Args:
            scores: Scores of segments, of tokens, or encodings, as the class describes them.
            k: Number of segmentations of each row.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            Segmentations by rank and row, and their scores, [k, batch].
        """
        values, values_scores = self.distribution(scores, lengths, mask=mask).top_k(k)
        return [[self._named(row) for row in rank] for rank in values], values_scores

    def span_probability(
        self,
        scores: Tensor,
        first: int,
        last: int,
        label: int | str,
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch"]:
        """Return P(tokens first..last-1 are exactly one segment with this label) of each row.

        Args:
            scores: Scores of segments, of tokens, or encodings, as the class describes them.
            first: First token of the segment.
            last: End of the segment, exclusive.
            label: Label, by its number or its name.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            Probabilities, [batch].
        """
        return self.distribution(scores, lengths, mask=mask).span_probability(first, last, label, labels=self.labels)

    def distribution(
        self,
        scores: Tensor,
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> SemiMarkov:
        """Return the distribution over segmentations, with every query of `SemiMarkov`.

        Args:
            scores: Scores of segments, of tokens, or encodings, as the class describes them.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            The distribution.
        """
        self._validate(scores)
        return self._distribution(scores, lengths_of(mask, lengths, scores.shape[:2]))

    # --- parts -----------------------------------------------------------------------------------------------

    def _validate(self, scores: Tensor) -> None:
        check_tensor("scores", scores)
        k, c, dim = self.max_length, self.num_labels, self.encoding_dim
        if dim is not None:
            fine, wanted = scores.dim() == 3 and scores.shape[2] == dim, f"[batch, n, {dim}] (encodings)"
        else:
            fine = scores.shape[2:] in ((k, c), (c,))
            wanted = f"[batch, n, {k}, {c}] (segments) or [batch, n, {c}] (tokens)"
        if not fine or scores.shape[1] == 0:
            raise ScoreError(f"scores must be {wanted} with n >= 1; got {tuple(scores.shape)}")

    def _distribution(self, scores: Tensor, lengths: Tensor | None) -> SemiMarkov:
        edges = self.transitions, self.start_transitions, self.end_transitions
        options: dict[str, Any] = dict(lengths=lengths, max_lengths=self.max_lengths, backend=self.backend)
        if scores.dim() == 4:
            return SemiMarkov(scores, *edges, **options)
        if self.token_scorer is None or self.start_scorer is None or self.end_scorer is None:
            return SemiMarkov.factored(scores, self.durations, None, None, *edges, **options)
        tokens, starts, ends = self.token_scorer(scores), self.start_scorer(scores), self.end_scorer(scores)
        return SemiMarkov.factored(tokens, self.durations, starts, ends, *edges, **options)

    def _starts(self, dist: SemiMarkov, segments: Segmentations) -> Int[Tensor, "batch n"]:
        """Return gold segmentations in their tensor form, gaps filled in, names as indices."""
        shape = (*dist.batch_shape, *dist.event_shape)
        if isinstance(segments, Tensor):
            if segments.shape != shape:
                raise ScoreError(f"starts must be {shape}; got {tuple(segments.shape)}")
            return segments
        if len(segments) != shape[0]:
            raise ScoreError(f"segments must be one list a row, {shape[0]}; got {len(segments)}")
        pairs = zip(segments, dist.lengths.tolist(), strict=True)
        return dist.to_starts([self._filled(row, index, end) for index, (row, end) in enumerate(pairs)])

    def _filled(self, segments: Sequence[Segment], row: int, length: int) -> list[tuple[int, int, int]]:
        """Return a row's segments with labels as indices, and what lies between them as `outside`."""
        filled: list[tuple[int, int, int]] = []
        place = 0
        wrong = next((segment for segment in segments if len(segment) != 3), None)
        if wrong is not None:
            raise ScoreError(f"segments must be (start, end, label); got {wrong!r} at row {row}")
        for first, last, label in (
            sorted(segments, key=lambda segment: segment[:2]) if self.outside is not None else segments
        ):
            if self.outside is not None:
                filled += [(i, i + 1, self.outside) for i in range(place, first)]
            filled.append((first, last, self._index(label, row)))
            place = last
        if self.outside is not None:
            filled += [(i, i + 1, self.outside) for i in range(place, length)]
        return filled

    def _index(self, label: int | str, row: int) -> int:
        if not isinstance(label, str):
            return label
        if self.labels is None or label not in self.labels:
            raise ScoreError(f"labels must be indices or one of {self.labels}; got {label!r} at row {row}")
        return self.labels.index(label)

    def _named(self, segments: Sequence[tuple[int, int, int]]) -> list[Segment]:
        if self.labels is None:
            return list(segments)
        return [(first, last, self.labels[label]) for first, last, label in segments]
