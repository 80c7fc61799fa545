"""The best-known script written for sklearn-crfsuite runs from its first line to its last with one import changed.

It learns named entities from (word, part of speech, label) tuples, as those of CoNLL-2002, and scores, searches and
prints what was learned. Where sklearn-crfsuite itself is installed, the same script runs with it and the values agree.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import joblib
import scipy.stats
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_score

from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.sklearn import CRF

PEER = "sklearn_crfsuite"
Tagged = list[tuple[str, str, str]]
NAMES = {"PER": ["Ana", "Luis", "Marta", "Iñaki"], "LOC": ["Lima", "Sevilla", "Cádiz"], "ORG": ["EFE", "Telefónica"]}
FRAMES = [
    "{PER} {PER} vive en {LOC} .",
    "La agencia {ORG} informó desde {LOC} .",
    "{ORG} {ORG} contrató a {PER} {PER} .",
    "El partido fue en {LOC} {LOC} , dijo {PER} .",
    "No hubo noticias ayer .",
]
TAGS = {"vive": "VMI", "informó": "VMI", "contrató": "VMI", "fue": "VSI", "dijo": "VMI", "hubo": "VAI", "en": "SP",
        "desde": "SP", "a": "SP", "La": "DA", "El": "DA", "No": "RN", ".": "Fp", ",": "Fc"}  # fmt: skip


def tagged_sentences(n: int, seed: int) -> list[Tagged]:
    rng = random.Random(seed)
    sentences = []
    for _ in range(n):
        sentence: Tagged = []
        for piece in rng.choice(FRAMES).split():
            if piece in ("{PER}", "{LOC}", "{ORG}"):
                kind = piece[1:-1]
                before = sentence[-1][2][2:] if sentence else ""
                word = rng.choice(NAMES[kind]) + rng.choice(["", "", "", "ez"])
                sentence.append((word, "NC", f"{'I' if before == kind else 'B'}-{kind}"))
            else:
                sentence.append((piece, TAGS.get(piece, "NC"), "O"))
        sentences.append(sentence)
    return sentences


# --- the script ------------------------------------------------------------------------------------------------


def word_features(sentence: Tagged, i: int) -> dict[str, Any]:
    word, tag, _ = sentence[i]
    features: dict[str, Any] = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": tag,
        "postag[:2]": tag[:2],
    }
    for name, k in (("-1", i - 1), ("+1", i + 1)):
        if 0 <= k < len(sentence):
            features |= {f"{name}:word.lower()": sentence[k][0].lower(), f"{name}:postag": sentence[k][1]}
        else:
            features["BOS" if k < 0 else "EOS"] = True
    return features


def data(n: int, seed: int) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    sentences = tagged_sentences(n, seed)
    return (
        [[word_features(sentence, i) for i in range(len(sentence))] for sentence in sentences],
        [[label for _, _, label in sentence] for sentence in sentences],
    )


X_TRAIN, Y_TRAIN = data(120, 1)
X_TEST, Y_TEST = data(40, 2)


def script(package: str, n_jobs: int) -> dict[str, Any]:
    """Train, score, search and look inside; return every value that the script prints."""
    sklearn_crfsuite = importlib.import_module(package)
    metrics, scorers = (importlib.import_module(f"{package}.{name}") for name in ("metrics", "scorers"))
    crf = sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True
    )  # fmt: skip
    crf.fit(X_TRAIN, Y_TRAIN)
    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X_TEST)
    by_entity = sorted(labels, key=lambda name: (name[1:], name[0]))
    f1_scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels)
    search = RandomizedSearchCV(
        sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=100, all_possible_transitions=True),
        {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)},
        cv=3, n_jobs=n_jobs, n_iter=4, scoring=f1_scorer, random_state=0,
    ).fit(X_TRAIN, Y_TRAIN)  # fmt: skip
    best = search.best_estimator_
    return {
        "labels": labels,
        "f1": metrics.flat_f1_score(Y_TEST, y_pred, average="weighted", labels=labels),
        "report": metrics.flat_classification_report(Y_TEST, y_pred, labels=by_entity, digits=3),
        "report_dict": metrics.flat_classification_report(Y_TEST, y_pred, output_dict=True),
        "scores": [
            metrics.flat_accuracy_score(Y_TEST, y_pred),
            metrics.flat_precision_score(Y_TEST, y_pred, average="macro"),
            metrics.flat_recall_score(Y_TEST, y_pred, average="micro", labels=labels),
            metrics.flat_fbeta_score(Y_TEST, y_pred, 2, average="weighted"),
            metrics.flat_fbeta_score(Y_TEST, y_pred, beta=0.5, average="macro"),
            metrics.sequence_accuracy_score(Y_TEST, y_pred),
            scorers.flat_accuracy(crf, X_TEST, Y_TEST),
            scorers.sequence_accuracy(crf, X_TEST, Y_TEST),
            *cross_val_score(crf, X_TRAIN, Y_TRAIN, cv=3, scoring=scorers.sequence_accuracy),
        ],
        "best_params": search.best_params_,
        "tried": search.cv_results_["mean_test_score"],
        "best_predicts": best.predict(X_TEST).tolist(),
        "size": f"{best.size_ / 1e6:0.2f}M",
        "transitions": crf.transition_features_,
        "states": crf.state_features_,
        "attributes": set(crf.attributes_),
        "likely": [f"{a:6} -> {b:7} {w:0.6f}" for (a, b), w in Counter(crf.transition_features_).most_common(20)],
        "positive": [f"{w:0.6f} {y:8} {x}" for (x, y), w in Counter(crf.state_features_).most_common(30)],
    }


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return script("trelliswork.sklearn", n_jobs=2)


def test_the_script_runs_to_its_end(ours: dict[str, Any]) -> None:
    assert ours["f1"] > 0.9 and max(ours["tried"]) > 0.9
    assert set(ours["labels"]) == {f"{mark}-{kind}" for mark in "BI" for kind in NAMES}
    rows = [line.split()[0] for line in ours["report"].splitlines() if re.match(r" +[BI]-", line)]
    assert rows == ["B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER"]
    assert len(ours["likely"]) == 20 and ours["likely"][0].count("->") == 1 and len(ours["positive"]) == 30
    assert set(ours["best_params"]) == {"c1", "c2"} and ours["size"].endswith("M")


def test_sklearn_crfsuite_itself_gives_the_same_values(ours: dict[str, Any]) -> None:
    pytest.importorskip(PEER, reason="sklearn-crfsuite is not installed")
    theirs = script(PEER, n_jobs=1)
    assert (ours["labels"], ours["report"], ours["best_predicts"], ours["best_params"]) == (
        theirs["labels"], theirs["report"], theirs["best_predicts"], theirs["best_params"],
    )  # fmt: skip
    assert ours["report_dict"] == theirs["report_dict"]
    assert ours["f1"] == theirs["f1"] and ours["scores"] == theirs["scores"]
    np.testing.assert_array_equal(ours["tried"], theirs["tried"])
    for name in ("states", "transitions"):  # both stop near the one optimum
        pairs = set(ours[name]) | set(theirs[name])
        assert max(abs(ours[name].get(pair, 0) - theirs[name].get(pair, 0)) for pair in pairs) < 0.02
    assert len(ours["attributes"] ^ theirs["attributes"]) <= 0.05 * len(theirs["attributes"])


@pytest.mark.parametrize("module", ["metrics", "scorers"])
def test_every_public_name_of_sklearn_crfsuite_is_there(module: str) -> None:
    pytest.importorskip(PEER, reason="sklearn-crfsuite is not installed")
    theirs = importlib.import_module(f"{PEER}.{module}")
    public = {name for name in vars(theirs) if not name.startswith("_")} - {"np", "wraps"}
    assert public <= set(importlib.import_module(f"trelliswork.sklearn.{module}").__all__)


def test_metrics_agree_with_sklearn_crfsuite_on_ragged_labels() -> None:
    theirs = pytest.importorskip(f"{PEER}.metrics", reason="sklearn-crfsuite is not installed")
    ours = importlib.import_module("trelliswork.sklearn.metrics")
    rng = random.Random(3)
    for _ in range(20):
        lengths = [1, 2, *(rng.randint(0, 5) for _ in range(rng.randint(0, 6)))]
        true, predicted = ([[rng.choice("ABO") for _ in range(n)] for n in lengths] for _ in range(2))
        for names in (
            {"average": "weighted", "labels": ["A", "B"], "zero_division": 1},
            {"average": None, "zero_division": 0},
        ):
            for name in ("flat_precision_score", "flat_recall_score", "flat_f1_score"):
                wanted = getattr(theirs, name)(true, predicted, **names)
                np.testing.assert_array_equal(getattr(ours, name)(true, predicted, **names), wanted)
        for name in ("flat_accuracy_score", "sequence_accuracy_score"):
            assert getattr(ours, name)(true, predicted) == getattr(theirs, name)(true, predicted)
    assert ours.sequence_accuracy_score([], []) == theirs.sequence_accuracy_score([], []) == 0


# --- imports ---------------------------------------------------------------------------------------------------


def test_one_import_is_all_that_changes_and_it_is_light() -> None:
    code = (
        "import sys, trelliswork.sklearn as sklearn_crfsuite\n"
        "heavy = [name for name in ('torch', 'sklearn.metrics') if name in sys.modules]\n"
        "print(heavy, sklearn_crfsuite.CRF.__name__, sklearn_crfsuite.metrics.flat_f1_score.__name__,\n"
        "      type(sklearn_crfsuite.scorers.flat_accuracy).__name__, sklearn_crfsuite.metrics is not None)\n"
        "from trelliswork.sklearn import CRF, metrics, scorers\n"
        "from trelliswork.sklearn_metrics import flat_f1_score\n"
        "assert flat_f1_score is metrics.flat_f1_score\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[0] == "[] CRF flat_f1_score _Scorer True"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Tagger'"):
        importlib.import_module("trelliswork.sklearn").Tagger  # noqa: B018


# --- pickles ---------------------------------------------------------------------------------------------------


def scores_of(crf: CRF) -> Any:
    """Return the scores of all labels and transitions; what is summed over them depends on where arrays lie in memory,
    in its last bit."""
    model = crf._fitted
    return model.emissions(crf._rows(X_TEST)).tolist(), model.parameters.transitions(model.weights).tolist()


@pytest.mark.parametrize(
    "settings", [{"c1": 1.0}, {"c1": 0.0}, {"c1": 0.5, "hash_bits": 12}, {"c1": 0.5, "induce": 10}]
)
def test_a_copy_answers_bit_for_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    crf = CRF(c2=0.01, max_iterations=60, all_possible_transitions=True, **settings).fit(X_TRAIN, Y_TRAIN)
    joblib.dump(crf, tmp_path / "crf.joblib")
    copies = [pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf), joblib.load(tmp_path / "crf.joblib")]
    scores = scores_of(crf)
    for again in copies:
        assert scores_of(again) == scores
        assert again.predict(X_TEST).tolist() == crf.predict(X_TEST).tolist()
        assert again.state_features_ == crf.state_features_ and again.attributes_ == crf.attributes_
        again.fit(X_TEST, Y_TEST)  # a copy learns anew, and leaves the original alone
        assert again.num_attributes_ != crf.num_attributes_ or "hash_bits" in settings
    assert scores_of(crf) == scores
    assert clone(crf).classes_ is None and clone(crf).get_params() == crf.get_params()


def test_a_pickle_has_no_attribute_without_weight_and_nothing_that_answers_left() -> None:
    noisy = [[token | {"id": f"{s}.{i}"} for i, token in enumerate(tokens)] for s, tokens in enumerate(X_TRAIN)]
    sparse, dense = (CRF(c1=c1, c2=0.01, max_iterations=50).fit(noisy, Y_TRAIN) for c1 in (2.0, 0.0))
    assert {name for name, _ in sparse.state_features_ or ()} == set(sparse.attributes_ or ())
    size = len(pickle.dumps(sparse))
    assert size < 0.4 * len(pickle.dumps(dense))
    sparse.predict_marginals(X_TEST)
    assert sparse.tagger_ is not None and len(pickle.dumps(sparse)) == size


def test_leaving_out_weights_of_zero_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    small = CRF(c1=1.0, c2=0.01, max_iterations=60).fit(X_TRAIN, Y_TRAIN)
    everything = np.arange(10**6)
    monkeypatch.setattr(FeatureCRF, "without_zeros", lambda self: (self, everything[: len(self.index)]))
    whole = CRF(c1=1.0, c2=0.01, max_iterations=60).fit(X_TRAIN, Y_TRAIN)
    assert len(small.attributes_ or ()) < len(whole.attributes_ or ())
    assert small.state_features_ == pytest.approx(whole.state_features_, rel=1e-9)
    whole._take(*_same_weights(whole, small))
    assert scores_of(small) == scores_of(whole)


def _same_weights(whole: CRF, small: CRF) -> tuple[Any, Any]:
    """Return the whole model with the weights of the small one: two fits differ in their last bits."""
    model, weights = whole._fitted, whole._fitted.weights.copy()
    weights[weights != 0] = small._fitted.weights[small._fitted.weights != 0]
    return replace(model, weights=weights), whole._names
