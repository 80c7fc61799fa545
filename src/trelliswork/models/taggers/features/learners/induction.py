"""Conjunctions of attributes that pay: found greedily by gain (McCallum 2003).

In every round a model is trained briefly. Tokens that it gets wrong or is not sure of propose the pairs of their
attributes. The gain of a pair is the most that one weight for it adds to the penalised log-likelihood while all
others, and the marginals of the other tokens, stay as they are. The pairs with the highest gain become attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from trelliswork.data.attributes import AttributeRows, Conjunctions, KeyIndex
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels import induction as kernels
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import parameters_of
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.runtime.arrays import Array
from trelliswork.training.lbfgs import LBFGS

ROUNDS = 5
ITERATIONS = 30  # of L-BFGS before each round
SURE = 0.9  # a token whose gold label has at least this probability proposes nothing
MIN_COUNT = 3  # tokens that a conjunction must be in
MAX_PROPOSED = 4_000_000  # pairs that are looked at in a round, from the worst tokens on
MAX_CELLS = 4_000_000  # (pair, label) that are weighed in a round
SHORTLIST = 3  # conjunctions whose gain is computed, for each that is wanted


@dataclass(frozen=True)
class Round:
    """The additions of a round: pairs of attributes with their gains, best first; `loss` is that before it."""

    number: int
    n_rounds: int
    conjunctions: Conjunctions  # with those of this round at the end
    gains: Array
    loss: float


def induce(
    corpus: Corpus,
    n_atomic: int,
    n_labels: int,
    config: LearningConfig,
    *,
    arcs: bool = True,
    rounds: int = ROUNDS,
    on_round: Callable[[Round], bool] | None = None,
) -> Conjunctions:
    """Return `config.induce` conjunctions, fewer if there are no more that pay; ends early if `on_round` returns True.

    Attributes that look at neighbouring labels are not conjoined.

    Args:
        corpus: the data to learn from.
        n_atomic: attributes that are not conjunctions.
        n_labels: number of labels.
        config: the settings of learning.
        arcs: whether neighbouring labels have weights.
        rounds: rounds of learning and proposing.
        on_round: called after each round.

    Returns:
        The conjunctions.
    """
    conjunctions = Conjunctions.none(n_atomic)
    model: FeatureCRF | None = None
    for number in range(1, rounds + 1):
        wanted = config.induce * number // rounds - len(conjunctions)
        if wanted <= 0:
            continue
        extended = extended_corpus(corpus, conjunctions)
        parameters = parameters_of(extended, conjunctions.n_attributes, n_labels, config, arcs=arcs)
        model, loss = _trained(extended, parameters, config, model)
        marginals = np.concatenate([np.empty((0, n_labels)), *model.marginals(extended.rows)])
        pairs, gains = propose(corpus.rows, extended, marginals, conjunctions, wanted, config)
        conjunctions = conjunctions.joined(pairs)
        if on_round is not None and on_round(Round(number, rounds, conjunctions, gains, loss)):
            break
        if len(pairs) < wanted:
            break
    return conjunctions


def extended_corpus(corpus: Corpus, conjunctions: Conjunctions) -> Corpus:
    """Return the corpus with the conjunctions that its tokens have."""
    return replace(corpus, rows=conjunctions.extended(corpus.rows), on_pairs=conjunctions.widened(corpus.on_pairs))


def _trained(
    corpus: Corpus, parameters: Parameters, config: LearningConfig, before: FeatureCRF | None
) -> tuple[FeatureCRF, float]:
    """Return a model after some iterations from the weights of the last one, and its loss."""
    weights = np.zeros(len(parameters))
    if before is not None:  # new attributes come last
        n_known = before.parameters.n_states
        weights[:n_known] = before.weights[:n_known]
        weights[parameters.n_states :] = before.weights[n_known:]
    learner, loss = LBFGS(l2=config.c2, l1=config.c1, max_iterations=ITERATIONS), np.inf
    for step in learner.minimise(Likelihood(corpus.rows, corpus.gold, parameters, sets=corpus.sets), weights):
        weights, loss = step.weights, step.loss
    return FeatureCRF(tuple(map(str, range(parameters.n_labels))), KeyIndex(), parameters, weights), loss


def propose(
    rows: AttributeRows, corpus: Corpus, marginals: Array, known: Conjunctions, n_wanted: int, config: LearningConfig
) -> tuple[Array, Array]:
    """Return the `n_wanted` pairs of attributes with the highest gains, and these; fewer if fewer pay.

    `rows` have atomic attributes alone, `corpus` also the conjunctions that are `known`.

    Args:
        rows: atomic attributes of the tokens.
        corpus: the data, with the conjunctions that are known.
        marginals: probabilities of labels under the model, [tokens, labels].
        known: the conjunctions so far.
        n_wanted: how many pairs to return.
        config: the settings of learning.

    Returns:
        Pairs [pairs, 2] and gains [pairs], best first.
    """
    extended, gold, unused = corpus.rows, corpus.gold, corpus.on_pairs
    n = known.n_attributes
    occurs = np.bincount(extended.ids, minlength=n)
    usable = occurs >= MIN_COUNT if unused is None else (occurs >= MIN_COUNT) & ~unused
    index = _candidates(extended, gold, marginals, known, usable)
    tally = kernels.Tally.zeros(len(index), marginals.shape[1])
    pairing = kernels.Pairing(usable, known.n_atomic, n)
    kernels.add_to_tally(extended.arrays, pairing, index.table, index.numbers, marginals, gold, tally)
    pairs = _pairs_behind(index.keys(), n)
    allowed = np.ones(tally.observed.shape, np.bool_) if config.all_states else tally.observed > 0
    slopes = np.maximum(np.abs(tally.observed - tally.expected) - config.c1, 0.0)
    about = np.where(allowed, 0.5 * slopes**2 / (tally.variance + 2 * config.c2 + 1e-12), 0.0).max(1, initial=0.0)
    frequent = max(MIN_COUNT, config.cutoff)
    counts = tally.counts
    about[(counts < frequent) | (counts >= occurs[pairs].min(1, initial=len(gold)))] = 0.0  # all or none: nothing new
    best = np.argsort(-about, kind="stable")[: 2 * SHORTLIST * n_wanted]
    best = _unlike(best[about[best] > 0], counts, tally.expected)[: SHORTLIST * n_wanted]
    gains = gains_of(rows, gold, marginals, known, pairs[best], allowed[best], config)
    order = np.argsort(-gains, kind="stable")[:n_wanted]
    order = order[gains[order] > 0]
    return pairs[best][order], gains[order]


def _candidates(rows: AttributeRows, gold: Array, marginals: Array, known: Conjunctions, usable: Array) -> KeyIndex:
    """Return pairs in tokens that are wrong or not sure; if too many, those that most is to be gained from."""
    tokens = np.arange(len(gold))
    doubt = np.where(gold >= 0, 1.0 - marginals[tokens, np.maximum(gold, 0)], 0.0)
    unsure = np.flatnonzero(doubt > 1.0 - SURE)
    unsure = unsure[np.argsort(-doubt[unsure], kind="stable")]
    m = np.diff(rows.offsets)[unsure]
    room = min(int((m * (m - 1) // 2).sum()), MAX_PROPOSED)
    keys, masses = np.empty(room, np.uint64), np.empty(room)
    pairing = kernels.Pairing(usable, known.n_atomic, known.n_attributes)
    n = kernels.list_pairs(unsure, rows.arrays, pairing, doubt, keys, masses)
    index = KeyIndex()
    mass = np.bincount(index.add(keys[:n]), masses[:n], minlength=len(index))
    taken = known.pairs[:, 0].astype(np.uint64) * np.uint64(known.n_attributes) + known.pairs[:, 1].astype(np.uint64)
    old = index.find(taken * kernels.SCATTER)
    mass[old[old >= 0]] = 0.0
    best = np.argsort(-mass, kind="stable")[: max(1, MAX_CELLS // marginals.shape[1])]
    return KeyIndex.of(index.keys()[best[mass[best] > 0]])


def _pairs_behind(keys: Array, n_attributes: int) -> Array:
    """Return the attributes [pairs, 2] that the keys stand for."""
    numbers = keys * np.uint64(pow(int(kernels.SCATTER), -1, 1 << 64))
    return np.stack(np.divmod(numbers.astype(np.int64), n_attributes), 1)


def _unlike(chosen: Array, counts: Array, expected: Array) -> Array:
    """Keep only the first of conjunctions that are in the same tokens (the same sums of marginals)."""
    signs = np.concatenate([counts[chosen, None].astype(np.float64), expected[chosen]], 1)
    _, first = np.unique(signs, axis=0, return_index=True)
    return chosen[np.sort(first)]


def gains_of(
    rows: AttributeRows,
    gold: Array,
    marginals: Array,
    known: Conjunctions,
    pairs: Array,
    allowed: Array,
    config: LearningConfig,
) -> Array:
    """Return the gain of each pair by its best single weight, for one of the allowed labels [pairs, labels].

    Args:
        rows: atomic attributes of the tokens.
        gold: the label of each token, below 0 if it is not known.
        marginals: probabilities of labels under the model, [tokens, labels].
        known: the conjunctions so far.
        pairs: the pairs to judge, [pairs, 2].
        allowed: [pairs, labels] bool.
        config: the settings of learning.

    Returns:
        Gains [pairs].
    """
    extended = known.joined(pairs).extended(rows)
    tokens = extended.tokens()
    new = (extended.ids >= known.n_attributes) & (gold[tokens] >= 0)
    ids = extended.ids[new] - known.n_attributes
    order = np.argsort(ids, kind="stable")
    offsets = offsets_of(np.bincount(ids, minlength=len(pairs)))
    values = np.empty(0) if extended.values is None else extended.values[new][order]
    gains = np.zeros(len(pairs))
    kernels.best_gains(offsets, tokens[new][order], values, allowed, marginals, gold, config.c1, config.c2, gains)
    return gains
