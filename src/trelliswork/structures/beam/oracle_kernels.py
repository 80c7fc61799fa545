"""Right decisions: static oracles of every system, costs of the arc-hybrid system, and trees made projective."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.beam.parse_kernels import (
    FRONT,
    HEIGHT,
    HYBRID,
    LEFT,
    N_MOVES,
    RIGHT,
    SHIFT,
    STANDARD,
    SWAP,
    SWAPPING,
    begin,
    decision_of,
    is_finished,
    new_parse,
    take_move,
)

NO_MOVE = -1


class Gold(NamedTuple):
    """The right tree of a sentence, by word: head, label, dependents that it still lacks.

    For swapping: its place in the projective order, and the part of the tree that can be built without a swap.
    """

    heads: Any
    labels: Any
    waiting: Any
    order: Any
    part: Any


@kernel(EXACT)
def new_gold(longest):
    n = longest + 1
    return Gold(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )  # fmt: skip


@kernel(EXACT)
def count_dependents(gold, n):
    gold.waiting[: n + 1] = 0
    for word in range(1, n + 1):
        if 0 <= gold.heads[word] <= n:
            gold.waiting[gold.heads[word]] += 1


@kernel(EXACT)
def static_rows(kind, single_root, n_labels, lengths, heads, labels, decisions):
    """The decisions that build the tree of each row, and how many there are; -1 where it cannot be built."""
    longest = heads.shape[1]
    parse, gold, taken = new_parse(longest), new_gold(longest), np.empty(len(lengths), np.int64)
    for row in range(len(lengths)):
        n, step = lengths[row], 0
        gold.heads[0], gold.heads[1 : n + 1], gold.labels[1 : n + 1] = -1, heads[row, :n], labels[row, :n]
        count_dependents(gold, n)
        if kind == SWAPPING:
            prepare_swaps(single_root, n, gold, parse)
        begin(parse)
        while step >= 0 and not is_finished(parse, n):
            move = right_move(kind, single_root, parse, gold, n)
            if move == NO_MOVE:
                step = -1
            else:
                label = follow(kind, parse, gold, move)
                decisions[row, step] = decision_of(move, label, n_labels)
                step += 1
        taken[row] = step
    return taken


@kernel(EXACT)
def follow(kind, parse, gold, move):
    """Take a right move; returns its label."""
    height, label = parse.at[HEIGHT], 0
    if move in (LEFT, RIGHT):
        below = kind != HYBRID and move == LEFT
        dependent = parse.stack[height - 2] if below else parse.stack[height - 1]
        label = gold.labels[dependent]
        gold.waiting[gold.heads[dependent]] -= 1
    take_move(kind, parse, move, label)
    return label


@kernel(EXACT)
def right_move(kind, single_root, parse, gold, n):
    """An arc if its dependent has all of its own, LEFT before RIGHT; else a swap if one is due; else SHIFT."""
    height, front = parse.at[HEIGHT], parse.at[FRONT]
    top = parse.stack[height - 1]
    second = parse.stack[height - 2] if height > 1 else -1
    has_more = front <= n
    if kind == HYBRID:
        if height > 1 and has_more and gold.heads[top] == parse.queue[front] and gold.waiting[top] == 0:
            return LEFT
    elif height > 2 and gold.heads[second] == top and gold.waiting[second] == 0:
        return LEFT
    may_hang = height > 2 or (height == 2 and not (single_root and has_more))
    if may_hang and gold.heads[top] == second and gold.waiting[top] == 0:
        return RIGHT
    in_wrong_order = kind == SWAPPING and height > 2 and second < top and gold.order[second] > gold.order[top]
    if in_wrong_order and (not has_more or gold.part[top] != gold.part[parse.queue[front]]):
        return SWAP
    return SHIFT if has_more else NO_MOVE


@kernel(EXACT)
def prepare_swaps(single_root, n, gold, parse):
    """The projective order (each head between its left and right dependents), and the parts that need no swap."""
    put_in_order(n, gold)
    gold.part[: n + 1] = 0
    begin(parse)
    move = SHIFT
    while move != NO_MOVE:
        follow(STANDARD, parse, gold, move)
        move = right_move(STANDARD, single_root, parse, gold, n)
    for word in range(1, n + 1):
        top = word
        while parse.heads[top] > 0:
            top = parse.heads[top]
        gold.part[word] = top
    count_dependents(gold, n)


@kernel(EXACT)
def put_in_order(n, gold):
    """An inorder walk with a stack of (word, next dependent to look at)."""
    words, places = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
    gold.order[: n + 1] = 0
    depth, count = 0, 0
    places[0] = 1
    while depth >= 0:
        word, place = words[depth], places[depth]
        if place == word:
            gold.order[word] = count
            count += 1
        if place > n:
            depth -= 1
            continue
        places[depth] += 1
        if place >= 1 and gold.heads[place] == word and depth <= n:
            depth += 1
            words[depth], places[depth] = place, 1


@kernel(EXACT)
def hybrid_costs(parse, heads, n, costs):
    """Count the gold arcs that SHIFT, LEFT-ARC and RIGHT-ARC put out of reach; `ArcHybrid.costs` for one sentence."""
    height, front = parse.at[HEIGHT], parse.at[FRONT]
    top = parse.stack[height - 1]
    second = parse.stack[height - 2] if height > 1 else -1
    costs[:N_MOVES] = 0
    for word in range(front, n + 1):
        if heads[word] == top:
            costs[LEFT] += 1
            costs[RIGHT] += 1
    if heads[top] >= front:
        costs[RIGHT] += 1
    if heads[top] == second or heads[top] > front:
        costs[LEFT] += 1
    for place in range(height):
        word = parse.stack[place]
        if front <= n and heads[word] == front:
            costs[SHIFT] += 1
        if front <= n and heads[front] == word and word != top:
            costs[SHIFT] += 1


@kernel(EXACT)
def crossing_arc(heads, n):
    """The dependent of the shortest arc that covers a word not below its head; 0 if the tree is projective."""
    crossing, shortest = 0, n + 1
    for word in range(1, n + 1):
        low, high = min(word, heads[word]), max(word, heads[word])
        if high - low >= shortest:
            continue
        for between in range(low + 1, high):
            above = between
            while above > 0 and above != heads[word]:
                above = heads[above]
            if above != heads[word]:
                crossing, shortest = word, high - low
                break
    return crossing


@kernel(EXACT)
def lift_rows(heads, lengths):
    """The heads [batch, n] of projective trees: the shortest crossing arc goes to its head's head until none does."""
    lifted, tree = heads.copy(), np.zeros(heads.shape[1] + 1, np.int64)
    for row in range(len(lengths)):
        n = lengths[row]
        tree[1 : n + 1] = heads[row, :n]
        word = crossing_arc(tree, n)
        while word > 0:
            tree[word] = tree[tree[word]]
            lifted[row, word - 1] = tree[word]
            word = crossing_arc(tree, n)
    return lifted
