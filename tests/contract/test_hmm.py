"""The hidden Markov model against sums over every state sequence, and its learning."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract.base import BACKENDS, chi_square_fits
from trelliswork.distributions import HMM, LinearChain
from trelliswork.errors import ScoreError

INF = float("inf")
C, V = 3, 4
X = torch.tensor([[0, 3, 1, 2], [2, 2, 0, 0], [3, 0, 0, 0]])
LENGTHS = torch.tensor([4, 2, 1])
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def random_model(seed: int, c: int = C, v: int = V, **options: Any) -> HMM:
    generator = torch.Generator().manual_seed(seed)
    scores = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((c,), (c, c), (c, v))]
    return HMM.from_scores(*scores, **options)


def with_zeros(**options: Any) -> HMM:
    """Probabilities of 0: state 0 never follows itself, state 2 never starts nor shows symbol 0."""
    generator = torch.Generator().manual_seed(9)
    initial, transitions, emissions = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((C,), (C, C), (C, V))
    )
    initial[2] = transitions[0, 0] = emissions[2, 0] = -INF
    return HMM.from_scores(initial, transitions, emissions, **options)


def joint(model: HMM, states: tuple[int, ...], symbols: list[int]) -> float:
    """p(y, x) as a product of table entries, one at a time; a missing symbol has probability 1."""
    initial, transitions, emissions = (part.detach().exp().tolist() for part in model.parameters)
    p = 1.0
    for t, (state, symbol) in enumerate(zip(states, symbols, strict=True)):
        p *= initial[state] if t == 0 else transitions[states[t - 1]][state]
        p *= emissions[state][symbol] if symbol >= 0 else 1.0
    return p


def every_joint(model: HMM, symbols: list[int]) -> dict[tuple[int, ...], float]:
    return {states: joint(model, states, symbols) for states in itertools.product(range(C), repeat=len(symbols))}


def rows() -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(X, LENGTHS.tolist(), strict=True)]


@every_backend
@pytest.mark.parametrize("zeros", [False, True])
def test_the_probability_of_observations_and_the_posterior(backend: str, zeros: bool) -> None:
    model = with_zeros(backend=backend) if zeros else random_model(0, backend=backend)
    chain = model.posterior(X, LENGTHS)
    for row, symbols in enumerate(rows()):
        weights = every_joint(model, symbols)
        total = math.fsum(weights.values())
        assert model.log_prob(X, LENGTHS)[row].exp().item() == pytest.approx(total, rel=1e-10)
        assert chain.count[row] == sum(weight > 0 for weight in weights.values())
        best = max(weights, key=lambda states: weights[states])
        assert tuple(model.viterbi(X, LENGTHS)[row, : len(symbols)].tolist()) == best
        for t in range(len(symbols)):
            for state in range(C):
                wanted = math.fsum(weight for states, weight in weights.items() if states[t] == state) / total
                assert chain.marginals[row, t, state].item() == pytest.approx(wanted, abs=1e-12)
    for states in itertools.product(range(C), repeat=4):
        given = torch.tensor([states, states, states])
        found = model.joint_log_prob(given, X, LENGTHS).exp()
        wanted = [joint(model, states[: len(symbols)], symbols) for symbols in rows()]
        torch.testing.assert_close(found.tolist(), wanted)


def test_all_observations_together_have_probability_one() -> None:
    model = random_model(1)
    every = torch.tensor(list(itertools.product(range(V), repeat=3)))
    assert model.log_prob(every).exp().sum().item() == pytest.approx(1.0)


def test_a_missing_observation_is_summed_over() -> None:
    model = random_model(2)
    x = torch.tensor([[1, -100, 3]])
    filled = torch.tensor([[1, symbol, 3] for symbol in range(V)])
    torch.testing.assert_close(model.log_prob(x)[0], model.log_prob(filled).logsumexp(0))
    assert model.log_prob(x)[0].exp().item() == pytest.approx(math.fsum(every_joint(model, [1, -100, 3]).values()))


def test_padding_is_not_read() -> None:
    model, padded = random_model(2), X.clone()
    padded[1, 2:], padded[2, 1:] = 999, -5
    torch.testing.assert_close(model.log_prob(padded, LENGTHS), model.log_prob(X, LENGTHS))
    with pytest.raises(ScoreError, match="got 999 at row 1, position 2"):
        model.log_prob(padded)


def test_the_hmm_is_a_chain_with_indicator_features() -> None:
    """[S4.71-72]: θ_ij for each pair of states and μ_oi for each state and symbol, counted and summed; Z = 1."""
    model = random_model(3)
    for states in itertools.product(range(C), repeat=3):
        symbols = [2, 0, 3]
        transitions = Counter(itertools.pairwise(states))
        emissions = Counter(zip(states, symbols, strict=True))
        score = float(model.initial[states[0]])
        score += sum(count * float(model.transitions[i, j]) for (i, j), count in transitions.items())
        score += sum(count * float(model.emissions[i, o]) for (i, o), count in emissions.items())
        assert model.joint_log_prob(torch.tensor([states]), torch.tensor([symbols])).item() == pytest.approx(score)


@every_backend
def test_first_and_second_derivatives(backend: str) -> None:
    scores = [part.clone().requires_grad_() for part in random_model(4).parameters]

    def log_prob(*parts: Tensor) -> Tensor:
        return HMM.from_scores(*parts, backend=backend).log_prob(X, LENGTHS)  # type: ignore[arg-type]

    assert torch.autograd.gradcheck(log_prob, scores)
    assert torch.autograd.gradgradcheck(log_prob, scores)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_types_are_kept(dtype: torch.dtype) -> None:
    model = HMM(*(part.to(dtype) for part in random_model(5).parameters))
    assert model.log_prob(X, LENGTHS).dtype == dtype
    assert model.fit(rows(), 1).model.initial.dtype == dtype
    torch.testing.assert_close(
        model.log_prob(X, LENGTHS).double(), random_model(5).log_prob(X, LENGTHS), rtol=0, atol=2e-2
    )


def test_samples_have_their_probabilities() -> None:
    model = with_zeros()
    states, symbols = model.sample(6000, 2, generator=torch.Generator().manual_seed(0))
    counts = Counter(zip(map(tuple, states.tolist()), map(tuple, symbols.tolist()), strict=True))
    wanted = {
        (each, tuple(seen)): p
        for seen in itertools.product(range(V), repeat=2)
        for each, p in every_joint(model, list(seen)).items()
        if p > 0
    }
    assert set(counts) <= set(wanted)
    assert chi_square_fits(counts, wanted)  # type: ignore[arg-type]


def test_naive_bayes_is_a_state_that_never_changes() -> None:
    """[S4.67-68]: p(y) Π p(x_k | y) in any order of x, and the same p(y | x) as a softmax of θ·f."""
    model = random_model(10)
    classes = HMM.naive_bayes(model.initial, model.emissions)
    for row, symbols in enumerate(rows()):
        joint = [
            math.exp(float(model.initial[y])) * math.prod(math.exp(float(model.emissions[y, k])) for k in symbols)
            for y in range(C)
        ]
        assert classes.log_prob(X, LENGTHS)[row].exp().item() == pytest.approx(math.fsum(joint), rel=1e-10)
        found = classes.posterior(X, LENGTHS).marginals[row, 0]
        torch.testing.assert_close(found.tolist(), [p / math.fsum(joint) for p in joint])
        counts = torch.bincount(torch.tensor(symbols), minlength=V).double()
        torch.testing.assert_close(found, torch.softmax(model.initial + model.emissions @ counts, 0))
    torch.testing.assert_close(classes.log_prob(X.flip(1)), classes.log_prob(X))


def test_weights_normalised_over_classes_and_inputs_are_a_naive_bayes_model() -> None:
    """[S4.70]: p(y, x) = exp(θ·f) / Σ exp(θ·f); p(y) takes in what the symbols of y add up to."""
    generator, n = torch.Generator().manual_seed(11), 3
    by_class = torch.randn(C, generator=generator, dtype=torch.float64)
    by_symbol = torch.randn(C, V, generator=generator, dtype=torch.float64)
    weights = {
        (y, x): math.exp(float(by_class[y]) + sum(float(by_symbol[y, symbol]) for symbol in x))
        for y in range(C)
        for x in itertools.product(range(V), repeat=n)
    }
    prior = torch.log_softmax(by_class + n * by_symbol.logsumexp(1), 0)
    model = HMM.naive_bayes(prior, torch.log_softmax(by_symbol, 1))
    for (y, x), weight in weights.items():
        found = model.joint_log_prob(torch.tensor([[y] * n]), torch.tensor([x])).exp().item()
        assert found == pytest.approx(weight / math.fsum(weights.values()), rel=1e-10)


# --- learning ------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("zeros", [False, True])
def test_expected_counts_against_enumeration(backend: str, zeros: bool) -> None:
    model = with_zeros(backend=backend) if zeros else random_model(6, backend=backend)
    wanted = [torch.zeros_like(part) for part in model.parameters]
    for symbols in rows():
        weights = every_joint(model, symbols)
        total = math.fsum(weights.values())
        for states, weight in weights.items():
            wanted[0][states[0]] += weight / total
            for before, after in itertools.pairwise(states):
                wanted[1][before, after] += weight / total
            for state, symbol in zip(states, symbols, strict=True):
                wanted[2][state, symbol] += weight / total
    total_log, found = model.expected_counts(X, LENGTHS)
    torch.testing.assert_close(total_log, model.log_prob(X, LENGTHS).sum())
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


def observed(seed: int) -> list[list[int]]:
    truth = random_model(seed, c=2)
    _, symbols = truth.sample(12, 9, generator=torch.Generator().manual_seed(seed))
    return [row[: 3 + number % 7].tolist() for number, row in enumerate(symbols)]


@pytest.mark.parametrize("seed", range(3))
def test_baum_welch_never_lowers_the_likelihood(seed: int) -> None:
    sequences = observed(seed)
    found = random_model(seed + 50).fit(sequences, 25)
    history = found.log_likelihoods
    assert len(history) == 26
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(history))
    assert history[-1] > history[0] + 1
    HMM(*found.model.parameters)  # still probabilities


def test_with_smoothing_the_penalised_likelihood_never_falls() -> None:
    sequences, model, last = observed(1), random_model(51), -INF
    for _ in range(15):
        found = model.fit(sequences, 1, smoothing=0.3)
        prior = 0.3 * sum(float(part.sum()) for part in model.parameters)
        assert found.log_likelihoods[0] + prior >= last - 1e-9
        last, model = found.log_likelihoods[0] + prior, found.model
    assert all((part > -10).all() for part in model.parameters)


def test_what_is_impossible_stays_so_and_what_is_not_reached_stays_as_it_is() -> None:
    model = with_zeros()
    found = model.fit([[1], [3]], 3, smoothing=0.1).model
    assert found.initial[2] == found.transitions[0, 0] == found.emissions[2, 0] == -INF
    unsmoothed = model.fit([[1], [3]], 3).model
    torch.testing.assert_close(unsmoothed.transitions, model.transitions)  # sequences of one have no transition
    assert not unsmoothed.emissions[:2].equal(model.emissions[:2])


def test_fitting_can_end_early() -> None:
    found = random_model(52).fit(observed(2), 500, tolerance=1e-3)
    assert len(found.log_likelihoods) < 300
    assert found.log_likelihoods[-1] - found.log_likelihoods[-2] <= 1e-3


def test_one_update_is_the_relative_frequency_of_expected_counts() -> None:
    model = random_model(7)
    _, counts = model.expected_counts(X, LENGTHS)
    for part, count in zip(model.fit(rows(), 1).model.parameters, counts, strict=True):
        torch.testing.assert_close(part.exp(), count / count.sum(-1, keepdim=True))


def test_known_states_are_counted() -> None:
    states, symbols = [[0, 1, 1], [1]], [[2, 0, 0], [1]]
    model = HMM.from_tagged(states, symbols, 2, 3)
    torch.testing.assert_close(model.initial.exp(), torch.tensor([0.5, 0.5], dtype=torch.float64))
    torch.testing.assert_close(model.transitions.exp(), torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64))
    torch.testing.assert_close(model.emissions.exp(), torch.tensor([[0, 0, 1], [2 / 3, 1 / 3, 0]], dtype=torch.float64))
    smooth = HMM.from_tagged(states, symbols, 2, 3, smoothing=1.0)
    torch.testing.assert_close(
        smooth.emissions.exp(), torch.tensor([[1 / 4, 1 / 4, 2 / 4], [3 / 6, 2 / 6, 1 / 6]], dtype=torch.float64)
    )
    unused = HMM.from_tagged(states, symbols, 3, 3)
    torch.testing.assert_close(unused.transitions[2].exp(), torch.full((3,), 1 / 3, dtype=torch.float64))


def test_counting_is_the_most_likely_model() -> None:
    """No other random model gives tagged sequences a higher probability."""
    generator = torch.Generator().manual_seed(3)
    states, symbols = random_model(8).sample(6, 4, generator=generator)
    counted = HMM.from_tagged(states.tolist(), symbols.tolist(), C, V)
    best = counted.joint_log_prob(states, symbols).sum()
    assert all(random_model(seed).joint_log_prob(states, symbols).sum() < best for seed in range(30))


def test_the_posterior_answers_every_query() -> None:
    chain = random_model(9).posterior(X, LENGTHS)
    assert isinstance(chain, LinearChain)
    assert chain.sample((5,)).shape == (5, 3, 4)
    assert chain.top_k(2)[1].shape == (2, 3)
    assert (chain.entropy() >= 0).all()


# --- bad input -----------------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    model = random_model(0)
    initial, transitions, emissions = model.parameters
    with pytest.raises(
        ScoreError, match=r"row of transitions must be log-probabilities.*sum of 2 at row 1.*from_scores"
    ):
        HMM(initial, transitions + torch.tensor([0.0, math.log(2), 0.0])[:, None], emissions)
    with pytest.raises(ScoreError, match="sum of nan"):
        HMM(initial * float("nan"), transitions, emissions)
    with pytest.raises(ScoreError, match=r"transitions must be \(3, 3\) for emissions \(3, 4\); got \(2, 3\)"):
        HMM(initial, transitions[:2], emissions)
    with pytest.raises(ScoreError, match=r"0\.\.3, or be -100 for missing; got 7 at row 0, position 1"):
        model.log_prob(torch.tensor([[0, 7]]))
    with pytest.raises(ScoreError, match=r"whole numbers \[batch, n\]; got torch.float32"):
        model.log_prob(torch.zeros(1, 2))
    with pytest.raises(ScoreError, match=r"lengths must lie in 1\.\.4; got 5"):
        model.log_prob(X, torch.tensor([4, 5, 1]))
    with pytest.raises(ScoreError, match="no probability"):
        HMM(torch.tensor([0.0]), torch.tensor([[0.0]]), torch.tensor([[0.0, -INF]])).fit([[1]], 1)
    with pytest.raises(ScoreError, match="at least one; got none"):
        model.fit([], 1)
    with pytest.raises(ScoreError, match="smoothing must be a number of at least 0; got -1"):
        model.fit([[0]], 1, smoothing=-1)
    with pytest.raises(ScoreError, match=r"states must lie in 0\.\.1; got 2 at row 0, position 1"):
        HMM.from_tagged([[0, 2]], [[0, 0]], 2, 1)
    with pytest.raises(ScoreError, match="equally long; got 2 and 1 at row 0"):
        HMM.from_tagged([[0, 1]], [[0]], 2, 1)


def test_what_is_no_tensor_and_lengths_that_do_not_fit_are_named() -> None:
    model = random_model(0)
    with pytest.raises(ScoreError, match="lengths must be a tensor; got list"):
        model.log_prob(X, [4, 2, 1])  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match=r"lengths must be one a row, \(3,\); got \(2,\)"):
        model.log_prob(X, LENGTHS[:2])
    with pytest.raises(ScoreError, match="observations must be a tensor; got list"):
        model.log_prob([[0, 1]])  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="each sequence must be one or more whole numbers"):
        model.fit(["ab"])  # type: ignore[list-item]
    with pytest.raises(ScoreError, match="transitions must be floating point"):
        HMM.from_scores(torch.zeros(2), torch.zeros(2, 2).long(), torch.zeros(2, 3))
    with pytest.raises(ScoreError, match='backend must be "auto"'):
        HMM(*model.parameters, backend="cuda")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="n_iterations must be at least 0; got -1"):
        model.fit([[0]], -1)


def test_learning_works_in_inference_mode() -> None:
    wanted = random_model(0).fit([[0, 3, 1], [2]], 3).log_likelihoods
    with torch.inference_mode():
        assert random_model(0).fit([[0, 3, 1], [2]], 3).log_likelihoods == pytest.approx(wanted)
