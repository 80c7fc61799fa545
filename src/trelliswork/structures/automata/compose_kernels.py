"""Composition in numba: pairs of states found breadth first, in a hash table of their numbers.

Epsilon on one side alone is a step of that side. Between two common symbols the steps of the first machine come before
those of the second: `held` says that the second has stepped, so that the first must wait for a common symbol. Each pair
of paths is thereby joined in exactly one way.

A machine is (offsets, arcs, labels, target, initial): arcs sorted by (state, label), labels in that order. The number
of a pair is 2 (q1 n2 + q2) + held. A move is (arc of the first, arc of the second, number of the pair it leads to).
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

NO_ARC = -1
FREE = -1


@kernel(EXACT)
def _slot(keys, key):
    """Return the place of a key in the table, or the free place where it belongs."""
    mask = np.uint64(len(keys) - 1)
    hashed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)  # neighbouring pairs, which are many, lie far apart
    place = np.int64((hashed ^ (hashed >> np.uint64(29))) & mask)
    while keys[place] != FREE and keys[place] != key:
        place = (place + 1) & np.int64(mask)
    return place


@kernel(EXACT)
def _with_room(keys, values, size):
    """Return the table, enlarged until `size` keys fill at most half of it."""
    while 2 * size >= len(keys):
        larger, moved = np.full(2 * len(keys), FREE, np.int64), np.empty(2 * len(keys), np.int64)
        for i in range(len(keys)):
            if keys[i] != FREE:
                place = _slot(larger, keys[i])
                larger[place], moved[place] = keys[i], values[i]
        keys, values = larger, moved
    return keys, values


@kernel(EXACT)
def longer(array, size):
    """Return the array, or a copy with room for `size` numbers."""
    if size <= len(array):
        return array
    out = np.empty(max(2 * len(array), size), np.int64)
    out[: len(array)] = array
    return out


@kernel(EXACT)
def _seek(labels, low, high, label):
    """Return the first place in low..high with a label of at least `label`: steps that double, then halving."""
    step = 1
    while low + step < high and labels[low + step] < label:
        low += step
        step *= 2
    high = min(high, low + step)
    while low < high:
        middle = (low + high) >> 1
        if labels[middle] < label:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(EXACT)
def _silent_moves(q1, q2, held, first, second, moves):
    """Steps of one machine alone; returns how many, and where the symbols of each begin."""
    offsets1, arcs1, labels1, target1, _ = first
    offsets2, arcs2, labels2, target2, initial2 = second
    n2, size = len(initial2), 0
    i, j = offsets1[q1], offsets2[q2]
    while i < offsets1[q1 + 1] and labels1[i] == 0:
        if not held:
            moves[size, 0], moves[size, 1], moves[size, 2] = arcs1[i], NO_ARC, 2 * (target1[arcs1[i]] * n2 + q2)
            size += 1
        i += 1
    waits = i > offsets1[q1]  # with no silent step of its own, the first has nothing to be held back from
    while j < offsets2[q2 + 1] and labels2[j] == 0:
        moves[size, 0], moves[size, 1], moves[size, 2] = NO_ARC, arcs2[j], 2 * (q1 * n2 + target2[arcs2[j]]) + waits
        size += 1
        j += 1
    return size, i, j


@kernel(EXACT)
def _loud_moves(i, end1, j, end2, n2, first, second, moves, size):
    """Steps of both with the same symbol; runs of equal labels are crossed. Returns how many moves there are then.

    What has no place in `moves` is counted only: a loop that may also enlarge it takes four times as long.
    """
    _, arcs1, labels1, target1, _ = first
    _, arcs2, labels2, target2, _ = second
    room = len(moves)
    while i < end1 and j < end2:
        label = labels1[i]
        if label < labels2[j]:
            i = _seek(labels1, i, end1, labels2[j])
        elif label > labels2[j]:
            j = _seek(labels2, j, end2, label)
        else:
            arc1, run = arcs1[i], j
            ahead = target1[arc1] * n2
            while run < end2 and labels2[run] == label:
                if size < room:
                    arc2 = arcs2[run]
                    moves[size, 0], moves[size, 1], moves[size, 2] = arc1, arc2, 2 * (ahead + target2[arc2])
                size += 1
                run += 1
            i += 1
            if i == end1 or labels1[i] != label:
                j = run
    return size


@kernel(EXACT)
def _moves(q1, q2, held, first, second, moves):
    """Room with all moves out of a pair, and how many there are."""
    end1, end2, n2 = first[0][q1 + 1], second[0][q2 + 1], len(second[4])
    n_out = end1 - first[0][q1] + end2 - second[0][q2]
    if n_out > len(moves):
        moves = np.empty((2 * n_out, 3), np.int64)
    n_silent, i, j = _silent_moves(q1, q2, held, first, second, moves)
    size = _loud_moves(i, end1, j, end2, n2, first, second, moves, n_silent)
    if size > len(moves):
        larger = np.empty((2 * size, 3), np.int64)
        larger[:n_silent] = moves[:n_silent]
        moves = larger
        _loud_moves(i, end1, j, end2, n2, first, second, moves, n_silent)
    return moves, size


@kernel(EXACT)
def _starts(initial1, initial2):
    """Return pairs of states in which both machines may begin."""
    n2, pairs, size = len(initial2), np.empty(16, np.int64), 0
    for q1 in range(len(initial1)):
        for q2 in range(n2 if initial1[q1] > -np.inf else 0):
            if initial2[q2] > -np.inf:
                pairs = longer(pairs, size + 1)
                pairs[size] = 2 * (q1 * n2 + q2)
                size += 1
    return pairs, size


@kernel(EXACT)
def _enter(moves, keys, values, pairs, n_pairs, target):
    """Number the pairs that moves lead to: new ones get the next numbers. Returns the number of pairs then."""
    for m in range(len(moves)):
        pair = moves[m, 2]
        place = _slot(keys, pair)
        if keys[place] == FREE:
            keys[place], values[place], pairs[n_pairs] = pair, n_pairs, pair
            n_pairs += 1
        target[m] = values[place]
    return n_pairs


@kernel(EXACT)
def compose(first, second, limit):
    """Return all reachable pairs of states and the arcs between them.

    Returns the numbers of the pairs, and for each arc (source, target, arc of the first, arc of the second), -1 for
    none; arcs are in the order of their sources. It stops when there are more than `limit` pairs.

    Args:
        first: arrays of the first machine.
        second: arrays of the second machine.
        limit: how many pairs there may be.
    """  # [S2, WFST composition]
    n2 = max(len(second[4]), 1)
    pairs, n_pairs = _starts(first[4], second[4])
    keys, values = _with_room(np.full(1024, FREE, np.int64), np.empty(1024, np.int64), n_pairs)
    for number in range(n_pairs):
        place = _slot(keys, pairs[number])
        keys[place], values[place] = pairs[number], number
    source, target, by1, by2 = (np.empty(4096, np.int64), np.empty(4096, np.int64), np.empty(4096, np.int64),
                                np.empty(4096, np.int64))  # fmt: skip
    moves, n_arcs, done = np.empty((256, 3), np.int64), 0, 0
    while done < n_pairs and n_pairs <= limit:
        q1, q2 = (pairs[done] >> 1) // n2, (pairs[done] >> 1) % n2
        moves, size = _moves(q1, q2, pairs[done] & 1, first, second, moves)
        keys, values = _with_room(keys, values, n_pairs + size)
        pairs = longer(pairs, n_pairs + size)
        source, target = longer(source, n_arcs + size), longer(target, n_arcs + size)
        by1, by2 = longer(by1, n_arcs + size), longer(by2, n_arcs + size)
        n_pairs = _enter(moves[:size], keys, values, pairs, n_pairs, target[n_arcs:])
        source[n_arcs : n_arcs + size] = done
        by1[n_arcs : n_arcs + size], by2[n_arcs : n_arcs + size] = moves[:size, 0], moves[:size, 1]
        n_arcs += size
        done += 1
    return pairs[:n_pairs], source[:n_arcs], target[:n_arcs], by1[:n_arcs], by2[:n_arcs]
