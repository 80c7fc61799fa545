"""Beam search over parser states with a feed-forward unit, row by row, and early update."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.nn.transitions.kernels import (
    Pinned,
    best_of,
    forbid,
    label_of,
    log_total,
    score_state,
)
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_heap import offer, sort_heap
from trelliswork.structures.beam.parse_kernels import (
    N_MOVES,
    N_SLOTS,
    Parse,
    begin,
    describe,
    is_finished,
    move_of,
    new_parse,
    take_move,
)

NEG_INF = -np.inf


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


class Trail(NamedTuple):
    """For each step and hypothesis its parent and its decision, -1 if it had finished."""

    parents: Any
    decisions: Any


class Found(NamedTuple):
    """How many steps were taken and hypotheses are left, and which is gold: -1 if it fell off, with its score."""

    n_steps: Any
    size: Any
    gold: Any
    gold_score: Any


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
def search_row(rules, net, row, n, known, gold, is_local, room, trail):
    """The beam of a row; with `gold` decisions it stops where they fall off. Scores are ln p if `is_local`."""
    beam, a = len(room.totals), len(room.scores)
    size, side, step, gold_at, gold_score, unfinished = 1, 0, 0, 0, 0.0, True
    begin(parse_at(room.parses, 0))
    room.totals[0] = 0.0
    while unfinished and gold_at >= 0:
        found = 0
        wanted = gold[step] if step < len(gold) and gold[step] >= 0 else a
        for place in range(size):
            parse = parse_at(room.parses, side * beam + place)
            if is_finished(parse, n):
                found = offer(room.best, room.codes, found, room.totals[place], place * (a + 1) + a)
                continue
            norm = score_hypothesis(rules, net, row, n, known, is_local, parse, room)
            before = room.totals[place] - norm
            for d in range(a):
                if room.scores[d] > NEG_INF:
                    found = offer(room.best, room.codes, found, before + room.scores[d], place * (a + 1) + d)
            if place == gold_at and wanted < a:
                gold_score = before + room.scores[wanted]
        if found == 0:
            return Found(step, 0, -1, gold_score)
        sort_heap(room.best, room.codes, found)
        before_at = gold_at
        gold_at = 0 if len(gold) == 0 else -1
        for rank in range(found):
            if len(gold) > 0 and room.codes[rank] == before_at * (a + 1) + wanted:
                gold_at = rank
        unfinished = advance_beam(rules, n, side, found, room, trail.parents[step], trail.decisions[step])
        size, side, step = found, 1 - side, step + 1
    if side == 1:
        for place in range(size):
            copy_parse(room.parses, beam + place, place)
    return Found(step, size, gold_at, gold_score)


@kernel(EXACT)
def score_hypothesis(rules, net, row, n, known, is_local, parse, room):
    """Fill in the scores of the decisions in a state; returns ln Σ exp of them if `is_local`, else 0."""
    describe(parse, n, room.words)
    score_state(net, row, room.words, room.hidden, room.scores)
    forbid(rules, parse, n, known, room.allowed, room.costs, room.scores)
    highest = room.scores[best_of(room.scores)]
    return log_total(room.scores, highest) if is_local and highest > NEG_INF else 0.0


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
def beam_rows(rules, net, lengths, pinned, is_local, n_steps, heads, labels, scores):
    """Heads and labels [batch, beam, n+1] of the best hypotheses and their scores, -inf where there are fewer.

    Returns the first row in which nothing was left, or -1.
    """
    beam = scores.shape[1]
    room, trail = new_room(net, beam, heads.shape[2] - 1), new_trail(beam, n_steps)
    nothing = np.empty(0, np.int64)
    scores[:] = NEG_INF
    for row in range(len(lengths)):
        known = Pinned(pinned.heads[row], pinned.labels[row])
        found = search_row(rules, net, row, lengths[row], known, nothing, is_local, room, trail)
        if found.size == 0:
            return row
        for rank in range(found.size):
            heads[row, rank], labels[row, rank] = room.parses.heads[rank], room.parses.labels[rank]
            scores[row, rank] = room.totals[rank]
    return -1


@kernel(EXACT)
def early_rows(rules, net, lengths, pinned, gold, paths, gold_paths):
    """The paths [batch, beam + 1, steps] of each row's beam where the search ends or gold falls off; -2 for none.

    A path that has finished goes on with -1. `gold_paths` says which is gold; one that fell off is put behind the
    others.
    """
    beam, n_steps = paths.shape[1] - 1, paths.shape[2]
    room, trail = new_room(net, beam, pinned.heads.shape[1] - 1), new_trail(beam, n_steps)
    paths[:] = -2
    for row in range(len(lengths)):
        known = Pinned(pinned.heads[row], pinned.labels[row])
        found = search_row(rules, net, row, lengths[row], known, gold[row], False, room, trail)
        for rank in range(found.size):
            place = rank
            for step in range(found.n_steps - 1, -1, -1):
                paths[row, rank, step] = trail.decisions[step, place]
                place = trail.parents[step, place]
        gold_paths[row] = found.gold
        if found.gold < 0:
            gold_paths[row] = found.size
            paths[row, found.size, : found.n_steps] = gold[row, : found.n_steps]


@kernel(EXACT)
def common_start(first, second):
    """How many decisions two paths begin with alike."""
    for step in range(len(first)):
        if first[step] != second[step] or first[step] < 0:
            return step
    return len(first)


@kernel(EXACT)
def count_nodes(paths):
    """How many decisions all paths take together."""
    total = 0
    for decision in paths.flat:
        total += decision >= 0
    return total


@kernel(EXACT)
def path_nodes(rules, lengths, paths, rows, words, decisions, members):
    """Each decision that paths take, once where they share it: its state, and (path, node) for each path through it.

    Returns how many nodes and memberships there are.
    """
    n_rows, n_paths, n_steps = paths.shape
    node_of, longest = np.empty((n_paths, n_steps), np.int64), lengths.max()
    parse = new_parse(longest)
    m, k = 0, 0
    for row in range(n_rows):
        for path in range(n_paths):
            taken, shared, other = paths[row, path], 0, 0
            for before in range(path):
                alike = common_start(taken, paths[row, before])
                if alike > shared:
                    shared, other = alike, before
            begin(parse)
            for step in range(n_steps):
                if taken[step] < 0:
                    break
                if step < shared:
                    node_of[path, step] = node_of[other, step]
                else:
                    rows[m], decisions[m], node_of[path, step] = row, taken[step], m
                    describe(parse, lengths[row], words[m])
                    m += 1
                members[k, 0], members[k, 1] = row * n_paths + path, node_of[path, step]
                k += 1
                take_move(
                    rules.kind, parse, move_of(taken[step], rules.n_labels), label_of(taken[step], rules.n_labels)
                )
    return m, k
