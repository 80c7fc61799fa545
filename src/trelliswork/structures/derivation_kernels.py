"""CPU kernels of `derivations.py`: the chart of best scores, and derivations asked for one after another.

A chart is (starts, families, weights, own, best, labels), flat by node; see `Plan.top`.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import at

PAIR = -1
LEFT, RIGHT, FIRST_SPLIT, LAST_SPLIT, GAP = range(5)  # columns of families
# Columns of derivations: those of the parts (or BEST, whose derivation has not been asked for), the next best one of
# the same node (or UNKNOWN or NONE), two more candidates that are no better, the way, and whether it is new.
FOLLOWING, LOWER, OTHER, WAY, IS_NEW = range(2, 7)
BEST = UNKNOWN = -1
NONE = -2
# Columns of nodes: the best derivation, the last that was asked for, the best candidate, and what has to be done next.
FIRST, LATEST, WAITING, STAGE = range(4)
TO_OPEN, TO_TAKE = -1, 2  # stages; 0 and 1: the next derivation of the left part, of the right one


@kernel(EXACT)
def _part(families, size, node, way, side):
    """Return the node on one side of a way, which is a family times the size of the chart, and a split."""
    i, j, family, split = node // size % size, node % size, way // size, way % size
    if families[family, GAP] != PAIR:
        if side == LEFT:
            j = split
        else:
            i = split + families[family, GAP]
    return (families[family, side] * size + i) * size + j


@kernel(EXACT)
def _next_way(chart, size, node, score, way):
    """The best way to make a node that comes after one of this score, and its score; among ties the first."""
    starts, families, weights, own, best, labels = chart
    plane, i, j = node // (size * size), node // size % size, node % size
    top, next_way = NEG_INF, NONE
    if plane >= starts.shape[0] - 1:
        row = labels[node - (starts.shape[0] - 1) * size * size]
        for y in range(row.shape[0]):
            if row[y] > top and (row[y] < score or (row[y] == score and y > way)):
                top, next_way = row[y], y
        return top, next_way
    here = weights[at(i, weights.shape[0]), at(j, weights.shape[1])]
    for f in range(starts[plane], starts[plane + 1]):
        low, high = i + families[f, FIRST_SPLIT], j - families[f, LAST_SPLIT]
        left, one = (families[f, LEFT] * size + i) * size + low, 1
        right, other = (families[f, RIGHT] * size + low + families[f, GAP]) * size + j, size
        if families[f, GAP] == PAIR:
            low = high = 0
            left, right = _part(families, size, node, f * size, LEFT), _part(families, size, node, f * size, RIGHT)
        for split in range(low, high + 1):
            value, this = best[left] + best[right] + here[f] + own[node], f * size + split
            if value > top and (value < score or (value == score and this > way)):
                top, next_way = value, this
            left, right = left + one, right + other
    return top, next_way


@kernel(EXACT)
def fill(chart, size, last):
    """Compute the best score of each node of spans that end by `last`, narrow spans first.

    Args:
        chart: arrays of ways to make each node; best scores are filled in.
        size: number of tokens.
        last: the last token.
    """
    starts, families, best = chart[0], chart[1], chart[4]
    for w in range(last + 1):
        for i in range(last - w + 1):
            for plane in range(starts.shape[0] - 1):
                node, first = (plane * size + i) * size + i + w, starts[plane]
                if first < starts[plane + 1] and (w > 0 or families[first, GAP] == PAIR):
                    best[node], _ = _next_way(chart, size, node, np.inf, NONE)


@kernel(EXACT)
def _add(chart, size, room, used, node, way, left, right):
    """Return a derivation of a node from those of its parts, which are BEST where they have not been asked for."""
    _, families, weights, own, best, labels = chart
    scores, table = room
    lists = (chart[0].shape[0] - 1) * size * size
    if node >= lists:
        scores[used] = labels[node - lists, way]
    elif way == NONE:
        scores[used] = best[node]
    else:
        i, j, family = node // size % size, node % size, way // size
        one = best[_part(families, size, node, way, LEFT)] if left == BEST else scores[left]
        other = best[_part(families, size, node, way, RIGHT)] if right == BEST else scores[right]
        scores[used] = one + other + weights[at(i, weights.shape[0]), at(j, weights.shape[1]), family] + own[node]
    row = table[used]
    row[LEFT], row[RIGHT], row[FOLLOWING], row[LOWER], row[OTHER], row[WAY] = left, right, UNKNOWN, NONE, NONE, way
    row[IS_NEW] = left == BEST and right == BEST
    return used + 1


@kernel(EXACT)
def _join(room, one, other):
    """Two heaps of candidates as one (a skew heap); among ties the lower way, then the older candidate, is on top."""
    scores, table = room
    top, above = NONE, NONE
    while one != NONE and other != NONE:
        if scores[one] < scores[other] or (
            scores[one] == scores[other] and (table[one, WAY], one) > (table[other, WAY], other)
        ):
            one, other = other, one
        if above == NONE:
            top = one
        else:
            table[above, LOWER] = one
        above, one = one, table[one, OTHER]
        table[above, OTHER] = table[above, LOWER]
    rest = other if one == NONE else one
    if above == NONE:
        return rest
    table[above, LOWER] = rest
    return top


@kernel(EXACT)
def _advance(chart, size, nodes, room, used, stack):
    """Find the next derivation of the node on the stack, and what it needs below. Returns how much room is used.

    A candidate has parts (l, r), by rank; those behind it are (l + 1, r) and, if l is the best, (l, r + 1), so that
    each is met once. They wait until it has been taken and another one is asked for.
    """
    families, table, lists, waiting = chart[1], room[1], (chart[0].shape[0] - 1) * size * size, 1
    while waiting > 0:
        if used + 3 > len(table):  # no room for what one round may add
            return len(table) + 1
        node = stack[waiting - 1]
        state, latest = nodes[node], nodes[node, LATEST]
        way, side = table[latest, WAY], state[STAGE]
        if side == TO_TAKE:
            table[latest, FOLLOWING] = top = state[WAITING]
            if top != NONE:
                state[LATEST], state[WAITING] = top, _join(room, table[top, LOWER], table[top, OTHER])
            state[STAGE], waiting = TO_OPEN, waiting - 1
        elif side == TO_OPEN:
            state[STAGE] = TO_TAKE if node >= lists or way == NONE else LEFT
            if table[latest, IS_NEW]:
                _, following = _next_way(chart, size, node, room[0][latest], way)
                if following != NONE:
                    used = _add(chart, size, room, used, node, following, BEST, BEST)
                    state[WAITING] = _join(room, state[WAITING], used - 1)
        else:
            part = _part(families, size, node, way, side)
            if table[latest, side] == BEST:
                used = _open(chart, size, nodes, room, used, part)
                table[latest, side] = nodes[part, FIRST]
            left, right, following = table[latest, LEFT], table[latest, RIGHT], table[table[latest, side], FOLLOWING]
            if side == RIGHT and left != nodes[_part(families, size, node, way, LEFT), FIRST]:
                following = NONE
            if following == UNKNOWN:
                stack[waiting], waiting = part, waiting + 1
                continue
            state[STAGE] += 1
            if following != NONE:
                left, right = (following, right) if side == LEFT else (left, following)
                used = _add(chart, size, room, used, node, way, left, right)
                state[WAITING] = _join(room, state[WAITING], used - 1)
    return used


@kernel(EXACT)
def _open(chart, size, nodes, room, used, node):
    """Write down the best derivation of a node unless it has been."""
    if nodes[node, FIRST] >= 0:
        return used
    _, way = _next_way(chart, size, node, np.inf, NONE)
    nodes[node, FIRST] = nodes[node, LATEST] = used
    nodes[node, WAITING], nodes[node, STAGE] = NONE, TO_OPEN
    return _add(chart, size, room, used, node, way, BEST, BEST)


@kernel(EXACT)
def _trace(chart, size, table, start, derivation, shown, stack, nodes):
    """Compute the nodes of one derivation."""
    starts, families = chart[0], chart[1]
    waiting, done = 1, 0
    stack[0, 0], stack[0, 1] = start, derivation
    while waiting > 0:
        waiting -= 1
        node, derivation = stack[waiting, 0], stack[waiting, 1]
        plane, left, right = node // (size * size), BEST, BEST
        if derivation == BEST:
            _, way = _next_way(chart, size, node, np.inf, NONE)
        else:
            way, left, right = table[derivation, WAY], table[derivation, LEFT], table[derivation, RIGHT]
        if plane >= shown:
            nodes[done] = (plane, node // size % size, node % size, way)
            done += 1
        if way != NONE and plane < starts.shape[0] - 1:
            stack[waiting, 0], stack[waiting, 1] = _part(families, size, node, way, RIGHT), right
            stack[waiting + 1, 0], stack[waiting + 1, 1] = _part(families, size, node, way, LEFT), left
            waiting += 2


@kernel(EXACT)
def top_derivations(chart, size, start, shown, room, derivations, scores):
    """Find the best derivations of a node, as many as there is room for; False if they need more room.

    Args:
        chart: arrays of ways to make each node, with best scores.
        size: number of tokens.
        start: the node whose derivations are asked for.
        shown: which nodes are written.
        room: arrays for the derivations of nodes.
        derivations: int64 [k, nodes, 3], filled in.
        scores: float64 [k], filled in.
    """
    n_nodes = chart[4].shape[0]
    nodes, stack = np.empty((n_nodes, 4), np.int64), np.empty((4 * n_nodes // size + 8, 2), np.int64)
    nodes[:, FIRST] = NONE
    if chart[4][start] == NEG_INF:
        return True
    used = _open(chart, size, nodes, room, 0, start)
    for rank in range(len(scores)):
        this = nodes[start, LATEST]
        scores[rank] = room[0][this]
        _trace(chart, size, room[1], start, this, shown, stack, derivations[rank])
        if rank + 1 < len(scores):
            stack[0, 0] = start
            used = _advance(chart, size, nodes, room, used, stack[:, 0])
            if used > len(room[1]):
                return False
            if nodes[start, LATEST] == this:
                break
    return True
