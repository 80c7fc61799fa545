"""Arc-standard, arc-hybrid and swap: batched states and kernels against plain Python, oracles against brute force."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from tests.oracles import dependencies, parsing, transitions
from tests.oracles.parsing import LEFT, RIGHT, SHIFT, SWAP, Plain
from trelliswork.errors import ConstraintError
from trelliswork.structures.beam import ArcHybrid, ArcStandard, Swap
from trelliswork.structures.beam import parse_kernels as kernels
from trelliswork.structures.beam.parse_state import DependencySystem, ParseState

SYSTEMS: dict[str, type[DependencySystem]] = {"arc-standard": ArcStandard, "arc-hybrid": ArcHybrid, "swap": Swap}
MOVES = [SHIFT, LEFT, RIGHT, SWAP]
N_LABELS = 3


def number(move: str, label: int) -> int:
    return int(kernels.decision_of(MOVES.index(move), label, N_LABELS))


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_batched_states_and_kernels_are_those_of_plain_lists(name: str, single_root: bool) -> None:
    """Random walks of rows of several lengths, two hypotheses each; everything is compared after each step."""
    draw, lengths = random.Random(0), [1, 6, 3, 8]
    system = SYSTEMS[name](torch.tensor(lengths), N_LABELS, single_root=single_root)
    state = ParseState(*(each.repeat_interleave(2, 1) for each in system.initial()))
    plain = [[Plain.start(name, n, single_root) for _ in range(2)] for n in lengths]
    parses = [[kernels.new_parse(8) for _ in range(2)] for _ in lengths]
    for row in parses:
        for parse in row:
            kernels.begin(parse)
    while not all(each.finished for row in plain for each in row):
        compare(system, state, plain, parses, single_root)
        decisions = torch.zeros(len(lengths), 2, dtype=torch.long)
        for row, place in np.ndindex(len(lengths), 2):
            if plain[row][place].finished:
                continue
            move = draw.choice(sorted(plain[row][place].moves()))
            label = draw.randrange(N_LABELS) if move in (LEFT, RIGHT) else 0
            plain[row][place] = plain[row][place].take(move, label)
            kernels.take_move(system.KIND, parses[row][place], MOVES.index(move), label)
            decisions[row, place] = number(move, label)
            assert kernels.move_of(number(move, label), N_LABELS) == MOVES.index(move)
        moving = ~system.finished(state)
        stepped = system.step(state, decisions)
        state = ParseState(
            *(
                torch.where(moving.view(*moving.shape, *[1] * (new.dim() - 2)), new, old)
                for new, old in zip(stepped, state, strict=True)
            )
        )
    compare(system, state, plain, parses, single_root)


def compare(system, state, plain, parses, single_root) -> None:  # type: ignore[no-untyped-def]
    allowed, features = system.allowed(state), system.features(state)
    words, may = np.empty(kernels.N_SLOTS, np.int64), np.empty(kernels.N_MOVES, np.bool_)
    for row, place in np.ndindex(len(plain), 2):
        here, n = plain[row][place], int(system.lengths[row])
        assert bool(system.finished(state)[row, place]) == here.finished
        assert state.heads[row, place, 1 : n + 1].tolist() == here.heads()
        assert state.labels[row, place, 1 : n + 1].tolist() == here.labels()
        if here.finished:
            continue
        assert features[row, place].tolist() == here.features()
        wanted = {number(move, label) for move in here.moves() for label in range(N_LABELS)}
        assert set(allowed[row, place].nonzero().flatten().tolist()) == wanted
        kernels.describe(parses[row][place], n, words)
        kernels.allow(system.KIND, single_root, parses[row][place], n, may)
        assert words.tolist() == here.features()
        assert {move for move, yes in zip(MOVES, may, strict=True) if yes} == here.moves()


@pytest.mark.parametrize("single_root", [True, False])
def test_arc_hybrid_builds_exactly_the_projective_trees(single_root: bool) -> None:
    for n in range(1, 5):
        trees = dependencies.trees(n, single_root, projective=True)
        assert parsing.outcomes(Plain.start("arc-hybrid", n, single_root)) == set(trees)


def test_how_many_derivations_trees_have() -> None:
    """Four words have 30 trees with one root: a right arc may wait for a word that a later one takes away."""
    for build, n_derivations in ((ArcStandard, 40), (ArcHybrid, 32)):
        derivations = transitions.sequences(build(torch.tensor([4])), lambda state: torch.zeros(1, 1, 3), 0)
        assert len(derivations) == n_derivations


def test_swap_builds_every_tree() -> None:
    for n in range(1, 5):
        assert parsing.outcomes(Plain.start("swap", n)) == set(dependencies.trees(n, single_root=True))


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_static_oracle_rebuilds_every_tree(name: str) -> None:
    for n in range(1, 6):
        trees = torch.tensor(dependencies.trees(n, single_root=True, projective=name != "swap"))
        labels = torch.arange(trees.numel()).view_as(trees) % N_LABELS
        system = SYSTEMS[name](torch.full((len(trees),), n), N_LABELS)
        state = system.initial()
        for decisions in system.decisions_of(trees, labels).T:
            done = system.finished(state)
            may = system.allowed(state)[:, 0].gather(1, decisions.clamp(min=0)[:, None])[:, 0]
            assert bool((may | done[:, 0]).all()) and bool(((decisions == -1) == done[:, 0]).all())
            stepped = system.step(state, decisions.clamp(min=0)[:, None])
            state = ParseState(
                *(
                    torch.where(done.view(-1, *[1] * (new.dim() - 1)), old, new)
                    for new, old in zip(stepped, state, strict=True)
                )
            )
        assert bool(system.finished(state).all())
        assert torch.equal(state.heads[:, 0, 1:], trees) and torch.equal(state.labels[:, 0, 1:], labels)


def test_swaps_are_few() -> None:
    """Projective trees take none; others at most those of the eager oracle, which sorts the words at once."""
    lazy = eager = 0
    for heads in dependencies.trees(5, single_root=True):
        system = Swap(torch.tensor([5]))
        n_swaps = int((system.decisions_of(torch.tensor([heads])) == 3).sum())
        order = projective_order(heads)
        n_inversions = sum(order.index(i) > order.index(j) for j in range(1, 6) for i in range(1, j))
        assert (n_swaps == 0) == dependencies.is_projective(heads)
        assert n_swaps <= n_inversions
        lazy, eager = lazy + n_swaps, eager + n_inversions
    assert lazy < eager


def projective_order(heads: tuple[int, ...], word: int = 0) -> list[int]:
    below = [d for d, h in enumerate(heads, 1) if h == word]
    parts = [[word], *(projective_order(heads, d) for d in below)]
    keys = [word, *below]
    return [each for _, part in sorted(zip(keys, parts, strict=True)) for each in part]


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_what_is_no_tree_is_refused(name: str) -> None:
    system = SYSTEMS[name](torch.tensor([3]))
    for heads in ([2, 1, 0], [1, 0, 2], [0, 0, 1], [4, 0, 2]):
        with pytest.raises(ConstraintError, match=r"heads must be a single-root .*tree; got .* at row 0"):
            system.decisions_of(torch.tensor([heads]))


def test_costs_of_arc_hybrid_against_every_continuation() -> None:
    """In every state that can come about, for every gold tree: wrong heads of the best tree after less before."""
    checked = 0
    for n in range(1, 5):
        golds = dependencies.trees(n, single_root=True, projective=True)
        for here in parsing.reachable(Plain.start("arc-hybrid", n)):
            if here.finished:
                continue
            found = torch_costs(here, golds)
            for gold, costs in zip(golds, found.tolist(), strict=True):
                before = parsing.loss(here, gold)
                for move in here.moves():
                    assert costs[MOVES.index(move)] == parsing.loss(here.take(move), gold) - before
                    checked += 1
                assert kernel_costs(here, gold) == [costs[MOVES.index(move)] for move in sorted(here.moves())]
                assert min(costs[MOVES.index(move)] for move in here.moves()) == 0
    assert checked > 3_900


def torch_costs(here: Plain, golds: list[tuple[int, ...]]) -> torch.Tensor:
    system, n = ArcHybrid(torch.full((len(golds),), here.n)), here.n
    start = system.initial()
    stack = torch.tensor([*here.stack, *[0] * (n + 1 - len(here.stack))]).expand_as(start.stack)
    state = start._replace(
        stack=stack, height=start.height * len(here.stack), front=start.front * (n + 1 - len(here.buffer))
    )
    return system.costs(state, torch.tensor(golds))[:, 0]


def kernel_costs(here: Plain, gold: tuple[int, ...]) -> list[int]:
    parse, costs = kernels.new_parse(here.n), np.empty(kernels.N_MOVES, np.int64)
    kernels.begin(parse)
    parse.stack[: len(here.stack)] = here.stack
    parse.at[:] = len(here.stack), here.n + 1 - len(here.buffer)
    kernels.hybrid_costs(parse, np.array([-1, *gold]), here.n, costs)
    return [int(costs[MOVES.index(move)]) for move in sorted(here.moves())]


def test_lifting_makes_trees_projective_and_leaves_projective_ones_alone() -> None:
    for heads in dependencies.trees(5, single_root=True):
        (lifted,) = kernels.lift_rows(np.array([heads]), np.array([5]))
        found = tuple(lifted.tolist())
        assert dependencies.is_projective(found) and dependencies.reaches_the_root(found) and found.count(0) == 1
        assert (found == heads) == dependencies.is_projective(heads)
