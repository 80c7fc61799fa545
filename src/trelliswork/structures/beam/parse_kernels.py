"""One sentence in a transition system for dependency trees, for kernels: what is allowed, a step, and features.

The same rules as the systems in torch, which the tests compare them with; they are chosen by `kind`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

STANDARD, HYBRID, SWAPPING = range(3)
SHIFT, LEFT, RIGHT, SWAP = range(4)
N_MOVES, N_SLOTS = 4, 9
HEIGHT, FRONT = range(2)


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
    """Room for sentences of up to `longest` words."""
    n = longest + 1
    return Parse(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(2, np.int64),
    )  # fmt: skip


@kernel(EXACT)
def begin(parse):
    """The start: the root on the stack, all words in the buffer."""
    for i in range(len(parse.queue)):
        parse.queue[i] = i
        parse.heads[i], parse.labels[i], parse.left[i], parse.right[i] = 0, 0, 0, 0
    parse.stack[0], parse.at[HEIGHT], parse.at[FRONT] = 0, 1, 1


@kernel(EXACT)
def is_finished(parse, n):
    return parse.at[FRONT] > n and parse.at[HEIGHT] == 1


@kernel(EXACT)
def allow(kind, single_root, parse, n, allowed):
    """Which of the four moves may be taken."""
    height, has_more = parse.at[HEIGHT], parse.at[FRONT] <= n
    allowed[SHIFT] = has_more
    allowed[LEFT] = has_more and height > 1 if kind == HYBRID else height > 2
    allowed[RIGHT] = height > 2 or (height == 2 and not (single_root and has_more))
    allowed[SWAP] = kind == SWAPPING and height > 2 and parse.stack[height - 2] < parse.stack[height - 1]


@kernel(EXACT)
def take_move(kind, parse, move, label):
    """A step of the system."""
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
    parse.heads[dependent], parse.labels[dependent] = head, label
    if dependent < head and (parse.left[head] == 0 or dependent < parse.left[head]):
        parse.left[head] = dependent
    if dependent > head and dependent > parse.right[head]:
        parse.right[head] = dependent


@kernel(EXACT)
def describe(parse, n, words):
    """The words that describe the state, as `SLOTS` names them; -1 for none."""
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
    """The number of a decision."""
    if move == SHIFT:
        return 0
    return 2 * n_labels + 1 if move == SWAP else 1 + (move - LEFT) * n_labels + label


@kernel(EXACT)
def move_of(decision, n_labels):
    """The move that a decision makes; its label is (decision - 1) % n_labels."""
    if decision == 0:
        return SHIFT
    return LEFT + (decision - 1) // n_labels
