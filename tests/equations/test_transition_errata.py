"""Misprints about transition systems, and the label bias of local models; see `docs/errata.md`."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.oracles import dependencies, transitions
from trelliswork.distributions import LinearChain
from trelliswork.structures.beam import (
    ArcStandard,
    ChainScorer,
    Tagging,
    beam_log_prob,
    local_log_prob,
    locally_normalised,
)
from trelliswork.structures.beam.tagging import TaggingState

ALL = 10**6


# --- 32: arc-standard ----------------------------------------------------------------------------------------


def test_shift_moves_to_the_stack() -> None:
    """Erratum 32: a word that goes from the buffer's front to its end is never on the stack: no arc is possible."""
    stack, buffer = [0], [1, 2, 3]
    for _ in range(10):
        buffer = [*buffer[1:], buffer[0]]  # as printed
    assert stack == [0] and len(buffer) == 3
    system = ArcStandard(torch.tensor([3]))
    shifted = system.step(system.initial(), torch.tensor([[0]]))
    assert shifted.stack[0, 0, :2].tolist() == [0, 1]
    assert (shifted.height.item(), shifted.front.item()) == (2, 2)


def test_a_tree_has_several_derivations() -> None:
    """Erratum 32: the oracle's decisions are one of a tree's derivations; 3 words have 7 trees and 8 derivations."""
    system = ArcStandard(torch.tensor([3]))
    derivations = transitions.sequences(system, lambda state: torch.zeros(1, 1, 3), 0)
    trees = Counter()
    for taken in derivations:
        state = system.initial()
        for decision in taken:
            state = system.step(state, torch.tensor([[decision]]))
        trees[tuple(state.heads[0, 0, 1:].tolist())] += 1
    assert set(trees) == set(dependencies.trees(3, single_root=True, projective=True))
    assert len(trees) == 7 and len(derivations) == sum(trees.values()) == 8
    assert trees[2, 0, 2] == 2  # the middle word's two dependents in either order
    for heads in trees:
        assert tuple(system.decisions_of(torch.tensor([heads]))[0].tolist()) in derivations


# --- 34: the loss over a beam --------------------------------------------------------------------------------


def test_the_normaliser_of_the_beam_is_added_to_the_loss() -> None:
    """Erratum 34: + ln Σ. With every path in the beam the loss is -ln p; with - ln Σ it falls as all scores rise."""
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(1, 3, 2, dtype=torch.float64, generator=generator)
    transitions = torch.randn(2, 2, dtype=torch.float64, generator=generator)
    gold, system = torch.tensor([[1, 0, 0]]), Tagging(torch.tensor([3]), 2)

    def losses(shift: float) -> tuple[float, float, float]:
        scores = emissions + shift
        found = -beam_log_prob(system, ChainScorer(system, scores, transitions), gold, ALL).log_prob.item()
        chain = LinearChain(scores, transitions)
        total = math.log(
            math.fsum(
                math.exp(chain.score(torch.tensor([tags])).item()) for tags in itertools.product((0, 1), repeat=3)
            )
        )
        score = chain.score(gold).item()
        return found, -score + total, -score - total

    found, corrected, printed = losses(0.0)
    assert found == pytest.approx(corrected, rel=1e-10)
    assert found == pytest.approx(-LinearChain(emissions, transitions).log_prob(gold).item(), rel=1e-10)
    assert abs(printed - found) > 0.1
    found_later, _, printed_later = losses(100.0)
    assert found_later == pytest.approx(found, abs=1e-9)
    assert printed_later == pytest.approx(printed - 2 * 3 * 100.0)  # no probability: below zero, and lower still


# --- label bias ----------------------------------------------------------------------------------------------

LETTERS, TAGS = "abce", "ABCDE"
DATA = (("abc", "ABC"), ("abe", "ADE"))
SEEN_ARCS = {pair for _, tags in DATA for pair in itertools.pairwise(tags)}
SEEN_PAIRS = {pair for letters, tags in DATA for pair in zip(letters, tags, strict=True)}


def indices(tags: str) -> Tensor:
    return torch.tensor([[TAGS.index(tag) for tag in tags]])


def one_weight_scores(letters: str, alpha: float) -> tuple[Tensor, Tensor]:
    """ρ = α (1[arc was seen] + 1[letter and tag were seen])."""
    emissions = [[alpha * ((letter, tag) in SEEN_PAIRS) for tag in TAGS] for letter in letters]
    transitions = [[alpha * ((before, tag) in SEEN_ARCS) for tag in TAGS] for before in TAGS]
    return torch.tensor([emissions], dtype=torch.float64), torch.tensor(transitions, dtype=torch.float64)


def both(letters: str, tags: str, alpha: float) -> tuple[float, float]:
    """p_G and p_L of the tags."""
    system = Tagging(torch.tensor([3]), len(TAGS))
    scores = one_weight_scores(letters, alpha)
    scorer = ChainScorer(system, *scores)
    over_all = beam_log_prob(system, scorer, indices(tags), ALL).log_prob.exp().item()
    assert over_all == pytest.approx(LinearChain(*scores).log_prob(indices(tags)).exp().item(), rel=1e-9)
    return over_all, local_log_prob(system, scorer, indices(tags)).exp().item()


def test_one_weight_is_enough_for_the_global_model_and_not_for_the_local_one() -> None:
    """[S4.304-308]: as α grows, p_G of both tagged sequences goes to 1; their p_L sum to at most 1 for every α."""
    for alpha in (-5.0, 0.0, 0.5, 1.0, 3.0, 10.0, 50.0):
        (_, first), (_, second) = (both(letters, tags, alpha) for letters, tags in DATA)
        assert first + second <= 1 + 1e-12
    overall = [both(letters, tags, 30.0)[0] for letters, tags in DATA]
    assert min(overall) > 0.999
    assert min(both(letters, tags, 3.0)[0] for letters, tags in DATA) < min(overall)


def test_no_scores_without_lookahead_help_the_local_model() -> None:
    """[S4.306, 308]: whatever the scores of the tags so far and the letters so far, not only the one-weight model."""
    system = Tagging(torch.tensor([3]), len(TAGS))
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        tables = {prefix: 9 * torch.randn(6, 5, generator=generator) for prefix in ("a", "ab", "abc", "abe")}
        total = 0.0
        for letters, tags in DATA:
            by_position = torch.stack([tables[letters[: t + 1]] for t in range(3)])
            scorer = partial(table_score, by_position)
            total += local_log_prob(system, scorer, indices(tags)).exp().item()
        assert total <= 1 + 1e-6


def test_with_lookahead_the_local_model_can_do_it_too() -> None:
    """The bound is about what the scorer sees: if it reads the last letter with the second tag, it is sure of both."""
    system = Tagging(torch.tensor([3]), len(TAGS))
    for letters, tags in DATA:
        likely = "ABC" if letters[2] == "c" else "ADE"
        by_position = torch.zeros(3, 6, 5)
        for t, tag in enumerate(likely):
            by_position[t, :, TAGS.index(tag)] = 50.0
        scorer = partial(table_score, by_position)
        assert local_log_prob(system, scorer, indices(tags)).exp().item() > 0.999


def table_score(by_position: Tensor, state: TaggingState) -> Tensor:
    """Scores [position, last tag, tag], row -1 for no tag yet."""
    return by_position[state.position.clamp(max=2), state.tag]


def test_a_local_model_is_a_global_one() -> None:
    """[S4.301]: with ρ_G = ln p_L the global model gives every sequence the probability of the local one, Z being 1."""
    system = Tagging(torch.tensor([3]), len(TAGS))
    scorer = ChainScorer(system, *one_weight_scores("abc", 1.3))
    for tags in ("ABC", "ADE", "EEE", "BAD"):
        local = local_log_prob(system, scorer, indices(tags))
        overall = beam_log_prob(system, locally_normalised(system, scorer), indices(tags), ALL).log_prob
        torch.testing.assert_close(overall, local)
