"""Feature CRFs by enumeration: scores from plain loops over weights, sums over every labelling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.taggers.features.crf.parameters import Parameters


def corpus(
    n_labels: int,
    *,
    n_sentences: int = 8,
    longest: int = 4,
    n_attributes: int = 12,
    seed: int = 0,
    valued: bool = False,
) -> tuple[AttributeRows, np.ndarray]:
    """Random sentences, one of length 1 among them, and their labels."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, n_sentences)
    lengths[0] = 1
    counts = random.integers(0, 5, lengths.sum())
    ids = random.integers(0, n_attributes, counts.sum()).astype(np.int32)
    values = random.normal(size=len(ids)) if valued else None
    rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), ids, values)
    return rows, random.integers(0, n_labels, lengths.sum())


def score(rows: AttributeRows, s: int, labels: Sequence[int], parameters: Parameters, weights: np.ndarray) -> float:
    """The score of one labelling of sentence s."""
    first, n_states, n_labels = int(rows.starts[s]), parameters.n_states, parameters.n_labels
    arcs = {tuple(arc): n_states + k for k, arc in enumerate(parameters.arcs.tolist())}
    total, after = 0.0, n_states + len(parameters.arcs)
    if parameters.legal is not None:
        total += parameters.legal.start[labels[0]] + parameters.legal.end[labels[-1]]
        total += sum(float(parameters.legal.arcs[pair]) for pair in itertools.pairwise(labels))
    for i, label in enumerate(labels):
        for e in range(rows.offsets[first + i], rows.offsets[first + i + 1]):
            a, value = int(rows.ids[e]), 1.0 if rows.values is None else float(rows.values[e])
            for p in range(parameters.offsets[a], parameters.offsets[a + 1]):
                total += value * weights[p] * (parameters.labels[p] == label)
            if i > 0 and parameters.pairs is not None:
                for p in range(parameters.pairs.offsets[a], parameters.pairs.offsets[a + 1]):
                    hit = parameters.pairs.arcs[p] == labels[i - 1] * n_labels + label
                    total += value * weights[after + p] * hit
        if i > 0 and (labels[i - 1], label) in arcs:
            total += weights[arcs[labels[i - 1], label]]
    return total


def labellings(n: int, n_labels: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(n_labels), repeat=n)


def agrees(labels: Sequence[int], codes: Sequence[int], sets: np.ndarray) -> bool:
    return all(y == code if code >= 0 else sets[-1 - code, y] for y, code in zip(labels, codes, strict=True))


def loss(
    rows: AttributeRows, gold: np.ndarray, parameters: Parameters, weights: np.ndarray,
    shares: np.ndarray | None = None, sets: np.ndarray | None = None,
) -> float:  # fmt: skip
    """Σ_s shares_s (log Z_s - log Z_s of what gold allows)."""
    sets = np.ones((1, parameters.n_labels), np.bool_) if sets is None else sets
    total = 0.0
    for s, n in enumerate(rows.lengths.tolist()):
        codes = gold[rows.starts[s] : rows.starts[s + 1]].tolist()
        scores = {y: score(rows, s, y, parameters, weights) for y in labellings(n, parameters.n_labels)}
        kept = [value for y, value in scores.items() if agrees(y, codes, sets)]
        share = 1.0 if shares is None else float(shares[s])
        total += share * (log_sum(list(scores.values())) - log_sum(kept))
    return total


def log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
