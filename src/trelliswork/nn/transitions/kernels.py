"""Kernels of a feed-forward unit over parser states: greedy parsing, and the states of training.

Arrays of the kernels, for a batch of sentences of up to n words and m states:

    lengths [batch]             words of each sentence
    heads, labels [batch, n+1]  of each word; column 0 is the root
    rows [m]                    sentence of each state
    words [m, slots]            the words that describe it
    allowed [m, moves]          the moves that the system allows in it
    targets [m, moves]          the label that each correct move should have; ANY_LABEL or WRONG

Decisions are a shift, then left and right arcs with each label, then a swap if the system has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.structures.beam.parse_kernels import (
    FRONT,
    HEIGHT,
    HYBRID,
    LEFT,
    N_MOVES,
    N_SLOTS,
    RIGHT,
    SHIFT,
    SWAP,
    allow,
    begin,
    describe,
    hybrid_costs,
    is_finished,
    move_of,
    new_parse,
    take_move,
)

ANY_LABEL, WRONG = -1, -2


class Rules(NamedTuple):
    """A transition system: its kind, whether only one word depends on the root, and the number of labels."""

    kind: int
    single_root: bool
    n_labels: int


class Net(NamedTuple):
    """A feed-forward unit, and what the words of a batch add in each slot.

    Attributes:
        projected: [batch, n+2, slots, hidden], from `TBRU.project`.
        bias: [hidden].
        weight: Weight of the output layer, [hidden, decisions].
        offset: Its bias, [decisions].
        value: Weight and bias of the value of a state, [hidden + 1].
    """

    projected: Array
    bias: Array
    weight: Array
    offset: Array
    value: Array


class Pinned(NamedTuple):
    """Heads and labels [batch, n+1] that are known, -1 elsewhere; heads can be pinned in the arc-hybrid system only."""

    heads: Array
    labels: Array


@kernel(FAST)
def score_state(net, row, words, hidden, scores):
    """Fill in the hidden units of a state before the ReLU, and the scores of all its decisions.

    Args:
        net: The unit that scores decisions.
        row: The row of the batch.
        words: The words that describe the state, int64 [slots].
        hidden: Float32 [hidden], filled in.
        scores: Float32 [decisions], filled in.
    """
    table, zero = net.projected[row], hidden.dtype.type(0.0)
    hidden[:] = net.bias
    for slot in range(N_SLOTS):
        add(table[words[slot] % len(table), slot], hidden)  # word -1 is the last row
    scores[:] = net.offset
    for j in range(len(hidden)):
        if hidden[j] > zero:  # after the ReLU many units are 0: their weights need not be read
            add_times(hidden[j], net.weight[j], scores)


@kernel(FAST)
def value_of(net, hidden):
    """Return the value of a state whose `hidden` units `score_state` has filled in."""
    total, zero = net.value[len(hidden)], hidden.dtype.type(0.0)
    for j in range(len(hidden)):
        total += net.value[j] * max(hidden[j], zero)
    return total


@kernel(FAST)
def add(row, to):
    for j in range(len(to)):
        to[j] += row[j]


@kernel(FAST)
def add_times(factor, row, to):
    """Add a multiple of a row.

    Args:
        factor: What the row is multiplied by.
        row: [size].
        to: [size], added to.
    """
    for j in range(len(to)):
        to[j] += factor * row[j]


@kernel(EXACT)
def first_decision(move, n_labels):
    """Return the first decision of a move; those of the next move follow its decisions."""
    if move == SHIFT:
        return 0
    return 1 + (move - LEFT) * n_labels


@kernel(EXACT)
def dependent_of(rules, parse, move):
    """Return the word that the arc of a move gives a head.

    Args:
        rules: The transition system.
        parse: The state.
        move: LEFT or RIGHT.
    """
    below = 2 if rules.kind != HYBRID and move == LEFT else 1
    return parse.stack[parse.at[HEIGHT] - below]


@kernel(EXACT)
def forbid(rules, parse, n, pinned, allowed, costs, scores):
    """Set the scores of decisions that the system or the pins do not allow to -inf.

    Args:
        rules: The transition system.
        parse: The state.
        n: Number of words.
        pinned: Heads and labels that are known.
        allowed: Moves that the system allows, bool [moves], filled in.
        costs: Room for the costs of moves, int64 [moves].
        scores: Scores of decisions, changed in place.
    """
    allow(rules.kind, rules.single_root, parse, n, allowed)
    if rules.kind == HYBRID:
        hybrid_costs(parse, pinned.heads, n, costs)  # a move that costs something makes a pinned arc impossible
        for move in range(SWAP):
            allowed[move] = allowed[move] and costs[move] == 0
    for move in range(N_MOVES):
        first, end = first_decision(move, rules.n_labels), first_decision(move + 1, rules.n_labels)
        if move == SWAP:
            end = len(scores)
        if not allowed[move]:
            scores[first:end] = NEG_INF
        elif move in (LEFT, RIGHT):
            label = pinned.labels[dependent_of(rules, parse, move)]
            for other in range(rules.n_labels):
                if label >= 0 and other != label:
                    scores[first + other] = NEG_INF


@kernel(FAST)
def log_total(scores, highest):
    """Return ln Σ exp score; `highest` is the maximum."""
    total = 0.0
    for d in range(len(scores)):
        if scores[d] > NEG_INF:
            total += exp_of(scores[d] - highest)
    return highest + np.log(total)


@kernel(EXACT)
def best_of(scores):
    best = 0
    for d in range(1, len(scores)):
        if scores[d] > scores[best]:
            best = d
    return best


@kernel(EXACT)
def label_of(decision, n_labels):
    return (decision - 1) % n_labels if 0 < decision <= 2 * n_labels else 0


@kernel(EXACT)
def greedy_rows(rules, net, lengths, pinned, heads, labels, log_probs):
    """Parse all rows greedily; return the first row in which no decision was possible, or -1.

    Args:
        rules: The transition system.
        net: The unit that scores decisions.
        lengths: Words of each row, int64 [batch].
        pinned: Heads and labels that are known.
        heads: Int64 [batch, n+1], filled in.
        labels: Int64 [batch, n+1], filled in.
        log_probs: Ln p of the decision for each word's arc, float64 [batch, n+1], filled in; column 0 has that of all
            shifts and swaps.
    """
    longest = heads.shape[1] - 1
    parse, words = new_parse(longest), np.empty(N_SLOTS, np.int64)
    hidden, scores = np.empty_like(net.bias), np.empty_like(net.offset)
    allowed, costs = np.empty(N_MOVES, np.bool_), np.empty(N_MOVES, np.int64)
    for row in range(len(lengths)):
        n = lengths[row]
        known = Pinned(pinned.heads[row], pinned.labels[row])
        begin(parse)
        log_probs[row] = 0.0
        while not is_finished(parse, n):
            describe(parse, n, words)
            score_state(net, row, words, hidden, scores)
            forbid(rules, parse, n, known, allowed, costs, scores)
            decision = best_of(scores)
            if scores[decision] == NEG_INF:
                return row
            move = move_of(decision, rules.n_labels)
            word = dependent_of(rules, parse, move) if move in (LEFT, RIGHT) else 0
            log_probs[row, word] += scores[decision] - log_total(scores, scores[decision])
            take_move(rules.kind, parse, move, label_of(decision, rules.n_labels))
        heads[row], labels[row] = parse.heads, parse.labels
    return -1


@kernel(EXACT)
def replay_rows(rules, lengths, decisions, rows, words, allowed):
    """List the states along given decisions; return their number.

    Args:
        rules: The transition system.
        lengths: Words of each row, int64 [batch].
        decisions: Int64 [batch, steps], padded with -1.
        rows: Row of each state, int64 [m], filled in.
        words: The words that describe it, int64 [m, slots], filled in.
        allowed: The moves that are allowed in it, bool [m, moves], filled in.
    """
    parse, m = new_parse(lengths.max()), 0
    for row in range(len(lengths)):
        n, step = lengths[row], 0
        begin(parse)
        while not is_finished(parse, n) and step < decisions.shape[1] and decisions[row, step] >= 0:
            decision = decisions[row, step]
            rows[m] = row
            describe(parse, n, words[m])
            allow(rules.kind, rules.single_root, parse, n, allowed[m])
            take_move(rules.kind, parse, move_of(decision, rules.n_labels), label_of(decision, rules.n_labels))
            m, step = m + 1, step + 1
    return m


@kernel(EXACT)
def set_targets(rules, parse, n, gold_heads, gold_labels, allowed, costs, targets):
    """Fill in the label that each move should have: WRONG if it makes a gold arc impossible.

    It is ANY_LABEL if the move adds no gold arc, so that its label does not matter.

    Args:
        rules: The transition system.
        parse: The state.
        n: Number of words.
        gold_heads: Gold heads, int64 [n+1].
        gold_labels: Gold labels, int64 [n+1].
        allowed: Moves that the system allows, bool [moves], filled in.
        costs: Room for the costs of moves, int64 [moves].
        targets: Int64 [moves], filled in.
    """
    allow(rules.kind, rules.single_root, parse, n, allowed)
    hybrid_costs(parse, gold_heads, n, costs)
    top, height = parse.stack[parse.at[HEIGHT] - 1], parse.at[HEIGHT]
    for move in range(N_MOVES):
        targets[move] = ANY_LABEL if allowed[move] and costs[move] == 0 else WRONG
    if targets[LEFT] == ANY_LABEL and gold_heads[top] == parse.queue[parse.at[FRONT]]:
        targets[LEFT] = gold_labels[top]
    if targets[RIGHT] == ANY_LABEL and gold_heads[top] == parse.stack[height - 2]:
        targets[RIGHT] = gold_labels[top]


@kernel(EXACT)
def keep_right(rules, targets, scores):
    """Set the scores of incorrect decisions to -inf.

    Args:
        rules: The transition system.
        targets: The label that each correct move should have, int64 [moves].
        scores: Scores of decisions, changed in place.
    """
    for move in range(SWAP):
        first, end = first_decision(move, rules.n_labels), first_decision(move + 1, rules.n_labels)
        for d in range(first, end):
            if targets[move] == WRONG or (targets[move] >= 0 and d - first != targets[move]):
                scores[d] = NEG_INF


@kernel(EXACT)
def explore_rows(rules, net, lengths, gold, chances, rows, words, allowed, targets):
    """List the states of an arc-hybrid parser with a dynamic oracle; return their number.

    Args:
        rules: The transition system.
        net: The unit that scores decisions.
        lengths: Words of each row, int64 [batch].
        gold: Heads and labels [batch, n+1].
        chances: True where it follows its own best decision, otherwise its best correct one, bool [m].
        rows: Row of each state, int64 [m], filled in.
        words: The words that describe it, int64 [m, slots], filled in.
        allowed: The moves that are allowed in it, bool [m, moves], filled in.
        targets: The label that each correct move should have, int64 [m, moves], filled in.
    """
    longest = gold.heads.shape[1] - 1
    parse, m = new_parse(longest), 0
    hidden, scores = np.empty_like(net.bias), np.empty_like(net.offset)
    costs = np.empty(N_MOVES, np.int64)
    for row in range(len(lengths)):
        n = lengths[row]
        begin(parse)
        while not is_finished(parse, n):
            rows[m] = row
            describe(parse, n, words[m])
            score_state(net, row, words[m], hidden, scores)
            set_targets(rules, parse, n, gold.heads[row], gold.labels[row], allowed[m], costs, targets[m])
            for move in range(SWAP):
                if not allowed[m, move]:
                    scores[first_decision(move, rules.n_labels) : first_decision(move + 1, rules.n_labels)] = NEG_INF
            if not chances[m]:
                keep_right(rules, targets[m], scores)
            decision = best_of(scores)
            take_move(rules.kind, parse, move_of(decision, rules.n_labels), label_of(decision, rules.n_labels))
            m += 1
    return m
