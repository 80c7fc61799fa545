"""The linear chain: its parts, and the recursions over them in plain torch, for any semiring.

    score(y) = start[y_1] + Σ_t emissions[t, y_t] + Σ_{t≥2} transitions[y_{t-1}, y_t] + end[y_L]

This is the reference: any device, any dtype, differentiable as often as you like. `kernels.py` computes the
hot queries faster and is tested against it. Equations and complexity are in `math.md` next to this file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Expectation, Log, Max, Semiring
from trelliswork.semirings.log import log_ratio, logsumexp
from trelliswork.structures.chain import scan

ArcsBy = Literal["batch", "row", "position"]
SUMMED_AXES: dict[ArcsBy, tuple[int, ...]] = {"batch": (0, 1), "row": (1,), "position": ()}


class ChainScores(NamedTuple):
    """The scores of a batch of chains, in the order that every function of this folder uses."""

    emissions: Float[Tensor, "batch n c"]
    """Of each tag at each position."""
    transitions: Float[Tensor, "c c"] | Float[Tensor, "batch n-1 c c"]
    """Of each pair of neighbours [from, to]: the same at all positions, or those into position t at t-1."""
    start: Float[Tensor, "c"]
    """Of the first tag."""
    end: Float[Tensor, "c"]
    """Of the last tag."""


@dataclass(frozen=True)
class Chain:
    """The parts of a batch of chains, right-padded; position t of row b is real while t < lengths[b].

    The arc into position t scores `transitions` [c, c] or, per position, `transitions[b, t-1]`: [from, to].
    Together, log ψ_t(j, i) = arc_t(i, j) + emissions_t(j).
    """  # [S4.81-82; S4.59-60, 75, 105]

    emissions: Float[Tensor, "batch n c"]
    transitions: Float[Tensor, "c c"] | Float[Tensor, "batch n-1 c c"]
    start: Float[Tensor, "c"]
    end: Float[Tensor, "c"]
    lengths: Int[Tensor, "batch"]

    @property
    def n(self) -> int:
        return self.emissions.shape[1]

    @property
    def c(self) -> int:
        return self.emissions.shape[2]

    @property
    def scores(self) -> ChainScores:
        return ChainScores(self.emissions, self.transitions, self.start, self.end)

    @cached_property
    def token_mask(self) -> Bool[Tensor, "batch n"]:
        """True at real positions."""
        return torch.arange(self.n, device=self.lengths.device) < self.lengths[:, None]

    def with_scores(self, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Chain:
        """Return the same rows with other scores.

        Args:
            emissions: [batch, n, c].
            transitions: [c, c] or [batch, n-1, c, c].
            start: [c].
            end: [c].

        Returns:
            A new chain.
        """
        return replace(self, emissions=emissions, transitions=transitions, start=start, end=end)

    def double(self) -> Chain:
        """The same in float64, for sums over all sequences: float32 loses them with the length (decision 1)."""
        if self.emissions.device.type == "mps":  # has no float64
            return self
        emissions, transitions, start, end = (scores.double() for scores in self.scores)
        return self.with_scores(emissions, transitions, start, end)

    def detached(self) -> Chain:
        """The same scores cut off from their history; the emissions are a leaf to differentiate by."""
        emissions, *others = (scores.detach() for scores in self.scores)
        return self.with_scores(emissions.clone().requires_grad_(), *others)

    @property
    def part_scores(self) -> Float[Tensor, "batch n c"]:
        return self.emissions

    def arc(self, t: int) -> Float[Tensor, "batch c c"]:
        """Scores of the arcs into position t >= 1; the batch axis is 1 if all rows share them."""
        return self.transitions[None] if self.transitions.dim() == 2 else self.transitions[:, t - 1]

    def lift(self, semiring: Semiring, costs: Chain | None = None) -> Lifted:
        """All parts as elements of a semiring; `costs` are the values that `Expectation` averages."""

        def up(scores: Tensor, values: Tensor | None) -> Tensor:
            return semiring.lift(scores, values) if isinstance(semiring, Expectation) else semiring.lift(scores)

        if self.transitions.dim() == 2 and self.n > 1:
            arcs = [up(self.arc(1), costs.arc(1) if costs else None)] * (self.n - 1)
        else:
            arcs = [up(self.arc(t), costs.arc(t) if costs else None) for t in range(1, self.n)]
        return Lifted(
            start=up(self.start[None], costs.start[None] if costs else None),
            arcs=arcs,
            emissions=list(up(self.emissions, costs.emissions if costs else None).unbind(-2)),
            end=up(self.end[None], costs.end[None] if costs else None),
        )


class Lifted(NamedTuple):
    """The parts of a chain as semiring elements; payload axes come first, then batch (or 1), then tags."""

    start: Tensor
    arcs: list[Tensor]  # into positions 1..n-1
    emissions: list[Tensor]  # of positions 0..n-1
    end: Tensor


def forward(chain: Chain, semiring: Semiring, costs: Chain | None = None) -> list[Tensor]:
    """Return α_1..α_n, each [batch, c]; a finished row keeps its last α.

    α_1(j) = start_j ⊗ e_1(j);   α_t(j) = (⊕_i α_{t-1}(i) ⊗ a_t(i, j)) ⊗ e_t(j)

    Args:
        chain: the scores.
        semiring: the semiring of ⊕ and ⊗.
        costs: costs for semirings that carry them, such as expectations; None for none.

    Returns:
        Values of the semiring, one tensor for each position.
    """  # [S4.63, 88-92, 109, 122; S3.9]
    if scan.applies(chain, semiring):
        return list(scan.alphas(chain, semiring, costs).unbind(-2))
    parts = chain.lift(semiring, costs)
    alpha = semiring.times(parts.start, parts.emissions[0])
    alphas = [alpha]
    for t in range(1, chain.n):
        arrived = semiring.matmul(alpha.unsqueeze(-2), parts.arcs[t - 1]).squeeze(-2)
        stepped = semiring.times(arrived, parts.emissions[t])  # [S4.92]
        alpha = torch.where((t < chain.lengths)[:, None], stepped, alpha)
        alphas.append(alpha)
    return alphas


def backward(chain: Chain, semiring: Semiring) -> list[Tensor]:
    """β_1..β_n, each [batch, c]; β = end from the last position on.

    β_t(i) = ⊕_j a_{t+1}(i, j) ⊗ e_{t+1}(j) ⊗ β_{t+1}(j);   the total is ⊕_j start_j ⊗ e_1(j) ⊗ β_1(j)
    """  # [S4.64, 94-96, 110, 123; S2, backward; S4.97]
    if scan.applies(chain, semiring):
        return list(scan.betas(chain, semiring).unbind(-2))
    parts = chain.lift(semiring)
    last = semiring.times(parts.end, semiring.one((len(chain.lengths), chain.c), chain.emissions))
    betas = [last]
    for t in range(chain.n - 1, 0, -1):
        outgoing = semiring.times(parts.emissions[t], betas[0])
        stepped = semiring.matmul(parts.arcs[t - 1], outgoing.unsqueeze(-1)).squeeze(-1)  # [S4.96]
        betas.insert(0, torch.where((t < chain.lengths)[:, None], stepped, last))
    return betas


def total(chain: Chain, semiring: Semiring, costs: Chain | None = None) -> Tensor:
    """Return ⊕ over all tag sequences of ⊗ of their parts: log Z.

    Args:
        chain: the scores.
        semiring: the semiring of ⊕ and ⊗.
        costs: costs for semirings that carry them; None for none.

    Returns:
        One value of the semiring for each row.
    """  # [S4.61, 74, 87, 93, 99, 108, 126; S2, normalizer]
    if scan.applies(chain, semiring):
        return scan.total(chain, semiring, costs)
    parts, alphas = chain.lift(semiring, costs), forward(chain, semiring, costs)
    return semiring.sum(semiring.times(alphas[-1], parts.end), dim=-1)


def log_partition(chain: Chain) -> Float[Tensor, "batch"]:
    return total(chain, Log())


def path_score(chain: Chain, tags: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
    """score(y). Parts are gathered, never multiplied: no -inf times 0."""  # [S4.58, 73; S2, score; S3, sentence score]
    real = chain.token_mask
    safe = torch.where(real, tags, 0)
    emitted = chain.emissions.gather(2, safe.unsqueeze(2)).squeeze(2)
    score = chain.start[safe[:, 0]] + torch.where(real, emitted, 0).sum(1)
    if chain.n > 1:
        before, after = safe[:, :-1], safe[:, 1:]
        if chain.transitions.dim() == 2:
            moved = chain.transitions[before, after]
        else:
            row = torch.arange(len(tags), device=tags.device)[:, None]
            position = torch.arange(chain.n - 1, device=tags.device)
            moved = chain.transitions[row, position, before, after]
        score = score + torch.where(real[:, 1:], moved, 0).sum(1)
    last = safe.gather(1, (chain.lengths - 1)[:, None]).squeeze(1)
    return score + chain.end[last]


def log_prob(chain: Chain, tags: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
    """log p(tags | x) = score - log Z, at most 0: rounding must not pass certainty."""
    # [S4.62, 73, 104, 114; S2, CRF]
    return log_ratio(path_score(chain, tags), log_partition(chain))


def marginals(chain: Chain, arcs_by: ArcsBy = "position") -> tuple[Float[Tensor, "batch n c"], Float[Tensor, "..."]]:
    """p(y_t | x) and p(y_{t-1}, y_t | x); 0 at padding or Z = 0.

    Arc posteriors are kept apart ("position": [batch, n-1, c, c]), or summed over each row's arcs
    ("row": [batch, 1, c, c]) or over all ("batch": [1, 1, c, c]).
    """  # [S4.98, 106-107, 124-125; S1, log Z gradient]
    alphas, betas = forward(chain, Log()), backward(chain, Log())
    real = chain.token_mask[:, :, None]
    unary = _posteriors(torch.stack(alphas, 1) + torch.stack(betas, 1), real)
    if chain.n > 1:
        arcs = chain.transitions[None, None] if chain.transitions.dim() == 2 else chain.transitions
        arrived = chain.emissions[:, 1:] + torch.stack(betas[1:], 1)
        log_pairs = torch.stack(alphas[:-1], 1)[..., None] + arcs + arrived[:, :, None]
        pairs = _posteriors(log_pairs.flatten(2), real[:, 1:]).unflatten(2, (chain.c, chain.c))
    else:
        pairs = chain.emissions.new_zeros(len(unary), 0, chain.c, chain.c)
    return unary, pairs.sum(SUMMED_AXES[arcs_by], keepdim=True) if arcs_by != "position" else pairs


def _posteriors(log_weights: Float[Tensor, "batch n m"], real: Bool[Tensor, "batch n 1"]) -> Float[Tensor, "batch n m"]:
    """Return exp(log_weights) / Z where real. Z is their sum at every position; dividing by the sum found at each one
    keeps rounding in α and β, which grows with the length and the scores, out of the probabilities."""  # [S4.97]
    log_weights = torch.where(real, log_weights, -INF)  # before anything else: padding may hold anything
    log_z = logsumexp(log_weights, -1)[:, :, None]
    return (log_weights - torch.where(log_z > -INF, log_z, 0.0)).exp()


def viterbi(chain: Chain) -> tuple[Int[Tensor, "batch n"], Float[Tensor, "batch"]]:
    """The best tag sequence and its score, the index of 103 corrected.

    δ is `forward` in (max, +); then y_L = argmax_i δ_L(i) + end_i, y_t = argmax_i δ_t(i) + a_{t+1}(i, y_{t+1}).
    Among ties the lowest tag wins. Padding holds 0.
    """  # [S4.100-103, 111; S2, Viterbi]
    deltas = forward(chain, Max())
    score, tag = (deltas[-1] + chain.end).max(-1)  # [S4.102]
    if scan.applies(chain, Max()):
        return torch.where(chain.token_mask, scan.backtrack(chain, torch.stack(deltas, 1), tag), 0), score
    tags = []  # of the last position first
    for t in range(chain.n - 1, -1, -1):
        if t < chain.n - 1:
            arrivals = chain.arc(t + 1).expand(len(tag), -1, -1).gather(2, tag[:, None, None].expand(-1, chain.c, 1))
            previous = (deltas[t] + arrivals.squeeze(2)).argmax(-1)  # [S4.103]
            tag = torch.where(t + 1 < chain.lengths, previous, tag)
        tags.append(torch.where(t < chain.lengths, tag, 0))
    return torch.stack(tags[::-1], 1), score


def decode(marks: Float[Tensor, "batch n c"], chain: Chain) -> Int[Tensor, "batch n"]:
    """The tag that is marked at each position, 0 at padding."""
    return marks.argmax(-1)
