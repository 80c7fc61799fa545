"""The k best targets of a source by best-first search over their beginnings.

With the sums of a lattice, a target is written by a random walk whose steps have probabilities q(chunk pair | state).
The probability of a beginning is the sum over all walks that write it; no target that begins with it is more probable.
So beginnings are continued in the order of their probabilities, and a target that is met whole is the best one left:
exact, whatever the number of alignments. There are at most 1/p beginnings of a length that are as probable as p, which
bounds the search.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.lattice_kernels import NONE
from trelliswork.models.transducers.pair_ngram.step_kernels import START, no_steps, with_steps
from trelliswork.runtime.compilation import EXACT, kernel

Array = np.ndarray[Any, Any]
NEGLIGIBLE = 1e-8  # of the probability of a beginning; final probabilities are summed without leaving anything out


class Items(NamedTuple):
    """What beginnings are made of: states with their shares, and what is yet to be written of the last chunk."""

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


@kernel(EXACT)
def _grown(array):
    found = np.empty(2 * array.shape[0], array.dtype)
    found[: array.shape[0]] = array
    return found


@kernel(EXACT)
def _more_items(x):
    return Items(_grown(x.state), _grown(x.pending), _grown(x.until), _grown(x.share), _grown(x.next), x.used)


@kernel(EXACT)
def _more_beginnings(x):
    return Beginnings(_grown(x.parent), _grown(x.symbol), _grown(x.length), _grown(x.log_prob), _grown(x.head), x.used)


@kernel(EXACT)
def _more_entries(entries, now):
    """A table of twice the size, with the entries of this round."""
    size = 2 * entries.key.shape[0]
    made = Entries(np.empty(size, np.int64), np.full(size, NONE, np.int64), np.empty(size, np.int32))
    for slot in range(entries.key.shape[0]):
        if entries.round[slot] == now:
            at = _entry(made, entries.key[slot], now)
            made.key[at], made.round[at], made.item[at] = entries.key[slot], now, entries.item[slot]
    return made


@kernel(EXACT)
def _entry(entries, key, now):
    mask = entries.key.shape[0] - 1
    at = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while entries.round[at] == now and entries.key[at] != key:
        at = (at + 1) & mask
    return at


@kernel(EXACT)
def _before(log_prob, x, y):
    """Whether x comes before y in the queue: the more probable, and of two the older."""
    return log_prob[x] > log_prob[y] or (log_prob[x] == log_prob[y] and x < y)


@kernel(EXACT)
def _push(heap, n, log_prob, x):
    """Put x into a heap of n."""
    at = n
    while at > 0 and _before(log_prob, x, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = x


@kernel(EXACT)
def _pop(heap, n, log_prob):
    """Take the first of a heap of n."""
    first, x, at = heap[0], heap[n - 1], 0
    while 2 * at + 1 < n - 1:
        child = 2 * at + 1
        if child + 1 < n - 1 and _before(log_prob, heap[child + 1], heap[child]):
            child += 1
        if not _before(log_prob, heap[child], x):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = x
    return first


class Round(NamedTuple):
    """What one beginning is continued with: the items of longer ones by symbol, and its own by position."""

    heads: Array  # int32 [symbol]: the first item
    totals: Array  # float64 [symbol]
    touched: Array  # int32: the symbols that have items
    waiting: Array  # int32 [position]: the first item of the beginning itself that is to be continued
    numbers: Array  # int64: the round, symbols touched, entries, the first and the last position where items wait


@kernel(EXACT)
def _add(items, entries, round, place, written):
    """Add to the item of `place`, a (key, state, next symbol, end of the chunk), or make one; `written` is (symbol,
    position, share): an item that has written no symbol waits at its position."""
    key, state, pending, until = place
    symbol, position, share = written
    at = _entry(entries, key, round.numbers[0])
    if entries.round[at] == round.numbers[0]:
        items.share[entries.item[at]] += share
    else:
        made = items.used[0]
        items.used[0] += 1
        round.numbers[2] += 1
        entries.key[at], entries.round[at], entries.item[at] = key, round.numbers[0], made
        items.state[made], items.pending[made], items.until[made], items.share[made] = state, pending, until, share
        if symbol == NONE:
            items.next[made], round.waiting[position] = round.waiting[position], made
            round.numbers[4] = max(round.numbers[4], position)
        else:
            if round.heads[symbol] == NONE:
                round.touched[round.numbers[1]] = symbol
                round.numbers[1] += 1
            items.next[made], round.heads[symbol] = round.heads[symbol], made
    if symbol != NONE:
        round.totals[symbol] += share


@kernel(EXACT)
def _write(model, items, entries, round, to, share, chunk):
    """Go on to the state `to` = (number, position), writing the first symbol of `chunk` = (begin, end), if any."""
    (state, position), (begin, end) = to, chunk
    n_marks = model.n_symbols + 1 + model.target_symbols.shape[0]
    symbol = model.target_symbols[begin] if begin < end else NONE
    pending = begin + 1 if begin + 1 < end else NONE
    # A chunk of which more is to be written is told apart by where its next symbol is.
    mark = symbol + 1 if pending == NONE else model.n_symbols + 1 + pending
    key = np.int64(state) * n_marks + mark
    _add(items, entries, round, (key, state, pending, end), (symbol, position, share))


@kernel(EXACT)
def _begin_round(model, lattice, items, entries, round, head):
    """Let the items of a beginning wait at their positions."""
    round.numbers[0] += 1
    round.numbers[1] = round.numbers[2] = round.numbers[4] = 0
    round.numbers[3] = round.waiting.shape[0]
    n_marks, item = model.n_symbols + 1 + model.target_symbols.shape[0], head
    while item != NONE:
        following, i = items.next[item], lattice.position[items.state[item]]
        if items.pending[item] == NONE:
            key = np.int64(items.state[item]) * n_marks
            at = _entry(entries, key, round.numbers[0])
            entries.key[at], entries.round[at], entries.item[at] = key, round.numbers[0], item
            round.numbers[2] += 1
        items.next[item], round.waiting[i] = round.waiting[i], item
        round.numbers[3], round.numbers[4] = min(round.numbers[3], i), max(round.numbers[4], i)
        item = following


@kernel(EXACT)
def _size_of(items, head):
    n = 0
    while head != NONE:
        n, head = n + 1, items.next[head]
    return n


@kernel(EXACT)
def _roomy(items, entries, round, more):
    """Items and entries with room for more."""
    while items.used[0] + more > items.state.shape[0]:
        items = _more_items(items)
    while 2 * (round.numbers[2] + more) > entries.key.shape[0]:
        entries = _more_entries(entries, round.numbers[0])
    return items, entries


@kernel(EXACT)
def _continue(model, lattice, steps, items, entries, round, head):
    """All that a beginning can write next; with the tables, which may have grown, the share of walks that end."""
    n, ended = lattice.heads.shape[0] - 1, 0.0
    items, entries = _roomy(items, entries, round, _size_of(items, head))
    _begin_round(model, lattice, items, entries, round, head)
    i = round.numbers[3]
    while i <= round.numbers[4]:
        item = round.waiting[i]
        round.waiting[i] = NONE
        while item != NONE:
            state, share, following = items.state[item], items.share[item], items.next[item]
            if items.pending[item] != NONE:
                items, entries = _roomy(items, entries, round, 1)
                chunk = (items.pending[item], items.until[item])
                _write(model, items, entries, round, (state, lattice.position[state]), share, chunk)
            elif i == n:
                ended += share
            else:
                if steps.first[state] == NONE:
                    steps = with_steps(model, lattice, steps, state)
                items, entries = _roomy(items, entries, round, steps.end[state] - steps.first[state])
                for k in range(steps.first[state], steps.end[state]):
                    if share * steps.prob[k] < NEGLIGIBLE:
                        continue
                    pair, to = steps.pair[k], steps.to[k]
                    chunk = (model.target_first[pair], model.target_first[pair + 1])
                    _write(model, items, entries, round, (to, lattice.position[to]), share * steps.prob[k], chunk)
            item = following
        i += 1
    return steps, items, entries, ended


@kernel(EXACT)
def _enter(tree, heap, n_heap, made, head):
    """A longer beginning, (parent, symbol, log probability), in the tree and in the queue."""
    parent, symbol, log_prob = made
    number = tree.used[0]
    if number == tree.parent.shape[0]:
        tree = _more_beginnings(tree)
    if n_heap == heap.shape[0]:
        heap = _grown(heap)
    tree.used[0] += 1
    tree.parent[number], tree.symbol[number], tree.length[number] = parent, symbol, tree.length[parent] + 1
    tree.log_prob[number], tree.head[number] = log_prob, head
    _push(heap, n_heap, tree.log_prob, number)
    return tree, heap, n_heap + 1


@kernel(EXACT)
def _normalise(items, head, total):
    while head != NONE:
        items.share[head] /= total
        head = items.next[head]


@kernel(EXACT)
def _grow(tree, heap, n_heap, items, round, beginning, ended):
    """Enter what a beginning was continued with; whole targets have no items."""
    for t in range(round.numbers[1]):
        symbol = round.touched[t]
        total, head = round.totals[symbol], round.heads[symbol]
        if total > 0.0:
            _normalise(items, head, total)
            made = (beginning, symbol, tree.log_prob[beginning] + math.log(total))
            tree, heap, n_heap = _enter(tree, heap, n_heap, made, head)
        round.heads[symbol], round.totals[symbol] = NONE, 0.0
    if ended > 0.0:
        made = (beginning, np.int32(NONE), tree.log_prob[beginning] + math.log(ended))
        tree, heap, n_heap = _enter(tree, heap, n_heap, made, np.int32(NONE))
    return tree, heap, n_heap


@kernel(EXACT)
def _tables(model, n):
    """Empty ones, but for the empty beginning."""
    items = Items(
        np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024),
        np.empty(1024, np.int32), np.ones(1, np.int64),
    )  # fmt: skip
    items.state[0], items.pending[0], items.until[0], items.share[0], items.next[0] = START, NONE, NONE, 1.0, NONE
    tree = Beginnings(
        np.empty(256, np.int32), np.empty(256, np.int32), np.empty(256, np.int32), np.empty(256),
        np.empty(256, np.int32), np.ones(1, np.int64),
    )  # fmt: skip
    tree.parent[0], tree.symbol[0], tree.length[0], tree.log_prob[0], tree.head[0] = NONE, NONE, 0, 0.0, 0
    entries = Entries(np.empty(1024, np.int64), np.full(1024, NONE, np.int64), np.empty(1024, np.int32))
    round = Round(
        np.full(model.n_symbols, NONE, np.int32), np.zeros(model.n_symbols), np.empty(model.n_symbols, np.int32),
        np.full(n + 1, NONE, np.int32), np.zeros(5, np.int64),
    )  # fmt: skip
    return items, tree, entries, round


@kernel(EXACT)
def search(model, lattice, top_k, widest):
    """The k best targets, as leaves of a tree of beginnings, and whether they are certain to be the best.

    They are unless more than `widest` beginnings of one length had to be continued: the others are then given up.
    """
    steps = no_steps(lattice)
    items, tree, entries, round = _tables(model, lattice.heads.shape[0] - 1)
    continued = np.zeros(256, np.int64)  # how many beginnings of each length were
    leaves, n_leaves, certain = np.empty(top_k, np.int32), 0, True
    heap, n_heap = np.zeros(256, np.int32), 1
    while n_heap and n_leaves < top_k:
        beginning = _pop(heap, n_heap, tree.log_prob)
        n_heap -= 1
        length = tree.length[beginning]
        if tree.head[beginning] == NONE:
            leaves[n_leaves] = beginning
            n_leaves += 1
            continue
        if length == continued.shape[0]:
            continued = np.concatenate((continued, np.zeros(length, np.int64)))
        continued[length] += 1
        if continued[length] > widest:
            certain = False
            continue
        steps, items, entries, ended = _continue(model, lattice, steps, items, entries, round, tree.head[beginning])
        tree, heap, n_heap = _grow(tree, heap, n_heap, items, round, beginning, ended)
    return leaves[:n_leaves], tree, certain


class Found(NamedTuple):
    """The k best targets, one after the other."""

    symbols: Array  # int32
    offsets: Array  # int64 [target + 1]
    log_probs: Array  # float64 [target]
    shares: Array  # float64 [symbol of the best]: its probability, given those before it
    certain: bool  # whether the search was exhaustive


@kernel(EXACT)
def answer(model, lattice, top_k, widest):
    """The k best targets of a source that has any."""
    leaves, tree, certain = search(model, lattice, top_k, widest)
    offsets, log_probs = np.zeros(leaves.shape[0] + 1, np.int64), np.empty(leaves.shape[0])
    for k in range(leaves.shape[0]):
        offsets[k + 1] = offsets[k] + tree.length[leaves[k]] - 1
        log_probs[k] = tree.log_prob[leaves[k]]
    symbols, shares = np.empty(offsets[-1], np.int32), np.empty(offsets[1])
    for k in range(leaves.shape[0]):
        beginning = tree.parent[leaves[k]]
        for at in range(offsets[k + 1] - 1, offsets[k] - 1, -1):
            parent = tree.parent[beginning]
            symbols[at] = tree.symbol[beginning]
            if k == 0:
                shares[at] = min(math.exp(tree.log_prob[beginning] - tree.log_prob[parent]), 1.0)
            beginning = parent
    return Found(symbols, offsets, log_probs, shares, certain)
