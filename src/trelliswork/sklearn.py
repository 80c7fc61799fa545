"""`CRF`: a scikit-learn estimator with the interface of sklearn-crfsuite 0.5, and exact answers beyond it.

>>> crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100)
>>> crf.fit(X_train, y_train)            # X: sentences of dicts (or lists of names) for each token; y: lists of labels
>>> crf.predict(X_test), crf.predict_marginals(X_test), crf.predict_top_k(X_test, 3)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from trelliswork.data.attributes import AttributeRows, HashedNames, from_dicts, token_lists
from trelliswork.data.attributes.hashing import new_index
from trelliswork.errors import DataError, ScoreError
from trelliswork.models.feature_crf.config import LearningConfig, check_settings
from trelliswork.models.feature_crf.induction import induce
from trelliswork.models.feature_crf.learning import check_complete, check_weights, parameters_of
from trelliswork.models.feature_crf.model import FeatureCRF
from trelliswork.models.feature_crf.objective import Likelihood
from trelliswork.models.feature_crf.online import OnlineLearner, Rule
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.sgd import StochasticDescent
from trelliswork.models.feature_crf.votes import Explanation, explain
from trelliswork.models.partial_tags import encode
from trelliswork.structures.chain.schemes import spans_of
from trelliswork.training.lbfgs import LBFGS

Array = np.ndarray[Any, Any]
ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
PA_RULES: tuple[Rule, ...] = ("pa", "pa-1", "pa-2")


class CRF(BaseEstimator):
    """A linear-chain CRF over token attributes.

    Parameters as in sklearn-crfsuite; None stands for CRFsuite's default. The L2 term is c2 ‖w‖² (no ½), the L1 term
    c1 ‖w‖₁. `linesearch` is accepted and has no effect: there is one line search.

    Beyond it: `cutoff` leaves out attributes that occur less often, whatever their labels (`min_freq` pairs of
    attribute and label, and of labels); `hash_bits` numbers attributes by 2^bits hashes and keeps no names; `induce`
    adds so many conjunctions of attributes, those that gain most.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        random_state: int = 0,
        cutoff: int | None = None,
        hash_bits: int | None = None,
        induce: int | None = None,
    ) -> None:
        for name, value in locals().items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    # --- learning --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn from sentences of token attributes and their labels. A development set is only reported on.

        A label may be None (unknown) or a set of labels (one of them), and a sentence counts as often as its entry of
        `sample_weight` says: both need the algorithm lbfgs or l2sgd.
        """
        if (X_dev is None) != (y_dev is None):
            raise ScoreError("Pass both X_dev and y_dev to use the holdout data")
        check_settings(_or(self.c1, 0.0), _or(self.c2, 1.0), self.max_iterations)
        chosen = self._attribute_settings()
        lengths, counts, keys, values, names = from_dicts(X)
        labels, gold, sets = _numbered(y, lengths)
        shares = None if sample_weight is None else check_weights(sample_weight, len(lengths))
        index = new_index(self.hash_bits)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        atomic = AttributeRows(lengths, offsets, index.add(keys), None if (values == 1.0).all() else values)
        conjunctions = induce(atomic, gold, len(index), len(labels), chosen, sets=sets)
        rows = conjunctions.extended(atomic)
        parameters = parameters_of(rows, gold, conjunctions.n_attributes, len(labels), chosen, sets=sets)
        self.training_log_: list[dict[str, float]] = []
        learned = np.zeros(len(parameters))
        for weights, record in self._learn(rows, gold, parameters, shares, sets):
            learned = weights
            self.training_log_.append(record)
            if self.verbose:
                print("  ".join(f"{key} {value:.6g}" for key, value in record.items()), flush=True)
        if not np.isfinite(learned).all():
            raise ScoreError("the weights grew beyond all numbers; scale the values of attributes to about 1")
        hashed = self.hash_bits is not None
        self._names: Sequence[str] = (
            HashedNames(conjunctions) if hashed else conjunctions.names(list(dict.fromkeys(names)))
        )
        self._model = FeatureCRF(tuple(labels), index, parameters, learned, conjunctions=conjunctions)
        if X_dev is not None and self.training_log_:
            self.training_log_[-1]["dev_accuracy"] = self.score(X_dev, y_dev)
        return self

    def _attribute_settings(self) -> LearningConfig:
        """What concerns the choice of attributes and weights; learners have settings of their own."""
        return LearningConfig(
            c1=_or(self.c1, 0.0), c2=_or(self.c2, 1.0), min_count=_or(self.min_freq, 0.0), cutoff=_or(self.cutoff, 0),
            all_states=bool(self.all_possible_states), all_transitions=bool(self.all_possible_transitions),
            hash_bits=self.hash_bits, induce=_or(self.induce, 0),
        )  # fmt: skip

    def _learn(
        self, rows: AttributeRows, gold: Array, parameters: Parameters, shares: Array | None, sets: Array
    ) -> Iterator[tuple[Array, dict[str, float]]]:
        """The weights after every iteration, and what there is to say of it."""
        algorithm = self.algorithm or "lbfgs"
        if algorithm not in ALGORITHMS:
            raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {algorithm!r}")
        if algorithm == "lbfgs":
            learner = LBFGS(
                l2=_or(self.c2, 1.0), l1=_or(self.c1, 0.0), memory=_or(self.num_memories, 6),
                epsilon=_or(self.epsilon, 1e-5), delta=_or(self.delta, 1e-5), period=_or(self.period, 10),
                max_iterations=_or(self.max_iterations, 1 << 30), max_line_search=_or(self.max_linesearch, 20),
            )  # fmt: skip
            likelihood = Likelihood(rows, gold, parameters, shares, sets)
            for step in learner.minimise(likelihood, np.zeros(len(parameters))):
                record = {"iteration": step.iteration, "loss": step.loss, "gradient_norm": step.gradient_norm}
                yield step.weights, {**record, "active_features": step.n_active}
            return
        learner_online = self._online(algorithm)
        if isinstance(learner_online, StochasticDescent):
            epochs = learner_online.learn(rows, gold, parameters, sentence_weights=shares, sets=sets)
        else:
            check_complete(algorithm, gold, shares, ("lbfgs", "l2sgd"))
            epochs = learner_online.learn(rows, gold, parameters)
        for epoch in epochs:
            yield epoch.weights, {"iteration": epoch.number, "loss": epoch.loss, "accuracy": epoch.accuracy}

    def _online(self, algorithm: str) -> OnlineLearner | StochasticDescent:
        if algorithm == "l2sgd":
            return StochasticDescent(
                l2=_or(self.c2, 1.0), max_epochs=_or(self.max_iterations, 1000), period=_or(self.period, 10),
                delta=_or(self.delta, 1e-6), rate=_or(self.calibration_eta, 0.1),
                factor=_or(self.calibration_rate, 2.0), n_sentences=_or(self.calibration_samples, 1000),
                n_candidates=_or(self.calibration_candidates, 10), max_trials=_or(self.calibration_max_trials, 20),
                seed=self.random_state,
            )  # fmt: skip
        rule: Rule = "perceptron" if algorithm == "ap" else "arow"
        if algorithm == "pa":
            pa_type = _or(self.pa_type, 1)
            if pa_type not in range(3):
                raise ScoreError(f"pa_type must be 0, 1 or 2; got {pa_type!r}")
            rule = PA_RULES[pa_type]
        epsilon = _or(self.epsilon, 0.0 if algorithm == "ap" else 1e-5)
        return OnlineLearner(
            rule, max_epochs=_or(self.max_iterations, 100), epsilon=epsilon,
            averaging=_or(self.averaging, True), error_sensitive=_or(self.error_sensitive, True),
            aggressiveness=_or(self.gamma if algorithm == "arow" else self.c, 1.0), variance=_or(self.variance, 1.0),
            seed=self.random_state,
        )  # fmt: skip

    # --- answers ---------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """The best labels of each sentence, an array of lists."""
        return _objects(self._fitted.predict(self._rows(X)))

    def predict_single(self, xseq: Any) -> list[str]:
        """The best labels of one sentence."""
        return self._fitted.predict(self._rows([xseq]))[0]

    def predict_marginals(self, X: Any) -> Array:
        """For each sentence a list with a dict for each token: label -> exact probability."""
        labels = self._fitted.labels
        tables = self._fitted.marginals(self._rows(X))
        return _objects([[dict(zip(labels, row, strict=True)) for row in table.tolist()] for table in tables])

    def predict_marginals_single(self, xseq: Any) -> list[dict[str, float]]:
        """The same for one sentence."""
        return list(self.predict_marginals([xseq])[0])

    def predict_top_k(self, X: Any, k: int) -> list[list[tuple[list[str], float]]]:
        """For each sentence its k best label sequences with their probabilities, best first."""
        rows, labels = self._rows(X), self._fitted.labels
        out: list[list[tuple[list[str], float]]] = [[([], 1.0)] for _ in rows.lengths]
        for batch, chain in self._fitted.distributions(rows):
            tags, scores = chain.top_k(k)
            shares = (scores - chain.log_partition).exp()
            for row, sentence in enumerate(batch):
                n = int(rows.lengths[sentence])
                out[sentence] = [
                    ([labels[tag] for tag in tags[rank, row, :n].tolist()], float(shares[rank, row]))
                    for rank in range(k)
                    if float(scores[rank, row]) > -np.inf
                ]
        return out

    def span_probabilities(self, X: Any, scheme: str = "IOB2") -> list[list[tuple[int, int, str, float]]]:
        """For each sentence the predicted spans (start, end, label) with the probability that each is exactly so."""
        rows, labels = self._rows(X), self._fitted.labels
        out: list[list[tuple[int, int, str, float]]] = [[] for _ in rows.lengths]
        for batch, chain in self._fitted.distributions(rows):
            best = chain.argmax.tolist()
            tags = [[labels[y] for y in row[: rows.lengths[s]]] for s, row in zip(batch, best, strict=True)]
            spans = [spans_of(each, scheme) for each in tags]
            found = chain.span_probabilities(spans, tags=labels, scheme=scheme)
            for s, each, shares in zip(batch, spans, found, strict=True):
                out[s] = [(*span, float(share)) for span, share in zip(each, shares, strict=True)]
        return out

    def explain(self, X: Any) -> list[Explanation]:
        """For each sentence the votes of its features, token by token: text when printed, a table in a notebook."""
        sentences = token_lists(X)
        names = [[str(i) for i in range(len(sentence))] for sentence in sentences]
        return explain(self._fitted, self._rows(sentences), names, self._names)

    def score(self, X: Any, y: Any) -> float:
        """The share of labels that are right; a label that was never seen in training is wrong."""
        predicted, gold = self.predict(X), list(y)
        if len(predicted) != len(gold):
            raise DataError("labels", f"expected labels of {len(predicted)} sentences, got those of {len(gold)}")
        pairs = [_pair(i, list(p), [str(g) for g in gold[i]]) for i, p in enumerate(predicted)]
        right = sum(a == b for p, g in pairs for a, b in zip(p, g, strict=True))
        return right / max(sum(len(p) for p, _ in pairs), 1)

    # --- what was learned ------------------------------------------------------------------------------------

    @property
    def _fitted(self) -> FeatureCRF:
        model = getattr(self, "_model", None)
        if model is None:
            raise NotFittedError("this CRF is not fitted yet; call fit(X, y) first")
        return model

    @property
    def classes_(self) -> list[str]:
        """The labels, in the order in which they were first seen."""
        return list(self._fitted.labels)

    @property
    def attributes_(self) -> list[str]:
        """The names of the attributes."""
        return list(self._names) if self._fitted else []

    @property
    def num_attributes_(self) -> int:
        return len(self._fitted.index)

    @property
    def size_(self) -> int:
        """Bytes of the weights that are not 0, with their pairs."""
        return 12 * int(np.count_nonzero(self._fitted.weights))

    @property
    def state_features_(self) -> dict[tuple[str, str], float]:
        """(attribute, label) -> weight, where it is not 0."""
        model, parameters = self._fitted, self._fitted.parameters
        attributes = np.repeat(np.arange(len(parameters.offsets) - 1), np.diff(parameters.offsets))
        return {
            (str(self._names[attributes[p]]), model.labels[parameters.labels[p]]): float(model.weights[p])
            for p in np.flatnonzero(model.weights[: parameters.n_states])
        }

    @property
    def transition_features_(self) -> dict[tuple[str, str], float]:
        """(label, label) -> weight, where it is not 0."""
        model, parameters = self._fitted, self._fitted.parameters
        weights = model.weights[parameters.arc_weights]
        pairs = zip(parameters.arcs.tolist(), weights.tolist(), strict=True)
        return {(model.labels[i], model.labels[j]): weight for (i, j), weight in pairs if weight}

    def _rows(self, X: Any) -> AttributeRows:
        lengths, counts, keys, values, _ = from_dicts(X)
        return self._fitted.rows(lengths, counts, keys, values)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _objects(items: Sequence[Any]) -> Array:
    """A one-dimensional array of Python objects, also when all are equally long."""
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


def _pair(i: int, predicted: list[str], gold: list[str]) -> tuple[list[str], list[str]]:
    if len(predicted) != len(gold):
        raise DataError("labels", f"sentence {i + 1}: expected {len(predicted)} labels, one a token; got {len(gold)}")
    return predicted, gold


def _numbered(y: Any, lengths: Array) -> tuple[list[str], Array, Array]:
    """Labels in the order in which they appear, and codes and sets as `observed` has them, one code a token."""
    sentences = list(y)
    if len(sentences) != len(lengths):
        raise DataError("labels", f"expected labels of {len(lengths)} sentences, got those of {len(sentences)}")
    for i, sentence in enumerate(sentences):
        if len(sentence) != lengths[i]:
            problem = f"sentence {i + 1}: expected {lengths[i]} labels, one a token; got {len(sentence)}"
            raise DataError("labels", problem)
    if not lengths.sum():
        raise DataError("labels", "expected at least one sentence with a token, got none")
    known, gold, sets = encode([[_choice(label) for label in sentence] for sentence in sentences])
    return list(known), gold, sets


def _choice(label: Any) -> str | frozenset[str] | None:
    """A label, a set of possible ones, or None if it is unknown."""
    if label is None or not isinstance(label, set | frozenset | list | tuple):
        return None if label is None else str(label)
    found = frozenset(map(str, label))
    if not found:
        raise DataError("labels", "expected at least one label in a set of possible ones, got none; give None for all")
    return found if len(found) > 1 else next(iter(found))
