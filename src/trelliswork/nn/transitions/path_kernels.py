"""The paths of beams with early update, and the decisions that they take, each once: what a global loss is made of."""

from __future__ import annotations

import numpy as np

from trelliswork.nn.transitions.beam_kernels import Right, new_room, new_trail, search_row
from trelliswork.nn.transitions.kernels import Pinned, label_of
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.beam.parse_kernels import allow, begin, describe, move_of, new_parse, take_move

NO_PATH = -2


@kernel(EXACT)
def early_rows(rules, net, lengths, pinned, right, paths, are_right):
    """The paths [batch, beam + 1, steps] of each row's beam where the search ends or all that is right falls off.

    A path that has finished goes on with -1; -2 where there is no path. `are_right` says which are right; the best of
    those that fell off is put behind the others.
    """
    beam, n_steps = paths.shape[1] - 1, paths.shape[2]
    room, trail = new_room(net, beam, pinned.heads.shape[1] - 1), new_trail(beam, n_steps)
    paths[:], are_right[:] = NO_PATH, False
    for row in range(len(lengths)):
        known = Pinned(pinned.heads[row], pinned.labels[row])
        wanted = Right(right.kind, right.decisions[row], right.heads[row], right.labels[row])
        found = search_row(rules, net, row, lengths[row], known, wanted, room, trail)
        for rank in range(found.size):
            write_path(trail, found.n_steps, rank, paths[row, rank])
            are_right[row, rank] = room.right[0, rank]
        if not found.is_right:
            last = found.n_steps - 1
            write_path(trail, last, found.parent, paths[row, found.size])
            paths[row, found.size, last], are_right[row, found.size] = found.decision, True


@kernel(EXACT)
def write_path(trail, n_steps, place, path):
    """The decisions that led to a hypothesis."""
    for step in range(n_steps - 1, -1, -1):
        path[step] = trail.decisions[step, place]
        place = trail.parents[step, place]


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
def path_nodes(rules, lengths, paths, states, decisions, members):
    """Each decision that paths take, once where they share it: its state, and (path, node) for each path through it.

    `states` are the row of each, the words that describe it, and the moves that it allows.

    Returns how many nodes and memberships there are.
    """
    n_rows, n_paths, n_steps = paths.shape
    node_of, longest = np.empty((n_paths, n_steps), np.int64), lengths.max()
    parse = new_parse(longest)
    (rows, words, allowed), m, k = states, 0, 0
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
                    allow(rules.kind, rules.single_root, parse, lengths[row], allowed[m])
                    m += 1
                members[k, 0], members[k, 1] = row * n_paths + path, node_of[path, step]
                k += 1
                take_move(
                    rules.kind, parse, move_of(taken[step], rules.n_labels), label_of(taken[step], rules.n_labels)
                )
    return m, k
