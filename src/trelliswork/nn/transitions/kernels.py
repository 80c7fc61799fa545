"""Kernels of a feed-forward unit over parser states: greedy parsing, and the states that training looks at."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.structures.beam.oracle_kernels import hybrid_costs
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
    is_finished,
    move_of,
    new_parse,
    take_move,
)

NEG_INF = -np.inf
ANY_LABEL, WRONG = -1, -2


class Rules(NamedTuple):
    """Which system: its kind, whether one word alone hangs on the root, and how many labels there are."""

    kind: Any
    single_root: Any
    n_labels: Any


class Net(NamedTuple):
    """A unit and what the words of a batch add in each slot; `weight` is [hidden, decisions], `value` [hidden + 1]."""

    projected: Any
    bias: Any
    weight: Any
    offset: Any
    value: Any


class Pinned(NamedTuple):
    """Heads and labels [batch, n+1] that are known; -1 where they are not. Heads are for arc-hybrid alone."""

    heads: Any
    labels: Any


@kernel(FAST)
def score_state(net, row, words, hidden, scores):
    """The scores of all decisions in a state."""
    table, zero = net.projected[row], hidden.dtype.type(0.0)
    hidden[:] = net.bias
    for slot in range(N_SLOTS):
        add(table[words[slot] % len(table), slot], hidden)
    scores[:] = net.offset
    for j in range(len(hidden)):
        if hidden[j] > zero:
            add_times(hidden[j], net.weight[j], scores)


@kernel(FAST)
def value_of(net, hidden):
    """The value of a state whose `hidden` units `score_state` has filled in."""
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
    for j in range(len(to)):
        to[j] += factor * row[j]


@kernel(EXACT)
def first_decision(move, n_labels):
    """Where the decisions of a move begin; those of the next move follow them."""
    if move == SHIFT:
        return 0
    return 1 + (move - LEFT) * n_labels


@kernel(EXACT)
def dependent_of(rules, parse, move):
    """The word that an arc gives a head."""
    below = 2 if rules.kind != HYBRID and move == LEFT else 1
    return parse.stack[parse.at[HEIGHT] - below]


@kernel(EXACT)
def forbid(rules, parse, n, pinned, allowed, costs, scores):
    """-inf for each decision that the system or the pins do not allow."""
    allow(rules.kind, rules.single_root, parse, n, allowed)
    if rules.kind == HYBRID:
        hybrid_costs(parse, pinned.heads, n, costs)
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
    """ln Σ exp score."""
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
    """The best decision in each state, row by row: heads, labels and, of each word, ln p of the decision for its arc.

    Column 0 of `log_probs` has ln p of all shifts and swaps. Returns the first row in which nothing was left, or -1.
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
    """The states along given decisions: the row of each, the words that describe it, and the moves it allows."""
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
    """For each move that loses no gold arc the label that it should have, ANY_LABEL if none is right; else WRONG."""
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
    """-inf for each decision that is not among the right ones."""
    for move in range(SWAP):
        first, end = first_decision(move, rules.n_labels), first_decision(move + 1, rules.n_labels)
        for d in range(first, end):
            if targets[move] == WRONG or (targets[move] >= 0 and d - first != targets[move]):
                scores[d] = NEG_INF


@kernel(EXACT)
def explore_rows(rules, net, lengths, gold, chances, rows, words, allowed, targets):
    """Arc-hybrid states of a parser that follows its own best decision where `chances` are True, else a right one.

    `gold` are heads and labels [batch, n+1]. Fills the row of each state, its words, and for each move whether it is
    allowed and which label is right; returns how many states there are.
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
