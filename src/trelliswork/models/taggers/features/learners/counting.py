"""Models learned by counting: HMM and naive Bayes over the attributes of tokens.

p(y, x) = Π_t p(y_t | y_{t-1}) Π_k p(a_tk | y_t): labels follow one another as in an HMM (in naive Bayes each is drawn
from p(y)), and a token draws its attributes one by one from a distribution of its label over all attributes.
Probabilities are relative frequencies after `smoothing` was added to every count.

Attributes that occur once are counted a second time as the *unknown attribute*; strangers are read as that one.

The logs of these probabilities are weights of a `FeatureCRF` with `normalised="jointly"`. An unseen (attribute, label)
pair needs none: ln p(a | y) is ln((count + s) / s) where the pair was seen, and the floor of the label, ln(s / total),
everywhere. Marks, attributes that no text has, carry floors and starts.

Sutton and McCallum (2012), An introduction to conditional random fields.
"""  # [S4.67-69]

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.data.attributes.rows import owners_of
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.model import MARKS, first_tokens, mark_keys, values_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.runtime.arrays import Array


@dataclass(frozen=True)
class Counting:
    """Relative frequencies, in one pass."""

    smoothing: float = 0.1

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[Progress]:
        yield Progress(1, *log_frequencies(corpus.rows, corpus.gold, parameters, self.smoothing))


def counted_parameters(
    rows: AttributeRows, gold: Array, index: KeyIndex, n_labels: int, *, transitions: bool
) -> Parameters:
    """Return weights for the pairs that occur, for the marks (added to `index`) with every label, and for every arc.

    Args:
        rows: attributes of the tokens.
        gold: the label of each token.
        index: the attributes by key; marks are added.
        n_labels: number of labels.
        transitions: whether neighbouring labels have weights.

    Returns:
        The weights that are counted.
    """
    if len(gold) and gold.min() < 0:
        raise ScoreError("this model needs a label for every token; some are unknown; learn a crf from those")
    unknown = len(index)
    index.add(mark_keys())
    seen = Parameters.of(_with_strangers(rows, unknown), gold, unknown + 1, n_labels, all_transitions=True)
    offsets = np.concatenate([seen.offsets, seen.n_states + n_labels * np.arange(1, len(MARKS))])
    labels = np.concatenate([seen.labels, np.tile(np.arange(n_labels, dtype=np.int32), len(MARKS) - 1)])
    return Parameters(n_labels, offsets, labels, seen.arcs if transitions else seen.arcs[:0])


def log_frequencies(rows: AttributeRows, gold: Array, parameters: Parameters, smoothing: float) -> tuple[Array, float]:
    """Return the weights of `counted_parameters`, and -ln p(y, x) of the data under them.

    Args:
        rows: attributes of the tokens.
        gold: the label of each token.
        parameters: the weights that there are.
        smoothing: what is added to every count.

    Returns:
        The weights, and the loss.
    """
    # [S4.67, 69]
    c, unknown = parameters.n_labels, len(parameters.offsets) - 1 - len(MARKS)
    pairs = _pair_counts(_with_strangers(rows, unknown), gold, parameters)[: parameters.offsets[unknown + 1]]
    owners = parameters.labels[: len(pairs)]
    totals = np.bincount(owners, pairs, minlength=c) + smoothing * (unknown + 1)
    tokens, firsts, arcs = _label_counts(rows, gold, c)
    nothing, chained = np.zeros(c), len(parameters.arcs) > 0
    weights = [np.log1p(pairs / smoothing), np.log(smoothing / totals)]
    weights += [_log_shares(firsts, smoothing), nothing] if chained else [nothing, _log_shares(tokens, smoothing)]
    used = np.where(np.arange(len(pairs)) < parameters.offsets[unknown], pairs, 0.0)
    counts = [used, np.bincount(owners, used, minlength=c), firsts, tokens]
    if chained:
        weights.append(_log_shares(arcs, smoothing).ravel())
        counts.append(arcs.ravel())
    log_shares = np.concatenate(weights)
    return log_shares, -float(np.concatenate(counts) @ log_shares)


def _with_strangers(rows: AttributeRows, unknown: int) -> AttributeRows:
    """Return the rows with one more entry, of the id `unknown`, for each attribute that occurs only once."""
    once = np.flatnonzero(np.bincount(rows.ids, minlength=unknown)[rows.ids] == 1)
    offsets = rows.offsets + np.searchsorted(once, rows.offsets)
    values = np.insert(values_of(rows), once, values_of(rows)[once])
    return AttributeRows(rows.lengths, offsets, np.insert(rows.ids, once, unknown).astype(np.int32), values)


def _pair_counts(rows: AttributeRows, gold: Array, parameters: Parameters) -> Array:
    """Count how often each (attribute, label) pair of `parameters` occurs."""
    c = parameters.n_labels
    owner = owners_of(parameters.offsets)
    keys = rows.ids.astype(np.int64) * c + gold[rows.tokens()]
    at = np.searchsorted(owner * c + parameters.labels, keys)
    return np.bincount(at, rows.values, minlength=parameters.n_states).astype(np.float64)


def _label_counts(rows: AttributeRows, gold: Array, c: int) -> tuple[Array, Array, Array]:
    """Count how often each label occurs [c], begins a sentence [c], and follows another [from, to]."""
    firsts = first_tokens(rows)
    after = np.delete(np.arange(len(gold)), firsts)
    arcs = np.bincount(gold[after - 1] * c + gold[after], minlength=c * c).reshape(c, c)
    return np.bincount(gold, minlength=c), np.bincount(gold[firsts], minlength=c), arcs


def _log_shares(counts: Array, smoothing: float) -> Array:
    """Return logs of smoothed relative frequencies along the last axis."""
    smooth = counts + smoothing
    shares: Array = np.log(smooth / smooth.sum(-1, keepdims=True))
    return shares
