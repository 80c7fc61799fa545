"""Losses of a feed-forward unit: kernels list the states, and autograd scores them all at once.

Andor et al. (2016), Globally normalized transition-based neural networks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from trelliswork.errors import ConstraintError
from trelliswork.nn.transitions import beam_kernels, kernels, path_kernels
from trelliswork.nn.transitions.beam_kernels import SEQUENCE, TREE, Right
from trelliswork.nn.transitions.kernels import ANY_LABEL, WRONG, Net, Pinned, Rules
from trelliswork.nn.transitions.parsing import ParsingUnit
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import as_array
from trelliswork.structures.beam.parse_kernels import N_MOVES, N_SLOTS
from trelliswork.structures.beam.parse_state import DependencySystem


class States(NamedTuple):
    """States of a batch: their rows, the words that describe them, and which decisions are allowed and correct."""

    rows: Int[Tensor, "m"]
    words: Int[Tensor, "m slots"]
    allowed: Bool[Tensor, "m a"]
    right: Bool[Tensor, "m a"]


def gold_states(system: DependencySystem, decisions: Int[Tensor, "batch steps"]) -> States:
    """Return the states along gold decisions, with these as the only correct ones."""
    gold = decisions[decisions >= 0]
    rows, words, allowed = _empty_states(len(gold))
    kernels.replay_rows(rules_of(system), system.lengths.numpy(), decisions.numpy(), rows, words, allowed)
    right = F.one_hot(gold, system.n_decisions).bool()
    return States(torch.from_numpy(rows), torch.from_numpy(words), _by_decision(system, allowed), right)


def explored_states(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    gold: tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]],
    explore: float,
) -> States:
    """Return the states of an arc-hybrid parser that sometimes follows its own decisions (dynamic oracle).

    Correct are all decisions that keep every gold arc possible.

    Args:
        system: The transition system of a batch.
        unit: A unit with a feed-forward cell.
        projected: Result of `unit.project`.
        gold: Gold heads and labels.
        explore: Probability of following the best decision; otherwise the best correct one is taken.

    Goldberg and Nivre (2013), Training deterministic parsers with non-deterministic oracles.
    """
    m = 2 * int(system.lengths.sum())  # every word is shifted once and gets one head
    (rows, words, allowed), targets = _empty_states(m), np.empty((m, N_MOVES), np.int64)
    heads, labels = (F.pad(column[:, : system.longest], (1, 0), value=-1).numpy() for column in gold)
    chances = (torch.rand(m) < explore).numpy()
    kernels.explore_rows(
        rules_of(system), net_of(unit, projected), system.lengths.numpy(), Pinned(heads, labels), chances,
        rows, words, allowed, targets,
    )  # fmt: skip
    states = _by_decision(system, allowed)
    right = _by_decision(system, targets != WRONG) & states & _right_labels(system, targets)
    return States(torch.from_numpy(rows), torch.from_numpy(words), states, right)


def local_loss(unit: ParsingUnit, projected: Float[Tensor, "batch n+2 slots w"], states: States) -> Float[Tensor, ""]:
    """Return -Σ ln p(a correct decision | state).

    Args:
        unit: The unit that scores decisions.
        projected: What each word adds to the hidden units in each slot.
        states: The states of the sentences, with their correct decisions.

    Returns:
        The sum over all states.
    """  # [S4.280, 296-297]
    scores = unit.scores(unit(unit.gather(projected, states.rows, states.words))[0])
    total = torch.where(states.allowed, scores, -INF).logsumexp(-1)
    return (total - torch.where(states.right, scores, -INF).logsumexp(-1)).sum()


def global_loss(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    right: Right,
    beam: int,
) -> Float[Tensor, ""]:
    """Return -Σ ln p of the correct paths, normalised over a beam with early update, as `beam_log_prob` does.

    All derivations of the correct tree in the beam count. The search stops when the last one falls off; then the best
    of those that fell off is added to the beam.

    Args:
        system: The transition system of a batch.
        unit: A unit with a feed-forward cell.
        projected: Result of `unit.project`.
        right: The correct paths, from `right_decisions` or `right_trees`.
        beam: Number of hypotheses.

    Collins and Roark (2004), Incremental parsing with the perceptron algorithm; Andor et al. (2016), Globally
    normalized transition-based neural networks.
    """  # [S4.300]
    batch, rules, lengths = len(system.lengths), rules_of(system), system.lengths.numpy()
    paths = np.empty((batch, beam + 1, most_steps(system)), np.int64)
    are_right = np.empty(paths.shape[:2], np.bool_)
    path_kernels.early_rows(rules, net_of(unit, projected), lengths, no_pins(system), right, paths, are_right)
    k = path_kernels.count_nodes(paths)
    states, decisions, members = _empty_states(k), np.empty(k, np.int64), np.empty((k, 2), np.int64)
    m, k = path_kernels.path_nodes(rules, lengths, paths, states, decisions, members)
    rows, words, decision_of = (torch.from_numpy(array[:m]) for array in (*states[:2], decisions))
    hidden = unit(unit.gather(projected, rows, words))[0]
    log_probs = torch.where(_by_decision(system, states[2][:m]), unit.scores(hidden), -INF).log_softmax(-1)
    scores = log_probs.gather(1, decision_of[:, None])[:, 0] + unit.values(hidden)
    path, node = torch.from_numpy(members[:k]).unbind(1)
    # The score of a path is the sum over its nodes; paths with a common start share nodes.
    totals = scores.new_zeros(batch * (beam + 1)).index_add(0, path, scores[node]).view(batch, beam + 1)
    log_z, log_right = (
        torch.where(torch.from_numpy(mask), totals, -INF).logsumexp(1)
        for mask in (paths[:, :, 0] != path_kernels.NO_PATH, are_right)
    )
    return (log_z - log_right).sum()


def right_decisions(decisions: Int[Tensor, "batch steps"]) -> Right:
    """Return `Right` for one correct sequence of decisions per row, padded with -1."""
    nothing = np.zeros((len(decisions), 0), np.int64)
    return Right(SEQUENCE, decisions.numpy(), nothing, nothing)


def right_trees(system: DependencySystem, heads: Int[Tensor, "batch n"], labels: Int[Tensor, "batch n"]) -> Right:
    """Return `Right` for all arc-hybrid derivations of each tree, which must be projective.

    Args:
        system: An arc-hybrid system.
        heads: Head of each word, words counted from 1 and 0 being the root.
        labels: Label of each word's arc.

    Returns:
        The trees as kernels read them.
    """
    tree = (F.pad(column[:, : system.longest], (1, 0), value=-1).numpy() for column in (heads, labels))
    return Right(TREE, np.zeros((len(heads), 0), np.int64), *tree)


def _empty_states(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(m, np.int64), np.empty((m, N_SLOTS), np.int64), np.empty((m, N_MOVES), np.bool_)


def _by_decision(system: DependencySystem, moves: np.ndarray) -> Bool[Tensor, "m a"]:
    """Repeat the values of moves for each of their decisions."""
    c, by_move = system.n_labels, torch.from_numpy(moves)
    sizes = torch.tensor([1, c, c, system.MORE_DECISIONS])
    return by_move.repeat_interleave(sizes, 1, output_size=system.n_decisions)


def _right_labels(system: DependencySystem, targets: np.ndarray) -> Bool[Tensor, "m a"]:
    """Return True for each decision whose label is correct for its move."""
    c = system.n_labels
    label = torch.from_numpy(targets)[:, 1:3, None]
    fits = ((label == ANY_LABEL) | (label == torch.arange(c))).flatten(1)
    everywhere = torch.ones(len(targets), 1, dtype=torch.bool)
    return torch.cat([everywhere, fits, everywhere[:, : system.MORE_DECISIONS]], 1)


# Fast parsing with a feed-forward unit on the CPU.


class BeamParses(NamedTuple):
    """Heads and labels of the hypotheses, the best first, and their scores; -inf where a row has fewer."""

    heads: Int[Tensor, "batch beam n"]
    labels: Int[Tensor, "batch beam n"]
    scores: Float[Tensor, "batch beam"]


class GreedyParses(NamedTuple):
    """Heads and labels of each word, ln p of the decision for its arc, and ln p of all decisions."""

    heads: Int[Tensor, "batch n"]
    labels: Int[Tensor, "batch n"]
    arc_log_probs: Float[Tensor, "batch n"]
    log_prob: Float[Tensor, "batch"]


def greedy_parses(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    pinned: Pinned | None = None,
) -> GreedyParses:
    """Parse greedily by one kernel, with the result of `greedy(*unit.connect(system, projected))`.

    Args:
        system: The transition system of a batch.
        unit: A unit with a feed-forward cell.
        projected: Result of `unit.project`.
        pinned: Heads and labels that are known.
    """  # [S4.278]
    shape = (len(system.lengths), system.longest + 1)
    heads, labels, log_probs = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape)
    pinned = no_pins(system) if pinned is None else pinned
    stuck = kernels.greedy_rows(
        rules_of(system), net_of(unit, projected), system.lengths.numpy(), pinned, heads, labels, log_probs
    )
    _check_not_stuck(system, stuck)
    by_word, total = torch.from_numpy(log_probs[:, 1:]), torch.from_numpy(log_probs).sum(1)
    return GreedyParses(torch.from_numpy(heads[:, 1:]), torch.from_numpy(labels[:, 1:]), by_word, total)


def beam_parses(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    beam: int,
    pinned: Pinned | None = None,
) -> BeamParses:
    """Search with a beam by one kernel, with the result of `beam_search(*unit.connect_global(system, projected))`.

    Args:
        system: The transition system of a batch.
        unit: A unit with a feed-forward cell.
        projected: Result of `unit.project`.
        beam: Number of hypotheses.
        pinned: Heads and labels that are known.
    """  # [S4.295]
    shape = (len(system.lengths), beam, system.longest + 1)
    heads, labels, scores = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape[:2])
    pinned = no_pins(system) if pinned is None else pinned
    stuck = beam_kernels.beam_rows(
        rules_of(system), net_of(unit, projected), system.lengths.numpy(), pinned, most_steps(system), heads,
        labels, scores,
    )  # fmt: skip
    _check_not_stuck(system, stuck)
    return BeamParses(*(torch.from_numpy(array) for array in (heads[..., 1:], labels[..., 1:], scores)))


def most_steps(system: DependencySystem) -> int:
    """Return the largest number of decisions of a row."""
    n = system.longest
    return 2 * n + system.MORE_DECISIONS * n * (n - 1)


def _check_not_stuck(system: DependencySystem, row: int) -> None:
    if row >= 0:
        raise ConstraintError(
            f"expected pins that a {system.TREES} with one root can have; those of row {row} contradict each other"
        )


def rules_of(system: DependencySystem) -> Rules:
    """Return the system as kernels read it."""
    return Rules(system.KIND, system.single_root, system.n_labels)


def net_of(unit: ParsingUnit, projected: Float[Tensor, "batch n+2 slots w"]) -> Net:
    """Return the unit as kernels read it."""
    weight = unit.output.weight.detach().T.contiguous()
    value = torch.cat([unit.value.weight.detach()[0], unit.value.bias.detach()])
    return Net(*(as_array(tensor.detach()) for tensor in (projected, unit.bias, weight, unit.output.bias, value)))


def no_pins(system: DependencySystem) -> Pinned:
    """Return pins that fix nothing."""
    nothing = np.full((len(system.lengths), system.longest + 1), -1)
    return Pinned(nothing, nothing)
