"""Beam search over parser states with a feed-forward unit, row by row, which may stop where what is right falls off."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.nn.transitions.kernels import (
    WRONG,
    Pinned,
    best_of,
    first_decision,
    forbid,
    label_of,
    log_total,
    score_state,
    set_targets,
    value_of,
)
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_heap import offer, sort_heap
from trelliswork.structures.beam.parse_kernels import (
    N_MOVES,
    N_SLOTS,
    SWAP,
    Parse,
    begin,
    describe,
    is_finished,
    move_of,
    take_move,
)

NEG_INF = -np.inf
NOTHING, SEQUENCE, TREE = range(3)  # what is right


class Right(NamedTuple):
    """What is right in a row: nothing is said, these decisions alone, or all that lead to a tree [n+1] (arc-hybrid)."""

    kind: Any
    decisions: Any
    heads: Any
    labels: Any


class Room(NamedTuple):
    """Where a search works: the hypotheses before and after a step, and what is computed for one of them."""

    parses: Any  # a `Parse` whose fields have a row for each hypothesis; those of the next step stand behind
    totals: Any
    best: Any
    codes: Any
    words: Any
    hidden: Any
    scores: Any
    allowed: Any
    costs: Any
    targets: Any
    marks: Any  # of each hypothesis and decision, whether all was right so far and it is too
    right: Any  # of each hypothesis before and after a step


class Trail(NamedTuple):
    """For each step and hypothesis its parent and its decision, -1 if it had finished."""

    parents: Any
    decisions: Any


class Found(NamedTuple):
    """How many steps were taken, how many hypotheses are left, whether a right one is among them.

    If not, the best one that has just fallen off: the hypothesis that it came from, and its decision.
    """

    n_steps: Any
    size: Any
    is_right: Any
    parent: Any
    decision: Any


@kernel(EXACT)
def new_room(net, beam, longest):
    n = longest + 1
    parses = Parse(
        np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64),
        np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64),
        np.ones((2 * beam, 2), np.int64),
    )  # fmt: skip
    return Room(
        parses, np.zeros(beam), np.zeros(beam), np.zeros(beam, np.int64), np.empty(N_SLOTS, np.int64),
        np.empty_like(net.bias), np.empty_like(net.offset), np.empty(N_MOVES, np.bool_), np.empty(N_MOVES, np.int64),
        np.empty(N_MOVES, np.int64), np.zeros((beam, len(net.offset) + 1), np.bool_), np.zeros((2, beam), np.bool_),
    )  # fmt: skip


@kernel(EXACT)
def new_trail(beam, n_steps):
    return Trail(np.empty((n_steps, beam), np.int64), np.empty((n_steps, beam), np.int64))


@kernel(EXACT)
def parse_at(parses, i):
    return Parse(
        parses.stack[i], parses.queue[i], parses.heads[i], parses.labels[i], parses.left[i], parses.right[i],
        parses.at[i],
    )  # fmt: skip


@kernel(EXACT)
def copy_parse(parses, source, to):
    parses.stack[to], parses.queue[to], parses.at[to] = parses.stack[source], parses.queue[source], parses.at[source]
    parses.heads[to], parses.labels[to] = parses.heads[source], parses.labels[source]
    parses.left[to], parses.right[to] = parses.left[source], parses.right[source]


@kernel(EXACT)
def search_row(rules, net, row, n, known, right, room, trail):
    """The beam of a row; it stops where nothing that is right is left."""
    beam, a = len(room.totals), len(room.scores)
    size, side, step, parent, decision, unfinished = 1, 0, 0, -1, -1, True
    begin(parse_at(room.parses, 0))
    room.totals[0], room.right[0] = 0.0, right.kind != NOTHING
    while unfinished and (right.kind == NOTHING or room.right[side, :size].any()):
        found, highest = 0, NEG_INF
        for place in range(size):
            parse = parse_at(room.parses, side * beam + place)
            room.marks[place] = False
            if is_finished(parse, n):
                found = offer(room.best, room.codes, found, room.totals[place], place * (a + 1) + a)
                room.marks[place, a] = room.right[side, place]
                continue
            before = room.totals[place] - score_hypothesis(rules, net, row, n, known, parse, room)
            for d in range(a):
                if room.scores[d] > NEG_INF:
                    found = offer(room.best, room.codes, found, before + room.scores[d], place * (a + 1) + d)
            if room.right[side, place]:
                mark_right(rules, right, step, parse, n, room, room.marks[place])
                best = best_among(room.scores, room.marks[place])
                if best >= 0 and before + room.scores[best] > highest:
                    highest, parent, decision = before + room.scores[best], place, best
        if found == 0:
            return Found(step, 0, False, -1, -1)
        sort_heap(room.best, room.codes, found)
        for rank in range(found):
            room.right[1 - side, rank] = room.marks[room.codes[rank] // (a + 1), room.codes[rank] % (a + 1)]
        unfinished = advance_beam(rules, n, side, found, room, trail.parents[step], trail.decisions[step])
        size, side, step = found, 1 - side, step + 1
    if side == 1:
        room.right[0, :size] = room.right[1, :size]
        for place in range(size):
            copy_parse(room.parses, beam + place, place)
    return Found(step, size, room.right[0, :size].any(), parent, decision)


@kernel(EXACT)
def mark_right(rules, right, step, parse, n, room, marks):
    """Which decisions are right in a state that right ones have led to."""
    if right.kind == SEQUENCE:
        if step < len(right.decisions) and right.decisions[step] >= 0:
            marks[right.decisions[step]] = True
        return
    set_targets(rules, parse, n, right.heads, right.labels, room.allowed, room.costs, room.targets)
    for move in range(SWAP):
        first, end = first_decision(move, rules.n_labels), first_decision(move + 1, rules.n_labels)
        if room.targets[move] >= 0:
            marks[first + room.targets[move]] = True
        elif room.targets[move] != WRONG:
            marks[first:end] = True


@kernel(EXACT)
def best_among(scores, marks):
    """The best of the decisions that are marked, -1 if none is."""
    best = -1
    for d in range(len(scores)):
        if marks[d] and (best < 0 or scores[d] > scores[best]):
            best = d
    return best


@kernel(EXACT)
def score_hypothesis(rules, net, row, n, known, parse, room):
    """Fill in the scores of the decisions in a state; returns ln Σ exp of them less the value of the state."""
    describe(parse, n, room.words)
    score_state(net, row, room.words, room.hidden, room.scores)
    forbid(rules, parse, n, known, room.allowed, room.costs, room.scores)
    highest = room.scores[best_of(room.scores)]
    return log_total(room.scores, highest) - value_of(net, room.hidden) if highest > NEG_INF else 0.0


@kernel(EXACT)
def advance_beam(rules, n, side, size, room, parents, decisions):
    """Make the hypotheses that were chosen, on the other side; returns whether one of them goes on."""
    beam, a, unfinished = len(room.totals), len(room.scores), False
    for rank in range(size):
        parents[rank], decision = room.codes[rank] // (a + 1), room.codes[rank] % (a + 1)
        to = (1 - side) * beam + rank
        copy_parse(room.parses, side * beam + parents[rank], to)
        decisions[rank] = -1
        if decision < a:
            decisions[rank] = decision
            label = label_of(decision, rules.n_labels)
            take_move(rules.kind, parse_at(room.parses, to), move_of(decision, rules.n_labels), label)
        unfinished = unfinished or not is_finished(parse_at(room.parses, to), n)
        room.totals[rank] = room.best[rank]
    return unfinished


@kernel(EXACT)
def beam_rows(rules, net, lengths, pinned, n_steps, heads, labels, scores):
    """Heads and labels [batch, beam, n+1] of the best hypotheses and their scores, -inf where there are fewer.

    Returns the first row in which nothing was left, or -1.
    """
    beam = scores.shape[1]
    room, trail = new_room(net, beam, heads.shape[2] - 1), new_trail(beam, n_steps)
    nothing = Right(NOTHING, lengths[:0], lengths[:0], lengths[:0])
    scores[:] = NEG_INF
    for row in range(len(lengths)):
        known = Pinned(pinned.heads[row], pinned.labels[row])
        found = search_row(rules, net, row, lengths[row], known, nothing, room, trail)
        if found.size == 0:
            return row
        for rank in range(found.size):
            heads[row, rank], labels[row, rank] = room.parses.heads[rank], room.parses.labels[rank]
            scores[row, rank] = room.totals[rank]
    return -1
