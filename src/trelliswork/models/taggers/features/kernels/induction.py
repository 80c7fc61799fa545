"""CPU kernels that weigh conjunctions of attributes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes.key_kernels import find_keys
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel

SCATTER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the product is one to one
LARGEST = 30.0  # a weight beyond makes no difference


class Pairing(NamedTuple):
    """The attributes that may be paired: usable ones, at least one of the two atomic (below n_atomic)."""

    usable: Array  # [attributes] bool
    n_atomic: int
    n_attributes: int


class Tally(NamedTuple):
    """For each pair: in how many labelled tokens it is, and by label Σ 1[gold = y], Σ p(y), Σ p(y)(1 - p(y))."""

    counts: Array  # [pairs]
    observed: Array  # [pairs, labels]
    expected: Array
    variance: Array

    @classmethod
    def zeros(cls, n_pairs: int, n_labels: int) -> Tally:
        size = n_pairs, n_labels
        return cls(np.zeros(n_pairs, np.int64), np.zeros(size), np.zeros(size), np.zeros(size))


@kernel(EXACT)
def pairs_of_token(t, rows, pairing, keys):
    """Write the keys of the pairs of attributes of a token; return how many.

    Args:
        t: the token.
        rows: attributes of the tokens (`RowArrays`).
        pairing: which attributes may be paired (`Pairing`).
        keys: room for the keys; written from the front.

    Returns:
        How many there are.
    """
    n, ids, usable = 0, rows.ids, pairing.usable
    for e in range(rows.offsets[t], rows.offsets[t + 1]):
        for f in range(e + 1, rows.offsets[t + 1]):
            first, second = min(ids[e], ids[f]), max(ids[e], ids[f])
            if first != second and first < pairing.n_atomic and usable[first] and usable[second]:
                keys[n] = (np.uint64(first) * np.uint64(pairing.n_attributes) + np.uint64(second)) * SCATTER
                n += 1
    return n


@kernel(EXACT)
def list_pairs(tokens, rows, pairing, shares, keys, masses):
    """Write the keys of the pairs of some tokens, each with the share of its token, as long as there is room.

    Return how many there are.

    Args:
        tokens: the tokens to look at.
        rows: attributes of the tokens (`RowArrays`).
        pairing: which attributes may be paired (`Pairing`).
        shares: the mass of each token, [tokens].
        keys: room for the keys; written from the front.
        masses: room for the share of each; written from the front.
    """
    n = 0
    for k in range(tokens.shape[0]):
        t = tokens[k]
        m = rows.offsets[t + 1] - rows.offsets[t]
        if n + m * (m - 1) // 2 > keys.shape[0]:
            break
        n_pairs = pairs_of_token(t, rows, pairing, keys[n:])
        masses[n : n + n_pairs] = shares[t]
        n += n_pairs
    return n


@kernel(EXACT)
def add_to_tally(rows, pairing, table, numbers, marginals, gold, tally):
    """Add what the tokens say of each pair in the table.

    Args:
        rows: attributes of the tokens (`RowArrays`).
        pairing: which attributes may be paired (`Pairing`).
        table: the hash table of the pairs.
        numbers: the pair in each of its places.
        marginals: probabilities of labels, [tokens, labels].
        gold: the label of each token, below 0 if it is not known.
        tally: counts and sums for each pair (`Tally`); added to.
    """
    most = 0
    for t in range(gold.shape[0]):
        most = max(most, rows.offsets[t + 1] - rows.offsets[t])
    keys = np.empty(most * (most - 1) // 2, np.uint64)
    places = np.empty(keys.shape[0], np.int32)
    for t in range(gold.shape[0]):
        if gold[t] < 0:
            continue
        n = pairs_of_token(t, rows, pairing, keys)
        find_keys(table, numbers, keys[:n], places)
        for i in range(n):
            k = places[i]
            if k >= 0:
                tally.counts[k] += 1
                tally.observed[k, gold[t]] += 1.0
                for y in range(marginals.shape[1]):
                    p = marginals[t, y]
                    tally.expected[k, y] += p
                    tally.variance[k, y] += p * (1.0 - p)


@kernel(EXACT)
def gain_of(tokens, values, label, marginals, gold, l1, l2):
    """Return the most that one weight μ for (attribute, label) adds to the penalised log-likelihood, and that μ.

    Each token on its own: p(y) becomes p(y) e^(μv [y = label]) / (1 + p(label) (e^(μv) - 1)), which is exact where
    a token has no neighbours and holds them fixed where it has. The sum is concave: Newton steps between bounds.

    Args:
        tokens: the tokens that have the attribute.
        values: its value at each of these; empty if all are 1.
        label: the label of the weight.
        marginals: probabilities of labels, [tokens, labels].
        gold: the label of each token, [tokens].
        l1: weight of the L1 penalty.
        l2: weight of the L2 penalty.

    Returns:
        The gain, and μ.
    """
    slope, _ = _derivatives(0.0, tokens, values, label, marginals, gold)
    if abs(slope) <= l1:
        return 0.0, 0.0
    sign = 1.0 if slope > 0 else -1.0
    low, high = (0.0, LARGEST) if sign > 0 else (-LARGEST, 0.0)
    weight = 0.0
    for _ in range(50):
        slope, curvature = _derivatives(weight, tokens, values, label, marginals, gold)
        slope -= sign * l1 + 2.0 * l2 * weight
        if slope > 0:
            low = weight
        else:
            high = weight
        after = weight + slope / max(curvature + 2.0 * l2, 1e-300)
        if not low <= after <= high:
            after = 0.5 * (low + high)
        done = abs(after - weight) < 1e-9
        weight = after
        if done:
            break
    total = -l1 * abs(weight) - l2 * weight * weight
    for k in range(tokens.shape[0]):
        t = tokens[k]
        x = weight * (values[k] if values.shape[0] > 0 else 1.0)
        total += (x if gold[t] == label else 0.0) - _log_growth(marginals[t, label], x)
    return total, weight


@kernel(EXACT)
def _derivatives(weight, tokens, values, label, marginals, gold):
    """Return slope of the log-likelihood by one weight, and minus its curvature."""
    slope, curvature = 0.0, 0.0
    for k in range(tokens.shape[0]):
        t = tokens[k]
        value = values[k] if values.shape[0] > 0 else 1.0
        p, x = marginals[t, label], weight * value
        q = p / (p + (1.0 - p) * math.exp(-x)) if x > 0 else p * math.exp(x) / (1.0 + p * math.expm1(x))
        slope += value * ((1.0 if gold[t] == label else 0.0) - q)
        curvature += value * value * q * (1.0 - q)
    return slope, curvature


@kernel(EXACT)
def _log_growth(p, x):
    """Return log(1 + p (e^x - 1)) without overflow."""
    return x + math.log(p + (1.0 - p) * math.exp(-x)) if x > 0 else math.log1p(p * math.expm1(x))


@kernel(EXACT)
def best_gains(offsets, tokens, values, allowed, marginals, gold, l1, l2, gains):
    """Set gains[k] = the best gain of one weight of attribute k, whose tokens begin at offsets[k], among the labels
    that are allowed[k].

    Args:
        offsets: [attributes + 1].
        tokens: the tokens that have each attribute, one attribute behind the other.
        values: the value at each of these; empty if all are 1.
        allowed: [attributes, labels] bool.
        marginals: probabilities of labels, [tokens, labels].
        gold: the label of each token, [tokens].
        l1: weight of the L1 penalty.
        l2: weight of the L2 penalty.
        gains: [attributes]; raised.
    """
    for k in range(gains.shape[0]):
        first, last = offsets[k], offsets[k + 1]
        of_these = values[first:last] if values.shape[0] > 0 else values
        for label in range(allowed.shape[1]):
            if allowed[k, label]:
                gain, _ = gain_of(tokens[first:last], of_these, label, marginals, gold, l1, l2)
                gains[k] = max(gains[k], gain)


# The curvature of the likelihood.


@kernel(EXACT)
def add_variances(rows, index, spread, out):
    """Compute out[p] += Σ value² · spread[t, label of p], over the tokens t that have the attribute of weight p.

    Args:
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        spread: p (1 - p) of each label, [tokens, c].
        out: [weights]; added to.
    """
    for t in range(spread.shape[0]):
        for e in range(rows.offsets[t], rows.offsets[t + 1]):
            a, square = rows.ids[e], rows.values[e] * rows.values[e] if rows.values.shape[0] > 0 else 1.0
            for p in range(index.offsets[a], index.offsets[a + 1]):
                out[p] += square * spread[t, index.labels[p]]
