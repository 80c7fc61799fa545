"""Beams that compare hypotheses by more than their scores: by length, or in groups that must differ."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.structures.beam.search import Choice, Hypotheses, choose, search
from trelliswork.structures.beam.system import Scorer, State, TransitionSystem, check_limit, exact, pick
from trelliswork.structures.frontier_kernels import NOTHING

Rank = Callable[[Tensor, Tensor], Tensor]  # from scores and numbers of decisions to what is compared


def length_penalty(strength: float) -> Rank:
    """Scores over ((5 + length) / 6)^strength: 0 compares scores, 1 nearly their means.

    Wu et al. (2016), Google's neural machine translation system, equation 14.
    """

    def rank(scores: Tensor, lengths: Tensor) -> Tensor:
        return scores / ((5 + lengths) / 6) ** strength

    return rank


def coverage_penalty(
    covered: Float[Tensor, "batch beam n"], mask: Bool[Tensor, "batch n"], strength: float
) -> Float[Tensor, "batch beam"]:
    """Return strength Σ_i ln min(attention that position i has received, 1), never above 0.

    Wu et al. (2016), Google's neural machine translation system, equation 14.

    Args:
        covered: attention that each position has received so far.
        mask: True at positions of the input.
        strength: factor of the penalty.

    Returns:
        What is added to the score of each hypothesis.
    """
    total = covered.clamp(min=1e-6, max=1.0).log().masked_fill(~mask[:, None], 0.0)
    return strength * total.sum(-1)


class RankedChoice:
    """The best continuations by `rank`; a finished hypothesis keeps its length, and competes with the others."""

    def __init__(self, beam_size: int, rank: Rank) -> None:
        self.beam_size, self.rank = beam_size, rank
        self.lengths: Int[Tensor, "batch beam"] | None = None

    def __call__(self, scores: Tensor, added: Tensor, done: Tensor | None) -> Choice:
        lengths = torch.zeros_like(scores, dtype=torch.long) if self.lengths is None else self.lengths

        def rank(candidates: Tensor, n_moves: int) -> Tensor:
            after = lengths[:, :, None] + 1
            if candidates.shape[-1] > n_moves:  # finished hypotheses stay as long as they are
                after = torch.cat([after.expand(-1, -1, n_moves), after - 1], -1)
            return self.rank(candidates, after)

        choice = choose(scores, added, done, self.beam_size, rank)
        kept = lengths.gather(1, choice.parents)
        self.lengths = kept + 1 if choice.moving is None else kept + choice.moving
        return choice


def ranked_beam_search(
    system: TransitionSystem[State], scorer: Scorer[State], beam_size: int, rank: Rank, *, max_steps: int | None = None
) -> Hypotheses[State]:
    """Run `beam_search`, but compare hypotheses by `rank`, which must not change the order of those of one length.

    >>> ranked_beam_search(system, scorer, 5, length_penalty(0.6))     # doctest: +SKIP

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        beam_size: how many hypotheses a row has.
        rank: a function from scores and numbers of decisions to what is compared, such as `length_penalty(0.6)`.
        max_steps: when to end the search in a system that need not finish.

    Returns:
        The hypotheses, best first; their scores are those of the model.
    """
    check_limit("beam_size", beam_size)
    return search(system, scorer, system.initial(), RankedChoice(beam_size, rank), max_steps)


class DiverseChoice:
    """Groups that choose one after the other; what earlier groups decide in a step costs the later ones `strength`.

    Args:
        group_size: hypotheses of a group.
        n_groups: number of groups.
        strength: what a decision costs for each earlier group that takes it.
        rank: compares the hypotheses of a group.
    """

    def __init__(self, group_size: int, n_groups: int, strength: float, rank: Rank) -> None:
        self.group_size, self.strength = group_size, strength
        self.groups = [RankedChoice(group_size, rank) for _ in range(n_groups)]
        self.widths = [1] * n_groups

    def __call__(self, scores: Tensor, added: Tensor, done: Tensor | None) -> Choice:
        taken = added.new_zeros(len(added), added.shape[-1])
        chosen, start = [], 0
        for group, width in zip(self.groups, self.widths, strict=True):
            here = slice(start, start + width)
            resting = None if done is None else done[:, here]
            choice = self._choose(group, scores[:, here], added[:, here], resting, taken)
            moved = (choice.decisions != NOTHING).to(taken.dtype)
            taken = taken.scatter_add(1, choice.decisions.clamp(min=0), moved)
            chosen.append((choice, start))
            start += width
        self.widths = [choice.decisions.shape[1] for choice, _ in chosen]
        decisions = torch.cat([choice.decisions for choice, _ in chosen], 1)
        moving = decisions != NOTHING
        return Choice(
            torch.cat([choice.parents + first for choice, first in chosen], 1),
            decisions,
            torch.cat([choice.scores for choice, _ in chosen], 1),
            None if bool(moving.all()) else moving,
        )

    def _choose(self, group: RankedChoice, scores: Tensor, added: Tensor, done: Tensor | None, taken: Tensor) -> Choice:
        """Choose by scores less what the others have taken, and keep the true scores."""
        choice = group(scores, added - self.strength * taken[:, None], done)
        gained = added.gather(1, choice.parents[:, :, None].expand(-1, -1, added.shape[-1]))
        gained = gained.gather(2, choice.decisions.clamp(min=0)[:, :, None]).squeeze(2)
        before = scores.gather(1, choice.parents)
        kept = torch.where(choice.decisions != NOTHING, before + exact(gained), before)
        return Choice(choice.parents, choice.decisions, torch.where(choice.scores > -INF, kept, -INF), choice.moving)


def diverse_beam_search(
    system: TransitionSystem[State],
    scorer: Scorer[State],
    beam_size: int,
    *,
    n_groups: int,
    strength: float = 0.5,
    rank: Rank | None = None,
) -> Hypotheses[State]:
    """Search with a beam in groups that must differ: a decision costs more for each earlier group that takes it.

    Vijayakumar et al. (2018), Diverse beam search for improved description of complex scenes (Hamming diversity).

    Args:
        system: what is allowed in a state, and where a decision leads.
        scorer: scores of the decisions in a state.
        beam_size: how many hypotheses a row has, in all groups together.
        n_groups: number of groups, a divisor of the beam's size.
        strength: what a decision costs for each earlier group that takes it at the same step.
        rank: compares the hypotheses of a group; None for their scores.

    Returns:
        The hypotheses group by group, each best first; scores are those of the model.
    """
    check_limit("beam_size", beam_size)
    if n_groups < 1 or beam_size % n_groups:
        raise ScoreError(f"beam_size must be a multiple of the groups; got {beam_size} and {n_groups}")
    start = system.initial()
    first = torch.zeros(len(start[0]), n_groups, dtype=torch.long, device=start[0].device)
    choice = DiverseChoice(beam_size // n_groups, n_groups, strength, rank or length_penalty(0.0))
    return search(system, scorer, pick(start, first), choice, None)
