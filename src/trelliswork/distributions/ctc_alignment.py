"""The alignments of frames with known label strings: the lattice inside CTC as a distribution of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions.alignment import Alignment
from trelliswork.distributions.base import Backend
from trelliswork.distributions.centring import centred
from trelliswork.distributions.checks import allowed_values, flat_lengths
from trelliswork.distributions.ctc_inputs import (
    Strings,
    check_frames,
    check_labels,
    check_paths,
    check_scores,
    flat_strings,
)
from trelliswork.distributions.segment_values import Nested
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.structures.ctc import structure
from trelliswork.structures.ctc.solver import STRUCTURE
from trelliswork.structures.ctc.structure import Labelling


class LabelSpan(NamedTuple):
    """Frames start..end-1 carry a label; `score` is the mean log score of it there."""

    start: int
    end: int
    symbol: int
    score: float


class CTCAlignment(Alignment):
    """p(π | ℓ, x) over the paths π that collapse to the label string ℓ of their row.

    A path gives each frame a symbol, a label or the blank; collapsing merges repeats, then drops blanks. With log
    probabilities as scores, `log_partition` is log p(ℓ | x); -inf if ℓ needs more frames than there are. A value is
    a path [*batch, t], 0 at padded frames; `spans` turns it into (start, end, symbol, score).

    >>> alignments = CTCAlignment(log_probs, [[3, 1, 1], [2]], lengths=lengths)
    >>> alignments.argmax, alignments.marginals, alignments.entropy()

    Args:
        log_probs: scores of the symbols at each frame [*batch, t, c].
        targets: label strings as a tensor [*batch, u] or as one list of labels a row.
        lengths: the number of frames of each row; None if all rows are full.
        target_lengths: the number of labels of each row; None if none is padded.
        blank: the number of the blank.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """

    _structure = STRUCTURE
    _advice = "allow more frames, at least one for each label and one between equal neighbours"

    def __init__(
        self,
        log_probs: Float[Tensor, "*batch t c"],
        targets: Strings,
        *,
        lengths: Int[Tensor, "*batch"] | Sequence[int] | None = None,
        target_lengths: Int[Tensor, "*batch"] | Sequence[int] | None = None,
        blank: int = 0,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        blank = int(blank)
        check_frames(log_probs, blank)
        self.scores, self.blank = log_probs, blank
        batch_shape, (t, c), device = log_probs.shape[:-2], log_probs.shape[-2:], log_probs.device
        self._lengths = flat_lengths("lengths", lengths, batch_shape, t, device)
        self._targets, self._target_lengths = flat_strings(targets, target_lengths, batch_shape, device)
        super().__init__(log_probs, batch_shape, [t], backend)
        if validate_args is None or validate_args:
            check_labels(self._targets, self._target_lengths, c, blank)
            check_scores(log_probs.reshape(-1, t, c), self._parts.frame_mask)

    @cached_property
    def _parts(self) -> Labelling:
        scores = self.scores.reshape(-1, *self.scores.shape[-2:])
        return Labelling.of(scores, self._targets, self._lengths, self._target_lengths, self.blank)

    @property
    def targets(self) -> Int[Tensor, "*batch u"]:
        """The label strings, the blank at padding."""
        return self._parts.targets.reshape(*self.batch_shape, self._targets.shape[1])

    @property
    def target_lengths(self) -> Int[Tensor, "*batch"]:
        return self._target_lengths.reshape(self.batch_shape)

    # --- hooks -----------------------------------------------------------------------------------------------

    def _checked(self, value: Tensor) -> Int[Tensor, "samples rows t"]:
        parts = self._parts
        samples = check_paths(value, self.batch_shape, parts.frame_mask, parts.scores.shape[2])
        for paths in samples:
            fine = structure.is_alignment(parts, paths)
            if not bool(fine.all()):
                row = int((~fine).nonzero()[0])
                (collapsed,) = structure.collapse(paths[row : row + 1], self._lengths[row : row + 1], self.blank)
                wanted = self._targets[row, : int(self._target_lengths[row])].tolist()
                raise ScoreError(f"paths must collapse to the labels {wanted} of row {row}; got one of {collapsed}")
        return samples

    def _allowed(self, partial: Tensor) -> Bool[Tensor, "*batch t c"]:
        real = self._parts.frame_mask.reshape(*self.batch_shape, *self.event_shape)
        return allowed_values(partial, self.scores, real, ("symbols", "paths"))

    def _like(self, scores: Tensor) -> CTCAlignment:
        return CTCAlignment(
            scores, self.targets, lengths=self.lengths, target_lengths=self.target_lengths, blank=self.blank,
            backend=self.backend, validate_args=False,
        )  # fmt: skip

    def _centred(self) -> CTCAlignment:
        """Return the same distribution with centred scores of each frame's symbols that are in the labels, or blank."""
        parts = self._parts
        named = torch.zeros(parts.scores.shape[::2], dtype=torch.bool, device=parts.scores.device)
        scores = centred(parts.scores, 1, named.scatter(1, parts.states, True)[:, None])
        return self._like(scores.reshape(self.scores.shape))

    def _comparable(self, other: CTCAlignment) -> bool:
        if self.scores.shape != other.scores.shape:
            return False
        same = (torch.equal(self._lengths, other._lengths), torch.equal(self._parts.targets, other._parts.targets))
        return self.blank == other.blank and all(same)

    # --- in the user's words ---------------------------------------------------------------------------------

    def spans(self, path: Int[Tensor, "*batch t"]) -> Nested:
        """Return the place of each label, (start, end, symbol, score) in order: one list a row, or a single one."""
        paths = self._one_each("spans", path)
        picked = self._parts.scores.detach().gather(2, paths[..., None]).squeeze(-1)
        begins = structure.label_starts(paths, self._lengths, self.blank)
        rows = [
            _row_spans(row[:n].tolist(), begin[:n].tolist(), score[:n].tolist(), self.blank)
            for row, begin, score, n in zip(paths, begins, picked, self._lengths.tolist(), strict=True)
        ]
        return rows if self.batch_shape else rows[0]

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        return constraints.independent(constraints.integer_interval(0, self.scores.shape[-1] - 1), 1)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> CTCAlignment:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        return CTCAlignment(
            self.scores.expand(*shape, *self.scores.shape[-2:]), self.targets.expand(*shape, self._targets.shape[1]),
            lengths=self.lengths.expand(shape), target_lengths=self.target_lengths.expand(shape), blank=self.blank,
            backend=self.backend, validate_args=False,
        )  # fmt: skip

    def __repr__(self) -> str:
        t, c = self.scores.shape[-2:]
        return f"CTCAlignment(batch_shape={tuple(self.batch_shape)}, t={t}, c={c}, backend={self.backend!r})"


def _row_spans(path: list[int], begins: list[bool], scores: list[float], blank: int) -> list[LabelSpan]:
    spans = []
    for start in (t for t, begin in enumerate(begins) if begin):
        end = start + 1
        while end < len(path) and path[end] == path[start]:
            end += 1
        spans.append(LabelSpan(start, end, path[start], sum(scores[start:end]) / (end - start)))
    return spans
