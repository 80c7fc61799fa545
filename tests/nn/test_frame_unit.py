"""The unit of a frame parser against a plain loop over the states of one sentence."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from tests.oracles.frames import PlainState, random_graph
from trelliswork.nn.transitions import FrameUnit, unroll
from trelliswork.structures.beam import beam_search, local_log_prob, locally_normalised
from trelliswork.structures.beam.frames import Actions, FrameSystem, Kind, actions_of

LENGTHS, D, H, K = (5, 2, 4), 3, 6, 2


@pytest.fixture(scope="module")
def given() -> tuple[FrameSystem, Actions, Tensor, Tensor]:
    source = random.Random(3)
    graphs = [random_graph(source, n) for n in LENGTHS for _ in range(4)]
    lengths = [n for n in LENGTHS for _ in range(4)]
    table = Actions(a for graph, n in zip(graphs, lengths, strict=True) for a in actions_of(graph, n)[0])
    chosen = [0, 5, 9]
    system = FrameSystem(torch.tensor(LENGTHS), table)
    decisions = system.decisions_of([graphs[i] for i in chosen])
    vectors = torch.randn(3, 5, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return system, table, decisions, vectors


def made(table: Actions) -> FrameUnit:
    torch.manual_seed(0)
    return FrameUnit(D, H, n_decisions=len(table), n_roles=len(table.roles), k=K).double().eval()


class PlainUnit:
    """h of each step of one sentence, with the inputs that the paper names put together one by one."""

    def __init__(self, unit: FrameUnit, table: Actions, vectors: Tensor, n: int):
        self.unit, self.table, self.vectors = unit, table, vectors[:n]
        self.state, self.last = PlainState(n, 2 * max(LENGTHS)), torch.zeros(H).double()
        self.focus: dict[int, Tensor] = {}
        self.moved = torch.zeros(H).double()

    def word(self, slot: int, token: int | None) -> Tensor:
        vector = self.unit.borders[1] if token is None else self.vectors[token]
        width = len(self.unit.bias)
        return self.unit.slots.weight[slot * width : (slot + 1) * width] @ vector

    def hidden(self) -> Tensor:
        state, front = self.state, self.state.attention[:K]
        total = self.unit.bias + self.word(0, state.position if state.position < state.n else None)
        phrases = {frame: end - 1 for _, end, frame in state.mentions}
        for i in range(K):
            total = total + self.word(1 + i, phrases.get(front[i]) if i < len(front) else None)
        total = total + self.roles(front)
        links = [self.focus.get(frame, torch.zeros(H).double()) for frame in front]
        links += [torch.zeros(H).double()] * (K - len(front)) + [self.moved]
        return (total + self.unit.linked(torch.cat(links)) + self.unit.before(self.last)).relu()

    def roles(self, front: list[int]) -> Tensor:
        """A row of weights for each (s, r, t), (s, r), (r, t) and (s, t), each once."""
        n, codes = len(self.table.roles), set()
        for source, name, target in self.state.slots:
            r, s = self.table.roles.index(name), front.index(source) if source in front else None
            t = front.index(target) if target in front and not isinstance(target, str) else None
            if s is not None and t is not None:
                codes |= {(s * n + r) * K + t, K * n * K + 2 * K * n + s * K + t}
            if s is not None:
                codes.add(K * n * K + s * n + r)
            if t is not None:
                codes.add(K * n * K + K * n + r * K + t)
        return self.unit.roles.weight[:, sorted(codes)].sum(1)

    def take(self, decision: int, hidden: Tensor) -> None:
        action = self.table.items[decision]
        self.state.take(action)
        if action.kind in (Kind.SHIFT, Kind.STOP):
            self.moved = hidden
        else:
            self.focus[self.state.attention[0]] = hidden
        self.last = hidden


def test_every_step_is_that_of_a_plain_loop(given: tuple[FrameSystem, Actions, Tensor, Tensor]) -> None:
    system, table, decisions, vectors = given
    unit = made(table)
    recurrent = unit.connect(system, vectors)
    run = unroll(recurrent, decisions)
    with_roles = 0
    for row, n in enumerate(LENGTHS):
        plain, total = PlainUnit(unit, table, vectors[row], n), 0.0
        for step, decision in enumerate(decisions[row].tolist()):
            if decision < 0:
                break
            hidden = plain.hidden()
            torch.testing.assert_close(run.hidden[row, step], hidden)
            allowed = [plain.state.allows(action) for action in table.items]
            scores = torch.where(torch.tensor(allowed), unit.output(hidden), -torch.inf)
            torch.testing.assert_close(run.scores[row, step], scores)
            total += scores.log_softmax(-1)[decision].item()
            with_roles += bool(plain.state.slots)
            plain.take(decision, hidden)
        assert run.log_prob(decisions)[row].item() == pytest.approx(total)
    assert with_roles > 5
    torch.testing.assert_close(run.log_prob(decisions), local_log_prob(recurrent, recurrent.score, decisions))


def test_beams_carry_what_each_hypothesis_computed(given: tuple[FrameSystem, Actions, Tensor, Tensor]) -> None:
    system, table, _, vectors = given
    unit = made(table)
    recurrent = unit.connect(system, vectors)
    hypotheses = beam_search(recurrent, locally_normalised(recurrent, recurrent.score), 3)
    for place in range(2):
        again = local_log_prob(recurrent, recurrent.score, hypotheses.decisions[:, place])
        torch.testing.assert_close(again, hypotheses.scores[:, place])


def test_gradients_reach_words_through_all_steps(given: tuple[FrameSystem, Actions, Tensor, Tensor]) -> None:
    system, table, decisions, vectors = given
    unit, free = made(table), vectors.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: unroll(unit.connect(system, x), decisions).log_prob(decisions), free, fast_mode=True
    )
