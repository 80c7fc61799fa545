"""Beam search and likelihoods over transition systems, against every decision sequence and exact distributions."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from tests.contract.base import chi_square_fits
from tests.oracles import dependencies, transitions
from trelliswork.distributions import LinearChain, ProjectiveTree
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.structures.beam import (
    ArcStandard,
    ChainScorer,
    Tagging,
    beam_log_prob,
    beam_search,
    greedy,
    local_log_prob,
    locally_normalised,
    sample,
)
from trelliswork.structures.beam.arc_standard import ArcScorer
from trelliswork.structures.beam.search import MANY

INF = float("inf")
LENGTHS, C = torch.tensor([4, 2, 1]), 3
ALL = 10**6  # wider than there are paths
GOLD = torch.tensor([[0, 1, 2, 0], [1, 2, -1, -1], [2, -1, -1, -1]])


class Words(NamedTuple):
    """The letters written so far (0 behind them), and how many."""

    written: Tensor
    size: Tensor


class Spelling:
    """Words over the letters 1..c of at most `limit` letters, ended by decision 0: of different lengths in one row.

    The word 1 1 leads nowhere: nothing is allowed behind it.
    """

    def __init__(self, batch: int, n_letters: int, limit: int):
        self.batch, self.limit, self.n_decisions = batch, limit, n_letters + 1

    def initial(self) -> Words:
        return Words(torch.zeros(self.batch, 1, self.limit + 1, dtype=torch.long), torch.zeros(self.batch, 1).long())

    def allowed(self, state: Words) -> Tensor:
        letters = torch.ones(*state.size.shape, self.n_decisions, dtype=torch.bool)
        letters[..., 1:] = (state.size < self.limit)[..., None]
        stuck = (state.written[..., :2] == 1).all(-1) & (state.size == 2)
        return letters & ~stuck[..., None]

    def step(self, state: Words, decisions: Tensor) -> Words:
        place = state.size.clamp(max=self.limit)[..., None]
        ended = torch.where(decisions == 0, -1, decisions)
        return Words(state.written.scatter(2, place, ended[..., None]), state.size + 1)

    def finished(self, state: Words) -> Tensor:
        return (state.written == -1).any(-1)


class WordScorer:
    """A score for every prefix and letter: nothing is shared between words."""

    def __init__(self, system: Spelling, seed: int):
        generator = torch.Generator().manual_seed(seed)
        self.base = system.n_decisions + 1
        size = self.base ** (system.limit + 1)
        self.table = torch.randn(system.batch, size, system.n_decisions, generator=generator, dtype=torch.float64)
        self.table[:, 0, 2] = -INF  # no word begins with 2

    def __call__(self, state: Words) -> Tensor:
        powers = self.base ** torch.arange(state.written.shape[-1])
        rows = torch.arange(len(self.table))[:, None]
        return self.table[rows, (state.written.clamp(min=0) * powers).sum(-1)]


def scores_of(seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((len(LENGTHS), int(LENGTHS.max()), C), (C, C), (C,), (C,))
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)


def tagging(seed: int) -> tuple[Tagging, ChainScorer, LinearChain]:
    system, parts = Tagging(LENGTHS, C), scores_of(seed)
    return system, ChainScorer(system, *parts), LinearChain(*parts, lengths=LENGTHS)


def spelling(seed: int) -> tuple[Spelling, WordScorer]:
    system = Spelling(batch=2, n_letters=2, limit=3)
    return system, WordScorer(system, seed)


def possible(system: Any, scorer: Any, row: int, **options: Any) -> dict[tuple[int, ...], float]:
    every = transitions.sequences(system, scorer, row, **options)
    return {taken: float(score) for taken, score in every.items() if score > -INF}


def plain(decisions: Tensor) -> list[tuple[int, ...]]:
    return [tuple(each for each in row if each >= 0) for row in decisions.tolist()]


# --- search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_full_beam_finds_every_sequence_in_order(seed: int) -> None:
    """Words of different lengths, dead ends and forbidden letters: exactly the possible ones, best first."""
    system, scorer = spelling(seed)
    found = beam_search(system, scorer, ALL)
    for row in range(system.batch):
        wanted = sorted(possible(system, scorer, row).items(), key=lambda each: -each[1])
        exists = found.scores[row] > -INF
        assert plain(found.decisions[row][exists]) == [taken for taken, _ in wanted]
        torch.testing.assert_close(found.scores[row][exists].tolist(), [score for _, score in wanted])
        assert found.finished[row].equal(exists)
        assert (found.decisions[row][~exists] == -1).all()


def by_hand(system: Any, scorer: Any, row: int, beam_size: int) -> list[tuple[tuple[int, ...], float]]:
    """Beam search for one row with lists and loops."""
    beam = [((), 0.0, system.initial())]
    while not all(bool(system.finished(state)[row, 0]) for _, _, state in beam):
        candidates = []
        for taken, score, state in beam:
            if bool(system.finished(state)[row, 0]):
                candidates.append((taken, score, state))
                continue
            scores, allowed = scorer(state)[row, 0], system.allowed(state)[row, 0]
            for decision in allowed.nonzero().flatten().tolist():
                if scores[decision] > -INF:
                    stepped = system.step(state, torch.full(system.finished(state).shape, decision))
                    candidates.append(((*taken, decision), score + float(scores[decision]), stepped))
        beam = sorted(candidates, key=lambda each: -each[1])[:beam_size]
    return [(taken, score) for taken, score, _ in beam]


@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
def test_every_width_keeps_what_a_plain_loop_keeps(beam_size: int) -> None:
    for seed in range(4):
        for system, scorer in (spelling(seed), tagging(seed)[:2]):
            found = beam_search(system, scorer, beam_size)
            for row in range(len(found.scores)):
                wanted = by_hand(system, scorer, row, beam_size)
                exists = found.scores[row] > -INF
                assert plain(found.decisions[row][exists]) == [taken for taken, _ in wanted]
                torch.testing.assert_close(found.scores[row][exists].tolist(), [score for _, score in wanted])
                assert found.lengths[row][exists].tolist() == [len(taken) for taken, _ in wanted]


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_many_decisions_for_few_places(beam_size: int) -> None:
    """Each hypothesis sends its own best only; rows of different lengths stay while others go on."""
    generator, n_tags = torch.Generator().manual_seed(1), 40
    assert n_tags > MANY * beam_size
    emissions = torch.randn(3, 4, n_tags, generator=generator, dtype=torch.float64)
    arcs = torch.randn(n_tags, n_tags, generator=generator, dtype=torch.float64)
    emissions[1, 1, 3:] = arcs[:, 7] = -INF  # row 1 has three continuations, so it cannot always fill its beam
    system = Tagging(LENGTHS, n_tags)
    scorer = ChainScorer(system, emissions, arcs)
    found = beam_search(system, scorer, beam_size)
    for row in range(3):
        wanted = by_hand(system, scorer, row, beam_size)
        exists = found.scores[row] > -INF
        assert plain(found.decisions[row][exists]) == [taken for taken, _ in wanted]
        torch.testing.assert_close(found.scores[row][exists].tolist(), [score for _, score in wanted])
    assert not beam_log_prob(system, scorer, found.decisions[:, 0], beam_size).fell_off.any()
    half = beam_search(system, lambda state: scorer(state).half(), beam_size)
    assert half.scores.dtype == torch.float16
    torch.testing.assert_close(half.scores.double(), found.scores, rtol=0, atol=0.05)


def test_a_full_beam_over_tags_is_the_linear_chain() -> None:
    for seed in range(5):
        system, scorer, chain = tagging(seed)
        found = beam_search(system, scorer, ALL)
        assert found.decisions[:, 0].clamp(min=0).equal(chain.argmax)
        torch.testing.assert_close(found.scores[:, 0], chain.score(chain.argmax))
        torch.testing.assert_close(found.scores.logsumexp(1), chain.log_partition)
        top, scores = chain.top_k(3)
        torch.testing.assert_close(found.scores[:, :3], scores.T)
        assert found.decisions[:2, :3].clamp(min=0).equal(top.transpose(0, 1)[:2])


def test_greedy_takes_the_best_decision_of_each_state() -> None:
    for seed in range(5):
        system, scorer, chain = tagging(seed)
        emissions, transitions, start, end = scores_of(seed)
        found = greedy(system, scorer)
        for row, length in enumerate(LENGTHS.tolist()):
            taken: list[int] = []
            for t in range(length):
                score = (
                    emissions[row, t] + (transitions[taken[-1]] if taken else start) + (end if t == length - 1 else 0)
                )
                taken.append(int(score.argmax()))
            assert plain(found.decisions[row]) == [tuple(taken)]
        assert (found.scores[:, 0] <= chain.score(chain.argmax) + 1e-12).all()


def test_a_wider_beam_finds_what_greedy_misses() -> None:
    """The best first tag leads into a corner."""
    system = Tagging(torch.tensor([2]), 2)
    scorer = ChainScorer(system, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]), torch.tensor([[-9.0, -9.0], [0.0, 5.0]]))
    assert greedy(system, scorer).scores.item() == -8.0
    assert beam_search(system, scorer, 2).decisions[0, 0].tolist() == [1, 1]


def test_ties_are_all_kept_and_none_twice() -> None:
    system = Tagging(torch.tensor([3, 2]), 2)
    found = beam_search(system, ChainScorer(system, torch.zeros(2, 3, 2), torch.zeros(2, 2)), ALL)
    assert len(set(plain(found.decisions[0]))) == 8
    assert len(set(plain(found.decisions[1][found.finished[1]]))) == 4
    narrow = beam_search(system, ChainScorer(system, torch.zeros(2, 3, 2), torch.zeros(2, 2)), 3)
    assert len(set(plain(narrow.decisions[0]))) == len(set(plain(narrow.decisions[1]))) == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_scores_keep_their_type(dtype: torch.dtype) -> None:
    system, parts = Tagging(LENGTHS, C), scores_of(0, dtype)
    scorer = ChainScorer(system, *parts)
    assert beam_search(system, scorer, 3).scores.dtype == dtype
    assert local_log_prob(system, scorer, GOLD).dtype == dtype
    assert beam_log_prob(system, scorer, GOLD, 3).log_prob.dtype == dtype


def test_a_row_does_not_depend_on_its_batch() -> None:
    emissions, *others = scores_of(3)
    system = Tagging(LENGTHS, C)
    together = beam_search(system, ChainScorer(system, emissions, *others), 3)
    for row in range(len(LENGTHS)):
        system = Tagging(LENGTHS[row : row + 1], C)
        alone = beam_search(system, ChainScorer(system, emissions[row : row + 1], *others), 3)
        n = alone.scores.shape[1]
        torch.testing.assert_close(together.scores[row, :n], alone.scores[0])
        assert plain(together.decisions[row, :n]) == plain(alone.decisions[0])


@pytest.mark.parametrize("beam_size", [1, 2, 4, ALL])
@pytest.mark.parametrize("make", [tagging, spelling])
def test_kernels_find_what_the_plain_search_finds(make: Any, beam_size: int) -> None:
    """The whole search of a chain, step by step by kernel, and step by step where scores are differentiated."""
    system, scorer, *_ = make(4)
    ways = [scorer, lambda state: scorer(state), lambda state: scorer(state).requires_grad_()]
    found = [beam_search(system, way, beam_size) for way in ways]
    for each in found[:2]:
        torch.testing.assert_close(each.scores, found[2].scores.detach())
        assert each.decisions.equal(found[2].decisions) and each.finished.equal(found[2].finished)
        exists = each.scores > -INF
        assert all(x[exists].equal(y[exists]) for x, y in zip(each.state, found[2].state, strict=True))


def test_a_search_can_be_cut_off() -> None:
    system, scorer, _ = tagging(0)
    found = beam_search(system, scorer, 2, max_steps=2)
    assert found.decisions.shape[2] == 2
    assert found.finished.any(1).tolist() == [False, True, True]


def test_samples_follow_the_local_model() -> None:
    system, scorer = spelling(5)
    scorer.table[:, 1, 1] = -INF  # never into the dead end
    found = sample(system, scorer, 4000, generator=torch.Generator().manual_seed(1))
    for row in range(system.batch):
        wanted = {taken: 2.718281828459045**score for taken, score in possible(system, scorer, row, local=True).items()}
        assert abs(sum(wanted.values()) - 1) < 1e-9
        counts = Counter(plain(found.decisions[row]))
        assert chi_square_fits(counts, wanted)
        log_probs = possible(system, scorer, row, local=True)
        wanted_scores = [log_probs[taken] for taken in plain(found.decisions[row])]
        torch.testing.assert_close(found.scores[row].tolist(), wanted_scores)


def test_samples_in_a_dead_end_are_told_apart() -> None:
    system, scorer = spelling(5)
    found = sample(system, scorer, 500, generator=torch.Generator().manual_seed(2))
    dead = found.scores == -INF
    assert 0 < dead.sum() < dead.numel()
    assert (found.decisions[dead] == -1).all()
    assert found.finished.equal(~dead)


# --- likelihoods ---------------------------------------------------------------------------------------------


def test_the_local_likelihood_of_every_sequence() -> None:
    """Each is the product of its local probabilities, and all of them sum to one."""
    system, scorer, _ = tagging(1)
    every = transitions.sequences(system, scorer, 0, local=True)
    for taken, wanted in every.items():
        gold = GOLD.clone()
        gold[0] = torch.tensor(taken)
        assert local_log_prob(system, scorer, gold)[0].item() == pytest.approx(float(wanted), abs=1e-12)
    assert torch.stack(list(every.values())).exp().sum().item() == pytest.approx(1.0)


def test_beam_search_by_local_probability() -> None:
    system, scorer = spelling(7)
    found = beam_search(system, locally_normalised(system, scorer), ALL)
    for row in range(system.batch):
        wanted = sorted(possible(system, scorer, row, local=True).values(), reverse=True)
        torch.testing.assert_close(found.scores[row][found.finished[row]].tolist(), wanted)


def test_with_every_path_in_the_beam_the_likelihood_is_that_of_the_linear_chain() -> None:
    for seed in range(5):
        system, scorer, chain = tagging(seed)
        found = beam_log_prob(system, scorer, GOLD, ALL)
        torch.testing.assert_close(found.log_prob, chain.log_prob(GOLD.clamp(min=0)))
        assert not found.fell_off.any()
        assert found.n_decisions.equal(LENGTHS)


def test_gradients_with_a_full_beam_are_those_of_the_linear_chain() -> None:
    parts = tuple(part.requires_grad_() for part in scores_of(2))
    system = Tagging(LENGTHS, C)
    mine = beam_log_prob(system, ChainScorer(system, *parts), GOLD, ALL).log_prob.sum()
    exact = LinearChain(*parts, lengths=LENGTHS).log_prob(GOLD.clamp(min=0)).sum()
    for found, wanted in zip(torch.autograd.grad(mine, parts), torch.autograd.grad(exact, parts), strict=True):
        torch.testing.assert_close(found, wanted)


def early_update_by_hand(scorer: ChainScorer, row: int, beam_size: int) -> tuple[float, int, bool]:
    """Lists and loops: the gold path's share in the first beam without it, or in the last one."""
    gold = [each for each in GOLD[row].tolist() if each >= 0]
    beam: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    gold_score = 0.0

    def added(taken: tuple[int, ...], tag: int) -> float:
        t, length = len(taken), int(LENGTHS[row])
        arc = scorer.arrivals[taken[-1] if taken else -1, tag]
        return float(scorer.emissions[row, t, tag] + arc + (scorer.end[tag] if t == length - 1 else 0.0))

    for j in range(len(gold)):
        gold_score += added(tuple(gold[:j]), gold[j])
        grown = [((*taken, tag), score + added(taken, tag)) for taken, score in beam for tag in range(C)]
        beam = sorted(grown, key=lambda each: -each[1])[:beam_size]
        if tuple(gold[: j + 1]) not in dict(beam):
            total = torch.tensor([score for _, score in beam] + [gold_score], dtype=torch.float64).logsumexp(0)
            return gold_score - float(total), j + 1, True
    return gold_score - float(torch.tensor([score for _, score in beam]).double().logsumexp(0)), len(gold), False


@pytest.mark.parametrize("beam_size", [1, 2, 4, 9])
def test_the_beam_likelihood_stops_where_the_gold_path_falls_off(beam_size: int) -> None:
    fallen = 0
    for seed in range(10):
        system, scorer, chain = tagging(seed)
        found = beam_log_prob(system, scorer, GOLD, beam_size)
        for row in range(len(LENGTHS)):
            log_prob, counted, fell_off = early_update_by_hand(scorer, row, beam_size)
            assert found.log_prob[row].item() == pytest.approx(log_prob, abs=1e-6)
            assert (found.n_decisions[row].item(), found.fell_off[row].item()) == (counted, fell_off)
            fallen += fell_off
        kept = ~found.fell_off
        assert (found.log_prob <= 0).all()
        assert (found.log_prob[kept] >= chain.log_prob(GOLD.clamp(min=0))[kept] - 1e-12).all()  # a part of Z
    assert fallen > 0 or beam_size == 9


class Endless(Spelling):
    """Words without a limit: letter after letter is allowed, and only decision 0 ends one."""

    def allowed(self, state: Words) -> Tensor:
        return torch.ones(*state.size.shape, self.n_decisions, dtype=torch.bool)

    def step(self, state: Words, decisions: Tensor) -> Words:
        return Words(torch.where((decisions == 0)[..., None], -1, state.written), state.size + 1)


def test_a_beam_whose_other_paths_never_end_is_cut_off() -> None:
    """The gold word ends at once, the others go on: after two steps the beam holds it and four unfinished ones."""
    system = Endless(batch=1, n_letters=2, limit=3)
    scores = torch.tensor([0.5, 1.0, 0.2], dtype=torch.float64)
    found = beam_log_prob(
        system, lambda state: scores.expand(*state.size.shape, 3), torch.tensor([[0]]), ALL, max_steps=2
    )
    totals = [0.5, *(first + second for first in (1.0, 0.2) for second in (0.5, 1.0, 0.2))]
    assert found.log_prob.item() == pytest.approx(0.5 - torch.tensor(totals).double().logsumexp(0).item())
    assert not found.fell_off.any()
    assert found.n_decisions.item() == 1


def test_a_finished_gold_path_can_fall_off_later() -> None:
    """With two places the short gold word is among the best after one step and behind two longer ones after two."""
    system = Endless(batch=1, n_letters=2, limit=3)
    scores = torch.tensor([0.5, 1.0, 0.2], dtype=torch.float64)
    found = beam_log_prob(system, lambda state: scores.expand(*state.size.shape, 3), torch.tensor([[0]]), beam_size=2)
    beam = torch.tensor([1.0 + 1.0, 1.0 + 0.5, 0.5], dtype=torch.float64)  # two words of two steps, and the gold one
    assert found.log_prob.item() == pytest.approx(0.5 - beam.logsumexp(0).item())
    assert found.fell_off.all()
    assert found.n_decisions.item() == 1


@pytest.mark.parametrize("beam_size", [2, ALL])
def test_first_and_second_derivatives(beam_size: int) -> None:
    parts = tuple(part.requires_grad_() for part in scores_of(4))
    system = Tagging(LENGTHS, C)

    def over_the_beam(*scores: Tensor) -> Tensor:
        return beam_log_prob(system, ChainScorer(system, *scores), GOLD, beam_size).log_prob

    def in_each_state(*scores: Tensor) -> Tensor:
        return local_log_prob(system, ChainScorer(system, *scores), GOLD)

    def best_score(*scores: Tensor) -> Tensor:
        return beam_search(system, ChainScorer(system, *scores), 2).scores[:, 0]

    assert torch.autograd.gradcheck(over_the_beam, parts)
    assert torch.autograd.gradgradcheck(over_the_beam, parts, fast_mode=True)
    assert torch.autograd.gradcheck(in_each_state, parts)
    assert torch.autograd.gradgradcheck(in_each_state, parts, fast_mode=True)
    assert torch.autograd.gradcheck(best_score, parts)


def test_forbidden_tags_have_gradients_of_exactly_zero() -> None:
    emissions, *others = scores_of(5)
    emissions[0, 1, 0] = -INF
    emissions.requires_grad_()
    system = Tagging(LENGTHS, C)
    scorer = ChainScorer(system, emissions, *others)
    for loss in (local_log_prob(system, scorer, GOLD), beam_log_prob(system, scorer, GOLD, ALL).log_prob):
        (gradient,) = torch.autograd.grad(loss.sum(), emissions, retain_graph=True)
        assert gradient.isfinite().all()
        assert gradient[0, 1, 0] == 0
        assert gradient.abs().sum() > 0


def test_an_impossible_gold_path_has_no_probability() -> None:
    emissions, *others = scores_of(5)
    emissions[0, 1, 1] = -INF  # the gold tag
    emissions.requires_grad_()
    system = Tagging(LENGTHS, C)
    scorer = ChainScorer(system, emissions, *others)
    found = beam_log_prob(system, scorer, GOLD, ALL)
    assert found.log_prob[0] == local_log_prob(system, scorer, GOLD)[0] == -INF
    assert found.fell_off.tolist() == [True, False, False]
    assert torch.autograd.grad(found.log_prob[1:].sum(), emissions)[0].isfinite().all()


def test_a_network_learns_to_score_decisions() -> None:
    """ρ = φ(s) · θ_d with a small network φ: the beam's loss reaches both, and goes down."""
    torch.manual_seed(0)
    system = Tagging(LENGTHS, C)
    words = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0], [3, 0, 0, 0]])
    phi = torch.nn.Sequential(torch.nn.Linear(4 + C + 1, 8), torch.nn.Tanh())
    theta = torch.nn.Linear(8, C)

    def scorer(state: Any) -> Tensor:
        word = words.gather(1, state.position.clamp(max=3))
        one_hot = torch.nn.functional.one_hot
        return theta(phi(torch.cat([one_hot(word, 4), one_hot(state.tag + 1, C + 1)], -1).float()))

    optimizer = torch.optim.Adam([*phi.parameters(), *theta.parameters()], lr=0.05)
    losses = []
    for _ in range(60):
        loss = -beam_log_prob(system, scorer, GOLD, 4).log_prob.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < losses[0]
    assert greedy(system, scorer).decisions[:, 0].equal(GOLD)


def test_a_state_may_carry_what_a_network_remembers() -> None:
    """A recurrent scorer: its memory goes from state to state, is copied with a hypothesis, and passes gradients."""

    class Memory(NamedTuple):
        position: Tensor
        hidden: Tensor

    generator = torch.Generator().manual_seed(3)
    recurrent = torch.randn(4, 4, generator=generator, dtype=torch.float64).requires_grad_()
    by_tag = torch.randn(C, 4, generator=generator, dtype=torch.float64).requires_grad_()

    class Recurrent(Tagging):
        def initial(self) -> Any:
            return Memory(torch.zeros(3, 1, dtype=torch.long), torch.ones(3, 1, 4, dtype=torch.float64))

        def allowed(self, state: Any) -> Tensor:
            return torch.ones(*state.position.shape, C, dtype=torch.bool)

        def step(self, state: Any, decisions: Tensor) -> Any:
            return Memory(state.position + 1, torch.tanh(state.hidden @ recurrent + by_tag[decisions]))

    system = Recurrent(LENGTHS, C)

    def scorer(state: Any) -> Tensor:
        return state.hidden @ by_tag.T

    def score(row: int, taken: tuple[int, ...]) -> Tensor:
        hidden, total = torch.ones(4, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for tag in taken:
            total = total + hidden @ by_tag[tag]
            hidden = torch.tanh(hidden @ recurrent + by_tag[tag])
        return total

    found = beam_search(system, scorer, 5)
    for row in range(3):
        exists = found.scores[row] > -INF
        wanted = torch.stack([score(row, taken) for taken in plain(found.decisions[row][exists])])
        torch.testing.assert_close(found.scores[row][exists], wanted)
        mine = torch.autograd.grad(found.scores[row][exists].sum(), (recurrent, by_tag), retain_graph=True)
        theirs = torch.autograd.grad(wanted.sum(), (recurrent, by_tag), allow_unused=True)
        for left, right in zip(mine, theirs, strict=True):
            torch.testing.assert_close(left, torch.zeros_like(left) if right is None else right)


# --- arc-standard --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("single_root", [True, False])
def test_arc_standard_builds_exactly_the_projective_trees(single_root: bool) -> None:
    for n in range(1, 5):
        system = ArcStandard(torch.tensor([n]), single_root=single_root)
        found = beam_search(system, lambda state: torch.zeros(*state.front.shape, 3), ALL)
        assert (found.lengths == 2 * n).all()
        trees = {tuple(heads) for heads in found.state.heads[0, :, 1:].tolist()}
        assert trees == set(dependencies.trees(n, single_root, projective=True))


@pytest.mark.parametrize("single_root", [True, False])
def test_the_static_oracle_rebuilds_every_tree(single_root: bool) -> None:
    trees = dependencies.trees(4, single_root, projective=True)
    lengths = torch.full((len(trees),), 4)
    labels = torch.arange(4).expand(len(trees), 4) % 2
    system = ArcStandard(lengths, n_labels=2, single_root=single_root)
    decisions = system.decisions_of(torch.tensor(trees), labels)
    state = system.initial()
    for taken in decisions.T:
        assert system.allowed(state)[torch.arange(len(trees)), 0, taken].all()
        state = system.step(state, taken[:, None])
    assert system.finished(state).all()
    assert [tuple(heads) for heads in state.heads[:, 0, 1:].tolist()] == trees
    assert state.labels[:, 0, 1:].equal(labels)


def test_a_full_beam_over_arcs_finds_the_best_projective_tree() -> None:
    lengths = torch.tensor([4, 3, 1])
    arcs = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    system, exact = ArcStandard(lengths), ProjectiveTree(arcs, lengths=lengths)
    found = beam_search(system, ArcScorer(arcs), ALL)
    assert found.state.heads[:, 0, 1:].equal(exact.argmax)
    torch.testing.assert_close(found.scores[:, 0], exact.score(exact.argmax))
    assert local_log_prob(system, ArcScorer(arcs), system.decisions_of(exact.argmax)).isfinite().all()


def test_crossing_arcs_and_second_roots_have_no_derivation() -> None:
    with pytest.raises(ConstraintError, match=r"single-root projective tree; got \[3, 0, 2, 2\] at row 0"):
        ArcStandard(torch.tensor([4])).decisions_of(torch.tensor([[3, 0, 2, 2]]))
    for no_tree in ([2, 1], [1, 0], [3, 0]):
        with pytest.raises(ConstraintError, match="projective tree; got"):
            ArcStandard(torch.tensor([2])).decisions_of(torch.tensor([no_tree]))
    two_roots = torch.tensor([[0, 0]])
    assert ArcStandard(torch.tensor([2]), single_root=False).decisions_of(two_roots).tolist() == [[0, 2, 0, 2]]
    with pytest.raises(ConstraintError, match="single-root projective tree"):
        ArcStandard(torch.tensor([2])).decisions_of(two_roots)


# --- bad input -----------------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    system, scorer, _ = tagging(0)
    with pytest.raises(ScoreError, match="beam_size must be at least 1; got 0"):
        beam_search(system, scorer, 0)
    with pytest.raises(ScoreError, match=r"\(3, 1, 3\) scores \[batch, beam, decisions\] at step 0; got \(3, 1, 2\)"):
        beam_search(system, lambda state: scorer(state)[..., :2], 2)
    with pytest.raises(ScoreError, match="finite numbers or -inf; the scorer gave nan for decision 0 of row 0"):
        beam_search(system, lambda state: scorer(state) * float("nan"), 2)
    with pytest.raises(ScoreError, match=r"the scorer gave torch\.int64"):
        greedy(system, lambda state: scorer(state).long())
    with pytest.raises(ConstraintError, match="at step 0 no hypothesis of row 0 has an allowed decision"):
        greedy(system, lambda state: scorer(state) - INF)
    with pytest.raises(ScoreError, match="lengths must be whole numbers of at least 1"):
        Tagging(torch.tensor([2, 0]), 3)


@pytest.mark.parametrize("likelihood", ["local", "beam"])
def test_gold_decisions_must_follow_the_system(likelihood: str) -> None:
    system, scorer, _ = tagging(0)

    def log_prob(decisions: Tensor) -> Any:
        if likelihood == "local":
            return local_log_prob(system, scorer, decisions)
        return beam_log_prob(system, scorer, decisions, ALL)

    with pytest.raises(ConstraintError, match=r"row 0 must follow the system.*step 3 allows \[0, 1, 2\]; got the end"):
        log_prob(GOLD[:, :3])
    longer = GOLD.clone()
    longer[1, 2] = 0
    with pytest.raises(ConstraintError, match="row 1 has finished before step 2; got one more decision"):
        log_prob(longer)
    beyond = torch.cat([GOLD, torch.tensor([[1], [-1], [-1]])], 1)
    with pytest.raises(ConstraintError, match="row 0 has finished before step 4"):
        log_prob(beyond)
    with pytest.raises(ScoreError, match=r"0..2, with -1 behind the end of a row; got 3 at row 0, step 1"):
        log_prob(torch.tensor([[0, 3, 0, 0], [0, 0, -1, -1], [0, -1, -1, -1]]))
    with pytest.raises(ScoreError, match=r"whole numbers \[3, steps\]; got torch.float32 \(3, 4\)"):
        log_prob(GOLD.float())
    arcs = ArcStandard(torch.tensor([2]))
    with pytest.raises(ConstraintError, match=r"step 1 allows \[0\]; got 2"):
        beam_log_prob(arcs, ArcScorer(torch.zeros(1, 3, 3)), torch.tensor([[0, 2, 0, 2]]), 5)


def test_scores_that_do_not_cover_the_rows_are_refused() -> None:
    system = Tagging(torch.tensor([3, 1]), 4)
    for emissions in (torch.zeros(2, 2, 4), torch.zeros(1, 3, 4), torch.zeros(2, 3, 5)):
        with pytest.raises(ScoreError, match=r"emissions must be \[2, n, 4\] with n >= 3, and transitions \[4, 4\]"):
            ChainScorer(system, emissions, torch.zeros(4, 4))


def test_what_is_no_tensor_or_no_whole_number_is_named() -> None:
    for build in (lambda lengths: Tagging(lengths, 3), ArcStandard):
        with pytest.raises(ScoreError, match="lengths must be a tensor of whole numbers; got list"):
            build([2])
        with pytest.raises(ScoreError, match=r"lengths must be whole numbers \[batch\]; got torch\.bool"):
            build(torch.tensor([True]))
    system = Tagging(torch.tensor([2]), 3)
    with pytest.raises(ScoreError, match=r"beam_size must be a whole number; got 1\.5"):
        beam_search(system, ChainScorer(system, torch.zeros(1, 2, 3), torch.zeros(3, 3)), 1.5)  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="the scorer must give a tensor of scores at step 0; got list"):
        beam_search(system, lambda state: [0.0], 2)  # type: ignore[arg-type, return-value]
