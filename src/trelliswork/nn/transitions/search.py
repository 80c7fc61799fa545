"""Fast parsing with a feed-forward unit on the CPU."""

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


class Beam(NamedTuple):
    """Heads and labels of the hypotheses, the best first, and their scores; -inf where a row has fewer."""

    heads: Int[Tensor, "batch beam n"]
    labels: Int[Tensor, "batch beam n"]
    scores: Float[Tensor, "batch beam"]


class Greedy(NamedTuple):
    """Heads and labels by word, ln p of the decision for each arc, and of all decisions together."""

    heads: Int[Tensor, "batch n"]
    labels: Int[Tensor, "batch n"]
    arc_log_probs: Float[Tensor, "batch n"]
    log_prob: Float[Tensor, "batch"]


def greedy_parses(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    pinned: Pinned | None = None,
) -> Greedy:
    """What `greedy` finds with `unit.connected`, by one kernel."""  # [S4.278]
    shape = (len(system.lengths), system.longest + 1)
    heads, labels, log_probs = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape)
    pinned = no_pins(system) if pinned is None else pinned
    stuck = kernels.greedy_rows(
        rules_of(system), net_of(unit, projected), system.lengths.numpy(), pinned, heads, labels, log_probs
    )
    _refuse_stuck(system, stuck)
    found, named, shares = (torch.from_numpy(each) for each in (heads, labels, log_probs))
    return Greedy(found[:, 1:], named[:, 1:], shares[:, 1:], shares.sum(1))


def beam_parses(
    system: DependencySystem,
    unit: ParsingUnit,
    projected: Float[Tensor, "batch n+2 slots w"],
    beam: int,
    pinned: Pinned | None = None,
) -> Beam:
    """What `beam_search` finds with `unit.valued`, by one kernel."""  # [S4.295]
    shape = (len(system.lengths), beam, system.longest + 1)
    heads, labels, scores = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape[:2])
    pinned = no_pins(system) if pinned is None else pinned
    stuck = beam_kernels.beam_rows(
        rules_of(system), net_of(unit, projected), system.lengths.numpy(), pinned, most_steps(system), heads,
        labels, scores,
    )  # fmt: skip
    _refuse_stuck(system, stuck)
    return Beam(*(torch.from_numpy(each) for each in (heads[..., 1:], labels[..., 1:], scores)))


def most_steps(system: DependencySystem) -> int:
    """How many decisions a row can take at most."""
    n = system.longest
    return 2 * n + system.MORE_DECISIONS * n * (n - 1)


def _refuse_stuck(system: DependencySystem, row: int) -> None:
    if row >= 0:
        raise ConstraintError(f"expected pins that a {system.TREES} with one root can have; got others at row {row}")


def rules_of(system: DependencySystem) -> Rules:
    """The system for kernels."""
    return Rules(system.KIND, system.single_root, system.n_labels)


def net_of(unit: ParsingUnit, projected: Float[Tensor, "batch n+2 slots w"]) -> Net:
    """The unit for kernels."""
    weight = unit.output.weight.detach().T.contiguous()
    value = torch.cat([unit.value.weight.detach()[0], unit.value.bias.detach()])
    return Net(*(as_array(each.detach()) for each in (projected, unit.bias, weight, unit.output.bias, value)))


def no_pins(system: DependencySystem) -> Pinned:
    """Nothing known."""
    nothing = np.full((len(system.lengths), system.longest + 1), -1)
    return Pinned(nothing, nothing)
