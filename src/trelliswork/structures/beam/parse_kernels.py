"""One sentence in a transition system for dependency trees, for kernels: what is allowed, a step, and features.

The same rules as the systems in torch, which the tests compare them with; they are chosen by `kind`. Then right
decisions: static oracles of every system, costs of the arc-hybrid system, and trees made projective.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

STANDARD, HYBRID, SWAPPING = range(3)
SHIFT, LEFT, RIGHT, SWAP = range(4)
N_MOVES, N_SLOTS = 4, 9
HEIGHT, FRONT = range(2)
NO_MOVE = -1


class Parse(NamedTuple):
    """The fields of `ParseState` for one sentence; `at` has the height of the stack and the front of the buffer."""

    stack: Any
    queue: Any
    heads: Any
    labels: Any
    left: Any
    right: Any
    at: Any


@kernel(EXACT)
def new_parse(longest):
    """Room for sentences of up to `longest` words.

    Args:
        longest: the most words of a sentence.
    """
    line = np.zeros(longest + 1, np.int64)
    return Parse(line, line.copy(), line.copy(), line.copy(), line.copy(), line.copy(), np.ones(2, np.int64))


@kernel(EXACT)
def begin(parse):
    """The start: the root on the stack, all words in the buffer.

    Args:
        parse: the state, changed in place.
    """
    for i in range(len(parse.queue)):
        parse.queue[i] = i
        parse.heads[i], parse.labels[i], parse.left[i], parse.right[i] = 0, 0, 0, 0
    parse.stack[0], parse.at[HEIGHT], parse.at[FRONT] = 0, 1, 1


@kernel(EXACT)
def is_finished(parse, n):
    return parse.at[FRONT] > n and parse.at[HEIGHT] == 1


@kernel(EXACT)
def allow(kind, single_root, parse, n, allowed):
    """Which of the four moves may be taken.

    Args:
        kind: STANDARD, HYBRID or SWAPPING.
        single_root: whether the root has one dependent only.
        parse: the state.
        n: number of words.
        allowed: bool [moves], filled in.
    """
    height, has_more = parse.at[HEIGHT], parse.at[FRONT] <= n
    allowed[SHIFT] = has_more
    allowed[LEFT] = has_more and height > 1 if kind == HYBRID else height > 2
    allowed[RIGHT] = height > 2 or (height == 2 and not (single_root and has_more))
    allowed[SWAP] = kind == SWAPPING and height > 2 and parse.stack[height - 2] < parse.stack[height - 1]


@kernel(EXACT)
def take_move(kind, parse, move, label):
    """A step of the system.

    Args:
        kind: STANDARD, HYBRID or SWAPPING.
        parse: the state, changed in place.
        move: SHIFT, LEFT, RIGHT or SWAP.
        label: label of the arc, if the move adds one.
    """
    stack, at = parse.stack, parse.at
    height = at[HEIGHT]
    if move == SHIFT:
        stack[height] = parse.queue[at[FRONT]]
        at[HEIGHT], at[FRONT] = height + 1, at[FRONT] + 1
        return
    top, second = stack[height - 1], stack[height - 2]
    at[HEIGHT] = height - 1
    if move == SWAP:
        stack[height - 2] = top
        at[FRONT] -= 1
        parse.queue[at[FRONT]] = second
    elif move == RIGHT:
        attach(parse, top, second, label)
    elif kind == HYBRID:
        attach(parse, top, parse.queue[at[FRONT]], label)
    else:
        stack[height - 2] = top
        attach(parse, second, top, label)


@kernel(EXACT)
def attach(parse, dependent, head, label):
    """Make an arc from a head to a dependent.

    Args:
        parse: the state, changed in place.
        dependent: a word.
        head: its head, 0 for the root.
        label: label of the arc.
    """
    parse.heads[dependent], parse.labels[dependent] = head, label
    if dependent < head and (parse.left[head] == 0 or dependent < parse.left[head]):
        parse.left[head] = dependent
    if dependent > head and dependent > parse.right[head]:
        parse.right[head] = dependent


@kernel(EXACT)
def describe(parse, n, words):
    """The words that describe the state, as `SLOTS` names them; -1 for none.

    Args:
        parse: the state.
        n: number of words.
        words: int64 [slots], filled in.
    """
    height, front = parse.at[HEIGHT], parse.at[FRONT]
    for depth in range(3):
        words[depth] = parse.stack[height - 1 - depth] if height > depth else -1
    words[3] = parse.queue[front] if front <= n else -1
    words[4], words[5] = child(parse.left, words[0]), child(parse.right, words[0])
    words[6], words[7] = child(parse.left, words[1]), child(parse.right, words[1])
    words[8] = child(parse.left, words[3])


@kernel(EXACT)
def child(side, word):
    return side[word] if word >= 0 and side[word] > 0 else -1


@kernel(EXACT)
def decision_of(move, label, n_labels):
    """The number of a decision.

    Args:
        move: SHIFT, LEFT, RIGHT or SWAP.
        label: label of the arc; does not count for SHIFT and SWAP.
        n_labels: number of labels.
    """
    if move == SHIFT:
        return 0
    return 2 * n_labels + 1 if move == SWAP else 1 + (move - LEFT) * n_labels + label


@kernel(EXACT)
def move_of(decision, n_labels):
    """The move that a decision makes; its label is (decision - 1) % n_labels.

    Args:
        decision: number of the decision.
        n_labels: number of labels.
    """
    if decision == 0:
        return SHIFT
    return LEFT + (decision - 1) // n_labels


# --- right decisions ---------------------------------------------------------------------------------------


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
    line = np.zeros(longest + 1, np.int64)
    return Gold(line, line.copy(), line.copy(), line.copy(), line.copy())


@kernel(EXACT)
def count_dependents(gold, n):
    gold.waiting[: n + 1] = 0
    for word in range(1, n + 1):
        if 0 <= gold.heads[word] <= n:
            gold.waiting[gold.heads[word]] += 1


@kernel(EXACT)
def static_rows(kind, single_root, n_labels, lengths, heads, labels, decisions):
    """The decisions that build the tree of each row, and how many there are; -1 where it cannot be built.

    Args:
        kind: STANDARD, HYBRID or SWAPPING.
        single_root: whether the root has one dependent only.
        n_labels: number of labels.
        lengths: words of each row, int64 [batch].
        heads: head of each word, 0 for the root, int64 [batch, n].
        labels: label of each word's arc, int64 [batch, n].
        decisions: int64 [batch, steps], filled in as far as the steps of a row go.
    """
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
    """Take a right move; returns its label.

    Args:
        kind: STANDARD, HYBRID or SWAPPING.
        parse: the state, changed in place.
        gold: the right tree; the dependents that its words still lack are counted down.
        move: SHIFT, LEFT, RIGHT or SWAP.
    """
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
    """An arc if its dependent has all of its own, LEFT before RIGHT; else a swap if one is due; else SHIFT.

    Args:
        kind: STANDARD, HYBRID or SWAPPING.
        single_root: whether the root has one dependent only.
        parse: the state.
        gold: the right tree, with the dependents that its words still lack.
        n: number of words.
    """
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
    """The projective order (each head between its left and right dependents), and the parts that need no swap.

    Args:
        single_root: whether the root has one dependent only.
        n: number of words.
        gold: the right tree; `order`, `part` and `waiting` are filled in.
        parse: room for a state.
    """
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
    """Count the gold arcs that SHIFT, LEFT-ARC and RIGHT-ARC put out of reach; `ArcHybrid.costs` for one sentence.

    Args:
        parse: the state.
        heads: gold or pinned head of each word, int64 [n+1]; -1 for the root and for words without one.
        n: number of words.
        costs: int64 [moves], filled in; 0 for SWAP.
    """
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
    """The heads [batch, n] of projective trees: the shortest crossing arc goes to its head's head until none does.

    Args:
        heads: head of each word, 0 for the root, int64 [batch, n].
        lengths: words of each row, int64 [batch].
    """
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
