"""The k best targets of a source by best-first search over their beginnings.

With the sums of a lattice, a target is written by a random walk whose steps have probabilities q(chunk pair | state).
The probability of a beginning is the sum over all walks that write it; no target that begins with it is more probable.
So beginnings are continued in the order of their probabilities, and a target that is met whole is the best one left:
exact, whatever the number of alignments. There are at most 1/p beginnings of a length that are as probable as p, which
bounds the search.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.lattice_kernels import NONE, explore, sum_up
from trelliswork.models.transducers.pair_ngram.step_kernels import START, add_steps, no_steps
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.frontier_kernels import pop, push

NEGLIGIBLE = 1e-8  # of the probability of a beginning; final probabilities are summed without leaving anything out
ROOM = 4096  # items, to begin with


class Items(NamedTuple):
    """Parts of beginnings: states with their shares, and what is yet to be written of the last chunk."""

    state: Array  # int32
    pending: Array  # int32: the next symbol among `target_symbols`, or -1
    until: Array  # int32: where those of the chunk end
    share: Array  # float64
    next: Array  # int32: the next item of the same beginning
    used: Array  # int64 [1]


class Beginnings(NamedTuple):
    """A tree of strings; whole targets are leaves with the symbol -1."""

    parent: Array  # int32
    symbol: Array  # int32
    length: Array  # int32
    log_prob: Array  # float64
    head: Array  # int32: its first item
    used: Array  # int64 [1]


class Entries(NamedTuple):
    """A table with open addressing, from keys to items; entries of an earlier round are as good as none."""

    key: Array  # int64
    round: Array  # int64
    item: Array  # int32


class Round(NamedTuple):
    """Continuations of one beginning: the items of longer ones by symbol, and its own by position."""

    heads: Array  # int32 [symbol]: the first item
    totals: Array  # float64 [symbol]
    touched: Array  # int32: the symbols that have items
    waiting: Array  # int32 [position]: the first item of the beginning itself that is to be continued


class Room(NamedTuple):
    """The tables of a search."""

    items: Items
    tree: Beginnings
    entries: Entries
    heap: tuple[Array, Array]  # float64, int32: a queue of the beginnings that are to be continued
    numbers: Array  # int64: how many rounds there were, and how many symbols the last one touched


@kernel(EXACT)
def _room(size):
    """Make tables for `size` items."""
    return Room(
        Items(
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size),
            np.empty(size, np.int32), np.zeros(1, np.int64),
        ),
        Beginnings(
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size),
            np.empty(size, np.int32), np.zeros(1, np.int64),
        ),
        Entries(np.empty(size, np.int64), np.zeros(size, np.int64), np.empty(size, np.int32)),
        (np.empty(size), np.empty(size, np.int32)), np.zeros(2, np.int64),
    )  # fmt: skip


@kernel(EXACT)
def _continue(model, lattice, steps, room, round, head):
    """Write what a beginning can write next; return the share of walks that end, or -1 if there is too little room.

    An item is found by its state, and the symbol that it wrote or the place of the next one of its chunk. One that has
    written nothing waits at its position.
    """
    items, entries, position, waiting = room.items, room.entries, lattice.position, round.waiting
    item_state, item_pending, item_until, item_share = items.state, items.pending, items.until, items.share
    item_next, entry_key, entry_round, entry_item = items.next, entries.key, entries.round, entries.item
    heads, totals, touched, numbers = round.heads, round.totals, round.touched, room.numbers
    step_first, step_end, step_pair, step_to = steps.first, steps.end, steps.pair, steps.to
    step_prob, target_first, target_symbols = steps.prob, model.target_first, model.target_symbols
    n, mask, n_marks = waiting.shape[0] - 1, entry_key.shape[0] - 1, model.n_symbols + 1 + target_symbols.shape[0]
    now = numbers[0] + 1
    made, n_touched, ended = items.used[0], 0, 0.0
    n_entries, i, last, item = 0, n, 0, head
    while item != NONE:
        following, here = item_next[item], position[item_state[item]]
        if item_pending[item] == NONE:
            key = np.int64(item_state[item]) * n_marks
            at = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
            while entry_round[at] == now and entry_key[at] != key:
                at = (at + 1) & mask
            entry_key[at], entry_round[at], entry_item[at] = key, now, item
            n_entries += 1
            if 2 * n_entries > mask:
                return -1.0
        item_next[item], waiting[here] = waiting[here], item
        i, last = min(i, here), max(last, here)
        item = following
    while i <= last:
        item = waiting[i]
        waiting[i] = NONE
        while item != NONE:
            state, share, following, waits = item_state[item], item_share[item], item_next[item], item_pending[item]
            k, end = 0, 1
            if waits == NONE and i == n:
                ended += share
                end = 0
            elif waits == NONE:
                if step_first[state] == NONE and not add_steps(model, lattice, steps, state):
                    return -1.0
                k, end = step_first[state], step_end[state]
            if made + end - k > item_state.shape[0] or 2 * (n_entries + end - k) > mask:
                return -1.0
            while k < end:
                if waits == NONE:
                    to, moved = step_to[k], share * step_prob[k]
                    first, until = target_first[step_pair[k]], target_first[step_pair[k] + 1]
                else:  # more of a chunk
                    to, moved, first, until = state, share, waits, item_until[item]
                k += 1
                if waits == NONE and moved < NEGLIGIBLE:
                    continue
                symbol = target_symbols[first] if first < until else np.int32(NONE)
                pending = np.int32(first + 1 if first + 1 < until else NONE)
                key = np.int64(to) * n_marks + (symbol + 1 if pending == NONE else model.n_symbols + 1 + pending)
                at = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
                while entry_round[at] == now and entry_key[at] != key:
                    at = (at + 1) & mask
                if entry_round[at] == now:
                    item_share[entry_item[at]] += moved
                else:
                    entry_key[at], entry_round[at], entry_item[at] = key, now, made
                    item_state[made], item_pending[made], item_until[made], item_share[made] = to, pending, until, moved
                    if symbol == NONE:
                        there = position[to]
                        item_next[made], waiting[there] = waiting[there], made
                        last = max(last, there)
                    else:
                        if heads[symbol] == NONE:
                            touched[n_touched] = symbol
                            n_touched += 1
                        item_next[made], heads[symbol] = heads[symbol], made
                    made += 1
                    n_entries += 1
                if symbol != NONE:
                    totals[symbol] += moved
            item = following
        i += 1
    items.used[0], numbers[0], numbers[1] = made, now, n_touched
    return ended


@kernel(EXACT)
def _grow(room, n_heap, round, beginning, ended):
    """Enter what a beginning was continued with; whole targets have no items.

    Returns the size of the queue, or `NONE` if there is too little room.
    """
    tree, heap, totals, heads, touched = room.tree, room.heap, round.totals, round.heads, round.touched
    parent, symbol_of, length, log_prob, head_of = tree.parent, tree.symbol, tree.length, tree.log_prob, tree.head
    share, following = room.items.share, room.items.next
    number, n_touched = tree.used[0], room.numbers[1]
    if number + n_touched + 1 > parent.shape[0]:
        return NONE
    for t in range(n_touched + 1):
        symbol, total, head = np.int32(NONE), ended, np.int32(NONE)
        if t < n_touched:
            symbol = touched[t]
            total, head = totals[symbol], heads[symbol]
            heads[symbol], totals[symbol] = NONE, 0.0
        if total > 0.0:
            item = head
            while item != NONE:
                share[item] /= total
                item = following[item]
            parent[number], symbol_of[number], length[number] = beginning, symbol, length[beginning] + 1
            log_prob[number], head_of[number] = log_prob[beginning] + math.log(total), head
            push(heap, n_heap, log_prob[number], number)
            number, n_heap = number + 1, n_heap + 1
    tree.used[0] = number
    return n_heap


@kernel(EXACT)
def _begin(items, tree, heap):
    """Enter the empty beginning."""
    items.state[0], items.pending[0], items.until[0], items.share[0], items.next[0] = START, NONE, NONE, 1.0, NONE
    tree.parent[0], tree.symbol[0], tree.length[0], tree.log_prob[0], tree.head[0] = NONE, NONE, 0, 0.0, 0
    items.used[0] = tree.used[0] = 1
    push(heap, 0, 0.0, 0)


@kernel(EXACT)
def _most_written(model, lattice):
    """Return how many symbols a target has at most."""
    first, longest = model.target_first, 0
    for pair in range(first.shape[0] - 1):
        longest = max(longest, first[pair + 1] - first[pair])
    return longest * (lattice.heads.shape[0] - 1)


@kernel(EXACT)
def _search(model, lattice, room, round, leaves, widest):
    """Fill in the k best targets, as leaves of a tree of beginnings; return how many, and whether they are certain.

    They are unless more than `widest` beginnings of one length had to be continued: the others are then given up.
    The number is -1 if the room is too small.
    """
    steps, tree, heap = no_steps(lattice, room.heap[1].shape[0]), room.tree, room.heap
    head, length_of = tree.head, tree.length
    _begin(room.items, tree, heap)
    n_continued = np.zeros(_most_written(model, lattice) + 1, np.int64)  # of beginnings of each length
    n_leaves, certain, n_heap = 0, True, 1
    while n_heap and n_leaves < leaves.shape[0]:
        beginning = pop(heap, n_heap)
        n_heap -= 1
        length = length_of[beginning]
        if head[beginning] == NONE:
            leaves[n_leaves] = beginning
            n_leaves += 1
            continue
        n_continued[length] += 1
        if n_continued[length] > widest:
            certain = False
            continue
        ended = _continue(model, lattice, steps, room, round, head[beginning])
        n_heap = NONE if ended < 0.0 else _grow(room, n_heap, round, beginning, ended)
        if n_heap == NONE:
            return NONE, False
    return n_leaves, certain


@kernel(EXACT)
def search(model, lattice, room, leaves, widest):
    """Search with as much room as it takes; return the tables, how many leaves, and whether they are certain.

    Args:
        model: The n-grams of chunk pairs.
        lattice: The states of the source, with their sums.
        room: The tables to begin with; larger ones take their place where they are full.
        leaves: Numbers of the leaves, int32 [top_k], filled in.
        widest: Largest number of chunk pairs at a position.
    """
    size = room.heap[1].shape[0]
    while True:
        round = Round(
            np.full(model.n_symbols, NONE, np.int32), np.zeros(model.n_symbols), np.empty(model.n_symbols, np.int32),
            np.full(lattice.heads.shape[0], NONE, np.int32),
        )  # fmt: skip
        n_leaves, certain = _search(model, lattice, room, round, leaves, widest)
        if n_leaves != NONE:
            return room, n_leaves, certain
        size *= 2
        room = _room(size)


class TargetArrays(NamedTuple):
    """The k best targets of some sources, one after the other."""

    symbols: Array  # int32
    shares: Array  # float64 [symbol]: its probability, given those before it
    offsets: Array  # int64 [target + 1]: where the symbols of each begin
    log_probs: Array  # float64 [target]
    first: Array  # int64 [source + 1]: the first target of each
    certain: Array  # bool [source]: whether the search was exhaustive


@kernel(EXACT)
def _written(tree, leaves, n_leaves, answers, s):
    """Add the targets of source `s`."""
    parent_of, symbol_of, log_prob, length = tree.parent, tree.symbol, tree.log_prob, tree.length
    symbols, shares, offsets, t = answers.symbols, answers.shares, answers.offsets, answers.first[s]
    for k in range(n_leaves):
        beginning = parent_of[leaves[k]]
        offsets[t + 1] = offsets[t] + length[beginning]
        answers.log_probs[t] = log_prob[leaves[k]]
        for at in range(offsets[t + 1] - 1, offsets[t] - 1, -1):
            parent = parent_of[beginning]
            symbols[at] = symbol_of[beginning]
            shares[at] = min(math.exp(log_prob[beginning] - log_prob[parent]), 1.0)
            beginning = parent
        t += 1
    answers.first[s + 1] = t


@kernel(EXACT)
def _with_room(answers, s, n_leaves, n_symbols):
    """Return the targets with room for more targets and symbols."""
    n_targets = answers.first[s] + n_leaves
    total = answers.offsets[answers.first[s]] + n_symbols
    if total <= answers.symbols.shape[0] and n_targets <= answers.log_probs.shape[0]:
        return answers
    symbols, shares = np.empty(2 * total, np.int32), np.empty(2 * total)
    offsets, log_probs = np.zeros(2 * n_targets + 1, np.int64), np.empty(2 * n_targets)
    old = min(answers.symbols.shape[0], 2 * total)
    symbols[:old], shares[:old] = answers.symbols[:old], answers.shares[:old]
    old = min(answers.log_probs.shape[0], 2 * n_targets)
    offsets[: old + 1], log_probs[:old] = answers.offsets[: old + 1], answers.log_probs[:old]
    return TargetArrays(symbols, shares, offsets, log_probs, answers.first, answers.certain)


@kernel(EXACT)
def _exactly(answers):
    """Return the targets without room for more."""
    n_targets = answers.first[-1]
    n_symbols = answers.offsets[n_targets]
    return TargetArrays(
        answers.symbols[:n_symbols], answers.shares[:n_symbols], answers.offsets[: n_targets + 1],
        answers.log_probs[:n_targets], answers.first, answers.certain,
    )  # fmt: skip


@kernel(EXACT)
def _none_found(n_sources):
    return TargetArrays(
        np.empty(0, np.int32), np.empty(0), np.zeros(1, np.int64), np.empty(0), np.zeros(n_sources + 1, np.int64),
        np.ones(n_sources, np.bool_),
    )  # fmt: skip


@kernel(EXACT)
def _answer(model, lattice, room, answers, s, leaves, widest):
    """Add the k best targets of source `s`, which has any."""
    room, n_leaves, certain = search(model, lattice, room, leaves, widest)
    answers.certain[s] = certain
    n_symbols = 0
    for k in range(n_leaves):
        n_symbols += room.tree.length[leaves[k]] - 1
    answers = _with_room(answers, s, n_leaves, n_symbols)
    _written(room.tree, leaves, n_leaves, answers, s)
    return room, answers


@kernel(EXACT)
def answer(model, lattice, top_k, widest):
    """Return the k best targets of a source that has any.

    Args:
        model: The n-grams of chunk pairs.
        lattice: The states of the source, with their sums.
        top_k: Number of targets.
        widest: Largest number of chunk pairs at a position.

    Returns:
        The targets with their log probabilities.
    """
    return _exactly(_answer(model, lattice, _room(ROOM), _none_found(1), 0, np.empty(top_k, np.int32), widest)[1])


@kernel(EXACT)
def answer_all(model, spans, first, top_k, widest):
    """Return the k best targets of several sources.

    Args:
        model: The n-grams of chunk pairs.
        spans: Ranges of chunk pairs of all positions of all sources [positions, slots, 3].
        first: Where the positions of each source begin [sources + 1].
        top_k: Number of targets of each source.
        widest: Largest number of chunk pairs at a position, of each source [sources].

    Returns:
        The targets of all sources; none for one that cannot be read.
    """
    n_sources = widest.shape[0]
    room, answers, leaves = _room(ROOM), _none_found(n_sources), np.empty(top_k, np.int32)
    for s in range(n_sources):
        lattice = explore(model, spans[first[s] : first[s + 1]])
        if sum_up(model, lattice) > -np.inf:
            room, answers = _answer(model, lattice, room, answers, s, leaves, widest[s])
        else:
            answers.first[s + 1] = answers.first[s]
    return _exactly(answers)
