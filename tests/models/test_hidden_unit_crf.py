"""Hidden-unit CRFs over attributes: the kernel against gradients by hand, learning, the tagger around it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from tests.hand_gradients.hidden_units import HiddenUnitParameters, hidden_unit_loss_gradient
from trelliswork.cli.main import run
from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, KeyIndex, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.corpus import builtin_corpus
from trelliswork.errors import DataError, ModelError, ScoreError, TrellisworkError
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.hidden_units.learning import HiddenUnitLearner, Likelihood, _Adam
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters, HiddenUnitCRF, Units
from trelliswork.models.taggers.features.kernels.adam import KEPT_MEAN
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.tagger import FeatureTagger, strongest

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
    *_, last = learner.learn(Corpus(rows, gold), parameters)
    crf = HiddenUnitCRF(("0", "1"), KeyIndex(), parameters, last.weights)
    assert [int(tag) for tags in crf.predict(rows) for tag in tags] == gold.tolist()
    *_, again = learner.learn(Corpus(rows, gold), parameters)
    np.testing.assert_array_equal(again.weights, last.weights)


def test_left_out_attributes_change_what_is_learned_but_not_the_model() -> None:
    rows, gold = corpus()
    plain, thinned = (HiddenUnitLearner(max_epochs=3, dropout=share) for share in (0.0, 0.5))
    *_, a = plain.learn(Corpus(rows, gold), PARAMETERS)
    *_, b = thinned.learn(Corpus(rows, gold), PARAMETERS)
    assert not np.array_equal(a.weights, b.weights)
    assert np.isfinite(b.weights).all()


def test_a_row_is_shrunk_for_the_sentences_it_was_not_in() -> None:
    """With one sentence a batch and no rate to speak of, the L2 slope of a rare row adds up to its share of the sum."""
    units = Units.zeros(2, 1, 1)
    units.w[:] = 1.0
    step = _Adam(units, rate=1.0, n_steps=1000, shrink=0.1)
    gradient, shrinks = Units.zeros(2, 1, 1), []
    for t in range(1, 7):
        touched = np.array([0, 1]) if t % 3 == 0 else np.array([0])
        before = step._means.w[1].copy()
        units.w[:] = 1.0
        step(gradient, touched, 1)
        shrinks.append(float((step._means.w[1] - KEPT_MEAN * before)[0] / (1 - KEPT_MEAN)) if 1 in touched else 0.0)
    np.testing.assert_allclose(shrinks, [0, 0, 0.3, 0, 0, 0.3], atol=1e-6)


# The tagger ----------------------------------------------------------------------------------------

CORPUS = builtin_corpus(sizes=(200, 60, 1))
TRAIN, TEST = ([Sentence(x.words, x.chunks, (x.pos,)) for x in CORPUS[part]] for part in ("train", "dev"))
CONFIG = LearningConfig(hidden_units=16, max_iterations=6, min_count=2)


@pytest.fixture(scope="module")
def tagger() -> FeatureTagger:
    return FeatureTagger.fit(TRAIN, CONFIG)


def test_the_tagger_learns_and_comes_back_from_disk(tagger: FeatureTagger, tmp_path: Path) -> None:
    assert tagger.evaluate(TEST)["score"] > 0.8
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert isinstance(again.crf, HiddenUnitCRF)
    assert again.tag(TEST) == tagger.tag(TEST)
    assert again.confidences(TEST[:3]) == tagger.confidences(TEST[:3])
    best, second = again.analyses([TEST[0]], 2)[0]
    assert best.probability >= second.probability > 0
    assert again.crf.index.find(keys_of(again.names)).tolist() == list(range(len(again.names)))
    assert "16 hidden units" in (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert again.n_parameters == len(again.crf.parameters)


def test_rare_attributes_are_left_out(tagger: FeatureTagger) -> None:
    everything = FeatureTagger.fit(TRAIN, replace(CONFIG, min_count=0, max_iterations=1))
    assert len(tagger.crf.index) < len(everything.crf.index)


def test_bad_input_gets_a_sentence(tagger: FeatureTagger, tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match="hidden_units must be at least 0"):
        LearningConfig(hidden_units=-1)
    with pytest.raises(ScoreError, match="hidden units cannot be combined with algorithm sgd; leave out algorithm"):
        LearningConfig("sgd", hidden_units=5)
    with pytest.raises(ScoreError, match="hidden units cannot be combined with c1 1; leave out c1"):
        LearningConfig(c1=1.0, hidden_units=5)
    with pytest.raises(TrellisworkError, match="pre-training needs hidden units"):
        FeatureTagger.fit(TaggedData(TRAIN[:5], untagged=TRAIN[5:9]))
    with pytest.raises(DataError, match="expected the line B"):
        FeatureTagger.fit(TRAIN[:5], CONFIG, templates=Templates.parse(["U:%x[0,0]"]))
    with pytest.raises(ModelError, match="got hidden units; train with --model crf"):
        tagger.explain(TEST[:1])
    assert list(strongest(tagger, 5)) == []
    tagger.save(tmp_path / "model")
    path = tmp_path / "model" / "weights.safetensors"
    arrays = safetensors.torch.load_file(path)
    arrays["weights"] = arrays["weights"][:-1].clone()
    path.write_bytes(safetensors.torch.save(arrays))
    with pytest.raises(ModelError, match="do not fit"):
        FeatureTagger.load(tmp_path / "model")


def test_the_command_line_trains_and_pretrains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(name: str, sentences: list[Sentence]) -> str:
        lines = ["\n".join(map(" ".join, zip(x.words, *x.features, x.tags or (), strict=True))) for x in sentences]
        (tmp_path / name).write_text("\n\n".join(lines) + "\n")
        return str(tmp_path / name)

    train, dev, more = write("train", TRAIN[:40]), write("dev", TEST[:20]), write("more", TRAIN[40:])
    arguments = ["train", train, "--dev", dev, "--model", "hucrf", "--hidden-units", "8", "--max-iterations", "3"]
    out = str(tmp_path / "out")
    assert run([*arguments, "--feature-columns", "2", "--pretrain", more, "--out", out]) == 0
    said = capsys.readouterr()
    assert "pre-training on the clusters of 160 sentences" in said.err
    assert FeatureTagger.load(out).config.hidden_units == 8
    for command in (["info", out, "--top-features", "3"], ["tag", out, dev, "--confidence"], ["evaluate", out, dev]):
        assert run(command) == 0
    capsys.readouterr()
    assert run(["explain", out, dev]) != 0
    assert "got hidden units" in capsys.readouterr().err
    assert run(["train", train, "--pretrain", more, "--out", str(tmp_path / "other")]) != 0
    assert "leave it out, or add --model hucrf" in capsys.readouterr().err
