"""Machines and the sum over their paths, in plain torch over any semiring: the reference of the kernels.

A machine is states, arcs and log weights. A path begins in a state (`initial`), follows arcs (`weights`) and ends in a
state (`final`); its score is the sum of all of these.
"""  # [S2, WFST score]

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Array
from trelliswork.runtime.bridge import as_array
from trelliswork.semirings import Counting, Log, Max, Semiring
from trelliswork.structures.automata import kernels
from trelliswork.structures.automata.closure import lehmann
from trelliswork.structures.automata.levels import Component, Level, levels_of

LOG = Log()
Grouped = tuple[Array, Array]


def check_semiring(semiring: Semiring, what: str) -> None:
    """Weights of machines are log scores: they are joined by adding up or by taking the best."""
    if not isinstance(semiring, (Log, Max)):
        raise ScoreError(f"{what} takes the semiring Log() or Max(), as weights are log scores; got {semiring!r}")


@dataclass(frozen=True, eq=False)
class Machine:
    """States 0..n-1 and arcs source[a] → target[a], which read input[a] and write output[a]; 0 is epsilon.

    `initial` is λ, `final` ρ, arcs and `weights` are δ. All weights are log scores;
    -inf forbids.
    """  # [S2, WFST]

    source: Array
    target: Array
    input: Array
    output: Array
    weights: Tensor  # [arcs]
    initial: Tensor  # [states]
    final: Tensor  # [states]

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def n_arcs(self) -> int:
        return len(self.source)

    @property
    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.weights, self.initial, self.final

    def with_scores(self, weights: Tensor, initial: Tensor, final: Tensor) -> Machine:
        """Return the same states and arcs with other scores.

        Args:
            weights: score of each arc [arcs].
            initial: score of each state as the first [states].
            final: score of each state as the last [states].

        Returns:
            A new machine.
        """
        return self._remembering(
            replace(self, weights=weights, initial=initial, final=final), "out", "into", "ascending"
        )

    def double(self) -> Machine:
        """The same in float64: -inf stays where it is, and so does all that follows from it."""
        if all(each.dtype == torch.float64 for each in self.scores):
            return self
        precise = self.with_scores(*(each.double() for each in self.scores))
        return self._remembering(precise, "live", "live_arcs", "order")

    def _remembering(self, other: Machine, *names: str) -> Machine:
        """Return another machine with what was found out about this one, where that holds for both."""
        other.__dict__.update({name: self.__dict__[name] for name in names if name in self.__dict__})
        return other

    def kept_arcs(self, arcs: Array) -> Machine:
        """The same states with some of the arcs."""
        return Machine(
            self.source[arcs], self.target[arcs], self.input[arcs], self.output[arcs],
            self.weights[torch.from_numpy(arcs)], self.initial, self.final,
        )  # fmt: skip

    # --- what follows from topology and -inf; arrays for the kernels -----------------------------------------

    @cached_property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Weights, initial and final weights in float64."""
        plain = [plain_scores(each) for each in self.scores]
        with torch._C._DisableFuncTorch():  # else detaching a plain tensor would wrap it again
            weights, initial, final = (as_array(each, np.float64) for each in plain)
        return weights, initial, final

    @cached_property
    def out(self) -> Grouped:
        """Arcs by the state they leave: (offsets, arcs)."""
        return kernels.group(self.source, self.n_states)

    @cached_property
    def into(self) -> Grouped:
        """Arcs by the state they lead to."""
        return kernels.group(self.target, self.n_states)

    @cached_property
    def live(self) -> Array:
        """The states that lie on a path of a weight above -inf from start to end."""
        return kernels.live_states(self.out, self.into, self.source, self.target, *self.arrays)

    @cached_property
    def live_arcs(self) -> Array:
        """Indices of the arcs on such a path."""
        return np.flatnonzero((self.arrays[0] > -INF) & self.live[self.source] & self.live[self.target])

    @cached_property
    def ascending(self) -> bool:
        """True if every arc leads to a higher state, be it on a path or not."""
        return bool((self.source < self.target).all())

    @cached_property
    def order(self) -> Array:
        """Live states in topological order; fewer if there are cycles."""
        if self.ascending:
            return np.flatnonzero(self.live)
        return kernels.topological(self.out, self.source, self.target, self.arrays[0], self.live)

    @property
    def acyclic(self) -> bool:
        """True if no path of a weight above -inf visits a state twice."""
        return len(self.order) == int(self.live.sum())


def plain_scores(scores: Tensor) -> Tensor:
    """The numbers behind a tensor of torch.func.grad; where -inf is decides what a machine looks like."""
    while torch._C._functorch.is_functorch_wrapped_tensor(scores):
        if torch._C._functorch.is_batchedtensor(scores):
            raise ScoreError("a machine has one shape: torch.vmap over its weights is not possible; loop over them")
        scores = torch._C._functorch.get_unwrapped(scores)
    return scores


def trim(machine: Machine) -> Machine:
    """Only the states and arcs on a path from start to end; their order stays."""
    states, arcs = np.flatnonzero(machine.live), machine.live_arcs
    number = np.full(machine.n_states, -1, np.int64)
    number[states] = np.arange(len(states))
    kept, index = torch.from_numpy(states), torch.from_numpy(arcs)
    useful = Machine(
        number[machine.source[arcs]], number[machine.target[arcs]], machine.input[arcs], machine.output[arcs],
        machine.weights[index], machine.initial[kept], machine.final[kept],
    )  # fmt: skip
    return known_live(useful)


def known_live(machine: Machine) -> Machine:
    """Return the machine, of which it is known that every state and arc lies on a path.

    It need not be found out again.
    """
    machine.__dict__.update(live=np.ones(machine.n_states, bool), live_arcs=np.arange(machine.n_arcs))
    return machine


def reverse(machine: Machine) -> Machine:
    """Every path backwards."""
    return Machine(
        machine.target, machine.source, machine.input, machine.output, machine.weights, machine.final, machine.initial
    )


# --- sums over paths ---------------------------------------------------------------------------------------------


def total(machine: Machine, semiring: Semiring) -> Tensor:
    """⊕ over paths of the ⊗ of their weights, cycles included.

    Acyclic parts go by topological order, each strongly connected part by its closure. Infinitely many paths are a
    count of +inf; where weights of cycles do not converge that is an error.
    """  # [S2, WFST normaliser]
    if not machine.live.any():
        nothing = torch.zeros(0, dtype=torch.long)
        connected = sum(each[nothing].sum() for each in machine.scores) - INF
        return semiring.lift(torch.as_tensor(connected))
    if isinstance(semiring, Counting) and not machine.acyclic:
        return torch.tensor(INF, dtype=torch.float64)
    useful = trim(machine)
    return semiring.sum(semiring.times(forward(useful, semiring), semiring.lift(useful.final)), dim=-1)


def forward(machine: Machine, semiring: Semiring) -> Tensor:
    """α(q): ⊕ over all ways to arrive at q, as elements [..., states]; for trimmed machines."""  # [S2, WFST paths]
    weights, initial = semiring.lift(machine.weights), semiring.lift(machine.initial)
    padded = torch.cat([weights, semiring.zero((1,), machine.weights)], dim=-1)
    alpha, done = semiring.zero((0,), machine.weights), np.full(machine.n_states, -1, np.int64)
    for level in levels_of(machine.source, machine.target, machine.n_states):
        alpha = torch.cat([alpha, _arrive(machine, semiring, level, padded, initial, alpha, done)], dim=-1)
        done[level.states] = np.arange(alpha.shape[-1] - len(level.states), alpha.shape[-1])
    return alpha[..., torch.from_numpy(done)]


def _arrive(
    machine: Machine, semiring: Semiring, level: Level, padded: Tensor, initial: Tensor, alpha: Tensor, done: Array
) -> Tensor:
    """α of the states of a level from those of the levels before."""
    arrived = initial[..., torch.from_numpy(level.states)].unsqueeze(-1)
    if level.arcs.shape[1]:
        # A place without an arc reads any state and the zero weight.
        sources = done[machine.source[np.minimum(level.arcs, machine.n_arcs - 1)]]
        before = alpha[..., torch.from_numpy(np.maximum(sources, 0))]
        came = semiring.times(before, padded[..., torch.from_numpy(level.arcs)])
        arrived = torch.cat([came, arrived], dim=-1)
    alpha_of_level = semiring.sum(arrived, dim=-1)
    parts = [alpha_of_level[..., : level.n_single]]
    for component in level.components:
        inside = lehmann(_matrix(semiring, component, padded), semiring)
        arriving = alpha_of_level[..., torch.from_numpy(component.places)].unsqueeze(-2)
        parts.append(semiring.matmul(arriving, inside).squeeze(-2))
    return torch.cat(parts, dim=-1)


def _matrix(semiring: Semiring, component: Component, padded: Tensor) -> Tensor:
    """W of a strongly connected part: W[p, q] = ⊕ over arcs from p to q."""
    return semiring.sum(padded[..., torch.from_numpy(component.arcs)], dim=-1)


def log_partition(machine: Machine) -> Tensor:
    """log Z. Its gradient by scores that no path has is 0, also where no path has an arc."""  # [S2, WFST normaliser]
    return total(machine, LOG) + torch.cat(machine.scores)[:0].sum()


def marginals(machine: Machine) -> tuple[Tensor, Tensor, Tensor]:
    """Return how often a path is expected to take each arc, begin and end in each state: exp(α + w + β - log Z)."""
    arcs, states = torch.from_numpy(machine.live_arcs), torch.from_numpy(np.flatnonzero(machine.live))
    if not len(states):
        empty = (each.new_zeros(each.shape) + each[states].sum() for each in machine.scores)
        return tuple(empty)  # type: ignore[return-value]
    useful = trim(machine)
    alpha, beta = forward(useful, LOG), forward(reverse(useful), LOG)
    log_z = LOG.sum(alpha + useful.final, dim=-1)
    source, target = torch.from_numpy(useful.source), torch.from_numpy(useful.target)
    by_arc = (alpha[source] + useful.weights + beta[target] - log_z).exp()
    first, last = (useful.initial + beta - log_z).exp(), (alpha + useful.final - log_z).exp()
    return (
        _spread(by_arc, arcs, machine.n_arcs), _spread(first, states, machine.n_states),
        _spread(last, states, machine.n_states),
    )  # fmt: skip


def _spread(values: Tensor, places: Tensor, size: int) -> Tensor:
    return values.new_zeros(size).index_copy(0, places, values)


def path_score(machine: Machine, first: int, arcs: Array) -> Tensor:
    """The score of one path: it begins in `first` and follows these arcs.

    Args:
        machine: the machine.
        first: state in which the path begins.
        arcs: numbers of its arcs, in order.

    Returns:
        A scalar.
    """  # [S2, WFST score]
    last = int(machine.target[arcs[-1]]) if len(arcs) else first
    along = machine.weights.double()[torch.from_numpy(np.asarray(arcs, np.int64))].sum()
    return machine.initial[first].double() + along + machine.final[last].double()
