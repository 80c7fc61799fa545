"""The scikit-learn estimator: sklearn-crfsuite's interface, and what goes beyond it."""

from __future__ import annotations

import pickle
from itertools import pairwise, product
from math import exp, fsum
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from trelliswork.errors import DataError, ScoreError
from trelliswork.sklearn import CRF

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps", "here"], ["dogs", "bark"], ["the", "old", "cat", "barks"]] * 6
KNOWN = {"the": "D", "a": "D", "old": "A", "barks": "V", "bark": "V", "sleeps": "V", "here": "R"}
X = [[{"w": w, "suffix": w[-1], "length": len(w) / 10, "first": i == 0} for i, w in enumerate(s)] for s in WORDS]
Y = [[KNOWN.get(w, "N") for w in s] for s in WORDS]


@pytest.fixture(scope="module")
def fitted() -> CRF:
    return CRF(c2=0.1, max_iterations=50).fit(X, Y)


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_every_algorithm_learns(algorithm: str) -> None:
    crf = CRF(algorithm=algorithm, max_iterations=30).fit(X, Y, X[:4], Y[:4])
    assert crf.score(X, Y) == 1.0
    assert crf.training_log_[-1]["item_accuracy_float"] == 1.0
    assert len(crf.training_log_) <= 30


def test_predictions_are_an_array_of_lists(fitted: CRF) -> None:
    predicted = fitted.predict(X[:2])
    assert predicted.shape == (2,) and predicted.dtype == object
    assert predicted[0] == ["D", "N", "V"] == fitted.predict_single(X[0])
    assert fitted.predict([X[0], X[0]]).shape == (2, len(X[0]))
    assert fitted.predict([[], X[0]])[0] == []


ODD = [{"w": "dog\0", "new": np.float32(2)}, {}, {"w": ["the", "dog"], "first": True}, {"\ud800": "é"}]


@pytest.mark.parametrize(
    "settings", [{}, {"hash_bits": 10}, {"induce": 3}, {"algorithm": "ap"}, {"all_possible_transitions": True}]
)
def test_a_sentence_alone_is_tagged_as_among_others(settings: dict[str, Any]) -> None:
    lists = [[[f"{name}:{value}" for name, value in token.items()] for token in x] for x in X[:2]]
    text = [[{"w": token["w"], "suffix": token["suffix"]} for token in x] for x in X[:4]]
    for train in (X, [[{"w": word} for word in words] for words in WORDS]):
        crf = CRF(max_iterations=8, **settings).fit(train, Y)
        for each in (*X[:4], *text, *lists, ODD, ODD[:1], ODD[1:2], []):
            assert crf.predict_single(each) == list(crf.predict([each, X[0]])[0])
    with pytest.raises(DataError, match="sentence 1, token 2: expected a finite number for 'length', got NaN"):
        crf.predict_single([{}, {"length": float("nan")}])


def test_marginals_and_k_best_are_those_of_enumeration(fitted: CRF) -> None:
    labels, state, arcs = fitted.classes_, fitted.state_features_, fitted.transition_features_
    sentence = X[1]

    def score(path: tuple[str, ...]) -> float:
        total = fsum(arcs.get(pair, 0.0) for pair in pairwise(path))
        for token, label in zip(sentence, path, strict=True):
            for name, value in token.items():
                key = f"{name}:{value}" if isinstance(value, str) else name
                total += state.get((key, label), 0.0) * (1.0 if isinstance(value, str) else float(value))
        return total

    weights = {path: exp(score(path)) for path in product(labels, repeat=len(sentence))}
    z = fsum(weights.values())
    for i, table in enumerate(fitted.predict_marginals_single(sentence)):
        for label in labels:
            wanted = fsum(w for path, w in weights.items() if path[i] == label) / z
            assert table[label] == pytest.approx(wanted, abs=1e-9)
    ranked = sorted(weights, key=lambda path: -weights[path])[:3]
    ((first, second, third),) = fitted.predict_top_k([sentence], 3)
    assert [tuple(path) for path, _ in (first, second, third)] == ranked
    assert first[1] == pytest.approx(weights[ranked[0]] / z)


def test_votes_add_up_to_the_score(fitted: CRF) -> None:
    (found,) = fitted.explain(X[:1])
    best = fitted.predict_single(X[0])
    assert [each.label for each in found.tokens] == best
    table = fitted.predict_marginals_single(X[0])
    assert [each.probability for each in found.tokens] == pytest.approx(
        [p[y] for p, y in zip(table, best, strict=True)]
    )
    rows = fitted._rows(X[:1])
    ((_, chain),) = fitted._fitted.distributions(rows)
    assert sum(each.score for each in found.tokens) == pytest.approx(float(chain.score(chain.argmax)))
    assert "previous tag = D" in str(found) and "w:dog" in found._repr_html_()


def test_spans_carry_their_probability() -> None:
    y = [["B-NP" if tag == "D" else "I-NP" if tag in "NA" and i else "O" for i, tag in enumerate(row)] for row in Y]
    crf = CRF(max_iterations=30).fit(X, y)
    (((start, end, label, probability),), *_) = crf.span_probabilities(X[:2])
    assert (start, end, label) == (0, 2, "NP")
    assert 0.5 < probability < 1.0


def test_what_was_learned_can_be_read(fitted: CRF) -> None:
    assert fitted.classes_ == ["D", "N", "V", "R", "A"]
    assert {"w:the", "suffix:e", "length", "first"} <= set(fitted.attributes_)
    assert len(fitted.attributes_) == fitted.num_attributes_
    assert fitted.state_features_["w:the", "D"] > 0
    assert fitted.transition_features_["D", "N"] > 0
    assert ("w:the", "V") not in fitted.state_features_
    assert fitted.size_ > 0


def test_options_choose_the_weights() -> None:
    all_states = CRF(all_possible_states=True, max_iterations=5).fit(X, Y)
    assert ("w:the", "V") in all_states.state_features_
    all_arcs = CRF(all_possible_transitions=True, max_iterations=5).fit(X, Y)
    assert len(all_arcs.transition_features_) == 25
    rare = CRF(min_freq=7, max_iterations=5).fit(X, Y)
    assert {attribute for attribute, _ in rare.state_features_ if attribute.startswith("w:")} == {
        "w:the", "w:cat", "w:barks",
    }  # fmt: skip
    sparse = CRF(c1=2.0, c2=0.0).fit(X, Y)
    assert len(sparse.state_features_) < len(CRF(c2=1.0).fit(X, Y).state_features_)


def test_it_can_be_pickled_cloned_and_searched(fitted: CRF) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X[:3]).tolist() == fitted.predict(X[:3]).tolist()
    assert clone(fitted).get_params() == fitted.get_params()
    scores = cross_val_score(CRF(max_iterations=10), X, Y, cv=3)
    assert scores.shape == (3,) and (scores > 0.5).all()
    search = GridSearchCV(CRF(max_iterations=5), {"c2": [0.01, 100.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"c2": 0.01}


def test_bad_input_gets_a_sentence(fitted: CRF) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        CRF().predict(X)
    with pytest.raises(DataError, match="sentence 2: expected 4 labels, one a token; got 3"):
        CRF().fit(X[:2], [Y[0], Y[1][:3]])
    with pytest.raises(DataError, match="expected labels of 2 sentences, got those of 1"):
        CRF().fit(X[:2], Y[:1])
    with pytest.raises(DataError, match="at least one sentence"):
        CRF().fit([], [])
    with pytest.raises(DataError, match="sentence 1, token 1: expected a finite number for 'v', got NaN"):
        CRF().fit([[{"v": float("nan")}]], [["A"]])
    with pytest.raises(ScoreError, match=r"algorithm must be one of lbfgs, l2sgd, ap, pa, arow.*; got 'sgd'"):
        CRF(algorithm="sgd").fit(X, Y)
    with pytest.raises(ScoreError, match="both X_dev and y_dev"):
        CRF().fit(X, Y, X)
    assert fitted.score(X[:1], [["D", "N", "never seen"]]) == pytest.approx(2 / 3)


def test_the_first_weights_are_crfsuites() -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": 0.5, "epsilon": 1e-8, "delta": 1e-10})
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        info = tagger.info()
        crf = CRF(c2=0.5, epsilon=1e-8, delta=1e-10).fit(X, Y)
        assert set(crf.state_features_) >= {key for key, value in info.state_features.items() if abs(value) > 1e-4}
        for key, value in info.state_features.items():
            assert crf.state_features_.get(key, 0.0) == pytest.approx(value, abs=2e-3)
        assert np.mean([tagger.tag(x) == crf.predict_single(x) for x in X]) == 1.0
        tagger.close()


def test_iterators_are_read_once(fitted: CRF) -> None:
    assert fitted.predict(iter(X)).tolist() == fitted.predict(X).tolist()
    assert fitted.predict(iter(s) for s in X).tolist() == fitted.predict(X).tolist()
    assert str(fitted.explain(iter(X[:1]))[0]) == str(fitted.explain(X[:1])[0])


@pytest.mark.parametrize("wrong", [None, [3], [[3]], [{"w": "a"}], ["the dog"], {"w": "a"}])
def test_what_is_no_sentence_is_named(fitted: CRF, wrong: object) -> None:
    with pytest.raises(DataError, match=r"attributes: .*expected .*got"):
        fitted.predict(wrong)


def test_labels_that_are_numbers_are_scored() -> None:
    numbers = [[1, 2]] * 3
    assert CRF().fit([[{"a": 1}, {"b": 1}]] * 3, numbers).score([[{"a": 1}, {"b": 1}]] * 3, numbers) == 1.0


def test_scores_need_as_many_sentences(fitted: CRF) -> None:
    with pytest.raises(DataError, match="expected labels of 24 sentences, got those of 23"):
        fitted.score(X, Y[:-1])


@pytest.mark.parametrize(
    "settings",
    [{"c1": -1.0}, {"c2": -1.0}, {"c2": float("nan")}, {"max_iterations": 0}, {"algorithm": "l2sgd", "c2": 0.0}],
)
def test_settings_that_no_learner_can_use(settings: dict[str, float]) -> None:
    with pytest.raises(ScoreError, match="must be"):
        CRF(**settings).fit(X, Y)


def test_weights_beyond_all_numbers_are_refused() -> None:
    with pytest.raises(ScoreError, match="scale the values"):
        CRF(algorithm="arow", max_iterations=5).fit([[{"a": 1e300}, {"b": -1e8}], [{"a": 1e6}]], [["a", "b"], ["b"]])


def test_lone_surrogates_are_names() -> None:
    assert CRF().fit([[{"\ud800": 1}]], [["a"]]).predict([[{"\ud800": 1}]])[0] == ["a"]


def test_attributes_may_be_hashed_cut_off_or_conjoined() -> None:
    hashed = pickle.loads(pickle.dumps(CRF(hash_bits=12, c2=0.1, max_iterations=30).fit(X, Y)))
    assert hashed.score(X, Y) == 1.0
    assert all(name.startswith("#") for name, _ in hashed.state_features_)
    assert "#" in str(hashed.explain(X[:1])[0])
    cut = CRF(cutoff=7, max_iterations=5).fit(X, Y)
    assert {name for name, _ in cut.state_features_ if name.startswith("w:")} == {"w:the", "w:cat", "w:barks"}
    alike = [[{"first": a, "second": b}] for a in "xyz" for b in "xyz"] * 6
    same = [[str(token["first"] == token["second"])] for (token,) in alike]
    induced = CRF(induce=3, c2=0.1).fit(alike, same)
    assert CRF(c2=0.1).fit(alike, same).score(alike, same) < 1.0
    assert induced.score(alike, same) == 1.0
    assert set(induced.attributes_[6:]) == {"first:x & second:x", "first:y & second:y", "first:z & second:z"}
    with pytest.raises(ScoreError, match="hash_bits must lie in"):
        CRF(hash_bits=99).fit(X, Y)
