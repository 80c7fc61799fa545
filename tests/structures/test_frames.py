"""The frame system: batched states against lists in plain Python, and the oracle against the graphs it was given."""

from __future__ import annotations

import random

import pytest
import torch

from tests.oracles.frames import PlainState, random_graph
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.structures.beam import beam_search, greedy, local_log_prob
from trelliswork.structures.beam.frames import (
    Action,
    Actions,
    FrameGraph,
    FrameState,
    FrameSystem,
    Kind,
    Mention,
    Slot,
    actions_of,
)
from trelliswork.structures.beam.frames.system import places_of
from trelliswork.structures.beam.system import advance

LENGTHS = (6, 3, 1, 5)


def graphs_of(seed: int) -> list[FrameGraph]:
    source = random.Random(seed)
    return [random_graph(source, n) for n in LENGTHS]


def many(n: int) -> list[tuple[list[FrameGraph], Actions]]:
    batches = [graphs_of(seed) for seed in range(n)]
    table = Actions(a for batch in batches for g, m in zip(batch, LENGTHS, strict=True) for a in actions_of(g, m)[0])
    return [(batch, table) for batch in batches]


def run(system: FrameSystem, decisions: torch.Tensor) -> FrameState:
    state = system.initial()
    for column in decisions.T:
        moving = (column >= 0)[:, None]
        allowed = system.allowed(state)[:, 0].gather(1, column.clamp(min=0)[:, None]).squeeze(1)
        assert bool((allowed | ~moving[:, 0]).all())
        state = advance(system, state, column[:, None], moving)
    assert bool(system.finished(state).all())
    return state


def test_the_oracle_rebuilds_every_graph_with_all_kinds_of_actions() -> None:
    source, lengths = random.Random(0), [*range(1, 8)] * 20
    graphs = [random_graph(source, n) for n in lengths]
    derived = [actions_of(graph, n) for graph, n in zip(graphs, lengths, strict=True)]
    table = Actions(action for actions, _ in derived for action in actions)
    assert {action.kind for action in table.items} == set(Kind)
    system = FrameSystem(torch.tensor(lengths), table, per_token=9)
    state = run(system, system.decisions_of(graphs))
    for row, (graph, n, (actions, order)) in enumerate(zip(graphs, lengths, derived, strict=True)):
        assert system.graph(state, row) == graph.renumbered(order)
        plain = PlainState(n, system.room)
        for action in actions:
            assert plain.allows(action)
            plain.take(action)
        assert plain.stopped and plain.graph() == graph.renumbered(order)


def test_batched_states_are_those_of_lists() -> None:
    """Random walks: what is allowed and what it leads to, up to the limits of frames, mentions and slots."""
    (_, table), *_ = many(12)
    full = 0
    for seed in range(4):
        source, system = random.Random(seed), FrameSystem(torch.tensor(LENGTHS), table, per_token=1 + seed % 2)
        plain, state = [PlainState(n, system.room) for n in LENGTHS], system.initial()
        while not all(each.stopped for each in plain):
            allowed, decisions = system.allowed(state)[:, 0], []
            for row, each in enumerate(plain):
                if each.stopped:
                    decisions.append(-1)
                    continue
                expected = [each.allows(action) for action in table.items]
                assert allowed[row].tolist() == expected
                full += len(each.types) == each.room
                possible = [d for d, good in enumerate(expected) if good]
                others = [d for d in possible if d > 1]
                decisions.append(source.choice(others if others and source.random() < 0.85 else possible))
                each.take(table.items[decisions[-1]])
            taken = torch.tensor(decisions)[:, None]
            state = advance(system, state, taken, taken >= 0)
            for row, each in enumerate(plain):
                assert system.graph(state, row) == each.graph()
                n = len(each.types)
                assert state.attention[row, 0].tolist() == each.attention + [-1] * (system.room - n)
                last = {frame: end - 1 for _, end, frame in each.mentions}
                assert state.phrase[row, 0, :n].tolist() == [last.get(frame, -1) for frame in range(n)]
                assert [each.attention[p] for p in places_of(state)[row, 0, :n].tolist()] == list(range(n))
    assert full > 3


def test_searches_end_and_hypotheses_keep_their_own_graphs() -> None:
    batch, table = many(8)[3]
    system, weights = FrameSystem(torch.tensor(LENGTHS), table), torch.randn(len(table), generator=_seeded(0))
    weights[:2] -= 3  # rather do anything than move on
    scorer = lambda state: weights.expand(*state.position.shape, -1)  # noqa: E731
    found = beam_search(system, scorer, 4)
    assert bool(found.finished.all())
    best = greedy(system, scorer)
    for row, n in enumerate(LENGTHS):
        plain = PlainState(n, system.room)
        for decision in best.decisions[row, 0].tolist():
            if decision >= 0:
                assert plain.allows(table.items[decision])
                plain.take(table.items[decision])
        assert plain.graph() == system.graph(best.state, row)
        assert len({str(system.graph(found.state, row, k)) for k in range(4)} | {""}) >= 2
    assert bool((local_log_prob(system, scorer, system.decisions_of(batch)) < 0).all())


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_graph_by_hand() -> None:
    """Ann met Bob. She: two mentions of one frame, an implied frame, and a constant."""
    graph = FrameGraph(
        ("Meet", "PER", "PER", "Team"),
        (Mention(0, 1, 1), Mention(1, 2, 0), Mention(2, 3, 2), Mention(4, 5, 1)),
        (Slot(0, "Agent", 1), Slot(0, "Tense", "past"), Slot(0, "Person", 2), Slot(3, "Member", 1)),
    )
    expected = [
        "EVOKE(PER, 1)", "EMBED(0, Member, Team)", "SHIFT",
        "EVOKE(Meet, 1)", "CONNECT(0, Agent, 2)", "ASSIGN(0, Tense, past)", "SHIFT",
        "EVOKE(PER, 1)", "CONNECT(1, Person, 0)", "SHIFT", "SHIFT", "REFER(3, 1)", "SHIFT", "STOP",
    ]  # fmt: skip
    actions, order = actions_of(graph, 5)
    assert [str(action) for action in actions] == expected
    assert order == [1, 3, 0, 2]
    again = Actions.from_list(Actions(actions).to_list())
    assert again.items == Actions(actions).items


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: actions_of(FrameGraph(("A", "B"), (Mention(0, 1, 0),)), 2), r"frame 1 \(B\) has none"),
        (lambda: actions_of(FrameGraph(("A",), (Mention(0, 3, 0),)), 2), "end at token 2"),
        (lambda: actions_of(FrameGraph(("A", "A"), (Mention(0, 1, 0), Mention(0, 1, 1))), 2), "two of A"),
        (lambda: FrameGraph(("A",), (Mention(0, 1, 1),)), "a frame in 0..0"),
        (lambda: FrameGraph(("A",), (), (Slot(0, "r", 2),)), "join frames"),
        (lambda: Actions([]).number(Action(Kind.EVOKE, 1, "A")), r"got EVOKE\(A, 1\)"),
    ],
)
def test_what_cannot_be_built_is_explained(make: object, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        make()  # type: ignore[operator]


def test_bad_lengths_are_explained() -> None:
    with pytest.raises(ScoreError, match="at least 1"):
        FrameSystem(torch.tensor([0]), Actions([]))
