"""Cutoffs and hashing: which attributes a model has, and what it then takes on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch

from tests.models.test_feature_crf import corpus
from tests.models.test_feature_tagger import TEST, TRAIN
from trelliswork.data.attributes import HashedIndex, Templates
from trelliswork.errors import DataError, ModelError, ScoreError
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.tagger import FeatureTagger, strongest

HASHED = LearningConfig(hash_bits=16)


@pytest.fixture(scope="module")
def hashed() -> FeatureTagger:
    return FeatureTagger.fit(TRAIN, HASHED)


def test_hashing_keeps_the_score_and_no_names(hashed: FeatureTagger, tmp_path: Path) -> None:
    exact = FeatureTagger.fit(TRAIN)
    assert hashed.evaluate(TEST)["score"] > exact.evaluate(TEST)["score"] - 0.01
    hashed.save(tmp_path / "hashed")
    exact.save(tmp_path / "exact")
    assert not (tmp_path / "hashed" / "attributes.txt").exists()
    again = FeatureTagger.load(tmp_path / "hashed")
    assert again.confidences(TEST[:5]) == hashed.confidences(TEST[:5])
    assert all(name.startswith("#") for _, name, _ in strongest(again, 5))
    assert "#" in str(again.explain(TEST[:1])[0])


def test_without_collisions_hashing_changes_nothing() -> None:
    templates = Templates.parse(["U:%x[0,1]", "B"])  # few attributes
    exact, hashed = (
        FeatureTagger.fit(TRAIN[:50], LearningConfig(hash_bits=bits), templates=templates) for bits in (None, 20)
    )
    assert len(exact.crf.weights) == len(hashed.crf.weights)
    for ours, theirs in zip(exact.confidences(TEST), hashed.confidences(TEST), strict=True):
        assert ours.tags == theirs.tags
        assert ours.tokens == pytest.approx(theirs.tokens, abs=1e-4)


def test_the_size_of_a_hashed_model_is_bounded() -> None:
    small = FeatureTagger.fit(TRAIN, LearningConfig(hash_bits=6))
    assert len(small.crf.index) == 64
    assert small.crf.parameters.n_states <= 64 * len(small.labels.vocabulary)
    assert len(small.tag(TEST[:1])[0]) == len(TEST[0])


def test_hashed_arrays_that_do_not_fit_are_refused(hashed: FeatureTagger, tmp_path: Path) -> None:
    hashed.save(tmp_path / "model")
    path = tmp_path / "model" / "weights.safetensors"
    arrays = safetensors.torch.load_file(path)
    arrays["n_weights"][:5] += 1
    safetensors.torch.save_file(arrays, path)
    with pytest.raises(ModelError, match=r"do not fit .*copy it again"):
        FeatureTagger.load(tmp_path / "model")


def test_pairs_of_conjunctions_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(TRAIN[:50], LearningConfig(induce=5, max_iterations=10))
    tagger.save(tmp_path / "model")
    path = tmp_path / "model" / "weights.safetensors"
    arrays = safetensors.torch.load_file(path)
    assert len(arrays["conjunctions"]) > 0
    arrays["conjunctions"].fill_(10**8)
    safetensors.torch.save_file(arrays, path)
    with pytest.raises(ModelError, match=r"do not fit .*copy it again"):
        FeatureTagger.load(tmp_path / "model")


def test_cutoff_counts_attributes_and_min_count_pairs() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    occurs = np.bincount(rows.ids, minlength=40)
    common = parameters.common(rows, 5)
    assert np.unique(common.owners()).tolist() == np.flatnonzero(occurs >= 5).tolist()
    assert len(common.arcs) == len(parameters.arcs)
    for a in np.flatnonzero(occurs >= 5):  # with all the labels that they had
        assert np.diff(common.offsets)[a] == np.diff(parameters.offsets)[a]
    frequent = parameters.frequent(rows, gold, 5)
    pairs = np.zeros((40, 3), np.int64)
    np.add.at(pairs, (rows.ids, gold[rows.tokens()]), 1)
    assert set(zip(frequent.owners().tolist(), frequent.labels.tolist(), strict=True)) == {
        (int(a), int(y)) for a, y in np.argwhere(pairs >= 5)
    }


def test_rare_transitions_go_with_min_count_as_in_crfsuite(tmp_path: Path) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from trelliswork.sklearn import CRF

    x = [[{"a": 1}, {"b": 1}, {"c": 2.5}]] * 4 + [[{"b": 1}, {"a": 1}]] * 2
    y = [["A", "B", "B"]] * 4 + [["B", "A"]] * 2
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"feature.minfreq": 3, "c2": 1.0})
    for items, labels in zip(x, y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    theirs, ours = tagger.info(), CRF(min_freq=3, c2=1.0).fit(x, y)
    assert ours.transition_features_.keys() == theirs.transitions.keys() == {("A", "B"), ("B", "B")}
    assert ours.state_features_ == pytest.approx(theirs.state_features, abs=1e-3)
    tagger.close()


def test_a_cutoff_makes_the_model_smaller() -> None:
    exact, cut = FeatureTagger.fit(TRAIN), FeatureTagger.fit(TRAIN, LearningConfig(cutoff=3))
    assert len(cut.names) < len(exact.names) / 2
    assert cut.evaluate(TEST)["score"] > 0.8


@pytest.mark.parametrize("wrong", [{"cutoff": -1}, {"induce": -1}, {"hash_bits": 0}, {"hash_bits": 40}])
def test_settings_that_make_no_attributes(wrong: dict[str, int]) -> None:
    with pytest.raises(ScoreError, match="must"):
        LearningConfig(**wrong)


def test_templates_name_their_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "chunk.template"
    path.write_text("# words\nU1:%x[0,0]\n\nU2:%x[0,1]\nU3:%x[-1,4]\nB\n")
    with pytest.raises(
        DataError, match=r"chunk\.template:5: U3:%x\[-1,4\] asks for column 4; the data has columns 0..1"
    ):
        FeatureTagger.fit(TRAIN, templates=Templates.read(path))
    path.write_text("U1:%x[0,0]\nU2:%x[0,0.upper]\n")
    with pytest.raises(DataError, match=r"chunk\.template:2: expected lower, shape, .* got 'upper'"):
        Templates.read(path)
    tagger = FeatureTagger.fit(TRAIN[:20], LearningConfig(max_iterations=2))
    bare = [type(each)(each.words, file="new.txt") for each in TEST[:2]]
    with pytest.raises(
        DataError, match=r"new\.txt: the model's template U100:%x\[-2,1\] asks for column 1; the data has"
    ):
        tagger.tag(bare)


def test_hashed_numbers_do_not_depend_on_the_data(hashed: FeatureTagger) -> None:
    assert isinstance(hashed.crf.index, HashedIndex)
    other = FeatureTagger.fit(TRAIN[:50], HASHED)
    assert hashed.rows(TEST[:3]).ids.tolist() == other.rows(TEST[:3]).ids.tolist()


def test_hashed_attributes_cannot_look_at_neighbouring_labels() -> None:
    templates = Templates.parse(["U1:%x[0,0]", "B", "B1:%x[0,1]"])
    with pytest.raises(ScoreError, match="hash_bits needs templates that look at single tags"):
        FeatureTagger.fit(TRAIN[:20], LearningConfig(hash_bits=18), templates=templates)


def test_attributes_of_neighbouring_labels_are_not_conjoined(tmp_path: Path) -> None:
    templates = Templates.parse(["U1:%x[0,0]", "U2:%x[0,1]", "U3:%x[-1,1]", "B", "B1:%x[0,1]"])
    config = LearningConfig(induce=5, cutoff=2, c2=0.1)
    tagger = FeatureTagger.fit(TRAIN[:100], config, templates=templates, features=lambda s: [[w[-1]] for w in s.words])
    parameters = tagger.crf.parameters
    assert parameters.pairs is not None and len(tagger.crf.conjunctions) > 0
    on_pairs = np.flatnonzero(np.diff(parameters.pairs.offsets))
    assert len(on_pairs) > 0 and not np.isin(tagger.crf.conjunctions.pairs, on_pairs).any()
    assert all(tagger.names[i].startswith("B1:") for i in on_pairs)
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model", features=lambda s: [[w[-1]] for w in s.words])
    assert again.confidences(TEST[:5]) == tagger.confidences(TEST[:5])


def test_conjunctions_with_unknown_tags() -> None:
    hidden = [replace(each, tags=("?", *(each.tags or ())[1:])) for each in TRAIN[:100]]
    tagger = FeatureTagger.fit(TaggedData(hidden, partial=True), LearningConfig(induce=5, c2=0.1, min_count=2))
    assert tagger.evaluate(TEST)["score"] > 0.6
