"""Likelihoods of given decisions: normalised in each state, or over the paths of a beam."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings.log import log_ratio, logsumexp
from trelliswork.structures.beam.search import Choice, choose
from trelliswork.structures.beam.system import (
    Scorer,
    State,
    TransitionSystem,
    advance,
    check_limit,
    check_whole,
    decision_scores,
    exact,
    pick,
)
from trelliswork.structures.frontier_kernels import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable


class BeamLikelihood(NamedTuple):
    """log p of the gold decisions over a beam; how many of them were counted; and where the gold path fell off."""

    log_prob: Float[Tensor, "batch"]
    n_decisions: Int[Tensor, "batch"]
    fell_off: Bool[Tensor, "batch"]


def locally_normalised(
    system: TransitionSystem[State], scorer: Scorer[State]
) -> Callable[[State], Float[Tensor, "batch beam a"]]:
    """A scorer of ln p_L(d | s): the local model as a global one, for `beam_search` by log-probability.

    What enters a state leaves it: a scorer that does not look ahead cannot take back the mass of a path that turns out
    wrong. Two inputs that begin alike share it: p_L(ABC | abc) + p_L(ADE | abe) <= 1.
    """  # [S4.301; S4.306, 308]

    def log_probs(state: State) -> Tensor:
        scores = decision_scores(system, scorer, state, system.finished(state))
        precise = exact(scores)
        return log_ratio(precise, logsumexp(precise, -1)[:, :, None].expand_as(precise)).to(scores.dtype)

    return log_probs


def local_log_prob(
    system: TransitionSystem[State], scorer: Scorer[State], decisions: Int[Tensor, "batch steps"]
) -> Float[Tensor, "batch"]:
    """Return ln Pr_L of whole decision sequences: Σ_j ρ(s_j, d_j) - ln Z_L(s_j).

    Z_L sums over the decisions allowed in the state, so no search is needed. With `Tagging`, and scores of position and
    last tag, this is the maximum-entropy Markov model. `decisions` hold -1 behind a row's end.

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores ρ of the decisions in a state.
        decisions: the decisions of each row, -1 behind its end.

    Returns:
        One log probability for each row, differentiable by the parameters of the scorer.
    """  # [S4.280, 291-292, 296-297; S4.136-138]
    state = system.initial()
    gold = check_decisions(system, decisions, len(state[0]))
    total, dtype = exact(torch.zeros(len(gold), device=gold.device)), torch.get_default_dtype()
    done, step = system.finished(state), 0
    while not bool(done.all()):
        taken = _at_step(gold, step)
        check_taken(system, state, taken, done[:, 0], step)
        scores = decision_scores(system, scorer, state, done, step)[:, 0]
        dtype, scores = scores.dtype, exact(scores)
        share = log_ratio(_taken_score(scores, taken), logsumexp(scores, -1))
        total = total + torch.where(done[:, 0], 0.0, share)
        state = advance(system, state, taken[:, None], ~done)
        done, step = system.finished(state), step + 1
    check_all_taken(gold, torch.ones_like(done[:, 0]), step)
    return total.to(dtype)


def beam_log_prob(
    system: TransitionSystem[State],
    scorer: Scorer[State],
    decisions: Int[Tensor, "batch steps"],
    beam_size: int,
    *,
    max_steps: int | None = None,
) -> BeamLikelihood:
    """Return ln p of the gold decisions among the paths of a beam, with early update.

    The search runs as in `beam_search`. If the gold path is not among a row's best after step j, the row stops there:
    log p = score(gold) - ln Σ exp(score) over the beam and the gold prefix. Otherwise the same at the search's end.
    Minus `log_prob` is the loss. A beam of all paths makes it the globally normalised likelihood,
    which can move mass between paths at any step. `max_steps` ends the search in a system that need not
    finish; it should leave room for the gold decisions.

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        decisions: the gold decisions of each row, -1 behind its end.
        beam_size: how many hypotheses a row has.
        max_steps: when to end the search in a system that need not finish; it should leave room for the gold decisions.

    Returns:
        ln p of each row, and what ended its search.
    """  # [S4.300; S4.293-294, 298-299; S4.305, 307]
    check_limit("beam_size", beam_size)
    check_limit("max_steps", max_steps)
    state = system.initial()
    gold = check_decisions(system, decisions, len(state[0]))
    path = _GoldPath.start(gold)
    scores, dtype = path.log_prob[:, None], torch.get_default_dtype()
    done, step = system.finished(state), 0
    while not bool(done.all()) and step != max_steps:
        taken = _at_step(gold, step)
        check_taken(system, pick(state, path.slot[:, None]), taken, path.of(done), step, among=~path.fell_off)
        added = decision_scores(system, scorer, state, done, step)
        dtype, choice = added.dtype, choose(scores, added, done, beam_size)
        gained = torch.where(path.of(done), 0.0, exact(_taken_score(path.of(added), taken)))
        path = path.follow(path.of(scores) + gained, taken, choice, step)
        state, scores = pick(state, choice.parents), choice.scores
        state = advance(system, state, choice.decisions, (choice.decisions != NOTHING) & ~path.fell_off[:, None])
        done, step = system.finished(state) | (scores == -INF) | path.fell_off[:, None], step + 1
    if step != max_steps:
        check_all_taken(gold, ~path.fell_off, step)
    log_prob = torch.where(path.fell_off, path.log_prob, log_ratio(path.of(scores), logsumexp(scores, 1)))
    return BeamLikelihood(log_prob.to(dtype), path.counted, path.fell_off)


class _GoldPath(NamedTuple):
    """Where the gold path is in each row's beam; where it fell off, its log-probability at that step."""

    slot: Int[Tensor, "batch"]
    fell_off: Bool[Tensor, "batch"]
    log_prob: Float[Tensor, "batch"]
    counted: Int[Tensor, "batch"]

    @staticmethod
    def start(gold: Int[Tensor, "batch steps"]) -> _GoldPath:
        slot = gold.new_zeros(len(gold))
        return _GoldPath(slot, slot.bool(), exact(torch.zeros(slot.shape, device=slot.device)), (gold >= 0).sum(1))

    def of(self, each: Tensor) -> Tensor:
        """Return the entries of the gold path in a tensor [batch, beam, ...]."""
        return each[torch.arange(len(each), device=each.device), self.slot]

    def follow(
        self, score: Float[Tensor, "batch"], taken: Int[Tensor, "batch"], choice: Choice, step: int
    ) -> _GoldPath:
        """Find it among the survivors of a step; `score` is its own, in the beam or not."""
        hit = (choice.parents == self.slot[:, None]) & (choice.decisions == taken[:, None]) & (choice.scores > -INF)
        falls = ~hit.any(1) & ~self.fell_off
        log_share = log_ratio(score, logsumexp(torch.cat([choice.scores, score[:, None]], 1), 1))
        return _GoldPath(
            hit.long().argmax(1),
            self.fell_off | falls,
            torch.where(falls, log_share, self.log_prob),
            torch.where(falls, self.counted.clamp(max=step + 1), self.counted),
        )


def _at_step(gold: Int[Tensor, "batch steps"], step: int) -> Int[Tensor, "batch"]:
    return gold[:, step] if step < gold.shape[1] else gold.new_full((len(gold),), NOTHING)


def _taken_score(scores: Float[Tensor, "batch a"], taken: Int[Tensor, "batch"]) -> Float[Tensor, "batch"]:
    return scores.gather(1, taken.clamp(min=0)[:, None]).squeeze(1)


# --- what may be handed in -------------------------------------------------------------------------------------------


def check_decisions(system: TransitionSystem[State], decisions: Tensor, n_rows: int) -> Int[Tensor, "batch steps"]:
    """Return decisions that are whole numbers [batch, steps] in -1..a-1, with -1 behind the end only.

    Args:
        system: the system whose decisions they are.
        decisions: the decisions to check.
        n_rows: number of rows of the batch.

    Returns:
        The decisions as int64.
    """
    check_whole("decisions", decisions, f"[{n_rows}, steps]")
    if decisions.dim() != 2 or len(decisions) != n_rows:
        raise ScoreError(
            f"decisions must be whole numbers [{n_rows}, steps]; got {decisions.dtype} {tuple(decisions.shape)}"
        )
    a = system.n_decisions
    wrong = (decisions < NOTHING) | (decisions >= a)
    wrong[:, 1:] |= (decisions[:, :-1] == NOTHING) & (decisions[:, 1:] != NOTHING)
    if bool(wrong.any()):
        row, step = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"decisions must lie in 0..{a - 1}, with -1 behind the end of a row; "
            f"got {int(decisions[row, step])} at row {row}, step {step}"
        )
    return decisions.long()


def check_taken(
    system: TransitionSystem[State],
    state: State,
    taken: Int[Tensor, "batch"],
    done: Bool[Tensor, "batch"],
    step: int,
    among: Bool[Tensor, "batch"] | None = None,
) -> None:
    """Check that each row takes an allowed decision in its only state, or none if it has finished.

    Args:
        system: what is allowed in a state.
        state: states [batch, 1].
        taken: decision of each row, -1 for none.
        done: True for rows that have finished.
        step: number of the step, for the sentence of an error.
        among: rows to check; None for all.
    """
    open_to = system.allowed(state)[:, 0]
    allowed = open_to.gather(1, taken.clamp(min=0)[:, None]).squeeze(1) & (taken != NOTHING)
    wrong = torch.where(done, taken != NOTHING, ~allowed)
    wrong = wrong if among is None else wrong & among
    if not bool(wrong.any()):
        return
    row = int(wrong.nonzero()[0])
    if bool(done[row]):
        raise _one_too_many(row, step)
    got = "the end" if int(taken[row]) == NOTHING else str(int(taken[row]))
    raise ConstraintError(
        f"the decisions of row {row} must follow the system, which at step {step} allows "
        f"{open_to[row].nonzero().flatten().tolist()}; got {got}; make gold decisions with the system's own oracle"
    )


def check_all_taken(gold: Int[Tensor, "batch steps"], among: Bool[Tensor, "batch"], step: int) -> None:
    """Check that no row has gold decisions left after its search has ended.

    Args:
        gold: the gold decisions, -1 behind the end.
        among: rows to check.
        step: number of decisions that were taken.
    """
    late = among & (gold[:, step:] != NOTHING).any(1)
    if bool(late.any()):
        raise _one_too_many(int(late.nonzero()[0]), step)


def _one_too_many(row: int, step: int) -> ConstraintError:
    return ConstraintError(f"row {row} has finished before step {step}; got one more decision; put -1 behind the end")
