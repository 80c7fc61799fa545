"""Bayesian feature CRFs: averages of chains, the posterior against a grid, taggers that average."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.models.test_feature_crf import corpus, model_of
from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows
from trelliswork.distributions import LinearChain, average_chain, average_log_prob
from trelliswork.errors import ModelError, ScoreError
from trelliswork.models import FeatureTagger, LearningConfig
from trelliswork.models.taggers.features.crf.chains import AveragedCRF, averaged_crf
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.config import METHODS, Method
from trelliswork.models.taggers.features.learners.learning import learn
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.learners.posterior import Posterior, curvature

LENGTHS = torch.tensor([4, 1, 3])


def chains(n: int) -> list[LinearChain]:
    generator = torch.Generator().manual_seed(0)
    return [
        LinearChain(
            2 * torch.randn(3, 4, 3, generator=generator, dtype=torch.float64),
            torch.randn(3, 3, generator=generator, dtype=torch.float64),
            lengths=LENGTHS,
        )
        for _ in range(n)
    ]


def test_the_average_chain_has_the_average_marginals() -> None:
    members, log_weights = chains(3), torch.tensor([0.0, 1.0, -0.5], dtype=torch.float64)
    shares = log_weights.softmax(0).tolist()
    found = average_chain(members, log_weights, lengths=LENGTHS)
    for name in ("marginals", "pairwise_marginals"):
        wanted = sum(share * getattr(member, name) for share, member in zip(shares, members, strict=True))
        torch.testing.assert_close(getattr(found, name), wanted, atol=1e-12, rtol=0, check_dtype=False)
    torch.testing.assert_close(found.log_partition, torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)


def test_the_average_of_one_is_that_one() -> None:
    (member,) = chains(1)
    found, tags = average_chain([member], lengths=LENGTHS), member.sample((5,))
    torch.testing.assert_close(found.log_prob(tags), member.log_prob(tags))


def test_no_other_chain_is_nearer_to_the_average() -> None:
    """Cross entropy of the average with a chain, by enumeration: least for ours."""
    members = [LinearChain(m.emissions[:1], m.transitions) for m in chains(2)]
    every = torch.cartesian_prod(*[torch.arange(3)] * 4)[:, None]
    shares = average_log_prob(members, every).exp()
    assert float(shares.sum()) == pytest.approx(1.0)
    ours = average_chain(members)
    least = float((shares * ours.log_prob(every)).sum())
    generator = torch.Generator().manual_seed(1)
    for _ in range(10):
        bent = ours.transitions + 0.1 * torch.randn(ours.transitions.shape, generator=generator, dtype=torch.float64)
        assert float((shares * LinearChain(ours.emissions, bent).log_prob(every)).sum()) < least


def test_votes_count_best_tags() -> None:
    members = chains(4)
    found = average_chain(members, lengths=LENGTHS, voting=True).marginals
    for b, length in enumerate(LENGTHS.tolist()):
        for t in range(length):
            ballots = torch.tensor([int(member.argmax[b, t]) for member in members]).bincount(minlength=3)
            torch.testing.assert_close(found[b, t], ballots.double() / 4)


def lone_tokens() -> tuple[AttributeRows, np.ndarray, Parameters]:
    """Sentences of one token with one attribute: two weights, one for each label."""
    gold = np.array([0, 0, 0, 1, 0, 1])
    rows = AttributeRows(np.ones(6, np.int64), np.arange(7), np.zeros(6, np.int32), np.array([1.0, 2, 1, -1, 0.5, 1]))
    return rows, gold, Parameters.of(rows, gold, 1, 2)


def on_a_grid(rows: AttributeRows, gold: np.ndarray, c2: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of the two weights, and E p(label 0 | an attribute of value 1)."""
    axis = np.linspace(-9, 9, 361)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    log_p = -c2 * (first**2 + second**2)
    for value, label in zip(rows.values if rows.values is not None else (), gold, strict=True):
        log_p -= np.logaddexp(0, value * (second - first) * (1 if label == 0 else -1))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    points = np.stack([first.ravel(), second.ravel()], 1)
    mean = p.ravel() @ points
    return (
        mean,
        (points - mean).T @ (p.ravel()[:, None] * (points - mean)),
        float((p / (1 + np.exp(second - first))).sum()),
    )


@pytest.mark.parametrize(("method", "tolerance"), [("hamiltonian", 0.02), ("laplace", 0.06)])
def test_samples_of_the_posterior_against_a_grid(method: Method, tolerance: float) -> None:
    rows, gold, parameters = lone_tokens()
    mean, covariance, probability = on_a_grid(rows, gold, 0.25)
    config = LearningConfig(c2=0.25, samples=3000, posterior=method, temperature=1.0)
    *_, last = learn(rows, gold, parameters, config)
    assert last.samples is not None
    apart = last.samples[:, 1] - last.samples[:, 0]
    assert np.mean(1 / (1 + np.exp(apart))) == pytest.approx(probability, abs=tolerance)
    if method == "hamiltonian":
        np.testing.assert_allclose(last.samples.mean(0), mean, atol=0.12)
        np.testing.assert_allclose(np.cov(last.samples.T), covariance, atol=0.3)
        far = 5.0  # a value beyond those seen
        optimum = 1 / (1 + np.exp(far * (last.weights[1] - last.weights[0])))
        assert np.mean(1 / (1 + np.exp(far * apart))) < optimum - 0.02, "the optimum is too sure"


def test_curvature_is_the_diagonal_of_the_hessian() -> None:
    random = np.random.default_rng(0)
    lengths = np.array([1, 3, 2, 1])
    rows = AttributeRows(lengths, 2 * np.arange(8), np.arange(14, dtype=np.int32) % 12, random.normal(size=14))
    gold = random.integers(0, 3, 7)  # attributes 0 and 1 occur in the first and in the last sentence, others once
    parameters = Parameters.of(rows, gold, 12, 3, all_states=True)
    weights, likelihood, step = random.normal(size=len(parameters)), Likelihood(rows, gold, parameters), 1e-5
    wanted = [
        (likelihood(weights + step * e)[1] - likelihood(weights - step * e)[1]) @ e / (2 * step)
        for e in np.eye(len(parameters))
    ]
    found = curvature(rows, parameters, weights)
    np.testing.assert_allclose(found[: parameters.n_states], wanted[: parameters.n_states], atol=1e-6)
    assert (found[parameters.n_states :] >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_low_temperature_keeps_near_the_optimum(method: Method) -> None:
    rows, gold, parameters = lone_tokens()
    spreads = []
    for temperature in (1.0, 0.01):
        config = LearningConfig(c2=0.25, samples=400, posterior=method, temperature=temperature)
        *_, last = learn(rows, gold, parameters, config)
        assert last.samples is not None
        spreads.append(float((last.samples - last.weights).std()))
    assert spreads[1] == pytest.approx(0.1 * spreads[0], rel=0.3)


def test_draws_are_repeatable() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    likelihood, mode = Likelihood(rows, gold, parameters), np.zeros(len(parameters))
    curved = curvature(rows, parameters, mode)
    for method in METHODS:
        one, two, other = (Posterior(3, method, seed=seed).draw(likelihood, 1.0, mode, curved) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one, two)
        assert (one != other).any()


def test_the_model_averages_over_its_members() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    samples = np.random.default_rng(0).normal(size=(3, len(parameters)))
    plain = model_of(rows, parameters, samples.mean(0))
    assert averaged_crf(plain, None) is plain
    model = averaged_crf(plain, samples)
    wanted = [np.mean(each, 0) for each in zip(*(member.marginals(rows) for member in model.members), strict=True)]  # type: ignore[attr-defined]
    for found, table in zip(model.marginals(rows), wanted, strict=True):
        np.testing.assert_allclose(found, table, atol=1e-12)
    torch.testing.assert_close(model.chain(rows).marginals[0, 0], torch.from_numpy(wanted[0][0]))


SENTENCES = [
    Sentence(("Ann", "sings"), tags=("B-NP", "B-VP")),
    Sentence(("the", "dog", "barks", "."), tags=("B-NP", "I-NP", "B-VP", "O")),
    Sentence(("dogs", "bark"), tags=("B-NP", "B-VP")),
]  # fmt: skip


@pytest.mark.parametrize("algorithm", ["lbfgs", "herding"])
def test_a_tagger_with_samples_is_saved_whole(algorithm: str, tmp_path: Path) -> None:
    config = LearningConfig(algorithm=algorithm, samples=4, max_iterations=8)  # type: ignore[arg-type]
    tagger = FeatureTagger.fit(SENTENCES, config)
    assert isinstance(tagger.crf, AveragedCRF)
    assert tagger.crf.voting == (algorithm == "herding")
    assert 1 <= len(tagger.crf.samples) <= 4
    tagger.save(tmp_path / "model")
    loaded = FeatureTagger.load(tmp_path / "model")
    assert loaded.tag(SENTENCES) == tagger.tag(SENTENCES) == [list(each.tags or ()) for each in SENTENCES]
    one, two = tagger.confidences(SENTENCES), loaded.confidences(SENTENCES)
    assert one == two
    if algorithm == "lbfgs":
        plain = FeatureTagger.fit(SENTENCES, LearningConfig(max_iterations=8))
        assert plain.confidences(SENTENCES) != one
        assert plain.tag(SENTENCES) == tagger.tag(SENTENCES)


def test_samples_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(SENTENCES, LearningConfig(samples=2, max_iterations=3))
    broken = averaged_crf(tagger.crf, np.ones((2, 3)))
    tagger.crf = broken
    tagger.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"finite weights \(2, "):
        FeatureTagger.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"samples": -1}, "samples must be at least 0; got -1"),
        ({"samples": 3, "algorithm": "pa"}, "samples 3 cannot be combined with algorithm pa"),
        ({"samples": 3, "c2": 0.0}, "c2 must be above 0 for samples"),
        ({"samples": 3, "c1": 1.0}, "samples 3 cannot be combined with c1 1; leave out c1"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"posterior": "guess"}, "laplace, hamiltonian; got 'guess'"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], found: str) -> None:
    with pytest.raises(ScoreError, match=found):
        LearningConfig(**settings)  # type: ignore[arg-type]
