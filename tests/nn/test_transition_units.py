"""Transition-based recurrent units against plain loops, and the kernels of feed-forward ones against torch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.oracles import dependencies, parsing
from tests.oracles.parsing import LEFT, RIGHT, SHIFT, Plain
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.nn.transitions import TBRU, ParsingUnit, RecurrentSystem, TaggingUnit, unroll
from trelliswork.nn.transitions.kernels import Pinned
from trelliswork.nn.transitions.states import (
    beam_parses,
    explored_states,
    global_loss,
    gold_states,
    greedy_parses,
    local_loss,
    right_decisions,
    right_trees,
)
from trelliswork.nn.transitions.unit import Wiring
from trelliswork.structures.beam import (
    ArcHybrid,
    ArcStandard,
    Swap,
    Tagging,
    beam_log_prob,
    beam_search,
    greedy,
    local_log_prob,
    locally_normalised,
)
from trelliswork.structures.beam.parse_state import SLOTS, DependencySystem
from trelliswork.structures.beam.tagging import TaggingState

SYSTEMS: dict[str, type[DependencySystem]] = {"arc-standard": ArcStandard, "arc-hybrid": ArcHybrid, "swap": Swap}
CELLS = ["feed-forward", "lstm", "gru"]
LENGTHS, N_LABELS, DIM, HIDDEN = [4, 1, 6], 2, 3, 5


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def unit_for(system: DependencySystem, cell: Any = "feed-forward") -> ParsingUnit:
    unit = ParsingUnit(DIM, HIDDEN, system.n_decisions, cell=cell).double()
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter, std=0.7)  # decisions that differ from state to state
    return unit


def gold_trees(projective: bool) -> Tensor:
    """A tree for each of `LENGTHS`."""
    trees = [dependencies.trees(n, single_root=True, projective=projective) for n in (4, 1, 5)]
    long = (*trees[2][77], 5)
    return torch.tensor([[*trees[0][11], 0, 0], [*trees[1][0], 0, 0, 0, 0, 0], long])


def tagging_wiring() -> Wiring[TaggingState]:
    """m(s) is the word at the position, r(s) the step before."""
    return Wiring(
        lambda state: (state.position + 1).clamp(max=max(LENGTHS))[:, :, None],
        lambda state, decisions: state.position - 1,
        lambda state: state.position[:, :, None][:, :, :0],
        max(LENGTHS),
    )


# --- units against plain loops -------------------------------------------------------------------------------------


def plain_cell(unit: TBRU, words: list[Tensor], links: list[Tensor], carried: Tensor) -> tuple[Tensor, Tensor]:
    """h and c as the equations have them, from the vectors of words and of earlier steps."""
    weights = unit.slots.weight.view(len(words), -1, unit.slots.weight.shape[1])
    read = sum((w @ x for w, x in zip(weights, words, strict=True)), unit.bias)
    recurrent = torch.zeros_like(read)
    if unit.before is not None:
        recurrent = unit.before.weight @ links[0]
    if unit.linked is not None:
        read = read + unit.linked.weight @ torch.cat(links[1:])
    if unit.cell == "feed-forward":
        return (read + recurrent).clamp(min=0), carried
    if unit.cell == "lstm":
        i, f, g, o = (read + recurrent).chunk(4)
        carried = f.sigmoid() * carried + i.sigmoid() * g.tanh()
        return o.sigmoid() * carried.tanh(), carried
    (r, z, n), (r_on, z_on, n_on) = read.chunk(3), recurrent.chunk(3)
    update = (z + z_on).sigmoid()
    return (1 - update) * (n + (r + r_on).sigmoid() * n_on).tanh() + update * links[0], carried


@pytest.mark.parametrize("name", list(SYSTEMS))
@pytest.mark.parametrize("cell", CELLS)
def test_a_parsing_unit_is_an_unrolled_loop(cell: str, name: str) -> None:
    """Each sentence alone, with lists: scores of all steps along gold decisions, and their likelihood."""
    system = SYSTEMS[name](torch.tensor(LENGTHS), N_LABELS)
    unit, vectors = unit_for(system, cell), torch.randn(3, 6, DIM, dtype=torch.float64)
    gold = system.decisions_of(gold_trees(projective=name != "swap"), torch.tensor([[1, 0, 1, 0, 0, 1]] * 3))
    connected, scorer = unit.connect(system, unit.project(vectors))
    log_probs = local_log_prob(connected, scorer, gold)
    for row, n in enumerate(LENGTHS):
        scores, decisions = plain_parse(unit, name, vectors[row, :n], gold[row])
        log_prob = sum(each.log_softmax(-1)[d] for each, d in zip(scores, decisions, strict=True))
        torch.testing.assert_close(log_probs[row], log_prob)
        if isinstance(connected, RecurrentSystem):
            torch.testing.assert_close(unroll(connected, gold).scores[row, : len(scores)], torch.stack(scores))


def plain_parse(unit: ParsingUnit, name: str, vectors: Tensor, gold: Tensor) -> tuple[list[Tensor], list[int]]:
    state, made, scores, decisions = Plain.start(name, len(vectors)), dict[int, Tensor](), list[Tensor](), list[int]()
    zero = torch.zeros(HIDDEN, dtype=torch.float64)
    table = {-1: unit.borders[1], 0: unit.borders[0]} | {i + 1: each for i, each in enumerate(vectors)}
    last = carried = zero
    for decision in gold[gold >= 0].tolist():
        features = state.features()
        linked = [features[SLOTS.index(slot)] for slot in ("s0", "s1", "b0")]
        links = [last, *(made.get(word, zero) if word >= 0 else zero for word in linked)]
        last, carried = plain_cell(unit, [table[word] for word in features], links, carried)
        here = unit.output.weight @ last + unit.output.bias
        allowed = {move_number(move, label) for move in state.moves() for label in range(N_LABELS)}
        scores.append(torch.stack([here[d] if d in allowed else here[d] - np.inf for d in range(len(here))]))
        decisions.append(decision)
        move, label = taken_move(decision)
        word = state.buffer[0] if move == LEFT and name == "arc-hybrid" else None
        state = state.take(move, label)
        made[state.stack[-1] if word is None else word] = last
    return scores, decisions


def move_number(move: str, label: int) -> int:
    return {SHIFT: 0, LEFT: 1 + label, RIGHT: 1 + N_LABELS + label}.get(move, 2 * N_LABELS + 1)


def taken_move(decision: int) -> tuple[str, int]:
    pairs = [(SHIFT, 0), *itertools.product((LEFT, RIGHT), range(N_LABELS)), (parsing.SWAP, 0)]
    return pairs[decision]


def test_a_tagging_unit_is_an_lstm() -> None:
    """With m(s_i) = x_i and r(s_i) = {i - 1}, a unit with an LSTM cell is `nn.LSTM`."""
    unit = TBRU(DIM, HIDDEN, n_slots=1, n_decisions=3, n_links=1, cell="lstm").double()
    lstm = torch.nn.LSTM(DIM, HIDDEN, batch_first=True).double()
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(unit.slots.weight)
        lstm.weight_hh_l0.copy_(unit.before.weight)
        lstm.bias_ih_l0.copy_(unit.bias)
        lstm.bias_hh_l0.zero_()
    vectors = torch.randn(3, 6, DIM, dtype=torch.float64)
    system = RecurrentSystem(Tagging(torch.tensor(LENGTHS), 3), unit, unit.project(vectors), tagging_wiring())
    run, (wanted, _) = unroll(system), lstm(vectors)
    for row, n in enumerate(LENGTHS):
        torch.testing.assert_close(run.hidden[row, :n], wanted[row, :n])
        assert run.decisions[row].tolist() == [*unit.output(wanted[row, :n]).argmax(-1).tolist(), *[-1] * (6 - n)]


def test_the_states_of_a_tagging_unit_are_those_of_a_run_from_left_to_right() -> None:
    unit = TBRU(DIM, HIDDEN, n_slots=1, n_decisions=3).double()
    torch.nn.init.normal_(unit.bias)
    at_once = TaggingUnit(DIM, HIDDEN).double()
    with torch.no_grad():
        at_once.word.weight.copy_(unit.slots.weight)
        at_once.word.bias.copy_(unit.bias)
    vectors = torch.randn(3, 6, DIM, dtype=torch.float64)
    system = RecurrentSystem(Tagging(torch.tensor(LENGTHS), 3), unit, unit.project(vectors), tagging_wiring())
    hidden, wanted = at_once(vectors), unroll(system).hidden
    for row, n in enumerate(LENGTHS):
        torch.testing.assert_close(hidden[row, :n], wanted[row, :n])


def test_gradients_go_through_the_link_from_parser_to_tagger() -> None:
    """A tagger's states are read by a parser: the loss of the parse alone moves the weights of the tagger."""
    lengths, vectors = torch.tensor(LENGTHS), torch.randn(3, 6, DIM, dtype=torch.float64)
    tagging, system = Tagging(lengths, 3), ArcHybrid(lengths, N_LABELS)
    tagger = TBRU(DIM, 2, n_slots=1, n_decisions=3, n_links=1, cell="gru").double()
    parser = ParsingUnit(DIM + 2, HIDDEN, system.n_decisions, cell="lstm").double()
    gold = system.decisions_of(gold_trees(projective=True))

    def parse_loss(first: Tensor, recurrent: Tensor) -> Tensor:
        weights = {"slots.weight": first, "before.weight": recurrent}
        called = torch.func.functional_call(
            Chained(tagger), {f"unit.{k}": v for k, v in weights.items()}, (tagging, vectors)
        )
        connected, scorer = parser.connect(system, parser.project(torch.cat([vectors, called], -1)))
        return -local_log_prob(connected, scorer, gold).sum()

    weights = [each.detach().clone().requires_grad_() for each in (tagger.slots.weight, tagger.before.weight)]
    assert torch.autograd.gradcheck(parse_loss, weights, fast_mode=True)
    grads = torch.autograd.grad(parse_loss(*weights), weights)
    assert all(bool((each != 0).any()) for each in grads)


class Chained(torch.nn.Module):
    """A tagger whose states after each word are wanted."""

    def __init__(self, unit: TBRU) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, tagging: Tagging, vectors: Tensor) -> Tensor:
        tags = torch.where(torch.arange(6) < tagging.lengths[:, None], 1, -1)
        system = RecurrentSystem(tagging, self.unit, self.unit.project(vectors), tagging_wiring())
        return unroll(system, tags).hidden


def test_cells_with_memory_need_a_link() -> None:
    with pytest.raises(ScoreError, match="needs a link to the previous step"):
        TBRU(3, 4, n_slots=1, n_decisions=2, cell="lstm")
    with pytest.raises(ScoreError, match="cell must be one of feed-forward, lstm, gru"):
        TBRU(3, 4, n_slots=1, n_decisions=2, cell="rnn")  # type: ignore[arg-type]


# --- kernels against torch -----------------------------------------------------------------------------------------


def parts(name: str) -> tuple[DependencySystem, ParsingUnit, Tensor]:
    system = SYSTEMS[name](torch.tensor(LENGTHS), N_LABELS)
    unit = unit_for(system)
    return system, unit, unit.project(torch.randn(3, 6, DIM, dtype=torch.float64))


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_greedy_parses_are_those_of_greedy_search(name: str) -> None:
    system, unit, projected = parts(name)
    connected = unit.connect(system, projected)
    parses, wanted = greedy_parses(system, unit, projected), greedy(*connected)
    assert torch.equal(parses.heads, wanted.state.heads[:, 0, 1:])
    assert torch.equal(parses.labels, wanted.state.labels[:, 0, 1:])
    torch.testing.assert_close(parses.log_prob, local_log_prob(*connected, wanted.decisions[:, 0]))
    assert bool((parses.arc_log_probs.sum(1) >= parses.log_prob).all())


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_beams_are_those_of_beam_search(name: str, is_local: bool) -> None:
    """A unit that gives states no value is a local model."""
    system, unit, projected = parts(name)
    connected, scorer = unit.connect_global(system, projected)
    if is_local:
        torch.nn.init.zeros_(unit.value.weight)
        torch.nn.init.zeros_(unit.value.bias)
        scorer = locally_normalised(*unit.connect(system, projected))
    for beam in (1, 3, 8):
        parses = beam_parses(system, unit, projected, beam)
        wanted = beam_search(connected, scorer, beam)
        width = wanted.scores.shape[1]
        torch.testing.assert_close(parses.scores[:, :width], wanted.scores)
        there = wanted.scores > -np.inf
        assert torch.equal(parses.heads[:, :width][there], wanted.state.heads[there][:, 1:])
        assert torch.equal(parses.labels[:, :width][there], wanted.state.labels[there][:, 1:])


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_loss_of_gold_states_is_the_local_likelihood(name: str) -> None:
    system, unit, projected = parts(name)
    gold = system.decisions_of(gold_trees(projective=name != "swap"))
    loss = local_loss(unit, projected, gold_states(system, gold))
    wanted = -local_log_prob(*unit.connect(system, projected), gold).sum()
    torch.testing.assert_close(loss, wanted)
    same_gradients(loss, wanted, unit)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_global_loss_is_that_of_the_beam_with_early_update(name: str) -> None:
    """Where gold falls off at once, on the way, and never."""
    system, unit, projected = parts(name)
    gold = system.decisions_of(gold_trees(projective=name != "swap"))
    fell = set()
    for beam in (1, 4, 60, 500):
        loss = global_loss(system, unit, projected, right_decisions(gold), beam)
        wanted = beam_log_prob(*unit.connect_global(system, projected), gold, beam)
        torch.testing.assert_close(loss, -wanted.log_prob.sum())
        same_gradients(loss, -wanted.log_prob.sum(), unit)
        fell |= set(wanted.fell_off.tolist())
    assert fell == {True, False}


def test_every_way_to_the_right_tree_is_right() -> None:
    """A plain beam, where a hypothesis is right if the gold tree, labels included, can still come of it."""
    system, unit, projected = parts("arc-hybrid")
    heads, labels = gold_trees(projective=True), torch.tensor([[1, 0, 1, 0, 0, 1]] * 3)
    heads[0, :4] = torch.tensor([0, 1, 4, 1])  # word 2 may get its head before or after word 3
    right, n_right = right_trees(system, heads, labels), set[int]()
    for beam in (1, 4, 60, 500):
        loss = global_loss(system, unit, projected, right, beam)
        wanted = torch.zeros((), dtype=torch.float64)
        for row, n in enumerate(LENGTHS):
            gold = tuple(heads[row, :n].tolist()), labels[row, :n].tolist()
            lost, counted = plain_tree_loss(unit, projected[row : row + 1], gold, beam)
            wanted, n_right = wanted + lost, n_right | {counted}
        torch.testing.assert_close(loss, wanted)
        same_gradients(loss, wanted, unit)
    assert {0, 1} < n_right and max(n_right) > 1  # fell off, one way, several


def plain_tree_loss(
    unit: ParsingUnit, projected: Tensor, gold: tuple[tuple[int, ...], list[int]], beam: int
) -> tuple[Tensor, int]:
    """-ln of the share of right hypotheses, and how many there are in the beam."""
    heads, labels = gold
    arcs = {(h, d, label) for d, (h, label) in enumerate(zip(heads, labels, strict=True), 1)}
    hypotheses = [(torch.zeros((), dtype=torch.float64), Plain.start("arc-hybrid", len(heads)))]

    def is_right(state: Plain) -> bool:
        return state.arcs <= arcs and heads in parsing.outcomes(state)

    while not hypotheses[0][1].finished:
        after = list[tuple[Tensor, Plain]]()
        for total, state in hypotheses:
            words = torch.tensor([state.features()])
            hidden = unit(unit.gather(projected, torch.zeros(1, dtype=torch.long), words))[0][0]
            takes = {move_number(m, y): (m, y) for m, y in itertools.product(state.moves(), range(N_LABELS))}
            log_probs = unit.output(hidden)[list(takes)].log_softmax(-1)
            base = total + unit.value.weight[0] @ hidden + unit.value.bias[0]
            ahead = [state.take(m, y if m != SHIFT else 0) for m, y in takes.values()]
            after += [(base + gained, each) for gained, each in zip(log_probs, ahead, strict=True)]
        after.sort(key=lambda each: -each[0].item())
        hypotheses, fallen = after[:beam], [each for each in after[beam:] if is_right(each[1])]
        if not any(is_right(state) for _, state in hypotheses):
            best = fallen[0][0]
            return torch.stack([*(total for total, _ in hypotheses), best]).logsumexp(0) - best, 0
    right = [total for total, state in hypotheses if is_right(state)]
    every = torch.stack([total for total, _ in hypotheses])
    return every.logsumexp(0) - torch.stack(right).logsumexp(0), len(right)


def same_gradients(loss: Tensor, wanted: Tensor, unit: ParsingUnit) -> None:
    weights = list(unit.parameters())
    pair = (torch.autograd.grad(each, weights, retain_graph=True, materialize_grads=True) for each in (loss, wanted))
    for a, b in zip(*pair, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("explore", [0.0, 0.5, 1.0])
def test_explored_states_and_what_is_right_in_them(explore: float) -> None:
    """A plain parser that takes the same way; right is what brute force says loses nothing, with the gold label."""
    system, unit, projected = parts("arc-hybrid")
    heads, labels = gold_trees(projective=True), torch.tensor([[1, 0, 1, 0, 0, 1]] * 3)
    torch.manual_seed(5)
    states = explored_states(system, unit, projected, (heads, labels), explore)
    torch.manual_seed(5)
    chances = (torch.rand(len(states.rows)) < explore).tolist()
    i = 0
    for row, n in enumerate(LENGTHS):
        here, gold = Plain.start("arc-hybrid", n), tuple(heads[row, :n].tolist())
        while not here.finished:
            assert states.rows[i] == row and states.words[i].tolist() == here.features()
            right = set()
            for move, label in itertools.product(here.moves(), range(N_LABELS)):
                after = here.take(move, label)
                arcs = after.arcs - here.arcs
                fits = all(gold[d - 1] != h or labels[row, d - 1] == label for h, d, _ in arcs)
                if fits and parsing.loss(after, gold) == parsing.loss(here, gold):
                    right.add(move_number(move, label))
            assert set(states.right[i].nonzero().flatten().tolist()) == right
            assert set(states.allowed[i].nonzero().flatten().tolist()) == {
                move_number(move, label) for move in here.moves() for label in range(N_LABELS)
            }
            scores = unit.scores(unit(unit.gather(projected, states.rows[i : i + 1], states.words[i : i + 1]))[0])[0]
            among = states.allowed[i] if chances[i] else states.right[i]
            here = here.take(*taken_move(int(torch.where(among, scores, -np.inf).argmax())))
            i += 1
    assert i == len(states.rows)


def test_pins_are_kept_whatever_the_scores_say() -> None:
    """Every part of every tree of four words; the rest of the tree is free."""
    for heads in dependencies.trees(4, single_root=True, projective=True):
        chosen = list(itertools.product((True, False), repeat=4))
        known = torch.tensor([[-1, *(h if on else -1 for h, on in zip(heads, each, strict=True))] for each in chosen])
        system = ArcHybrid(torch.full((len(chosen),), 4), N_LABELS)
        unit = unit_for(system)
        projected = unit.project(torch.randn(len(chosen), 4, DIM, dtype=torch.float64))
        pinned = Pinned(known.numpy(), torch.where(known >= 0, 1, -1).numpy())
        greedily = greedy_parses(system, unit, projected, pinned)
        beam = beam_parses(system, unit, projected, 2, pinned)
        for heads_found, labels in ((greedily.heads, greedily.labels), (beam.heads[:, 0], beam.labels[:, 0])):
            assert bool((heads_found == known[:, 1:])[known[:, 1:] >= 0].all())
            assert bool((labels == 1)[known[:, 1:] >= 0].all())
            assert all(dependencies.is_projective(tuple(row)) for row in heads_found.tolist())


def test_pins_that_no_tree_has_are_refused() -> None:
    system = ArcHybrid(torch.tensor([4]), N_LABELS)
    unit = unit_for(system)
    projected = unit.project(torch.randn(1, 4, DIM, dtype=torch.float64))
    crossing = Pinned(np.array([[-1, 3, 4, -1, -1]]), np.full((1, 5), -1))
    with pytest.raises(ConstraintError, match="expected pins that a projective tree with one root can have"):
        greedy_parses(system, unit, projected, crossing)
