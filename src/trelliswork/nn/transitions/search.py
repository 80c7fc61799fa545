"""Fast parsing with a feed-forward unit on the CPU.

Andor et al. (2016), Globally normalized transition-based neural networks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ConstraintError
from trelliswork.nn.transitions import beam_kernels, kernels
from trelliswork.nn.transitions.kernels import Net, Pinned, Rules
from trelliswork.nn.transitions.parsing import ParsingUnit
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.shapes import Float, Int
from trelliswork.structures.beam.parse_state import DependencySystem


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
