"""Hidden-unit CRFs over attributes: the kernel against gradients by hand, learning, the tagger around it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.models.hidden_unit_crf.learning import HiddenUnitLearner
from trelliswork.models.hidden_unit_crf.model import HiddenUnitCRF
from trelliswork.models.hidden_unit_crf.objective import Likelihood
from trelliswork.models.hidden_unit_crf.parameters import HiddenParameters, Units
from trelliswork.training.hidden_unit_gradients import HiddenUnitParameters, hidden_unit_loss_gradient

N_ATTRIBUTES, N_UNITS, N_LABELS = 12, 5, 3


def corpus(seed: int = 0, valued: bool = False) -> tuple[AttributeRows, np.ndarray]:
    """Six random sentences, one of a single token and one empty."""
    random = np.random.default_rng(seed)
    lengths = np.array([4, 1, 0, 6, 2, 3])
    counts = random.integers(0, 5, lengths.sum())
    ids = random.integers(0, N_ATTRIBUTES, counts.sum()).astype(np.int32)
    values = random.normal(size=len(ids)) if valued else None
    rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), ids, values)
    return rows, random.integers(0, N_LABELS, lengths.sum())


def random_units(scale: float, seed: int = 1) -> Units:
    random = np.random.default_rng(seed)
    units = Units.zeros(N_ATTRIBUTES, N_UNITS, N_LABELS)
    return Units(*((random.normal(size=each.shape) * scale).astype(each.dtype) for each in units))


def dense(rows: AttributeRows) -> torch.Tensor:
    x = np.zeros((rows.n_tokens, N_ATTRIBUTES))
    np.add.at(x, (rows.tokens(), rows.ids), 1.0 if rows.values is None else rows.values)
    return torch.from_numpy(x)


def torch_model(units: Units) -> HiddenUnitParameters:
    parts = (units.w.T.astype(np.float64), units.v.T, units.b, units.c, units.transitions, units.start, units.end)
    return HiddenUnitParameters(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))


def model_of(units: Units) -> HiddenUnitCRF:
    labels = tuple(map(str, range(N_LABELS)))
    return HiddenUnitCRF(labels, KeyIndex(), PARAMETERS, units.flat())


PARAMETERS = HiddenParameters.dense(N_ATTRIBUTES, N_LABELS, N_UNITS)
EVERYTHING = np.arange(6)


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("scale", [0.5, 3.0, 60.0])
def test_the_kernel_has_the_gradients_by_hand(valued: bool, scale: float) -> None:
    rows, gold = corpus(valued=valued)
    units, x = random_units(scale), dense(rows)
    likelihood = Likelihood(rows, gold, PARAMETERS)
    loss, touched = likelihood(units, EVERYTHING)
    wanted = Units.zeros(N_ATTRIBUTES, N_UNITS, N_LABELS)
    for first, last in zip(rows.starts, rows.starts[1:], strict=False):
        if first < last:
            one = hidden_unit_loss_gradient(x[first:last], torch_model(units), torch.from_numpy(gold[first:last]))
            parts = (one.w.T, one.b, one.v.T, one.c, one.start, one.end, one.transitions)
            for total, part in zip(wanted, parts, strict=True):
                total += part.numpy()
    for found, value in zip(likelihood.gradient, wanted, strict=True):
        np.testing.assert_allclose(found, value, atol=2e-5 if found.dtype == np.float32 else 1e-6)
    assert sorted(touched) == sorted(set(rows.ids.tolist()))
    assert loss == pytest.approx(loss_by_chain(rows, gold, units), rel=1e-5)


def loss_by_chain(rows: AttributeRows, gold: np.ndarray, units: Units) -> float:
    total = 0.0
    for batch, chain in model_of(units).distributions(rows):
        tags = torch.zeros(chain.emissions.shape[:2], dtype=torch.long)
        for row, s in enumerate(batch):
            tags[row, : rows.lengths[s]] = torch.from_numpy(gold[rows.starts[s] : rows.starts[s + 1]])
        total -= float(chain.log_prob(tags).sum())
    return total


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    rows, gold = corpus()
    units, direction, step = random_units(1.0), random_units(1.0, seed=2), 1e-4
    likelihood = Likelihood(rows, gold, PARAMETERS)
    likelihood(units, EVERYTHING)
    slope = sum(float((g * d).sum()) for g, d in zip(likelihood.gradient[1:], direction[1:], strict=True))
    losses = []
    for sign in (1, -1):
        moved = Units(units.w, *(u + sign * step * d for u, d in zip(units[1:], direction[1:], strict=True)))
        losses.append(Likelihood(rows, gold, PARAMETERS)(moved, EVERYTHING)[0])
    assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(slope, rel=1e-5)


def test_threads_share_the_sentences(worth_splitting: None) -> None:
    rows, gold = corpus()
    units = random_units(1.0)
    shared, alone = Likelihood(rows, gold, PARAMETERS), Likelihood(rows, gold, PARAMETERS)
    loss, touched = shared(units, EVERYTHING)
    assert len(shared._parts) == 2
    torch.set_num_threads(1)
    assert alone(units, EVERYTHING)[0] == pytest.approx(loss)
    for a, b in zip(shared.gradient, alone.gradient, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert sorted(touched) == sorted(set(rows.ids.tolist()))
    assert not shared._parts[1].gradient.w.any()


def test_weights_are_one_vector_and_back() -> None:
    units = random_units(1.0)
    flat = units.flat()
    assert len(flat) == len(PARAMETERS)
    for found, value in zip(PARAMETERS.units(flat), units, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-6)
    np.testing.assert_allclose(PARAMETERS.transitions(flat), units.transitions, rtol=1e-6)


def test_units_learn_what_no_linear_score_can() -> None:
    """The label is the parity of two attributes."""
    random = np.random.default_rng(0)
    on = random.integers(0, 2, (200, 2))
    offsets = np.concatenate([[0], np.cumsum(on.sum(1))])
    rows = AttributeRows(np.full(50, 4), offsets, np.nonzero(on)[1].astype(np.int32))
    gold = on.sum(1) % 2
    parameters = HiddenParameters.dense(2, 2, 8)
    learner = HiddenUnitLearner(l2=0.01, max_epochs=60, rate=0.05)
    *_, last = learner.learn(rows, gold, parameters)
    crf = HiddenUnitCRF(("0", "1"), KeyIndex(), parameters, last.weights)
    assert [int(tag) for tags in crf.predict(rows) for tag in tags] == gold.tolist()
    *_, again = learner.learn(rows, gold, parameters)
    np.testing.assert_array_equal(again.weights, last.weights)
