"""Families of arrays that travel together: what the kernels of the feature taggers read and write."""

from __future__ import annotations

from typing import NamedTuple

from trelliswork.runtime.arrays import Array


class Legal(NamedTuple):
    """The labels and arcs that a tag scheme allows, as scores to add: 0, or -inf where it is forbidden."""

    arcs: Array  # [c, c]
    start: Array  # [c]
    end: Array  # [c]


class WeightIndex(NamedTuple):
    """Attribute a has a weight for each of labels[offsets[a]:offsets[a+1]], then come those of the arcs.

    The weight of arc (i, j) is at places[i, j], or nowhere if that is -1; forbidden arcs have none.
    """

    offsets: Array  # [attributes + 1]
    labels: Array  # [state weights]
    arcs: Array  # [arc weights, 2]
    places: Array  # [c, c]
    legal: Legal


class EdgeRows(NamedTuple):
    """Token t has the attributes ids[offsets[t]:offsets[t+1]] that look at neighbouring labels."""

    offsets: Array  # [tokens + 1], or [1]: no token has any
    ids: Array
    values: Array  # the same, or empty: all 1
    pair_offsets: Array  # [attributes + 1] attribute a has the weights pair_offsets[a]:pair_offsets[a+1]
    pair_arcs: Array  # [pair weights] label before · labels + label


class PlannedRows(NamedTuple):
    """A corpus as `plan` lays it out; tokens in the order of the plan."""

    lengths: Array  # [sentences]
    starts: Array  # [sentences + 1] first token
    dense_offsets: Array  # [tokens + 1]
    dense_rows: Array  # [dense entries] row of the dense table
    dense_values: Array  # the same, or empty: all 1
    loose_offsets: Array  # [tokens + 1]
    loose_weights: Array  # [loose entries] index into the loose weights
    loose_labels: Array
    loose_values: Array


class PlannedWeights(NamedTuple):
    """Weights, or a gradient, as `plan` lays them out."""

    transitions: Array  # [1, 1, c, c]
    table: Array  # [dense attributes, width]
    loose: Array
    pairs: Array  # of attributes that look at neighbouring labels


class Observed(NamedTuple):
    """The knowledge about the labels: one code a token (see `crf.observed`), and how much each sentence counts."""

    gold: Array  # [tokens] a label, or -1 - k for any label of row k of `sets`
    sets: Array  # [k, labels] bool
    shares: Array  # [sentences]


class Arcs(NamedTuple):
    """Transition scores of a sentence: shared, [1, 1, c, c], or by position, [1, n-1, c, c]."""

    scores: Array
    exp: Array  # e^(scores - shift), padded to a multiple of eight
    shifts: Array
    start: Array  # [c]
    end: Array  # [c]


class Path(NamedTuple):
    """Room to decode one sentence."""

    emissions: Array  # [1, longest, c]
    transitions: Array  # [1, 1, c, c]
    tags: Array  # [1, longest]
    start: Array  # [c]
    end: Array  # [c]
    possible: Array  # [1] bool


class Change(NamedTuple):
    """A sparse step: amounts[w] for the weights touched[:n_touched[0]], NaN for others (0 may be a sum)."""

    amounts: Array
    touched: Array
    n_touched: Array  # [1]


class Moving(NamedTuple):
    """Weights that an online learner moves; `sums` has clock · step, so that the average is weights - sums / clock."""

    weights: Array
    sums: Array
    variance: Array  # of AROW; others have none
