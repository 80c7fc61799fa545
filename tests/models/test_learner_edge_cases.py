"""Every learner on corpora at the edge, the same again for the same seed, and CRFsuite's own steps on one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import ALGORITHMS, COMBINATIONS, Algorithm, LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn
from trelliswork.models.taggers.features.learners.online import OnlineLearner, Rule

ONE = AttributeRows(
    np.array([4]), np.array([0, 2, 4, 5, 7]), np.array([0, 1, 0, 2, 1, 2, 3], np.int32),
    np.array([1.0, -0.5, 1.0, 2.0, 1.0, 1.0, 0.0]),
)  # fmt: skip
GOLD = np.array([0, 1, 0, 2])


def lone_tokens() -> AttributeRows:
    return AttributeRows(np.ones(4, np.int64), ONE.offsets, ONE.ids, ONE.values)


def bare_tokens() -> AttributeRows:
    return AttributeRows(np.array([0, 3, 0, 1]), np.zeros(5, np.int64), np.empty(0, np.int32))


CORPORA = {
    "one sentence": (ONE, GOLD, 3),
    "one label": (ONE, np.zeros(4, np.int64), 1),
    "sentences of one token, no transition seen": (lone_tokens(), GOLD, 3),
    "no attributes, empty sentences": (bare_tokens(), GOLD, 3),
    "values of 0 alone": (AttributeRows(ONE.lengths, ONE.offsets, ONE.ids, np.zeros(7)), GOLD, 3),
    "negative values": (AttributeRows(ONE.lengths, ONE.offsets, ONE.ids, -np.ones(7)), GOLD, 3),
}


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_learners_live_through_the_edges(algorithm: Algorithm, name: str) -> None:
    rows, gold, n_labels = CORPORA[name]
    parameters = Parameters.of(rows, gold, 4, n_labels)
    config = LearningConfig(algorithm=algorithm, max_iterations=6)
    weights = [np.zeros(len(parameters))]
    for progress in learn(rows, gold, parameters, config):
        assert np.isfinite(progress.loss)
        assert np.isfinite(progress.weights).all() and progress.weights.shape == (len(parameters),)
        weights.append(progress.weights)
    if name == "values of 0 alone":
        assert not weights[-1][: parameters.n_states].any(), "what is always 0 teaches nothing"
    again = [progress.weights for progress in learn(rows, gold, parameters, config)]
    np.testing.assert_array_equal(np.array(weights[1:]), np.array(again))


@pytest.mark.parametrize(
    ("rule", "settings", "theirs"),
    [
        ("perceptron", {}, ("ap", {})),
        ("pa", {}, ("pa", {"type": 0})),
        ("pa-1", {}, ("pa", {"type": 1})),
        ("pa-2", {}, ("pa", {"type": 2})),
        ("pa-1", {"error_sensitive": False}, ("pa", {"error_sensitive": False})),
        ("pa-1", {"averaging": False}, ("pa", {"averaging": False})),
        ("arow", {}, ("arow", {})),
        ("arow", {"variance": 2.0, "aggressiveness": 0.5}, ("arow", {"variance": 2.0, "gamma": 0.5})),
    ],
)
@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_steps_are_those_of_crfsuite(
    rule: Rule, settings: dict[str, Any], theirs: tuple[str, dict[str, Any]], epochs: int, tmp_path: Path
) -> None:
    """With one sentence there is no order to draw: every step can be compared."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    parameters = Parameters.of(ONE, GOLD, 4, 3)
    *_, last = OnlineLearner(rule, max_epochs=epochs, **settings).learn(Corpus(ONE, GOLD), parameters)
    algorithm, options = theirs
    trainer = pycrfsuite.Trainer(algorithm, options | {"max_iterations": epochs}, verbose=False)
    values = ONE.values if ONE.values is not None else np.ones(7)
    tokens = [range(*ONE.offsets[t : t + 2]) for t in range(4)]
    trainer.append([{str(ONE.ids[e]): float(values[e]) for e in token} for token in tokens], [str(y) for y in GOLD])
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info = tagger.info()
    owner = np.repeat(np.arange(4), np.diff(parameters.offsets))
    wanted = [info.state_features.get((str(a), str(y)), 0.0) for a, y in zip(owner, parameters.labels, strict=True)]
    wanted += [info.transitions.get((str(i), str(j)), 0.0) for i, j in parameters.arcs]
    np.testing.assert_allclose(last.weights, wanted, atol=1e-6)  # they print six digits


GIVEN: dict[str, object] = {
    "algorithm": "margin", "c1": 1.0, "min_count": 2.0, "cutoff": 2, "hash_bits": 10, "induce": 5, "latent": 2,
    "order": 2, "samples": 3, "hidden_units": 4, "model": "hmm", "c2": 2.0, "max_iterations": 3, "all_states": True,
    "all_transitions": True, "smoothing": 0.5, "batch_sentences": 5,
}  # fmt: skip
OTHERWISE = {
    ("c2", "algorithm"): "perceptron", ("smoothing", "model"): "memm", ("batch_sentences", "model"): "logistic",
}  # fmt: skip
NEEDED = {("batch_sentences", "model"): {"algorithm": "sgd"}}  # so that the other one is what does not fit


@pytest.mark.parametrize(("name", "other"), [(name, other) for name in COMBINATIONS for other in COMBINATIONS[name]])
def test_settings_that_do_not_go_together_are_named(name: str, other: str) -> None:
    given = {name: GIVEN[name], other: OTHERWISE.get((name, other), GIVEN[other]), **NEEDED.get((name, other), {})}
    with pytest.raises(ScoreError, match="cannot be combined with") as caught:
        LearningConfig(**given)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in (name.replace("hidden_units", "hidden units"), other))
