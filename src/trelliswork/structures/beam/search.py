"""Greedy and beam search over a transition system, batched over rows and hypotheses, and samples of the local model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ConstraintError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import as_array, out_of_reach
from trelliswork.structures.beam import kernels
from trelliswork.structures.beam.system import (
    Scorer,
    State,
    TransitionSystem,
    advance,
    check_limit,
    decision_scores,
    exact,
    pick,
)
from trelliswork.structures.frontier_kernels import NOTHING

MANY = 4  # times as many decisions as places: from there on it pays to choose among each hypothesis's own first


@dataclass(frozen=True)
class Hypotheses(Generic[State]):
    """Hypotheses of a search, best first in each row.

    `decisions` hold -1 behind a hypothesis's last one; where a row has fewer hypotheses than others, `scores` are -inf.
    `finished` is False for hypotheses that `max_steps` cut off. `state` holds the state of each one.
    """

    decisions: Int[Tensor, "batch beam steps"]
    scores: Float[Tensor, "batch beam"]
    finished: Bool[Tensor, "batch beam"]
    state: State

    @property
    def lengths(self) -> Int[Tensor, "batch beam"]:
        """Return the number of decisions that each has taken."""
        return (self.decisions != NOTHING).sum(-1)


@dataclass(frozen=True)
class Choice:
    """The hypotheses that survive a step: where each comes from, what it decided, its score; -1 and -inf for none.

    `moving` is None if all of them have taken a decision.
    """

    parents: Int[Tensor, "batch beam"]
    decisions: Int[Tensor, "batch beam"]
    scores: Float[Tensor, "batch beam"]
    moving: Bool[Tensor, "batch beam"] | None


def choose(
    scores: Float[Tensor, "batch beam"],
    added: Float[Tensor, "batch beam a"],
    done: Bool[Tensor, "batch beam"] | None,
    beam_size: int,
    rank: Callable[[Tensor, int], Tensor] | None = None,
) -> Choice:
    """Choose the `beam_size` best continuations of each row; one that is `done` (None: none is) competes as it is.

    Of many decisions each hypothesis sends its own best `beam_size` only, which is enough: what is merged does not grow
    with the number of decisions. Places that no row fills are cut off, unless there is a `rank`: it gives what is
    compared in place of the scores of candidates [batch, beam, n].

    Args:
        scores: score of each hypothesis.
        added: what each decision adds, -inf if it is not allowed.
        done: True for hypotheses that have finished and compete as they are; None if none has.
        beam_size: how many continuations of a row to keep.
        rank: a function from scores of candidates [batch, beam, n], and the number of them that take a decision, to
            what is compared; None to compare scores.

    Returns:
        Scores, parents and decisions [batch, beam].
    """
    decisions = None
    if rank is not None or added.shape[-1] > MANY * beam_size:
        added, decisions = added.topk(min(beam_size, added.shape[-1]), dim=-1)
    candidates = scores[:, :, None] + exact(added)
    if done is not None:
        candidates = torch.cat([candidates, torch.where(done, scores, -INF)[:, :, None]], -1)
    n_each, n_moves = candidates.shape[-1], added.shape[-1]
    keys = candidates if rank is None else rank(candidates, n_moves)
    best, index = keys.flatten(1).topk(min(beam_size, candidates.shape[1] * n_each), dim=-1)
    best = best if rank is None else candidates.flatten(1).gather(1, index)
    filled = best > -INF
    if rank is None and not bool(filled.all()):
        width = max(1, int(filled.sum(1).max()))
        best, index, filled = best[:, :width], index[:, :width], filled[:, :width]
    parents = index // n_each
    taken = index - parents * n_each
    moving = (taken < n_moves) & filled
    if decisions is not None:
        places = (parents * n_moves + taken).clamp(max=decisions[0].numel() - 1)  # a staying one has none
        taken = decisions.flatten(1).gather(1, places)
    if bool(moving.all()):
        return Choice(parents, taken, best, None)
    return Choice(parents, torch.where(moving, taken, NOTHING), best, moving)


@runtime_checkable
class WholeSearch(Protocol):
    """A scorer that knows a faster way to search a whole system."""

    def search(self, system: Any, beam_size: int) -> Hypotheses[Any] | None:
        """Return what `beam_search` finds, or None where the way does not apply or finds something wrong."""


def for_kernels(*scores: Tensor) -> bool:
    """Return whether scores can be read by kernels: on the CPU, and not differentiated."""
    return not (any(each.requires_grad or each.device.type != "cpu" for each in scores) or out_of_reach())


def choose_by_kernel(
    scores: Float[Tensor, "batch beam"],
    added: Float[Tensor, "batch beam a"],
    done: Bool[Tensor, "batch beam"] | None,
    beam_size: int,
) -> Choice:
    """Do what `choose` does, on the CPU, where nothing is differentiated; the first among ties.

    Args:
        scores: score of each hypothesis.
        added: what each decision adds, -inf if it is not allowed.
        done: True for hypotheses that have finished and compete as they are; None if none has.
        beam_size: how many continuations of a row to keep.

    Returns:
        Scores, parents and decisions [batch, beam].
    """
    batch, beam, a = added.shape
    room = min(beam_size, beam * a if done is None else beam * (a + 1))
    resting = np.zeros((batch, beam), np.bool_) if done is None else as_array(done)
    parents, decisions = np.empty((batch, room), np.int64), np.empty((batch, room), np.int64)
    best = np.empty((batch, room))
    width = kernels.choose_rows(as_array(scores), as_array(exact(added)), resting, parents, decisions, best)
    width = max(1, width)
    taken = torch.from_numpy(decisions[:, :width])
    moving = None if decisions[:, :width].min(initial=0) >= 0 else taken >= 0
    return Choice(torch.from_numpy(parents[:, :width]), taken, torch.from_numpy(best[:, :width]), moving)


def beam_search(
    system: TransitionSystem[State], scorer: Scorer[State], beam_size: int, *, max_steps: int | None = None
) -> Hypotheses[State]:
    """Find the best decision sequences with a beam of this size, by the sum of their scores.

    At each step every hypothesis is continued by every allowed decision, and the `beam_size` best of a row stay. Rows
    may finish at different steps. A beam as wide as there are sequences is exact. Scores are differentiable.
    `max_steps` ends a search in a system that need not finish.

    >>> hypotheses = beam_search(Tagging(lengths, 9), scorer, beam_size=4)
    >>> hypotheses.decisions[:, 0], hypotheses.scores[:, 0]      # the best of each row

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        beam_size: how many hypotheses of a row stay after each step; as many as there are sequences make the search
            exact.
        max_steps: when to end the search in a system that need not finish.

    Returns:
        Decisions [batch, beam, steps] and scores [batch, beam], best first.
    """  # [S4.295]
    check_limit("beam_size", beam_size)
    if isinstance(scorer, WholeSearch) and max_steps is None:
        hypotheses = scorer.search(system, beam_size)
        if hypotheses is not None:
            return hypotheses

    def keep_best(scores: Tensor, added: Tensor, done: Tensor | None) -> Choice:
        return (choose_by_kernel if for_kernels(added) else choose)(scores, added, done, beam_size)

    return search(system, scorer, system.initial(), keep_best, max_steps)


def greedy(
    system: TransitionSystem[State], scorer: Scorer[State], *, max_steps: int | None = None
) -> Hypotheses[State]:
    """Take the best allowed decision in each state, one after the other: a beam of one.

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        max_steps: when to end the search in a system that need not finish.

    Returns:
        One hypothesis for each row.
    """  # [S4.278-279]
    return beam_search(system, scorer, 1, max_steps=max_steps)


def sample(
    system: TransitionSystem[State],
    scorer: Scorer[State],
    n_samples: int,
    *,
    generator: torch.Generator | None = None,
    max_steps: int | None = None,
) -> Hypotheses[State]:
    """Draw independent exact samples of the locally normalised model, in no order; the scores are ln Pr_L.

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        n_samples: how many samples of each row to draw.
        generator: source of random numbers; None for torch's own.
        max_steps: when to end the search in a system that need not finish.

    Returns:
        Decisions [batch, samples, steps] and ln Pr_L [batch, samples].
    """
    check_limit("n_samples", n_samples)

    def draw(scores: Tensor, added: Tensor, done: Tensor | None) -> Choice:
        stays = (added == -INF).all(-1)  # finished, or in a dead end
        log_probs = torch.log_softmax(torch.where(stays[:, :, None], 0.0, exact(added)), -1)
        drawn = torch.multinomial(log_probs.detach().exp().flatten(0, 1), 1, generator=generator).view_as(scores)
        gained = log_probs.gather(2, drawn[:, :, None]).squeeze(2)
        kept = -INF if done is None else torch.where(done, scores, -INF)
        places = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
        return Choice(places, torch.where(stays, NOTHING, drawn), torch.where(stays, kept, scores + gained), ~stays)

    start = system.initial()
    first = torch.zeros(len(start[0]), n_samples, dtype=torch.long, device=start[0].device)
    return search(system, scorer, pick(start, first), draw, max_steps)


def search(
    system: TransitionSystem[State],
    scorer: Scorer[State],
    state: State,
    choose_next: Callable[[Tensor, Tensor, Tensor | None], Choice],
    max_steps: int | None,
) -> Hypotheses[State]:
    """Search with any way to choose which hypotheses survive a step: the loop of all searches.

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        state: states to begin with [batch, beam, ...].
        choose_next: a function from scores of hypotheses, what decisions add, and which hypotheses are done, to those
            that survive.
        max_steps: when to end the search; None to wait until every hypothesis has finished.

    Returns:
        The hypotheses, best first if `choose_next` has them so.
    """
    check_limit("max_steps", max_steps)
    done = system.finished(state)
    scores = exact(torch.zeros(done.shape, device=done.device))
    dtype, choices = torch.get_default_dtype(), list[Choice]()
    while not bool(done.all()) and len(choices) != max_steps:
        resting = done if bool(done.any()) else None
        added = decision_scores(system, scorer, state, resting, len(choices))
        dtype, choice = added.dtype, choose_next(scores, added, resting)
        _require_hypotheses(choice, len(choices))
        state = advance(system, pick(state, choice.parents), choice.decisions, choice.moving)
        scores, done = choice.scores, system.finished(state)
        done = done if choice.moving is None else done | (scores == -INF)
        choices.append(choice)
    return Hypotheses(trace(choices, scores), scores.to(dtype), system.finished(state) & (scores > -INF), state)


def trace(choices: list[Choice], scores: Float[Tensor, "batch beam"]) -> Int[Tensor, "batch beam steps"]:
    """Follow the last hypotheses back from parent to parent, and return their decisions."""
    slots = torch.arange(scores.shape[1], device=scores.device).expand(scores.shape)
    steps = []
    for choice in reversed(choices):
        steps.append(choice.decisions.gather(1, slots))
        slots = choice.parents.gather(1, slots)
    if not steps:
        return slots.new_zeros(*scores.shape, 0)
    return torch.where((scores > -INF)[:, :, None], torch.stack(steps[::-1], -1), NOTHING)


def _require_hypotheses(choice: Choice, step: int) -> None:
    dead = choice.scores.amax(1) == -INF
    if bool(dead.any()):
        row = int(dead.nonzero()[0])
        raise ConstraintError(
            f"at step {step} no hypothesis of row {row} has an allowed decision with a score above -inf; "
            "allow one in every unfinished state, or widen the beam so that a hypothesis with one stays in it"
        )
