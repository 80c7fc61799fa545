"""`CRF`: a scikit-learn estimator with the interface of sklearn-crfsuite 0.5, and exact answers beyond it.

>>> crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100)
>>> crf.fit(X_train, y_train)            # X: sentences of dicts (or lists of names) for each token; y: lists of labels
>>> crf.predict(X_test), crf.predict_marginals(X_test), crf.predict_top_k(X_test, 3)
>>> crf = CRF.from_crfsuite("old_model.crfsuite")        # what CRFsuite trained
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from trelliswork.data.attributes import AttributeRows, HashedIndex, HashedNames, KeyIndex, from_dicts, token_lists
from trelliswork.data.attributes.dicts import joined_names
from trelliswork.data.attributes.key_index import new_index
from trelliswork.data.attributes.rows import first_entries_of, offsets_of
from trelliswork.data.crfsuite import read_crfsuite_model
from trelliswork.errors import DataError, MissingExtraError, ScoreError
from trelliswork.models.storage import check_output
from trelliswork.models.taggers.features.attribute_tagger import AttributeTagger, crf_of, names_left
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.estimator.crfsuite_settings import (
    TrainingLog,
    attribute_settings,
    check,
    iteration_line,
    iterations,
    score_table,
    scores_of,
)
from trelliswork.models.taggers.features.estimator.sequences import (
    SequenceTagger,
    label_lists,
    numbered_labels,
    sentences_in,
    state_weights,
    transition_weights,
)
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.induction import extended_corpus, induce
from trelliswork.models.taggers.features.learners.learning import check_weights, parameters_of
from trelliswork.models.taggers.features.votes import Explanation, explain
from trelliswork.runtime.arrays import Array
from trelliswork.tags.schemes import spans_of

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
except ImportError as error:
    raise MissingExtraError("trelliswork.sklearn", "sklearn", error) from error


class CRF(BaseEstimator):
    """A linear-chain CRF over token attributes, a drop-in for `sklearn_crfsuite.CRF` 0.5.

    Parameters are those of sklearn-crfsuite, and None stands for CRFsuite's default. The L2 term is c2 ‖w‖² (no ½), the
    L1 term c1 ‖w‖₁. A setting that the chosen algorithm would ignore is an error, as there.

    What differs:

    - There are no temporary files and there is no trainer to choose: `keep_tempfiles`, `trainer_cls` and `linesearch`
      are accepted and have no effect.
    - `model_filename` is a folder that `fit` writes and that `trelliswork tag` and `info` read, too. If it exists, a
      new `CRF` answers from it; it may also be a model file of CRFsuite, or its dump, which is read but never written.
    - `random_state` is ours: the same seed gives the same weights.
    - `algorithm` may name further learners of this library.
    - Labels may be whole numbers; predictions then are, too. A saved model has them as text.
    - Beyond it: `predict_top_k`, `span_probabilities`, `explain`, `from_crfsuite`; labels that are not known and
      `sample_weight` in `fit`; `cutoff` (rare attributes), `hash_bits` (no names, bounded size) and `induce`
      (conjunctions) as in `LearningConfig`.

    Args:
        algorithm: Lbfgs, l2sgd, ap, pa or arow; or another learner of this library.
        min_freq: Attributes seen fewer times are left out.
        all_possible_states: Whether pairs of an attribute and a label that were not seen have weights.
        all_possible_transitions: Whether pairs of labels that were not seen have weights.
        c1: Strength of the L1 term, for lbfgs.
        c2: Strength of the L2 term, for lbfgs and l2sgd.
        max_iterations: Largest number of iterations or epochs.
        num_memories: Steps that lbfgs remembers.
        epsilon: Lbfgs ends when the gradient is this small.
        period: Iterations over which `delta` is measured.
        delta: Improvement over `period` iterations below which training ends.
        linesearch: Accepted, without effect.
        max_linesearch: Largest number of trials of a line search.
        calibration_eta: First learning rate that l2sgd tries.
        calibration_rate: Factor from one rate to the next.
        calibration_samples: Sentences that rates are tried on.
        calibration_candidates: Rates to try.
        calibration_max_trials: Largest number of trials.
        pa_type: 0, 1 or 2: passive-aggressive without slack, with a linear or a quadratic one.
        c: Aggressiveness of pa.
        error_sensitive: Whether pa counts the wrong labels of a sentence.
        averaging: Whether pa averages its weights.
        variance: First variance of arow.
        gamma: Regularisation of arow.
        verbose: Whether progress is printed.
        model_filename: Folder of the model; None to keep it in memory.
        keep_tempfiles: Accepted, without effect.
        trainer_cls: Accepted, without effect.
        random_state: Seed of the weights and of the order of sentences.
        cutoff: Attributes seen fewer times are left out, as in `LearningConfig`.
        hash_bits: Bits of hashed attributes; None for attributes with names.
        induce: Number of conjunctions to induce; None for none.
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
        model_filename: str | Path | None = None,
        keep_tempfiles: bool | None = False,
        trainer_cls: object = None,
        random_state: int = 0,
        cutoff: int | None = None,
        hash_bits: int | None = None,
        induce: int | None = None,
    ) -> None:
        for name, value in locals().items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    # --- learning --------------------------------------------------------------------------------------------

    def fit(
        self, X: object, y: object, X_dev: object = None, y_dev: object = None, *, sample_weight: Any = None
    ) -> Self:
        """Learn from sentences of token attributes and their labels.

        Args:
            X: Sentences, each a list of dicts or lists of names, one for each token.
            y: Labels of the sentences. A label may be None (unknown) or a set of labels (one of them), with the
                algorithms lbfgs and l2sgd.
            X_dev: Development sentences, which are scored after every iteration (see `training_log_`) and change
                nothing else.
            y_dev: Their labels.
            sample_weight: How often each sentence counts; None for once. With the algorithms lbfgs and l2sgd.

        Returns:
            The estimator itself.
        """
        if (X_dev is None) != (y_dev is None):
            raise ScoreError("Pass both X_dev and y_dev to use the holdout data")
        settings = self.get_params(deep=False)
        check(settings)
        if self.model_filename is not None:
            check_output(self.model_filename)
        rows, index, names = self._numbered(X)
        classes, gold, sets = numbered_labels(y, rows.lengths)
        shares = None if sample_weight is None else check_weights(sample_weight, len(rows.lengths))
        rows, model = self._planned(rows, index, gold, sets, tuple(classes), settings)
        parameters, names = model.parameters, self._all_names(model, names)
        corpus = Corpus(rows, gold, shares, sets)
        dev = None if X_dev is None else self._development(model, X_dev, y_dev)
        log = TrainingLog(featgen_num_features=len(parameters))
        self._say(f"Number of features: {len(parameters)}\n")
        began = last = time.perf_counter()
        for weights, record in iterations(corpus, parameters, settings):
            model = replace(model, weights=weights)
            if dev is not None:
                record |= scores_of(dev[1], model.predict(dev[0]), model.labels)
            now = time.perf_counter()
            log.iterations.append(record | {"time": now - last})
            last = now
            self._say(iteration_line(log[-1]))
        log.training_seconds = last - began
        if not np.isfinite(model.weights).all():
            raise ScoreError("the weights grew beyond all numbers; scale the values of attributes to about 1")
        if dev is not None and log.iterations:
            self._say(score_table(log[-1]["scores"]))
        self._say(f"Total seconds required for training: {log.training_seconds:.3f}")
        smaller, kept = model.without_zeros()
        self._take(smaller, names_left(names, smaller, kept), classes)
        self.training_log_ = log
        if self.model_filename is not None:
            AttributeTagger.of(self._model, self._names, attribute_settings(settings)).save(self.model_filename)
        return self

    def _numbered(self, X: object) -> tuple[AttributeRows, KeyIndex | HashedIndex, Sequence[str]]:
        """Return the attributes by number, the index that numbers them, and their names unless they are hashed."""
        lengths, counts, keys, values, names = from_dicts(sentences_in(X))
        index = new_index(self.hash_bits)
        rows = AttributeRows(lengths, offsets_of(counts), index.add(keys), values)
        return rows, index, () if isinstance(index, HashedIndex) else names.of(first_entries_of(rows.ids, len(index)))

    def _planned(
        self,
        atomic: AttributeRows,
        index: KeyIndex | HashedIndex,
        gold: Array,
        sets: Array,
        labels: tuple[str, ...],
        settings: dict[str, object],
    ) -> tuple[AttributeRows, FeatureCRF]:
        """Return the attributes with their conjunctions, and a model whose weights are still 0."""
        chosen, corpus = attribute_settings(settings), Corpus(atomic, gold, sets=sets)
        conjunctions = induce(corpus, len(index), len(labels), chosen)
        corpus = extended_corpus(corpus, conjunctions)
        parameters = parameters_of(corpus, conjunctions.n_attributes, len(labels), chosen)
        weights = np.zeros(len(parameters))
        return corpus.rows.without_zeros(), FeatureCRF(labels, index, parameters, weights, conjunctions=conjunctions)

    def _all_names(self, model: FeatureCRF, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the attributes and of their conjunctions; numbers if they are hashed."""
        return HashedNames(model.conjunctions) if self.hash_bits is not None else model.conjunctions.names(names)

    def _development(self, model: FeatureCRF, X: object, y: object) -> tuple[AttributeRows, list[list[str]]]:
        lengths, counts, keys, values, _ = from_dicts(sentences_in(X))
        return model.rows(lengths, counts, keys, values), label_lists(y, lengths)

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text, flush=True)

    # --- a model from elsewhere ------------------------------------------------------------------------------

    @classmethod
    def from_crfsuite(cls, path: str | Path) -> Self:
        """Return a model that CRFsuite trained: its binary file (`model_filename` of sklearn-crfsuite), or its dump."""
        crf = cls()
        crf._take(*crf_of(read_crfsuite_model(path)))
        return crf

    def _load(self, path: Path) -> None:
        if path.is_dir():
            tagger = AttributeTagger.load(path)
            self._take(tagger.crf, list(tagger.names))
        else:
            self._take(*crf_of(read_crfsuite_model(path)))

    def _take(self, model: FeatureCRF, names: Sequence[str], classes: dict[str, object] | None = None) -> None:
        """Answer from this model; `classes` are the labels as they were given."""
        self._model, self._names = model, names
        self._classes = classes or {label: label for label in model.labels}
        self._tagger: SequenceTagger | None = None

    # --- answers ---------------------------------------------------------------------------------------------

    def predict(self, X: object) -> Array:
        """Return the best labels of each sentence: an array of lists, or [sentences, tokens] for equal lengths."""
        rows = self._rows(X)
        return _array([self._given(labels) for labels in self._fitted.predict(rows)])

    def predict_single(self, xseq: object) -> list[Any]:
        """Return the best labels of one sentence."""
        model = self._fitted
        [tokens] = token_lists(sentences_in([xseq]))
        joined = joined_names(tokens)
        labels = None if joined is None else model.predict_joined(joined)
        return self._given(model.predict(self._rows([tokens]))[0] if labels is None else labels)

    def predict_marginals(self, X: object) -> Array:
        """For each sentence a list with a dict for each token: label -> exact probability."""
        labels = self._given(self._fitted.labels)
        tables = self._fitted.marginals(self._rows(X))
        return _array([[dict(zip(labels, row, strict=True)) for row in table.tolist()] for table in tables])

    def predict_marginals_single(self, xseq: object) -> list[dict[Any, float]]:
        """Return the same for one sentence."""
        return list(self.predict_marginals([xseq])[0])

    def predict_top_k(self, X: object, k: int) -> list[list[tuple[list[Any], float]]]:
        """For each sentence its k best label sequences with their probabilities, best first."""
        if not isinstance(k, int) or k < 1:
            raise ScoreError(f"k must be a whole number of at least 1; got {k!r}")
        rows, labels = self._rows(X), self._given(self._fitted.labels)
        out: list[list[tuple[list[Any], float]]] = [[([], 1.0)] for _ in rows.lengths]
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

    def span_probabilities(self, X: object, scheme: str = "IOB2") -> list[list[tuple[int, int, str, float]]]:
        """For each sentence the predicted spans (start, end, label) with the probability that each is exactly so."""
        rows, labels = self._rows(X), self._fitted.labels
        out: list[list[tuple[int, int, str, float]]] = [[] for _ in rows.lengths]
        for batch, chain in self._fitted.distributions(rows):
            best = chain.argmax.tolist()
            tags = [[labels[y] for y in row[: rows.lengths[s]]] for s, row in zip(batch, best, strict=True)]
            spans = [spans_of(each, scheme) for each in tags]
            probabilities = chain.span_probabilities(spans, tags=labels, scheme=scheme)
            for s, each, shares in zip(batch, spans, probabilities, strict=True):
                out[s] = [(*span, float(share)) for span, share in zip(each, shares, strict=True)]
        return out

    def explain(self, X: object, tokens: Sequence[Sequence[str]] | None = None) -> list[Explanation]:
        """For each sentence the votes of its features, token by token: text when printed, a table in a notebook.

        `tokens` has the words of each sentence; without it tokens go by their numbers.
        """
        model, sentences = self._fitted, token_lists(sentences_in(X))
        words = (
            [[str(i) for i in range(len(each))] for each in sentences] if tokens is None else list(map(list, tokens))
        )
        if [len(each) for each in words] != [len(each) for each in sentences]:
            raise DataError("tokens", "expected a word for each token of each sentence, got another number of them")
        return explain(model, self._rows(sentences), words, self._names)

    def score(self, X: object, y: object) -> float:
        """Return the share of labels that are right; a label that was never seen in training is wrong."""
        rows = self._rows(X)
        pairs = zip(self._fitted.predict(rows), label_lists(y, rows.lengths), strict=True)
        right = sum(a == b for predicted, gold in pairs for a, b in zip(predicted, gold, strict=True))
        return right / max(rows.n_tokens, 1)

    # --- what was learned (None before that, as in sklearn-crfsuite) ----------------------------------------------

    training_log_: TrainingLog | None = None

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is not None

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name != "_tagger"}
        model = state.get("_model")
        if model is not None:  # a copy has none of the tables that answers have left in it
            state["_model"] = replace(model, parameters=replace(model.parameters))
        return state

    @property
    def _learned(self) -> FeatureCRF | None:
        """The model, read from `model_filename` if it is there and nothing else was."""
        if getattr(self, "_model", None) is None and self.model_filename is not None:
            path = Path(self.model_filename)
            if path.exists():
                self._load(path)
        return getattr(self, "_model", None)

    @property
    def _fitted(self) -> FeatureCRF:
        model = self._learned
        if model is None:
            missing = "" if self.model_filename is None else f", and there is no model in {self.model_filename}"
            raise NotFittedError(f"this CRF is not fitted yet{missing}; call fit(X, y) first")
        return model

    @property
    def tagger_(self) -> SequenceTagger | None:
        """One sentence at a time, with the methods of `pycrfsuite.Tagger`."""
        model = self._learned
        if model is not None and getattr(self, "_tagger", None) is None:
            self._tagger = SequenceTagger(model, self._names, self._rows)
        return None if model is None else self._tagger

    @property
    def classes_(self) -> list[Any] | None:
        """The labels, in the order in which they were first seen."""
        model = self._learned
        return None if model is None else self._given(model.labels)

    @property
    def attributes_(self) -> list[str] | None:
        """The names of the attributes."""
        return None if self._learned is None else list(self._names)

    @property
    def num_attributes_(self) -> int | None:
        return None if self._learned is None else len(self._names)

    @property
    def size_(self) -> int | None:
        """Bytes of the model as it is saved."""
        model = self._learned
        if model is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            AttributeTagger.of(model, self._names, attribute_settings(self.get_params(deep=False))).save(folder)
            return sum(path.stat().st_size for path in Path(folder).iterdir())

    @property
    def state_features_(self) -> dict[tuple[str, Any], float] | None:
        """(attribute, label) -> weight, where it is not 0."""
        model = self._learned
        if model is None:
            return None
        return {(name, self._classes[y]): w for (name, y), w in state_weights(model, self._names).items()}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float] | None:
        """(label, label) -> weight, where it is not 0."""
        model = self._learned
        if model is None:
            return None
        return {(self._classes[i], self._classes[j]): w for (i, j), w in transition_weights(model).items()}

    def _rows(self, X: object) -> AttributeRows:
        model = self._fitted
        lengths, counts, keys, values, _ = from_dicts(sentences_in(X))
        return model.rows(lengths, counts, keys, values)

    def _given(self, labels: Sequence[str]) -> list[Any]:
        """Labels as they were given to `fit`."""
        return [self._classes[label] for label in labels]


def _array(items: Sequence[Sequence[object]]) -> Array:
    """Return answers as sklearn-crfsuite does: as an array of objects."""
    if items and len(items[0]) and len({len(item) for item in items}) == 1:
        return np.array(items, dtype=object)
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out
