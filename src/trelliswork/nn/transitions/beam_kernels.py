"""Beam search over parser states with a feed-forward unit, row by row.

For training, the search can stop when the last correct hypothesis falls off the beam (early update).

Collins and Roark (2004), Incremental parsing with the perceptron algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.nn.transitions.kernels import (
    WRONG,
    Pinned,
    best_of,
    first_decision,
    forbid,
    label_of,
    log_total,
    score_state,
    set_targets,
    value_of,
)
from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.beam.parse_kernels import (
    N_MOVES,
    N_SLOTS,
    SWAP,
    Parse,
    begin,
    describe,
    is_finished,
    move_of,
    take_move,
)
from trelliswork.structures.frontier_kernels import offer, sort_heap, split

NOTHING, SEQUENCE, TREE = range(3)  # kinds of `Right`


class Right(NamedTuple):
    """The correct decisions of a row.

    Attributes:
        kind: NOTHING (not known), SEQUENCE (one sequence) or TREE (all sequences that lead to a tree, arc-hybrid only).
        decisions: The sequence, if `kind` is SEQUENCE.
        heads: Heads of the tree [n+1], if `kind` is TREE.
        labels: Its labels [n+1].
    """

    kind: Any
    decisions: Any
    heads: Any
    labels: Any


class Workspace(NamedTuple):
    """Arrays of a search, reused for all rows.

    Attributes:
        parses: A `Parse` with 2 beam rows: the hypotheses before a step, and those after it.
        totals: Score of each hypothesis.
        best: Heap of the scores of the best continuations.
        codes: Their numbers; `split` has the parents and decisions.
        words: The words that describe the current state.
        hidden: Hidden units in it.
        scores: Scores of its decisions.
        allowed: Moves that it allows.
        costs: Costs of its moves.
        targets: Labels of its correct moves.
        marks: For each hypothesis and decision, whether all decisions including it are correct.
        right: For each hypothesis before and after a step, whether all its decisions are correct.
    """

    parses: Any
    totals: Any
    best: Any
    codes: Any
    words: Any
    hidden: Any
    scores: Any
    allowed: Any
    costs: Any
    targets: Any
    marks: Any
    right: Any


class Trail(NamedTuple):
    """The parent and the decision of each hypothesis at each step [step, beam]; decision -1 if it had finished."""

    parents: Any
    decisions: Any


class BeamResult(NamedTuple):
    """The end of a search.

    Attributes:
        n_steps: Number of steps.
        size: Number of hypotheses left.
        is_right: Whether a correct one is among them.
        parent: If not, the parent of the best correct hypothesis that has just fallen off.
        decision: Its decision.
    """

    n_steps: Any
    size: Any
    is_right: Any
    parent: Any
    decision: Any


@kernel(EXACT)
def new_workspace(net, beam, longest):
    """Allocate the arrays of a search.

    Args:
        net: The unit that scores decisions.
        beam: Number of hypotheses.
        longest: Words of the longest row.
    """
    n = longest + 1
    parses = Parse(
        np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64),
        np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64), np.zeros((2 * beam, n), np.int64),
        np.ones((2 * beam, 2), np.int64),
    )  # fmt: skip
    return Workspace(
        parses, np.zeros(beam), np.zeros(beam), np.zeros(beam, np.int64), np.empty(N_SLOTS, np.int64),
        np.empty_like(net.bias), np.empty_like(net.offset), np.empty(N_MOVES, np.bool_), np.empty(N_MOVES, np.int64),
        np.empty(N_MOVES, np.int64), np.zeros((beam, len(net.offset) + 1), np.bool_), np.zeros((2, beam), np.bool_),
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
    """Copy a state to another place.

    Args:
        parses: The states of a beam.
        source: Which to copy.
        to: Which to overwrite.
    """
    parses.stack[to], parses.queue[to], parses.at[to] = parses.stack[source], parses.queue[source], parses.at[source]
    parses.heads[to], parses.labels[to] = parses.heads[source], parses.labels[source]
    parses.left[to], parses.right[to] = parses.left[source], parses.right[source]


@kernel(EXACT)
def search_row(rules, net, row, n, known, right, work, trail):
    """Search one row with a beam; stop early when no correct hypothesis is left, if the correct ones are known.

    Args:
        rules: The transition system.
        net: The unit that scores decisions.
        row: The row of the batch.
        n: Its number of words.
        known: Its heads and labels that are known.
        right: Its correct decisions, if they are known.
        work: Arrays of the search.
        trail: Parents and decisions of each step, filled in.
    """
    beam, a = len(work.totals), len(work.scores)
    size, side, step, parent, decision, unfinished = 1, 0, 0, -1, -1, True
    begin(parse_at(work.parses, 0))
    work.totals[0], work.right[0] = 0.0, right.kind != NOTHING
    while unfinished and (right.kind == NOTHING or work.right[side, :size].any()):
        n_kept, highest = 0, NEG_INF
        for place in range(size):
            parse = parse_at(work.parses, side * beam + place)
            work.marks[place] = False
            if is_finished(parse, n):  # it goes on unchanged and competes with longer hypotheses
                n_kept = offer(work.best, work.codes, n_kept, work.totals[place], place * (a + 1) + a)
                work.marks[place, a] = work.right[side, place]
                continue
            # The score of a decision is ln p(decision | state) + the value of the state.
            before = work.totals[place] - score_hypothesis(rules, net, row, n, known, parse, work)
            for d in range(a):
                score = before + work.scores[d]
                if score > NEG_INF and (n_kept < beam or score > work.best[0]):
                    n_kept = offer(work.best, work.codes, n_kept, score, place * (a + 1) + d)
            if work.right[side, place]:
                mark_right(rules, right, step, parse, n, work, work.marks[place])
                best = best_among(work.scores, work.marks[place])
                if best >= 0 and before + work.scores[best] > highest:
                    highest, parent, decision = before + work.scores[best], place, best
        if n_kept == 0:
            return BeamResult(step, 0, False, -1, -1)
        sort_heap(work.best, work.codes, n_kept)
        for rank in range(n_kept):
            work.right[1 - side, rank] = work.marks[work.codes[rank] // (a + 1), work.codes[rank] % (a + 1)]
        unfinished = advance_beam(rules, n, side, n_kept, work, trail.parents[step], trail.decisions[step])
        size, side, step = n_kept, 1 - side, step + 1
    if side == 1:  # callers read the final hypotheses from the first half of the workspace
        work.right[0, :size] = work.right[1, :size]
        for place in range(size):
            copy_parse(work.parses, beam + place, place)
    return BeamResult(step, size, work.right[0, :size].any(), parent, decision)


@kernel(EXACT)
def mark_right(rules, right, step, parse, n, work, marks):
    """Mark the correct decisions in a state that only correct ones have led to.

    Args:
        rules: The transition system.
        right: The correct decisions.
        step: Number of the step.
        parse: The state.
        n: Number of words.
        work: Arrays of the search.
        marks: True for each correct decision, bool [decisions], filled in.
    """
    if right.kind == SEQUENCE:
        if step < len(right.decisions) and right.decisions[step] >= 0:
            marks[right.decisions[step]] = True
        return
    set_targets(rules, parse, n, right.heads, right.labels, work.allowed, work.costs, work.targets)
    for move in range(SWAP):
        first, end = first_decision(move, rules.n_labels), first_decision(move + 1, rules.n_labels)
        if work.targets[move] >= 0:
            marks[first + work.targets[move]] = True
        elif work.targets[move] != WRONG:
            marks[first:end] = True


@kernel(EXACT)
def best_among(scores, marks):
    """Return the best of the marked decisions, or -1 if none is marked."""
    best = -1
    for d in range(len(scores)):
        if marks[d] and (best < 0 or scores[d] > scores[best]):
            best = d
    return best


@kernel(EXACT)
def score_hypothesis(rules, net, row, n, known, parse, work):
    """Fill in the scores of the decisions in a state, and return ln Σ exp of them minus the value of the state.

    Args:
        rules: The transition system.
        net: The unit that scores decisions.
        row: The row of the batch.
        n: Its number of words.
        known: Its heads and labels that are known.
        parse: The state.
        work: Arrays of the search, whose scores are filled in.
    """
    describe(parse, n, work.words)
    score_state(net, row, work.words, work.hidden, work.scores)
    forbid(rules, parse, n, known, work.allowed, work.costs, work.scores)
    highest = work.scores[best_of(work.scores)]
    return log_total(work.scores, highest) - value_of(net, work.hidden) if highest > NEG_INF else 0.0


@kernel(EXACT)
def advance_beam(rules, n, side, size, work, parents, decisions):
    """Create the chosen hypotheses on the other side, and return True if one of them is unfinished.

    Args:
        rules: The transition system.
        n: Number of words.
        side: The side of the workspace that has the beam; the new one goes to the other.
        size: Number of new hypotheses.
        work: Arrays of the search.
        parents: Parent of each new hypothesis.
        decisions: Its last decision.
    """
    beam, unfinished = len(work.totals), False
    split(work.codes, size, len(work.scores), parents, decisions)
    for rank in range(size):
        decision, to = decisions[rank], (1 - side) * beam + rank
        copy_parse(work.parses, side * beam + parents[rank], to)
        if decision >= 0:
            label = label_of(decision, rules.n_labels)
            take_move(rules.kind, parse_at(work.parses, to), move_of(decision, rules.n_labels), label)
        unfinished = unfinished or not is_finished(parse_at(work.parses, to), n)
        work.totals[rank] = work.best[rank]
    return unfinished


@kernel(EXACT)
def beam_rows(rules, net, lengths, pinned, n_steps, heads, labels, scores):
    """Search all rows with a beam; return the first row without any hypothesis, or -1.

    Args:
        rules: The transition system.
        net: The unit that scores decisions.
        lengths: Words of each row, int64 [batch].
        pinned: Heads and labels that are known.
        n_steps: The largest number of decisions.
        heads: Heads of the best hypotheses, int64 [batch, beam, n+1], filled in.
        labels: Their labels, int64 [batch, beam, n+1], filled in.
        scores: Their scores, float64 [batch, beam], -inf where a row has fewer; filled in.
    """
    beam = scores.shape[1]
    work, trail = new_workspace(net, beam, heads.shape[2] - 1), new_trail(beam, n_steps)
    nothing = Right(NOTHING, lengths[:0], lengths[:0], lengths[:0])
    scores[:] = NEG_INF
    for row in range(len(lengths)):
        known = Pinned(pinned.heads[row], pinned.labels[row])
        result = search_row(rules, net, row, lengths[row], known, nothing, work, trail)
        if result.size == 0:
            return row
        for rank in range(result.size):
            heads[row, rank], labels[row, rank] = work.parses.heads[rank], work.parses.labels[rank]
            scores[row, rank] = work.totals[rank]
    return -1
