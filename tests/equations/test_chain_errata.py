"""Misprints in the chain's equations: the printed form fails, the corrected form is what the library computes.

The truth is always enumeration: every tag sequence, its score added up part by part, nothing shared with a recursion.
`docs/errata.md` tells what is printed and what is right.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import LinearChain
from trelliswork.semirings import Boolean, Max, Real
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.structure import Chain

N, C = 4, 3
SEEDS = range(20)


def random_chain(seed: int, n: int = N, c: int = C) -> Chain:
    """One row in float64 whose arcs differ from position to position and are not symmetric."""
    generator = torch.Generator().manual_seed(seed)

    def scores(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    return Chain(scores(1, n, c), scores(1, n - 1, c, c), scores(c), scores(c), torch.tensor([n]))


def every_sequence(n: int = N, c: int = C) -> list[tuple[int, ...]]:
    return list(itertools.product(range(c), repeat=n))


def log_factor(chain: Chain, t: int, tag: int, before: int | None) -> float:
    """log ψ_t(tag, before), positions from 0; the first factor has the start score, the last the end score."""
    arc = chain.start[tag] if before is None else chain.transitions[0, t - 1, before, tag]
    end = chain.end[tag] if t == chain.n - 1 else 0.0
    return float(arc + chain.emissions[0, t, tag] + end)


def log_score(chain: Chain, tags: tuple[int, ...]) -> float:
    return math.fsum(log_factor(chain, t, tag, tags[t - 1] if t else None) for t, tag in enumerate(tags))


def weights(chain: Chain) -> dict[tuple[int, ...], float]:
    """exp(score) of every tag sequence."""
    return {tags: math.exp(log_score(chain, tags)) for tags in every_sequence(chain.n, chain.c)}


def enumerated_z(chain: Chain) -> float:
    return math.fsum(weights(chain).values())


# --- 10: the backward recursion of [S2] ----------------------------------------------------------------------


def arc_weight(chain: Chain, n: int, before: int | None, after: int) -> float:
    """exp score(t_n, t_{n+1}, w): positions 1..N, so that factor n+1 is the one at index n."""
    return math.exp(log_factor(chain, n, after, before))


def backward_of_s2(chain: Chain, *, transposed: bool = False) -> float:
    """β(t_N) = 1, then β(t_n) = Σ exp(score) β(t_{n+1}); `transposed` keeps the printed order of the score's tags."""
    beta = [1.0] * chain.c
    for n in range(chain.n - 1, 0, -1):
        beta = [
            math.fsum(
                (arc_weight(chain, n, other, here) if transposed else arc_weight(chain, n, here, other)) * beta[other]
                for other in range(chain.c)
            )
            for here in range(chain.c)
        ]
    return math.fsum(arc_weight(chain, 0, None, first) * beta[first] for first in range(chain.c))


def printed_backward_of_s2(chain: Chain) -> dict[int, list[float]]:
    """As printed: β(t_n) from β(t_{n-1}), for n from N-1 down, with only β(t_N) given."""
    beta = {chain.n: [1.0] * chain.c}
    for n in range(chain.n - 1, 0, -1):
        beta[n] = [
            math.fsum(arc_weight(chain, n - 1, before, tag) * beta[n - 1][before] for before in range(chain.c))
            for tag in range(chain.c)
        ]
    return beta


def test_the_printed_backward_recursion_asks_for_what_it_has_not_computed() -> None:
    """Erratum 10: at n = N-1 it needs β at N-2, which is computed later (and would be a forward sum)."""
    with pytest.raises(KeyError, match=str(N - 2)):
        printed_backward_of_s2(random_chain(0))


def test_the_printed_order_of_tags_gives_another_z() -> None:
    """Erratum 10: repairing only the index of β leaves the arcs turned round."""
    for chain in map(random_chain, SEEDS):
        assert backward_of_s2(chain) == pytest.approx(enumerated_z(chain), rel=1e-12)
        assert backward_of_s2(chain, transposed=True) != pytest.approx(enumerated_z(chain), rel=1e-2)


def test_beta_sums_what_follows_and_the_total_comes_out_at_the_front() -> None:
    """[S2, backward], [S4.94-97] corrected: β_t(i) is the weight of all that can follow i; Z is β_0."""
    for chain in map(random_chain, SEEDS):
        betas = structure.backward(chain, Real())
        for t in range(N):
            for i in range(C):
                rest = (
                    math.exp(sum(log_factor(chain, t + 1 + s, tag, (i, *tail)[s]) for s, tag in enumerate(tail)))
                    for tail in every_sequence(N - 1 - t)
                )
                last = math.exp(float(chain.end[i])) if t == N - 1 else 1.0
                assert betas[t][0, i].item() == pytest.approx(last * math.fsum(rest), rel=1e-12)
        front = (chain.start.exp() * chain.emissions[0, 0].exp() * betas[0][0]).sum().item()
        assert front == pytest.approx(enumerated_z(chain), rel=1e-12)
        assert structure.total(chain, Real()).item() == pytest.approx(front, rel=1e-12)


# --- 11: carriers of the semirings of [S2] -------------------------------------------------------------------


def test_the_best_weight_leaves_the_unit_interval() -> None:
    """Erratum 11: weights exp(score) are not confined to [0, 1], the printed carrier; (max, +) takes any score."""
    for chain in map(random_chain, SEEDS):
        found = weights(chain)
        best = max(found, key=lambda tags: found[tags])
        confined = {tags: min(weight, 1.0) for tags, weight in found.items()}
        assert sum(weight == max(confined.values()) for weight in confined.values()) > 1, "the best one is lost"
        assert structure.total(chain, Max()).item() == pytest.approx(log_score(chain, best), rel=1e-12)


def test_zero_and_one_are_not_closed_under_plus() -> None:
    """Erratum 11: ({0, 1}, +, ×) has 1 + 1 = 2; `or` and `and` stay inside and say whether there is a path."""
    assert 1 + 1 not in {0, 1}
    boolean, true = Boolean(), torch.tensor([True])
    assert boolean.plus(true, true).tolist() == [True]
    assert structure.total(random_chain(0), boolean).tolist() == [True]
    closed = random_chain(0)
    closed.emissions[0, 2] = -math.inf
    assert structure.total(closed, boolean).tolist() == [False]


# --- 15: gradient and Hessian of the log-linear likelihood ---------------------------------------------------


def features(tags: tuple[int, ...], n: int = N, c: int = C) -> Tensor:
    """f(y) of a chain whose parameters are its emissions: which tag stands where, as a flat indicator."""
    marks = torch.zeros(n, c, dtype=torch.float64)
    marks[torch.arange(n), torch.tensor(tags)] = 1.0
    return marks.flatten()


def moments(chain: Chain) -> tuple[Tensor, Tensor]:
    """E[f] and Cov[f] under the chain, by enumeration."""
    found = weights(chain)
    p = torch.tensor(list(found.values()), dtype=torch.float64)
    p = p / p.sum()
    f = torch.stack([features(tags) for tags in found])
    mean = p @ f
    return mean, (f - mean).T @ (p[:, None] * (f - mean))


def loss(chain: Chain, theta: Tensor, gold: tuple[int, ...], backend: str) -> Tensor:
    """-log p(gold) as a function of the flat emissions."""
    scores = (theta.reshape(1, N, C), *chain.scores[1:])
    return -LinearChain(*scores, backend=backend).log_prob(torch.tensor([gold])).squeeze()  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["kernel", "torch"])
def test_the_gradient_is_expected_minus_observed(backend: str) -> None:
    """Erratum 15: one printed step multiplies the two counts. Without 1/Z, or with the signs turned, it fails too."""
    gold = (2, 0, 0, 1)
    for chain in map(random_chain, SEEDS):
        theta = chain.emissions.flatten().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(chain, theta, gold, backend), theta)
        observed, (expected, _) = features(gold), moments(chain)
        torch.testing.assert_close(gradient, -observed + expected, rtol=0, atol=1e-10)
        product = -(observed * expected - observed)
        unnormalised = -observed + expected * enumerated_z(chain)
        for wrong in (product, unnormalised, observed - expected):
            assert (wrong - gradient).abs().max() > 0.1


@pytest.mark.parametrize("backend", ["kernel", "torch"])
def test_the_hessian_of_the_loss_is_plus_the_covariance(backend: str) -> None:
    """Erratum 15: with a minus sign the loss would be concave."""
    gold = (2, 0, 0, 1)
    for chain in map(random_chain, range(5)):
        hessian = torch.autograd.functional.hessian(
            lambda theta, chain=chain: loss(chain, theta, gold, backend), chain.emissions.flatten()
        )
        _, covariance = moments(chain)
        torch.testing.assert_close(hessian, covariance, rtol=0, atol=1e-10)
        assert torch.linalg.eigvalsh(hessian).min() > -1e-10
        assert torch.linalg.eigvalsh(-covariance).min() < -0.05


def test_the_normaliser_is_a_sum_and_not_an_expectation() -> None:
    """Erratum 15: "E[y exp ...]" stands where Σ_y exp must: the model's own mean of exp(score) is no normaliser."""
    for chain in map(random_chain, SEEDS):
        found = weights(chain)
        z = math.fsum(found.values())
        mean = math.fsum(w * w / z for w in found.values())
        assert structure.log_partition(chain).item() == pytest.approx(math.log(z), rel=1e-12)
        assert math.log(mean) != pytest.approx(math.log(z), abs=0.1)


def test_tanh_is_a_stretched_sigmoid() -> None:
    """Erratum 15: 2 σ(2x) - 1, not 2 σ(2x - 1)."""
    x = torch.linspace(-3, 3, 13, dtype=torch.float64)
    torch.testing.assert_close(2 * torch.sigmoid(2 * x) - 1, torch.tanh(x))
    assert (2 * torch.sigmoid(2 * x - 1) - torch.tanh(x)).abs().min() > 0.1


# --- 19: START and STOP of [S4.59-64] ------------------------------------------------------------------------

START, STOP = C, C + 1


def matrices(chain: Chain, *, masked: bool) -> list[Tensor]:
    """M_1..M_{T+1} of [S4.59] over the tags and START, STOP.

    Without masks, arcs inside the sentence that touch START or STOP score 0 like any feature that does not fire.
    """
    found = []
    for t in range(chain.n + 1):
        scores = torch.full((C + 2, C + 2), -math.inf if masked else 0.0, dtype=torch.float64)
        if t == 0:
            scores[START, :C] = chain.start + chain.emissions[0, 0]
        elif t == chain.n:
            scores[:C, STOP] = chain.end
        else:
            scores[:C, :C] = chain.transitions[0, t - 1] + chain.emissions[0, t]
        found.append(scores.exp())
    return found


def test_start_and_stop_must_be_masked_inside() -> None:
    """Erratum 19: the (START, STOP) entry of the product [S4.61] also sums paths that visit START or STOP inside."""
    for chain in map(random_chain, SEEDS):
        z = enumerated_z(chain)
        masked, literal = (
            torch.linalg.multi_dot(matrices(chain, masked=masked))[START, STOP].item() for masked in (True, False)
        )
        assert masked == pytest.approx(z, rel=1e-12)
        assert structure.total(chain, Real()).item() == pytest.approx(masked, rel=1e-12)
        assert literal > 1.02 * z


def test_probabilities_over_the_unmasked_product_do_not_sum_to_one() -> None:
    """Erratum 19: [S4.62] divides by that entry, so tag sequences get less than all of the probability."""
    for chain in map(random_chain, SEEDS):
        literal = torch.linalg.multi_dot(matrices(chain, masked=False))[START, STOP].item()
        assert sum(w / literal for w in weights(chain).values()) < 0.99
        value = torch.tensor(every_sequence())[:, None]
        log_probs = LinearChain(*chain.scores).log_prob(value)
        assert log_probs.exp().sum().item() == pytest.approx(1.0, abs=1e-10)


def test_forward_vectors_by_matrix_products() -> None:
    """[S4.63]: α_t = α_{t-1} M_t from α_0 = e_START is the library's forward recursion."""
    for chain in map(random_chain, SEEDS):
        alpha = torch.eye(C + 2, dtype=torch.float64)[START]
        for matrix, wanted in zip(matrices(chain, masked=True), structure.forward(chain, Real()), strict=False):
            alpha = alpha @ matrix
            torch.testing.assert_close(alpha[:C], wanted[0])


def backward_vectors(chain: Chain, *, transposed: bool) -> list[Tensor]:
    """β_1..β_T from β_{T+1} = e_STOP: β_t = M_{t+1} β_{t+1}, or with the matrix transposed."""
    beta, found = torch.eye(C + 2, dtype=torch.float64)[STOP], []
    for matrix in reversed(matrices(chain, masked=True)[1:]):
        beta = matrix.T @ beta if transposed else matrix @ beta
        found.insert(0, beta[:C])
    return found


def test_backward_vectors_are_columns() -> None:
    """Erratum 19: [S4.64] sets a row equal to a column; read as β_t^T = β_{t+1}^T M_{t+1} it is wrong."""
    for chain in map(random_chain, SEEDS):
        columns = backward_vectors(chain, transposed=False)
        rows = backward_vectors(chain, transposed=True)
        for t, wanted in enumerate(structure.backward(chain, Real())):
            torch.testing.assert_close(columns[t], wanted[0])
            assert not torch.allclose(rows[t], wanted[0], rtol=1e-2)


# --- 20: the indices of [S4.87] and [S4.90] ------------------------------------------------------------------


def rearranged_sum(chain: Chain) -> dict[tuple[int, int], float]:
    """What stands behind the first two signs of [S4.87], for each value of y_{T-1} and y_T: sums from y_1 outwards."""
    inner = {tag: math.exp(log_factor(chain, 0, tag, None)) for tag in range(chain.c)}
    for t in range(1, chain.n - 1):
        inner = {
            tag: math.fsum(math.exp(log_factor(chain, t, tag, before)) * inner[before] for before in range(chain.c))
            for tag in range(chain.c)
        }
    return {
        (before, tag): math.exp(log_factor(chain, chain.n - 1, tag, before)) * inner[before]
        for before in range(chain.c)
        for tag in range(chain.c)
    }


def test_the_outer_sums_run_over_tags() -> None:
    """Erratum 20: sums over "T" and "T-1" bind neither y_T nor y_{T-1}; over those two tags they give Z."""
    for chain in map(random_chain, SEEDS):
        behind = rearranged_sum(chain)
        assert max(behind.values()) > 1.5 * min(behind.values()), "as printed, the value still depends on two tags"
        assert math.fsum(behind.values()) == pytest.approx(enumerated_z(chain), rel=1e-12)
        assert structure.total(chain, Real()).item() == pytest.approx(enumerated_z(chain), rel=1e-12)


def alpha_by_product(chain: Chain, t: int, tag: int, *, n_factors: int, printed_pairs: bool = False) -> float:
    """[S4.90] with a product over the first `n_factors` factors (t counts from 0, so that right is n_factors = t).

    `printed_pairs` takes ψ_{t'}(y_{t'}, y_{t-1}) as printed instead of ψ_{t'}(y_{t'}, y_{t'-1}).
    """
    total = 0.0
    for prefix in every_sequence(t, chain.c):
        tags = (*prefix, tag)
        log_weight = log_factor(chain, t, tag, tags[t - 1])
        for s in range(n_factors):
            before = None if s == 0 else tags[t - 1] if printed_pairs else tags[s - 1]
            log_weight += log_factor(chain, s, tags[s], before)
        total += math.exp(log_weight)
    return total


def test_the_product_of_alpha_runs_to_the_factor_before() -> None:
    """Erratum 20: the printed bound t'-1 bounds itself; it is t-1, no factor fewer and none more."""
    t = 2
    for chain in map(random_chain, SEEDS):
        alpha = structure.forward(chain, Real())[t][0].tolist()
        assert [alpha_by_product(chain, t, tag, n_factors=t) for tag in range(C)] == pytest.approx(alpha, rel=1e-12)
        for wrong in ({"n_factors": t - 1}, {"n_factors": t + 1}, {"n_factors": t, "printed_pairs": True}):
            found = [alpha_by_product(chain, t, tag, **wrong) for tag in range(C)]  # type: ignore[arg-type]
            assert found != pytest.approx(alpha, rel=1e-2)


# --- 21: the back-pointers of [S4.103] -----------------------------------------------------------------------


def viterbi_by_hand(chain: Chain, *, printed: bool) -> tuple[int, ...]:
    """[S4.100-102], then y_t = argmax_i ψ(y_{t+1}, i) δ_t(i) with ψ_{t+1}, or with ψ_t as [S4.103] prints."""
    tags = range(chain.c)
    deltas = [[log_factor(chain, 0, tag, None) for tag in tags]]
    for t in range(1, chain.n):
        deltas.append([max(deltas[-1][i] + log_factor(chain, t, j, i) for i in tags) for j in tags])
    path = [max(tags, key=lambda tag: deltas[-1][tag])]
    for t in range(chain.n - 2, -1, -1):
        factor = t if printed else t + 1
        after = path[0]

        def arriving(i: int, t: int = t, factor: int = factor, after: int = after) -> float:
            return deltas[t][i] + log_factor(chain, factor, after, None if factor == 0 else i)

        path.insert(0, max(tags, key=arriving))
    return tuple(path)


def test_the_printed_back_pointers_miss_the_best_path_in_most_models() -> None:
    """Erratum 21: ψ_t in place of ψ_{t+1} reads the arcs of the wrong position."""
    missed = 0
    for chain in map(random_chain, range(100)):
        found = weights(chain)
        best = max(found, key=lambda tags: found[tags])
        assert viterbi_by_hand(chain, printed=False) == best
        for backend in ("kernel", "torch"):
            assert tuple(LinearChain(*chain.scores, backend=backend).argmax[0].tolist()) == best  # type: ignore[arg-type]
        missed += viterbi_by_hand(chain, printed=True) != best
    assert missed > 50
