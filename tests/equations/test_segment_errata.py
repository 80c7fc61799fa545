"""Misprints in the equations of semi-Markov models: the printed form fails, the corrected form is what is computed.

The truth is enumeration: every segmentation, its score added up from g(h, d, y', y), nothing shared with a recursion.
Starts h and positions k count from 1 here, as in print. `docs/errata.md` tells what is printed and what is right.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.hand_gradients.networks import segment_weight_gradient
from tests.oracles import segments as oracle
from trelliswork.distributions import SemiMarkov
from trelliswork.semirings import Log
from trelliswork.structures.segments import structure
from trelliswork.structures.segments.structure import Segments

T, L, Y = 5, 3, 2
BOS = Y  # the label before the first segment, in tables [T, L, Y + 1, Y] of g
INF = float("inf")


def random_parts(seed: int, scale: float = 1.0) -> Segments:
    """One row in float64: F(s) = segments, A = transitions, and A(BOS, y) = start; there are no end scores."""
    generator = torch.Generator().manual_seed(seed)

    def scores(*shape: int) -> Tensor:
        return scale * torch.randn(shape, dtype=torch.float64, generator=generator)

    end = torch.zeros(Y, dtype=torch.float64)
    return Segments(scores(1, T, L, Y), scores(Y, Y), scores(Y), end, torch.tensor([T]))


def flat_parts() -> Segments:
    return random_parts(0, scale=0.0)


def g_table(parts: Segments) -> Tensor:
    """g(h, d, y', y) = F + A at [h-1, d-1, y', y]."""
    assert parts.transitions is not None
    arcs = torch.cat([parts.transitions, parts.start[None]])
    return parts.segments[0][:, :, None, :] + arcs


def enumerated_log_z(g: Tensor, parts: Segments) -> Tensor:
    totals = []
    for segmentation in oracle.segmentations(parts, 0):
        before, score = BOS, g.new_zeros(())
        for first, last, label in segmentation:
            score, before = score + g[first, last - first - 1, before, label], label
        totals.append(score)
    return torch.stack(totals).logsumexp(0)


def posteriors(parts: Segments) -> Tensor:
    """∂ log Z / ∂ g(h, d, y', y) by enumeration."""
    g = g_table(parts).requires_grad_()
    (found,) = torch.autograd.grad(enumerated_log_z(g, parts), g)
    return found


def alpha_of(parts: Segments) -> Tensor:
    """α_{y,k} at [k, y], k = 0..T, and label BOS: the corrected boundary and the library's recursion."""
    table = torch.full((T + 1, Y + 1), -INF, dtype=torch.float64)
    table[0, BOS] = 0.0
    for k, alpha in enumerate(structure.forward(parts, Log())[0], 1):
        table[k, :Y] = alpha[0]
    return table


def beta_of(parts: Segments) -> Tensor:
    """β_{y,k} at [k, y], k = 1..T."""
    table = torch.full((T + 1, Y), -INF, dtype=torch.float64)
    for k, beta in enumerate(structure.backward(parts, Log())[0], 1):
        table[k] = beta[0]
    return table


# --- 1: the boundaries ---------------------------------------------------------------------------------------


def test_the_printed_boundaries_count_segmentations_that_are_not_there() -> None:
    """Erratum 1: with g = 0 there are 152 segmentations; α = 0 for all k <= 0 counts 792, β = 0 for all k >= T 396."""
    parts = flat_parts()
    assert len(oracle.segmentations(parts, 0)) == 152
    assert round(structure.log_partition(parts).exp().item()) == 152
    _, etas = structure.backward(parts, Log())
    assert round((parts.start + etas[0]).exp().sum().item()) == 152

    alpha = {k: [1.0] * Y for k in range(1 - L, 1)}
    for k in range(1, T + 1):
        alpha[k] = [sum(sum(alpha[k - d]) for d in range(1, L + 1)) for _ in range(Y)]
    assert sum(alpha[T]) == 792
    beta = dict.fromkeys(range(T, T + L), 1.0)
    for k in range(T - 1, -1, -1):
        beta[k] = sum(Y * beta[k + d] for d in range(1, L + 1))
    assert beta[0] == 396


# --- 2: what α and β sum over --------------------------------------------------------------------------------


def test_alpha_and_beta_split_the_row_between_them() -> None:
    """Erratum 2: α_k covers 1..k and β_k covers k+1..T; with the printed k:T position k would be in both."""

    def count(n: int) -> float:
        parts = flat_parts()
        prefix = Segments(parts.segments[:, :n], parts.transitions, parts.start, parts.end, torch.tensor([n]))
        return float(len(oracle.segmentations(prefix, 0))) if n else 1.0

    alpha, beta = alpha_of(flat_parts()).exp(), beta_of(flat_parts()).exp()
    for k in range(1, T + 1):
        assert math.isclose(float(alpha[k].sum()), count(k), rel_tol=1e-12)
        assert math.isclose(float(beta[k, 0]), count(T - k), rel_tol=1e-12)
        assert not math.isclose(float(beta[k, 0]), count(T - k + 1), rel_tol=1e-3)  # segmentations of k:T


# --- 3: the normaliser ---------------------------------------------------------------------------------------


def test_the_normaliser_is_alpha_at_the_last_position() -> None:
    """Erratum 3: Z = Σ_y exp α_{y,T}; at any other k it is the sum of a prefix."""
    parts = random_parts(3)
    wanted = enumerated_log_z(g_table(parts), parts)
    log_sums = alpha_of(parts)[:, :Y].logsumexp(-1)
    torch.testing.assert_close(log_sums[T], wanted)
    torch.testing.assert_close(structure.log_partition(parts)[0], wanted)
    assert all(abs(log_sums[k] - wanted) > 1e-3 for k in range(1, T))


# --- 4: the posterior of a segment ---------------------------------------------------------------------------


def posterior(parts: Segments, h: int, d: int, alpha_at: int, beta_at: int) -> Tensor:
    """exp(α_{y',alpha_at} + g(h, d, y', y) + β_{y,beta_at} - log Z) for all y', y."""
    before, after = alpha_of(parts)[max(alpha_at, 0)], beta_of(parts)[beta_at]
    if alpha_at < 0:
        before = torch.full_like(before, -INF)
    log_z = structure.log_partition(parts)
    return (before[:, None] + g_table(parts)[h - 1, d - 1] + after - log_z).exp()


def test_a_posterior_joins_what_ends_before_its_segment_and_what_follows_it() -> None:
    """Erratum 4: α at h-1 and β at h+d-1; as printed, α at h-d and β at d, the numbers are others, Z aside."""
    parts = random_parts(4)
    wanted = posteriors(parts)
    gaps = []
    for d in range(1, L + 1):
        for h in range(1, T - d + 2):
            found = posterior(parts, h, d, h - 1, h + d - 1)
            torch.testing.assert_close(found, wanted[h - 1, d - 1], rtol=1e-10, atol=1e-12)
            gaps.append(float((posterior(parts, h, d, h - d, d) - wanted[h - 1, d - 1]).abs().max()))
    assert max(gaps) > 0.1
    segments, arcs = structure.marginals(parts)
    torch.testing.assert_close(segments[0], wanted.sum(2), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(arcs[0], wanted[:, :, :Y].sum((0, 1)), rtol=1e-10, atol=1e-12)


# --- 5: the sums over all segments ---------------------------------------------------------------------------


def test_the_gradient_of_transitions_sums_over_every_segment_in_the_row() -> None:
    """Erratum 5: Σ over all (h, d) with h+d-1 <= T is right; k = d..T read as starts leaves out the early ones."""
    parts = random_parts(5)
    wanted = posteriors(parts)
    transitions = parts.transitions.clone().requires_grad_()  # type: ignore[union-attr]
    dist = SemiMarkov(parts.segments, transitions, parts.start)
    (found,) = torch.autograd.grad(dist.log_partition.sum(), transitions)
    valid = sum(wanted[h - 1, d - 1, :Y] for d in range(1, L + 1) for h in range(1, T - d + 2))
    literal = sum(wanted[k - 1, d - 1, :Y] for d in range(1, L + 1) for k in range(d, T + 1))
    torch.testing.assert_close(found, valid, rtol=1e-10, atol=1e-12)
    assert float((literal - found).abs().max()) > 0.01


def test_the_gradient_of_weights_pairs_a_segment_with_its_own_features() -> None:
    """Erratum 5: with k an end, the features are those of the segment that starts at k-d+1; z_k belongs to another."""
    generator = torch.Generator().manual_seed(6)
    z = torch.randn(1, T, L, 4, dtype=torch.float64, generator=generator)
    by_length = torch.randn(L, Y, 4, dtype=torch.float64, generator=generator)
    parts = random_parts(6)

    def gradient_of(weight: Tensor, pattern: str) -> tuple[Tensor, Tensor]:
        leaf = weight.clone().requires_grad_()
        segments = torch.einsum(pattern, z, leaf)
        dist = SemiMarkov(segments, parts.transitions, parts.start)
        return torch.autograd.grad(dist.log_partition.sum(), leaf)[0], dist.marginals.detach()

    shared, marginals = gradient_of(by_length[0], "bidj,yj->bidy")
    torch.testing.assert_close(segment_weight_gradient(marginals, z), shared, rtol=1e-10, atol=1e-12)
    literal = torch.zeros(Y, 4, dtype=torch.float64)
    for d in range(1, L + 1):
        for k in range(d, T + 1):
            literal += marginals[0, k - d, d - 1][:, None] * z[0, k - 1, d - 1]
    assert float((literal - shared).abs().max()) > 0.1
    each, marginals = gradient_of(by_length, "bidj,dyj->bidy")
    found = segment_weight_gradient(marginals, z, by_length=True)
    torch.testing.assert_close(found, each, rtol=1e-10, atol=1e-12)


# --- 8: the best segmentation --------------------------------------------------------------------------------


def literal_best(g: Tensor) -> tuple[tuple[int, int, int], ...]:
    """V_{y,0} = 0 for all y: a first segment may follow any label, and its start score is not read."""
    value: dict[tuple[int, int], float] = {(y, k): 0.0 for y in range(Y) for k in range(1 - L, 1)}
    back: dict[tuple[int, int], tuple[int, int]] = {}
    for k in range(1, T + 1):
        for y in range(Y):
            choices = {
                (before, d): value[before, k - d] + float(g[k - d, d - 1, before, y])
                for d in range(1, min(L, k) + 1)
                for before in range(Y)
            }
            back[y, k] = max(choices, key=lambda choice: choices[choice])
            value[y, k] = choices[back[y, k]]
    k, y = T, max(range(Y), key=lambda label: value[label, T])
    found: list[tuple[int, int, int]] = []
    while k > 0:
        before, d = back[y, k]
        found.insert(0, (k - d, k, y))
        k, y = k - d, before
    return tuple(found)


def test_a_free_label_before_the_first_segment_changes_the_best_segmentation() -> None:
    """Erratum 8: s* maximises Σ g with the boundary of erratum 1; a free y_0 picks another one in many models."""
    missed = 0
    for seed in range(200):
        parts = random_parts(seed)
        scores = oracle.scores(parts, 0)
        best = oracle.segmentations(parts, 0)[int(scores.argmax())]
        starts, score = structure.viterbi(parts)
        assert SemiMarkov(*parts.scores).from_starts(starts)[0] == list(best)
        torch.testing.assert_close(score[0], scores.max())
        missed += literal_best(g_table(parts)) != best
    assert missed > 40
