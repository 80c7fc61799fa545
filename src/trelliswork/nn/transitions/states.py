"""The loss of a feed-forward unit: kernels find the states, and autograd scores them all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from trelliswork.nn.transitions import kernels, path_kernels
from trelliswork.nn.transitions.beam_kernels import SEQUENCE, TREE, Right
from trelliswork.nn.transitions.kernels import ANY_LABEL, WRONG, Pinned
from trelliswork.nn.transitions.parsing import ParsingUnit
from trelliswork.nn.transitions.search import most_steps, net_of, no_pins, rules_of
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.beam.parse_kernels import N_MOVES, N_SLOTS
from trelliswork.structures.beam.parse_state import DependencySystem

INF = float("inf")


class States(NamedTuple):
    """Some states of a batch: their rows, the words that describe them, which decisions are allowed and right."""

    rows: Int[Tensor, "m"]
    words: Int[Tensor, "m slots"]
    allowed: Bool[Tensor, "m a"]
    right: Bool[Tensor, "m a"]


def gold_states(system: DependencySystem, decisions: Int[Tensor, "batch steps"]) -> States:
    """The states along gold decisions, which alone are right."""
    taken = decisions[decisions >= 0]
    rows, words, allowed = _room(len(taken))
    kernels.replay_rows(rules_of(system), system.lengths.numpy(), decisions.numpy(), rows, words, allowed)
    right = F.one_hot(taken, system.n_decisions).bool()
    return States(torch.from_numpy(rows), torch.from_numpy(words), _by_decision(system, allowed), right)


def explored_states(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    gold: tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]],
    explore: float,
) -> States:
    """Arc-hybrid states of a parser that, with a chance of `explore`, follows its own best decision, else a right one.

    Right are all decisions that put no gold arc out of reach. Goldberg and Nivre (2013), Training deterministic
    parsers with non-deterministic oracles.
    """
    m = 2 * int(system.lengths.sum())
    (rows, words, allowed), targets = _room(m), np.empty((m, N_MOVES), np.int64)
    heads, labels = (F.pad(each[:, : system.longest], (1, 0), value=-1).numpy() for each in gold)
    chances = (torch.rand(m) < explore).numpy()
    kernels.explore_rows(
        rules_of(system), net_of(unit, projected), system.lengths.numpy(), Pinned(heads, labels), chances,
        rows, words, allowed, targets,
    )  # fmt: skip
    states = _by_decision(system, allowed)
    right = _by_decision(system, targets != WRONG) & states & _right_labels(system, targets)
    return States(torch.from_numpy(rows), torch.from_numpy(words), states, right)


def local_loss(unit: ParsingUnit, projected: Float[Tensor, "batch n+2 slots w"], states: States) -> Float[Tensor, ""]:
    """-Σ ln p(a right decision | state)."""  # [S4.280, 296-297]
    scores = unit.scores(unit(unit.gathered(projected, states.rows, states.words))[0])
    total = torch.where(states.allowed, scores, -INF).logsumexp(-1)
    return (total - torch.where(states.right, scores, -INF).logsumexp(-1)).sum()


def global_loss(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    right: Right,
    beam: int,
) -> Float[Tensor, ""]:
    """-Σ ln p of what is right over a beam with early update: `beam_log_prob`, where kernels search.

    If several derivations of the right tree are in the beam, all of them count; the search stops where the last one
    falls off, and the best of those that did counts beside the beam. Collins and Roark (2004), Incremental parsing with
    the perceptron algorithm; Andor et al. (2016), Globally normalized transition-based neural networks.
    """  # [S4.300]
    batch, rules, lengths = len(system.lengths), rules_of(system), system.lengths.numpy()
    paths = np.empty((batch, beam + 1, most_steps(system)), np.int64)
    are_right = np.empty(paths.shape[:2], np.bool_)
    path_kernels.early_rows(rules, net_of(unit, projected), lengths, no_pins(system), right, paths, are_right)
    k = path_kernels.count_nodes(paths)
    states, taken, members = _room(k), np.empty(k, np.int64), np.empty((k, 2), np.int64)
    m, k = path_kernels.path_nodes(rules, lengths, paths, states, taken, members)
    rows, words, taken_of = (torch.from_numpy(each[:m]) for each in (*states[:2], taken))
    hidden = unit(unit.gathered(projected, rows, words))[0]
    log_probs = torch.where(_by_decision(system, states[2][:m]), unit.scores(hidden), -INF).log_softmax(-1)
    scores = log_probs.gather(1, taken_of[:, None])[:, 0] + unit.values(hidden)
    of, node = torch.from_numpy(members[:k]).unbind(1)
    totals = scores.new_zeros(batch * (beam + 1)).index_add(0, of, scores[node]).view(batch, beam + 1)
    of_all, of_right = (
        torch.where(torch.from_numpy(each), totals, -INF).logsumexp(1)
        for each in (paths[:, :, 0] != path_kernels.NO_PATH, are_right)
    )
    return (of_all - of_right).sum()


def right_decisions(decisions: Int[Tensor, "batch steps"]) -> Right:
    """One way to each tree is right."""
    nothing = np.zeros((len(decisions), 0), np.int64)
    return Right(SEQUENCE, decisions.numpy(), nothing, nothing)


def right_trees(system: DependencySystem, heads: Int[Tensor, "batch n"], labels: Int[Tensor, "batch n"]) -> Right:
    """Every arc-hybrid way to each tree, which must be projective, is right."""
    given = (F.pad(each[:, : system.longest], (1, 0), value=-1).numpy() for each in (heads, labels))
    return Right(TREE, np.zeros((len(heads), 0), np.int64), *given)


def _room(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(m, np.int64), np.empty((m, N_SLOTS), np.int64), np.empty((m, N_MOVES), np.bool_)


def _by_decision(system: DependencySystem, moves: np.ndarray) -> Bool[Tensor, "m a"]:
    """What is said of moves, for each decision."""
    c, given = system.n_labels, torch.from_numpy(moves)
    sizes = torch.tensor([1, c, c, system.MORE_DECISIONS])
    return given.repeat_interleave(sizes, 1, output_size=system.n_decisions)


def _right_labels(system: DependencySystem, targets: np.ndarray) -> Bool[Tensor, "m a"]:
    """Whether the label of each decision is one that its move should have."""
    c = system.n_labels
    wanted = torch.from_numpy(targets)[:, 1:3, None]
    fits = ((wanted == ANY_LABEL) | (wanted == torch.arange(c))).flatten(1)
    everywhere = torch.ones(len(targets), 1, dtype=torch.bool)
    return torch.cat([everywhere, fits, everywhere[:, : system.MORE_DECISIONS]], 1)
