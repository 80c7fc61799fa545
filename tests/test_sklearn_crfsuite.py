"""The estimator against CRFsuite itself, where it is installed, and as a drop-in for sklearn-crfsuite."""

from __future__ import annotations

import inspect
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn import metrics
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.validation import check_is_fitted

from tests.test_sklearn import X, Y
from trelliswork import sklearn_metrics
from trelliswork.data.crfsuite import read_crfsuite_model
from trelliswork.errors import DataError, ModelError, OutputError, ScoreError
from trelliswork.models import load_tagger
from trelliswork.sklearn import CRF
from trelliswork.sklearn_metrics import flat_f1_score

# As sklearn-crfsuite 0.5.0 has them, in its order.
ARGUMENTS = [
    "algorithm", "min_freq", "all_possible_states", "all_possible_transitions", "c1", "c2", "max_iterations",
    "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "calibration_eta", "calibration_rate",
    "calibration_samples", "calibration_candidates", "calibration_max_trials", "pa_type", "c", "error_sensitive",
    "averaging", "variance", "gamma", "verbose", "model_filename", "keep_tempfiles", "trainer_cls",
]  # fmt: skip
ALGORITHMS = {
    "lbfgs": {"c1": 0.1, "c2": 0.1, "num_memories": 4, "epsilon": 1e-4, "period": 5, "delta": 1e-4,
              "linesearch": "Backtracking", "max_linesearch": 10},
    "l2sgd": {"c2": 0.1, "period": 5, "delta": 1e-4, "calibration_eta": 0.2, "calibration_rate": 3.0,
              "calibration_samples": 10, "calibration_candidates": 3, "calibration_max_trials": 5},
    "ap": {"epsilon": 0.01},
    "pa": {"epsilon": 0.01, "pa_type": 2, "c": 0.5, "error_sensitive": False, "averaging": False},
    "arow": {"epsilon": 0.01, "variance": 0.5, "gamma": 0.8},
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> CRF:
    return CRF(c2=0.1, max_iterations=40).fit(X, Y)


def crfsuite(folder: Path, **settings: Any) -> Any:
    """A model that CRFsuite trains on the same data."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = pycrfsuite.Trainer(algorithm=settings.pop("algorithm", "lbfgs"), verbose=False)
    trainer.set_params(settings)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(str(folder / "model.crfsuite"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model.crfsuite"))
    return tagger


# --- the constructor -------------------------------------------------------------------------------------------


def test_the_arguments_are_those_of_sklearn_crfsuite() -> None:
    names = list(inspect.signature(CRF).parameters)
    assert names[: len(ARGUMENTS)] == ARGUMENTS
    assert CRF("pa", 2.0).get_params()["min_freq"] == 2.0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_setting_of_every_algorithm_is_taken(algorithm: str) -> None:
    crf = CRF(algorithm, max_iterations=20, **ALGORITHMS[algorithm]).fit(X, Y)
    assert crf.score(X, Y) > 0.9
    assert set(ALGORITHMS[algorithm]) <= set(crf.get_params())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_settings_of_other_algorithms_are_refused_as_crfsuite_refuses_them(algorithm: str) -> None:
    for other, settings in ALGORITHMS.items():
        for name, value in settings.items():
            if name not in ALGORITHMS[algorithm]:
                with pytest.raises(
                    ScoreError, match=f"{name} is not a setting of the algorithm {algorithm}; .*{other}"
                ):
                    CRF(algorithm, **{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"linesearch": "Armijo"}, "linesearch must be one of MoreThuente"),
        ({"algorithm": "pa", "pa_type": 3}, "pa_type must be 0, 1 or 2; got 3"),
        ({"max_iterations": 2.5}, "max_iterations must be a whole number; got 2.5"),
        ({"c2": "1"}, "c2 must be a number; got '1'"),
        ({"num_memories": 0}, "num_memories must be at least 1"),
        ({"epsilon": float("nan")}, "epsilon must be at least 0 and finite; got nan"),
        ({"min_freq": -1}, "min_freq must be at least 0"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScoreError, match=problem):
        CRF(**settings).fit(X, Y)


def test_what_has_no_meaning_here_is_accepted() -> None:
    plain, told = CRF(max_iterations=5), CRF(max_iterations=5, keep_tempfiles=True, trainer_cls=dict)
    # up to rounding: the last bit of a gradient depends on where arrays lie in memory
    assert told.fit(X, Y).state_features_ == pytest.approx(plain.fit(X, Y).state_features_, rel=1e-12)


# --- before fit ------------------------------------------------------------------------------------------------


def test_before_fit_there_is_nothing() -> None:
    crf = CRF()
    names = "tagger_ classes_ size_ num_attributes_ attributes_ state_features_ transition_features_ training_log_"
    assert [getattr(crf, name) for name in names.split()] == [None] * 8
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(crf)
    check_is_fitted(CRF(max_iterations=1).fit(X, Y))


# --- the log ---------------------------------------------------------------------------------------------------


def test_the_log_is_crfsuites(tmp_path: Path) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": 0.5})
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    dev = [X[0], X[1]], [["D", "N", "N"], Y[1]]
    for x, y in zip(*dev, strict=True):
        trainer.append(x, y, 1)
    trainer.train(str(tmp_path / "model"), holdout=1)
    theirs = trainer.logparser
    ours = CRF(c2=0.5).fit(X, Y, *dev).training_log_
    assert ours is not None and ours.last_iteration is ours.iterations[-1] is ours[-1]
    assert ours.featgen_num_features == theirs.featgen_num_features
    assert ours[-1]["loss"] == pytest.approx(theirs.last_iteration["loss"], rel=1e-4)
    assert ours[-1]["active_features"] == theirs.last_iteration["active_features"]
    for name in ("avg_precision", "avg_recall", "avg_f1", "item_accuracy_float", "instance_accuracy_float"):
        assert ours[-1][name] == pytest.approx(theirs.last_iteration[name], abs=1e-5), name
    for label, score in theirs.last_iteration["scores"].items():
        assert ours[-1]["scores"][label][:3] == score[:3]


def test_verbose_prints_a_line_an_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    CRF(max_iterations=3, verbose=True).fit(X, Y, X[:3], Y[:3])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Number of features: ")
    assert [line.split()[:2] for line in lines if line.startswith("Iter")] == [["Iter", str(i)] for i in (1, 2, 3)]
    assert all(name in "\n".join(lines) for name in ("loss=", "active=", "F1=", "Acc(item/seq)=", "feature_norm="))
    assert any(line.split() == ["Label", "Precision", "Recall", "F1", "Support"] for line in lines)
    CRF(max_iterations=3).fit(X, Y)
    assert capsys.readouterr().out == ""


# --- CRFsuite's models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
def test_a_model_of_crfsuite_answers_as_crfsuite_does(algorithm: str, tmp_path: Path) -> None:
    theirs = crfsuite(tmp_path, algorithm=algorithm)
    theirs.dump(str(tmp_path / "dump"))
    for file, precision in (("model.crfsuite", 1e-9), ("dump", 1e-4)):
        ours = CRF.from_crfsuite(tmp_path / file)
        assert ours.classes_ == theirs.labels()
        for x in X[:4]:
            assert ours.predict_single(x) == theirs.tag(x)
            theirs.set(x)
            for i, table in enumerate(ours.predict_marginals_single(x)):
                wanted = {label: theirs.marginal(label, i) for label in theirs.labels()}
                assert table == pytest.approx(wanted, abs=precision)
    theirs.close()


def test_model_filename_takes_a_model_of_crfsuite_and_does_not_write_over_it(tmp_path: Path) -> None:
    crfsuite(tmp_path).close()
    crf = CRF(model_filename=str(tmp_path / "model.crfsuite"))
    assert crf.score(X, Y) == 1.0
    with pytest.raises(OutputError, match="expected a folder for the model, got a file"):
        crf.fit(X, Y)


def test_min_freq_cuts_pairs_of_labels_too(tmp_path: Path) -> None:
    theirs = crfsuite(tmp_path, **{"feature.minfreq": 7})
    info = theirs.info()
    ours = CRF(min_freq=7).fit(X, Y)
    assert set(ours.state_features_ or ()) == set(info.state_features)
    assert set(ours.transition_features_ or ()) == set(info.transitions)
    theirs.close()


# --- the tagger ------------------------------------------------------------------------------------------------


def test_the_tagger_has_the_methods_of_pycrfsuite(fitted: CRF, tmp_path: Path) -> None:
    tagger = fitted.tagger_
    assert tagger is not None and tagger is fitted.tagger_
    best = tagger.tag(X[0])
    assert best == fitted.predict_single(X[0])
    ((_, probability),) = fitted.predict_top_k([X[0]], 1)[0]
    assert tagger.probability(best) == pytest.approx(probability)
    assert tagger.marginal("D", 0) == pytest.approx(fitted.predict_marginals_single(X[0])[0]["D"])
    assert tagger.labels() == fitted.classes_
    assert tagger.info().state_features == fitted.state_features_
    assert tagger.info().transitions == fitted.transition_features_
    tagger.dump(tmp_path / "dump")
    assert read_crfsuite_model(tmp_path / "dump").attributes == fitted.attributes_
    again = CRF.from_crfsuite(tmp_path / "dump")
    assert again.predict(X).tolist() == fitted.predict(X).tolist()


def test_the_tagger_explains_bad_input(fitted: CRF) -> None:
    tagger = CRF(max_iterations=2).fit(X, Y).tagger_
    assert tagger is not None
    with pytest.raises(DataError, match=r"call set\(xseq\) first"):
        tagger.tag()
    tagger.set(X[0])
    with pytest.raises(DataError, match="expected one of D, N, V, R, A, got 'Q'"):
        tagger.marginal("Q", 0)
    with pytest.raises(DataError, match=r"expected a token in 0..2, got 3"):
        tagger.marginal("D", 3)
    with pytest.raises(DataError, match="expected 3 labels, one a token; got 1"):
        tagger.probability(["D"])


# --- model_filename and pickles ----------------------------------------------------------------------------------


def test_model_filename_is_written_and_read(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    crf = CRF(c2=0.1, max_iterations=30, model_filename=folder)
    with pytest.raises(ValueError, match="there is no model in"):
        crf.predict(X)
    crf.fit(X, Y)
    again = CRF(model_filename=str(folder))
    assert again.predict(X).tolist() == crf.predict(X).tolist()
    assert (again.classes_, again.attributes_) == (crf.classes_, crf.attributes_)
    assert again.state_features_ == pytest.approx(crf.state_features_, abs=1e-6)
    assert clone(crf).score(X, Y) == 1.0  # a clone has the name, as in sklearn-crfsuite
    kept = [pickle.loads(pickle.dumps(each)) for each in (crf, again, CRF(model_filename=folder))]
    assert [each.score(X, Y) for each in kept] == [1.0] * 3
    assert type(load_tagger(folder)).__name__ == "AttributeTagger"
    shutil.rmtree(folder)
    assert kept[0].score(X, Y) == 1.0  # the pickle has the model itself


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    CRF(max_iterations=2, model_filename=folder).fit(X, Y)
    (folder / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="truncated or not safetensors"):
        CRF(model_filename=folder).predict(X)


def test_it_fits_again(fitted: CRF) -> None:
    crf = CRF(max_iterations=5).fit(X, Y)
    first = crf.tagger_
    crf.fit(X[:2], [["x"] * len(y) for y in Y[:2]])
    assert crf.classes_ == ["x"] and crf.tagger_ is not first


# --- scikit-learn's own tools --------------------------------------------------------------------------------------


def test_scores_over_flat_labels() -> None:
    scorer = make_scorer(flat_f1_score, average="weighted")
    scores = cross_val_score(CRF(max_iterations=10), X, Y, cv=3, scoring=scorer)
    assert scores.shape == (3,) and (scores > 0.5).all()
    found = cross_val_predict(CRF(max_iterations=10), X, Y, cv=3)
    assert [len(labels) for labels in found] == [len(y) for y in Y]
    search = RandomizedSearchCV(CRF(max_iterations=5), {"c1": [0.0, 0.1], "c2": [0.01, 1.0]}, n_iter=2, cv=2)
    assert search.fit(X, Y).best_estimator_.score(X, Y) > 0.9


def test_the_metrics_of_sklearn_crfsuite() -> None:
    true, found = [["A", "B"], ["A"]], np.array([["A", "A"], ["A"]], dtype=object)
    flat = ["A", "B", "A"], ["A", "A", "A"]
    assert sklearn_metrics.flat_accuracy_score(true, found) == pytest.approx(2 / 3)
    assert sklearn_metrics.sequence_accuracy_score(true, found) == 0.5
    options: dict[str, Any] = {"average": "macro", "zero_division": 0}
    for name in ("precision_score", "recall_score", "f1_score"):
        ours, theirs = getattr(sklearn_metrics, f"flat_{name}"), getattr(metrics, name)
        assert ours(true, found, **options) == theirs(*flat, **options)
    assert sklearn_metrics.flat_fbeta_score(true, found, 2, **options) == metrics.fbeta_score(*flat, beta=2, **options)
    assert "macro avg" in sklearn_metrics.flat_classification_report(true, found, labels=["A", "B"], zero_division=0)
    with pytest.raises(DataError, match="expected labels of 2 sentences, got those of 1"):
        flat_f1_score(true, [["A", "B"]])
    with pytest.raises(DataError, match="sentence 2: expected 1 labels, one a token; got 2"):
        flat_f1_score(true, [["A", "B"], ["A", "A"]])


# --- input of every kind -------------------------------------------------------------------------------------------


def test_arrays_and_generators_are_sentences() -> None:
    y = [np.array(each) for each in Y]
    x = np.empty(len(X), object)
    x[:] = X
    crf = CRF(max_iterations=20).fit(x, y)
    assert crf.score((list(s) for s in X), (each for each in Y)) == 1.0
    assert crf.classes_ == CRF(max_iterations=2).fit(iter(X), iter(Y)).classes_


def test_labels_come_back_as_they_were_given() -> None:
    numbers = [[len(label) + ord(label) for label in y] for y in Y]
    for y in (numbers, [np.array(each) for each in numbers]):
        crf = CRF(max_iterations=20).fit(X, y)
        found = crf.predict(X)
        assert found.tolist() == numbers and all(type(label) is int for label in found[0])
        assert set(crf.classes_ or ()) == set(crf.predict_marginals_single(X[0])[0]) == {n for y in numbers for n in y}
        assert crf.score(X, y) == 1.0
        assert all(type(label) is int for _, label in crf.state_features_ or ())


class Frame:
    """What a table of pandas looks like from outside."""

    columns = ("word", "tag")

    def to_dict(self, orient: str) -> list[dict[str, str]]:
        return []

    def __iter__(self) -> Any:
        return iter(self.columns)


@pytest.mark.parametrize(
    ("x", "problem"),
    [
        (Frame(), "expected a list of sentences, got a Frame; group it"),
        (np.zeros((2, 3, 4)), "expected a dict or a list of names for each token, got an array of float64"),
        ([[[1.0, 2.0]]], "sentence 1, token 1: expected names of attributes, got the number 1.0"),
        ([np.zeros((2, 3))], "sentence 1, token 1: expected names of attributes, got the number 0.0"),
        ([[{"a": None}]], "expected text, a number, a truth value or a list at 'a', got NoneType"),
        ([[{"a": float("inf")}]], "sentence 1, token 1: expected a finite number for 'a', got an infinite value"),
    ],
)
def test_what_is_no_sentence(fitted: CRF, x: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        fitted.predict(x)


@pytest.mark.parametrize(
    ("y", "problem"),
    [
        (None, "expected a list of labels for each sentence, got NoneType"),
        ("DNV", "expected a list of labels for each sentence, got str"),
        (["DNV"], "sentence 1: expected a list of labels, got str"),
        ([["D", float("nan"), "V"]], "sentence 1, token 2: expected text or a whole number as label, got nan"),
        ([["D", "N"]], "sentence 1: expected 3 labels, one a token; got 2"),
        ([], "expected labels of 1 sentences, got those of 0"),
    ],
)
def test_what_are_no_labels(fitted: CRF, y: Any, problem: str) -> None:
    for call in (CRF().fit, fitted.score):
        with pytest.raises(DataError, match=problem):
            call(X[:1], y)


def test_unknown_labels_cannot_be_scored(fitted: CRF) -> None:
    with pytest.raises(DataError, match="sentence 1, token 2: expected text or a whole number as label, got None"):
        fitted.score(X[:1], [["D", None, "V"]])
    with pytest.raises(DataError, match="sentence 1, token 1: expected at least one label in a set of them"):
        CRF().fit(X[:1], [[set(), "N", "V"]])


def test_empty_sentences_have_empty_answers(fitted: CRF) -> None:
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict([[], X[0]])[0] == [] and fitted.predict_marginals([[]])[0] == []
    assert fitted.predict_top_k([[]], 2) == [[([], 1.0)]]
    assert fitted.span_probabilities([[]]) == [[]]
    assert fitted.score([[]], [[]]) == 0.0
    assert CRF(max_iterations=5).fit([[], *X], [[], *Y]).predict_single(X[0]) == Y[0]
    with pytest.raises(DataError, match="at least one sentence with a token"):
        CRF().fit([[]], [[]])


def test_tokens_without_known_attributes_are_tagged(fitted: CRF) -> None:
    assert len(fitted.predict_single([{}, {"never": "seen"}, []])) == 3


def test_explanations_name_the_words(fitted: CRF) -> None:
    (found,) = fitted.explain(X[:1], [["the", "dog", "barks"]])
    assert [each.token for each in found.tokens] == ["the", "dog", "barks"]
    with pytest.raises(DataError, match="expected a word for each token"):
        fitted.explain(X[:1], [["the"]])


@pytest.mark.parametrize("k", [0, -1, 1.5, None])
def test_k_must_be_a_number_of_sequences(fitted: CRF, k: Any) -> None:
    with pytest.raises(ScoreError, match="k must be a whole number of at least 1"):
        fitted.predict_top_k(X[:1], k)


def test_any_name_of_an_attribute_can_be_saved(tmp_path: Path) -> None:
    x = [[{"\ud800": 1}, {"a\nb": 1}, {"tab\tand #": 1}]] * 3
    CRF(model_filename=tmp_path / "model").fit(x, [["A", "B", "C"]] * 3)
    assert CRF(model_filename=tmp_path / "model").predict(x)[0].tolist() == ["A", "B", "C"]
