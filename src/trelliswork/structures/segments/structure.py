"""Segmentations: their parts, and the recursions over them in plain torch, for any semiring.

    score(s) = start[y_1] + Σ_j f(i_j, d_j, y_j) + Σ_{j≥2} transitions[y_{j-1}, y_j] + end[y_m]

A segmentation cuts positions 0..L-1 into segments; segment j starts at i_j, covers d_j positions and is labelled y_j.
This is the reference: any device, any dtype, differentiable as often as you like. `kernels.py` computes the hot
queries faster and is tested against it. Equations and complexity are in `math.md` next to this file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Log, Max, Semiring
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.segments import scan


class SegmentationScores(NamedTuple):
    """The scores of a batch of segmentations, in the order that every function of this folder uses."""

    segments: Float[Tensor, "batch n k c"]
    """Of each segment, by its first position, its duration - 1 and its label."""
    transitions: Float[Tensor, "c c"] | None
    """Of each pair of neighbouring labels [from, to]; None for the 0th order."""
    start: Float[Tensor, "c"]
    """Of the first label."""
    end: Float[Tensor, "c"]
    """Of the last label."""


@dataclass(frozen=True)
class Segments:
    """The parts of a batch of segmentations, right-padded; position t of row b is real while t < lengths[b].

    `segments[b, i, d-1, y]` scores the segment that starts at i and covers d positions; one that would
    run past the row's end is never read. `transitions` [from, to] are A; None is the 0th order: neighbouring labels
    are independent.
    """  # [S0.10]

    segments: Float[Tensor, "batch n k c"]
    transitions: Float[Tensor, "c c"] | None
    start: Float[Tensor, "c"]
    end: Float[Tensor, "c"]
    lengths: Int[Tensor, "batch"]

    @property
    def n(self) -> int:
        return self.segments.shape[1]

    @property
    def k(self) -> int:
        return self.segments.shape[2]

    @property
    def c(self) -> int:
        return self.segments.shape[3]

    @property
    def scores(self) -> SegmentationScores:
        return SegmentationScores(self.segments, self.transitions, self.start, self.end)

    @property
    def token_mask(self) -> Bool[Tensor, "batch n"]:
        """True at real positions."""
        return torch.arange(self.n, device=self.lengths.device) < self.lengths[:, None]

    @property
    def segment_mask(self) -> Bool[Tensor, "batch n k"]:
        """True at segments that lie within their row: i + d <= L."""
        ends = self._starts[:, None] + 1 + self._spare_tokens
        return ends <= self.lengths[:, None, None]

    @property
    def _starts(self) -> Int[Tensor, "n"]:
        return torch.arange(self.n, device=self.lengths.device)

    @property
    def _spare_tokens(self) -> Int[Tensor, "k"]:
        """d - 1 for each duration: how many positions follow the first."""
        return torch.arange(self.k, device=self.lengths.device)

    def with_scores(self, segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor) -> Segments:
        """Return the same rows with other scores.

        Args:
            segments: [batch, n, k, c].
            transitions: [c, c]; None for none.
            start: [c].
            end: [c].

        Returns:
            New parts.
        """
        return replace(self, segments=segments, transitions=transitions, start=start, end=end)

    def double(self) -> Segments:
        """The same in float64, where the device has it: the reference sums as exactly as the kernels do."""
        if self.start.device.type == "mps":
            return self
        exact: list[Any] = [None if each is None else each.double() for each in self.scores]
        return self.with_scores(*exact)

    def whole(self) -> Segments:
        """The scores of all segments as one tensor: these."""
        return self

    def path_score(self, starts: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
        return path_score(self, starts)

    def detached(self) -> Segments:
        """The same scores cut off from their history; the segments are a leaf to differentiate by."""
        transitions = None if self.transitions is None else self.transitions.detach()
        leaf = self.segments.detach().clone().requires_grad_()
        return self.with_scores(leaf, transitions, self.start.detach(), self.end.detach())

    @property
    def part_scores(self) -> Float[Tensor, "batch n k c"]:
        return self.segments

    def leaving(self) -> Float[Tensor, "batch n k c"]:
        """[b, i, d-1, y]: the segments that start at i; -inf past the row's end."""
        return torch.where(self.segment_mask[..., None], self.segments, -INF)

    def arriving(self) -> Float[Tensor, "batch n k c"]:
        """[b, j-1, d-1, y]: the segments that end before j, so start at j - d; -inf where that is before the row."""
        first = self._starts[:, None] - self._spare_tokens  # (n, k)
        segments = self.leaving()[:, first.clamp(min=0), self._spare_tokens]
        return torch.where((first >= 0)[..., None], segments, -INF)


def _enter(semiring: Semiring, alpha: Tensor, arcs: Tensor | None) -> Tensor:
    """γ_i(y) = ⊕_y' α_i(y') ⊗ a(y', y), or without transitions ⊕_y' α_i(y') for every y."""
    if arcs is None:
        return semiring.sum(alpha, dim=-1).unsqueeze(-1).expand(alpha.shape)
    return semiring.matmul(alpha.unsqueeze(-2), arcs).squeeze(-2)


def forward(parts: Segments, semiring: Semiring) -> tuple[list[Tensor], list[Tensor]]:
    """α_1..α_n and γ_0..γ_{n-1}, each [batch, c], with the boundary of erratum 1.

    α_j(y): all ways to cut the first j positions with y last. γ_i(y): the same for the first i, going on to y.

        γ_0(y) = start_y;   α_j(y) = ⊕_{d≤min(k,j)} γ_{j-d}(y) ⊗ f(j-d, d, y);   γ_j(y) = ⊕_y' α_j(y') ⊗ a(y', y)
    """  # [S0.1, 3]
    arriving = semiring.lift(parts.arriving()).unbind(-3)
    arcs = None if parts.transitions is None else semiring.lift(parts.transitions[None])
    ones = semiring.one((len(parts.lengths), parts.c), parts.segments)
    alphas: list[Tensor] = []
    gammas = [semiring.times(semiring.lift(parts.start[None]), ones)]
    for j in range(1, parts.n + 1):
        m = min(parts.k, j)
        before = torch.stack(gammas[: -m - 1 : -1], dim=-2)  # γ_{j-1}, ..., γ_{j-m}
        alphas.append(semiring.sum(semiring.times(before, arriving[j - 1][..., :m, :]), dim=-2))  # [S0.3]
        if j < parts.n:
            gammas.append(_enter(semiring, alphas[-1], arcs))
    return alphas, gammas


def backward(parts: Segments, semiring: Semiring) -> tuple[list[Tensor], list[Tensor]]:
    """β_1..β_n and η_0..η_{n-1}, each [batch, c], with the boundary of erratum 1.

    η_i(y): all ways to cut positions i..L-1 when the first segment is labelled y. β_i(y): the same after a label y.

        β_L = end, β_{j>L} = 0;   η_i(y) = ⊕_d f(i, d, y) ⊗ β_{i+d}(y);   β_i(y) = ⊕_y' a(y, y') ⊗ η_i(y')

    The total is ⊕_y start_y ⊗ η_0(y).
    """  # [S0.2, 4]
    leaving = semiring.lift(parts.leaving()).unbind(-3)
    arcs = None if parts.transitions is None else semiring.lift(parts.transitions.T[None])
    shape = (len(parts.lengths), parts.c)
    last = semiring.times(semiring.lift(parts.end[None]), semiring.one(shape, parts.segments))
    nothing = semiring.zero(shape, parts.segments)
    betas = [torch.where((parts.lengths == parts.n)[:, None], last, nothing)]
    etas: list[Tensor] = []
    for i in range(parts.n - 1, -1, -1):
        m = min(parts.k, parts.n - i)
        after = torch.stack(betas[: -m - 1 : -1], dim=-2)  # β_{i+1}, ..., β_{i+m}
        etas.append(semiring.sum(semiring.times(leaving[i][..., :m, :], after), dim=-2))  # [S0.4]
        if i > 0:
            stepped = _enter(semiring, etas[-1], arcs)
            betas.append(torch.where((parts.lengths == i)[:, None], last, stepped))
    return betas[::-1], etas[::-1]


def _at_end(parts: Segments, tables: list[Tensor]) -> Tensor:
    """α_L of each row, from α_1..α_n."""
    last_alpha = tables[0]
    for j, table in enumerate(tables[1:], 2):
        last_alpha = torch.where((parts.lengths == j)[:, None], table, last_alpha)
    return last_alpha


def total(parts: Segments, semiring: Semiring) -> Tensor:
    """⊕ over all segmentations of ⊗ of their parts, at T (erratum 3): log Z for `Log`."""  # [S0.5]
    if scan.applies(parts, semiring):
        return scan.total(parts, semiring)
    alphas, _ = forward(parts, semiring)
    return semiring.sum(semiring.times(_at_end(parts, alphas), semiring.lift(parts.end[None])), dim=-1)


def log_partition(parts: Segments) -> Float[Tensor, "batch"]:
    return total(parts, Log())


def ends_of(starts: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"]) -> Int[Tensor, "batch n"]:
    """Return the end of the segment that starts at each position (exclusive): the next start, or the row's end."""
    n = starts.shape[1]
    place = torch.arange(n, device=starts.device)
    begins = (starts >= 0) & (place < lengths[:, None])
    after = torch.where(begins, place, lengths[:, None])
    later = torch.cat([after[:, 1:], lengths[:, None]], 1)
    return later.flip(1).cummin(1).values.flip(1)


class Places(NamedTuple):
    """The segments that begin at each position [batch, n], from the starts of segmentations."""

    place: Int[Tensor, "n"]
    begins: Bool[Tensor, "batch n"]
    label: Int[Tensor, "batch n"]  # of the segment that begins here, or 0
    duration: Int[Tensor, "batch n"]  # of the segment that begins here, or 1
    covering: Int[Tensor, "batch n"]  # the label of the segment that covers the position
    last: Int[Tensor, "batch"]  # the last label

    @staticmethod
    def of(starts: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"]) -> Places:
        place = torch.arange(starts.shape[1], device=starts.device)
        begins = (starts >= 0) & (place < lengths[:, None])
        label = torch.where(begins, starts, 0)
        duration = torch.where(begins, ends_of(starts, lengths) - place, 1)
        running = torch.where(begins, place, 0).cummax(1).values  # the start of the segment that covers each position
        covering = label.gather(1, running)
        last = covering.gather(1, (lengths - 1)[:, None]).squeeze(1)
        return Places(place, begins, label, duration, covering, last)

    def edge_score(self, transitions: Tensor | None, start: Tensor, end: Tensor) -> Float[Tensor, "batch"]:
        """Return start[y_1] + Σ transitions[y_{j-1}, y_j] + end[y_m].

        Args:
            transitions: [c, c], indexed [from, to]; None for 0.
            start: [c].
            end: [c].

        Returns:
            One score for each row.
        """
        score = start[self.label[:, 0]] + end[self.last]
        if transitions is None or len(self.place) == 1:
            return score
        moved = transitions[self.covering[:, :-1], self.label[:, 1:]]
        return score + torch.where(self.begins[:, 1:], moved, 0).sum(1)


def path_score(parts: Segments, starts: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
    """G(s, x). `starts` has the label where a segment starts and -1 elsewhere. Parts are gathered."""  # [S0, score]
    places = Places.of(starts, parts.lengths)
    row = torch.arange(len(starts), device=starts.device)[:, None]
    scores = parts.segments[row, places.place, places.duration - 1, places.label]
    return torch.where(places.begins, scores, 0).sum(1) + places.edge_score(parts.transitions, parts.start, parts.end)


def log_prob(parts: Segments, starts: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
    """log p(s | x) = G(s, x) - log Z, at most 0: rounding must not pass certainty."""  # [S0, likelihood]
    return log_ratio(path_score(parts, starts), log_partition(parts))


def marginals(parts: Segments) -> tuple[Float[Tensor, "batch n k c"], Float[Tensor, "batch c c"]]:
    """p(segment (i, d, y) | x) (erratum 4), and how often label y follows y'; 0 where Z = 0.

        p(i, d, y) = exp(γ_i(y) + f(i, d, y) + β_{i+d}(y) - log Z)

    Without transitions the second is empty [batch, 0, 0].
    """  # [S0.6, 10; S0.8]
    log = Log()
    (alphas, gammas), (betas, etas) = forward(parts, log), backward(parts, log)
    log_z = log.sum(_at_end(parts, alphas) + parts.end, dim=-1)
    possible = (log_z > -INF)[:, None, None]
    log_z = torch.where(possible[:, 0, 0], log_z, 0.0)[:, None, None]
    nothing = torch.full_like(betas[0], -INF)
    after = torch.stack([*betas, *[nothing] * (parts.k - 1)], 1)  # [b, j-1, y]
    ends = parts._starts[:, None] + parts._spare_tokens  # (n, k): i + d - 1
    log_segments = torch.stack(gammas, 1)[:, :, None] + parts.leaving() + after[:, ends]
    segments = torch.where(possible[..., None], log_segments - log_z[..., None], -INF).exp()
    if parts.transitions is None:
        return segments, segments.new_zeros(len(segments), 0, 0)
    arcs = segments.new_zeros(len(segments), parts.c, parts.c)
    for i in range(1, parts.n):
        inside = possible & (i < parts.lengths)[:, None, None]
        log_arcs = alphas[i - 1][:, :, None] + parts.transitions + etas[i][:, None, :] - log_z
        arcs = arcs + torch.where(inside, log_arcs, -INF).exp()
    return segments, arcs


def viterbi(parts: Segments) -> tuple[Int[Tensor, "batch n"], Float[Tensor, "batch"]]:
    """The best segmentation, as starts, and its score, with the boundary of erratum 8.

    V is `forward` in (max, +); then, from the end: the label, its shortest best duration, the label before, and so on.
    Among ties the lowest label and the shortest segment win.
    """  # [S0.18]
    alphas, gammas = forward(parts, Max())
    score, label = (_at_end(parts, alphas) + parts.end).max(-1)
    arriving, before = parts.arriving(), torch.stack(alphas)  # before[i-1, b] is V_i
    row = torch.arange(len(label), device=label.device)
    starts, boundary = parts.lengths.new_full((len(label), parts.n), -1), parts.lengths
    for j in range(parts.n, 0, -1):
        here, m = boundary == j, min(parts.k, j)
        entered = torch.stack(gammas[j - m : j][::-1], 1) + arriving[:, j - 1, :m]  # [S0.18]
        first = j - 1 - entered[row, :, label].argmax(-1)
        starts[row, first] = torch.where(here, label, starts[row, first])
        previous = before[first.clamp(min=1) - 1, row]
        if parts.transitions is not None:
            previous = previous + parts.transitions[:, label].T
        label = torch.where(here, previous.argmax(-1), label)
        boundary = torch.where(here, first, boundary)
    return starts, score


def decode(marks: Float[Tensor, "batch n k c"], parts: Segments) -> Int[Tensor, "batch n"]:
    """The label where a marked segment starts, -1 elsewhere."""
    highest, label = marks.amax(2).max(-1)
    return torch.where(highest > 0, label, -1)
