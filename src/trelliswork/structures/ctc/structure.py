"""Alignments of frames with a label string (CTC): their parts, and the recursion in plain torch, for any semiring.

    score(π) = Σ_t scores[t, π_t]   for the paths π that collapse to the labels ℓ: B(π) = ℓ

A path gives each frame one symbol, a label or the blank. Collapsing merges repeated symbols, then drops blanks.
This is the reference: any device, differentiable as often as you like. `kernels.py` computes the hot queries faster
and is tested against it. Equations and complexity are in `math.md` next to this file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Log, Semiring
from trelliswork.structures.reference import posteriors


@dataclass(frozen=True)
class Labelling:
    """Frame scores of a batch in float64 and the label string of each row.

    Frames from lengths[b] on are padding and score -inf; `targets` holds the blank behind a row's labels.
    """

    scores: Float[Tensor, "batch t c"]
    targets: Int[Tensor, "batch u"]
    lengths: Int[Tensor, "batch"]
    target_lengths: Int[Tensor, "batch"]
    blank: int = 0

    @staticmethod
    def of(scores: Tensor, targets: Tensor, lengths: Tensor, target_lengths: Tensor, blank: int) -> Labelling:
        """Set -inf at padded frames and the blank at padded labels, whatever stands there.

        Args:
            scores: scores of the symbols of each frame [batch, t, c].
            targets: labels of each row [batch, u].
            lengths: number of frames of each row [batch].
            target_lengths: number of labels of each row [batch].
            blank: number of the blank.

        Returns:
            The parts of the batch, in float64.
        """
        real = torch.arange(scores.shape[1], device=scores.device) < lengths[:, None]
        named = torch.arange(targets.shape[1], device=targets.device) < target_lengths[:, None]
        labels = torch.where(named, targets, blank)
        return Labelling(torch.where(real[..., None], scores.double(), -INF), labels, lengths, target_lengths, blank)

    @property
    def n_frames(self) -> int:
        return self.scores.shape[1]

    @property
    def frame_mask(self) -> Bool[Tensor, "batch t"]:
        """True at real frames."""
        return torch.arange(self.n_frames, device=self.lengths.device) < self.lengths[:, None]

    @property
    def states(self) -> Int[Tensor, "batch s"]:
        """ℓ', the labels with a blank before, between and behind them: 2 u + 1 symbols."""
        batch, u = self.targets.shape
        states = self.targets.new_full((batch, 2 * u + 1), self.blank)
        states[:, 1::2] = self.targets
        return states

    @property
    def skips(self) -> Bool[Tensor, "batch s"]:
        """True where ℓ'_s may follow ℓ'_{s-2} at once: at a label that differs from the one before."""
        states = self.states
        before = torch.cat([states.new_full((len(states), 2), self.blank), states], 1)[:, : states.shape[1]]
        first = torch.arange(states.shape[1], device=states.device) < 2
        return (states != self.blank) & (states != before) & ~first

    @property
    def part_scores(self) -> Float[Tensor, "batch t c"]:
        return self.scores

    def with_scores(self, scores: Tensor) -> Labelling:
        return replace(self, scores=scores)

    def detached(self) -> Labelling:
        """The same scores cut off from their history: a leaf to differentiate by."""
        return self.with_scores(self.scores.detach().clone().requires_grad_())


def forward(parts: Labelling, semiring: Semiring) -> list[Tensor]:
    """α_1..α_T, each [batch, s]: all paths of the first t frames that end in state s of ℓ'.

        α_1 = (y_blank, y_ℓ1, 0, ...);   α_t(s) = (α_{t-1}(s) ⊕ α_{t-1}(s-1) ⊕ [skips] α_{t-1}(s-2)) ⊗ y_ℓ's

    s counts states of the augmented string ℓ', as erratum 36 says.
    """  # [S4.652-656, 658-661]
    states, skips = parts.states, parts.skips
    batch, n_states = states.shape
    emitted = parts.scores.gather(2, states[:, None].expand(-1, parts.n_frames, -1))
    frames = semiring.lift(emitted).unbind(-2)
    nothing = semiring.zero((batch, 1), parts.scores)
    first = torch.arange(n_states, device=states.device) < 2
    alphas = [torch.where(first, frames[0], nothing)]  # [S4.654]
    for frame in frames[1:]:
        shifted = torch.cat([nothing, nothing, alphas[-1]], -1)
        step, skip = shifted[..., 1 : n_states + 1], torch.where(skips, shifted[..., :n_states], nothing)
        arrived = semiring.sum(torch.stack([alphas[-1], step, skip], -1), dim=-1)
        alphas.append(semiring.times(arrived, frame))  # [S4.655-656, 659-661]
    return alphas


def total(parts: Labelling, semiring: Semiring) -> Tensor:
    """⊕ over the paths of the labels of ⊗ of their frames: log p(ℓ | x) for `Log`.

    An empty label string ends in its only state (erratum 36); without frames there is the empty path alone.
    """  # [S4.650, 657]
    empty = parts.target_lengths == 0
    shape = (len(parts.lengths),)
    nothing = semiring.zero(shape, parts.scores)
    sums = torch.where(empty, semiring.one(shape, parts.scores), nothing)
    last = 2 * parts.target_lengths
    for t, alpha in enumerate(forward(parts, semiring), 1):
        blank_last = _pick(alpha, last)
        label_last = torch.where(empty, nothing, _pick(alpha, (last - 1).clamp(min=0)))
        ended = semiring.plus(blank_last, label_last)  # [S4.657]
        sums = torch.where(parts.lengths == t, ended, sums)
    return sums


def _pick(alpha: Tensor, state: Int[Tensor, "batch"]) -> Tensor:
    """alpha[..., b, state[b]]."""
    return alpha.gather(-1, state.expand(alpha.shape[:-1])[..., None]).squeeze(-1)


def log_partition(parts: Labelling) -> Float[Tensor, "batch"]:
    """log p(ℓ | x) of scores that are log probabilities; -inf, with gradient 0, if ℓ does not fit into the frames."""
    return total(parts, Log())


def collapse(paths: Int[Tensor, "batch t"], lengths: Int[Tensor, "batch"], blank: int) -> list[list[int]]:
    """Return the label string of each path, B(π): repeated symbols merged, then blanks dropped.

    >>> collapse(torch.tensor([[1, 1, 0, 1, 2]]), torch.tensor([5]), blank=0)
    [[1, 1, 2]]

    Args:
        paths: symbol of each frame.
        lengths: number of frames of each row.
        blank: number of the blank.

    Returns:
        The labels of each row.
    """  # [S4.650]
    kept = label_starts(paths, lengths, blank)
    return [row[keep].tolist() for row, keep in zip(paths, kept, strict=True)]


def label_starts(paths: Tensor, lengths: Tensor, blank: int) -> Bool[Tensor, "batch t"]:
    """Return True at frames that begin a label.

    Args:
        paths: symbol of each frame [batch, t].
        lengths: number of frames of each row [batch].
        blank: number of the blank.

    Returns:
        False at padding.
    """
    before = torch.cat([paths.new_full((len(paths), 1), blank), paths[:, :-1]], 1)
    real = torch.arange(paths.shape[1], device=paths.device) < lengths[:, None]
    return real & (paths != blank) & (paths != before)


def is_alignment(parts: Labelling, paths: Int[Tensor, "batch t"]) -> Bool[Tensor, "batch"]:
    """Return whether paths collapse to the labels of their rows."""
    n_begun = label_starts(paths, parts.lengths, parts.blank).cumsum(1)
    if parts.targets.shape[1] == 0:
        return n_begun[:, -1] == 0
    labels = parts.targets.gather(1, (n_begun - 1).clamp(0, parts.targets.shape[1] - 1))
    fits = (paths == parts.blank) | (paths == labels) | ~parts.frame_mask
    return fits.all(1) & (n_begun[:, -1] == parts.target_lengths)


def path_score(parts: Labelling, paths: Int[Tensor, "batch t"]) -> Float[Tensor, "batch"]:
    """Σ_t scores[t, π_t] over real frames. Gathered, never multiplied: no -inf times 0."""  # [S4.649]
    safe = torch.where(parts.frame_mask, paths, 0)
    picked = parts.scores.gather(2, safe[..., None]).squeeze(-1)
    return torch.where(parts.frame_mask, picked, 0.0).sum(1)


def marginals(parts: Labelling) -> Float[Tensor, "batch t c"]:
    """p(π_t = symbol | ℓ, x)."""
    return posteriors(log_partition, parts)


def decode(marks: Float[Tensor, "batch t c"], parts: Labelling) -> Int[Tensor, "batch t"]:
    """The symbol that is marked at each frame, 0 at padding. Among ties the path stays as long as it can."""
    return marks.argmax(2)
