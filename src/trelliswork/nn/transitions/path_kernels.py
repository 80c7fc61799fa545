"""Kernels of the global loss: the paths of beams with early update, and their decisions, each listed once."""

from __future__ import annotations

import numpy as np

from trelliswork.nn.transitions.beam_kernels import Right, new_trail, new_workspace, search_row
from trelliswork.nn.transitions.kernels import Pinned, label_of
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.beam.parse_kernels import allow, begin, describe, move_of, new_parse, take_move
from trelliswork.structures.frontier_kernels import trace_back

NO_PATH = -2


@kernel(EXACT)
def early_rows(rules, net, lengths, pinned, right, paths, are_right):
    """Search all rows with early update, and list the paths of their beams at that moment.

    Args:
        rules: The transition system.
        net: The unit that scores decisions.
        lengths: Words of each row, int64 [batch].
        pinned: Heads and labels that are known.
        right: The correct decisions.
        paths: Decisions, int64 [batch, beam + 1, steps], filled in; -1 behind the end of a path, -2 where there is
            none.
        are_right: True for correct paths, bool [batch, beam + 1], filled in; the best of those that fell off comes
            after the others.
    """
    beam, n_steps = paths.shape[1] - 1, paths.shape[2]
    work, trail = new_workspace(net, beam, pinned.heads.shape[1] - 1), new_trail(beam, n_steps)
    paths[:], are_right[:] = NO_PATH, False
    for row in range(len(lengths)):
        known = Pinned(pinned.heads[row], pinned.labels[row])
        correct = Right(right.kind, right.decisions[row], right.heads[row], right.labels[row])
        result = search_row(rules, net, row, lengths[row], known, correct, work, trail)
        for rank in range(result.size):
            trace_back(trail.parents, trail.decisions, result.n_steps, rank, paths[row, rank])
            are_right[row, rank] = work.right[0, rank]
        if not result.is_right:
            last = result.n_steps - 1
            trace_back(trail.parents, trail.decisions, last, result.parent, paths[row, result.size])
            paths[row, result.size, last], are_right[row, result.size] = result.decision, True


@kernel(EXACT)
def common_start(first, second):
    """Return how many decisions two paths have in common at their start."""
    for step in range(len(first)):
        if first[step] != second[step] or first[step] < 0:
            return step
    return len(first)


@kernel(EXACT)
def count_nodes(paths):
    """Return the number of decisions of all paths, an upper bound of the number of nodes.

    Args:
        paths: Decisions, int64 [batch, beam + 1, steps], negative where there are none.
    """
    total = 0
    for decision in paths.flat:
        total += decision >= 0
    return total


@kernel(EXACT)
def path_nodes(rules, lengths, paths, states, decisions, members):
    """List the nodes of the tree of paths: decisions, of which those of a common start are listed once.

    Args:
        rules: The transition system.
        lengths: Words of each row, int64 [batch].
        paths: Decisions, int64 [batch, beam + 1, steps].
        states: Rows, words and allowed moves of the states in which they are taken, filled in.
        decisions: Decision of each node, int64 [m], filled in.
        members: (path, node) for each path through a node, int64 [k, 2], filled in.

    Returns:
        The numbers of nodes and of memberships.
    """
    n_rows, n_paths, n_steps = paths.shape
    node_of, longest = np.empty((n_paths, n_steps), np.int64), lengths.max()
    parse = new_parse(longest)
    (rows, words, allowed), m, k = states, 0, 0
    for row in range(n_rows):
        for path in range(n_paths):
            chosen, shared, other = paths[row, path], 0, 0
            for before in range(path):  # the earlier path with the longest common start already has those nodes
                n_common = common_start(chosen, paths[row, before])
                if n_common > shared:
                    shared, other = n_common, before
            begin(parse)
            for step in range(n_steps):
                if chosen[step] < 0:
                    break
                if step < shared:
                    node_of[path, step] = node_of[other, step]
                else:
                    rows[m], decisions[m], node_of[path, step] = row, chosen[step], m
                    describe(parse, lengths[row], words[m])
                    allow(rules.kind, rules.single_root, parse, lengths[row], allowed[m])
                    m += 1
                members[k, 0], members[k, 1] = row * n_paths + path, node_of[path, step]
                k += 1
                take_move(
                    rules.kind, parse, move_of(chosen[step], rules.n_labels), label_of(chosen[step], rules.n_labels)
                )
    return m, k
