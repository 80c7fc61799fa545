"""The frame parser: its loss, its answers, its folder."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from tests.models.test_events import DATA
from trelliswork.data import Sentence
from trelliswork.data.corpus import builtin_documents, document_records
from trelliswork.data.event_frames import frame_graph_of
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models.events.config import FrameConfig
from trelliswork.models.events.frame_parser import FrameParser
from trelliswork.nn.transitions.unit import unroll
from trelliswork.structures.beam import FrameSystem, local_log_prob
from trelliswork.structures.beam.frames import FrameGraph, Kind
from trelliswork.structures.beam.likelihood import locally_normalised
from trelliswork.structures.beam.search import beam_search

SMALL = FrameConfig(
    encoder="lstm", hidden=8, word_dim=8, prefix_lengths=(), suffix_lengths=(), state_dim=16, attention=3,
    dropout=0.0, state_dropout=0.0, unknown_dropout=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> FrameParser:
    model = FrameParser.from_data(DATA, SMALL)
    optimizer, examples = torch.optim.Adam(model.parameters(), lr=0.03), model.encode(DATA, with_tags=True)
    for _ in range(50):
        optimizer.zero_grad()
        model.loss(examples).backward()
        optimizer.step()
    return model.eval()


def test_the_loss_is_the_log_probability_of_the_decisions() -> None:
    model = FrameParser.from_data(DATA, SMALL).eval()
    whole = model.loss(DATA)
    torch.testing.assert_close(whole, sum(model.loss([each]) for each in DATA), atol=1e-3, rtol=1e-4)
    tokens = model.token_batch(model.encode(DATA))  # type: ignore[arg-type]
    system, recurrent = model.connected(tokens)
    decisions = system.decisions_of([frame_graph_of(each) for each in DATA])
    torch.testing.assert_close(whole, -local_log_prob(recurrent, recurrent.score, decisions).sum())


def test_it_learns_its_data_and_keeps_what_it_learned(fitted: FrameParser, tmp_path: Path) -> None:
    scores = fitted.evaluate(DATA)
    assert scores["metric"] == "frame graph f1" and scores["score"] > 0.95 and scores["roles"] > 0.9
    fitted.save(tmp_path / "frames")
    loaded: Any = tw.load(tmp_path / "frames")
    assert loaded.actions.items == fitted.actions.items
    for sentence, before, after in zip(DATA, fitted.predict(DATA), loaded.predict(DATA), strict=True):
        assert before.value == after.value and after.inputs == sentence.words
        assert before.probability == pytest.approx(after.probability) and 0 < after.probability <= 1
        assert len(after.spans) == len(after.value["mentions"]) and all(0 < s.probability <= 1 for s in after.spans)
    assert loaded.predict([DATA[0]])[0].value == {
        "frames": ["PER", "Visit", "LOC"],
        "mentions": [[0, 1, 0], [1, 2, 1], [2, 3, 2]],
        "slots": [[1, "Agent", 0], [1, "Place", 2]],
    }
    assert "all together" in loaded.report(DATA).text and "Visit" in loaded.describe().labels["types"]
    assert loaded.predict([Sentence(())])[0].value == {"frames": [], "mentions": [], "slots": []}


def test_the_probability_is_that_of_the_decisions(fitted: FrameParser) -> None:
    """A greedy answer is the best decision in each state; a beam's is at least as probable."""
    wide = FrameParser.from_stored({**fitted.stored_config(), "settings": replace(SMALL, beam=4).to_dict()})
    wide.load_state_dict(fitted.state_dict())
    for greedy, beam in zip(fitted.predict(DATA), wide.eval().predict(DATA), strict=True):
        assert beam.probability >= greedy.probability - 1e-6  # type: ignore[operator]
    with fitted.evaluating():
        system, recurrent = fitted.connected(fitted.token_batch(fitted.encode(DATA[:1])))  # type: ignore[arg-type]
        decisions = system.decisions_of([frame_graph_of(DATA[0])])
        log_prob = local_log_prob(recurrent, recurrent.score, decisions)
    assert isinstance(system, FrameSystem)
    assert fitted.predict(DATA[:1])[0].probability == pytest.approx(float(log_prob.exp()[0]), rel=1e-4)


def test_several_graphs_are_those_of_a_beam_each_once_with_all_its_probability(fitted: FrameParser) -> None:
    unsure = FrameParser.from_stored(fitted.stored_config())
    weights = {name: 0.4 * each for name, each in fitted.state_dict().items()}
    unsure.load_state_dict(weights)
    unsure.eval()
    several = 0
    for sentence, answer in zip(DATA, unsure.predict(DATA, top_k=12), strict=True):
        graphs = [each.value for each in answer.alternatives]
        assert answer.search == "beam" and graphs[0] == answer.value
        assert answer.probability == answer.alternatives[0].probability
        shares = [each.probability for each in answer.alternatives]
        assert shares == sorted(shares, reverse=True) and sum(shares) <= 1.000001
        with unsure.evaluating():
            system, recurrent = unsure.connected(unsure.token_batch(unsure.encode([sentence])))  # type: ignore[arg-type]
            found = beam_search(recurrent, locally_normalised(recurrent, recurrent.score), 12)  # type: ignore[arg-type]
        by_graph: dict[FrameGraph, float] = {}
        for h, log_prob in enumerate(found.scores[0].tolist()):
            graph = system.graph(recurrent.inner(found.state), 0, h).in_order()
            by_graph[graph] = by_graph.get(graph, 0.0) + math.exp(log_prob)
        assert sorted(by_graph.values(), reverse=True) == pytest.approx(shares, rel=1e-4)
        several += len(by_graph) < 12
    assert several  # some graphs were built in several ways


def test_parts_have_the_probability_of_the_decision_that_made_them(fitted: FrameParser) -> None:
    answer = fitted.predict([DATA[0]])[0]
    assert answer.search == "greedy" and [(p.start, p.label, p.head) for p in answer.parts] == [
        (0, "Agent", 2), (2, "Place", 2),
    ]  # fmt: skip
    with fitted.evaluating():
        system, recurrent = fitted.connected(fitted.token_batch(fitted.encode([DATA[0]])))  # type: ignore[arg-type]
        decisions = system.decisions_of([frame_graph_of(DATA[0])])
        shares = unroll(recurrent, decisions).scores.softmax(-1)[0]
    chances = [float(shares[i, d]) for i, d in enumerate(decisions[0].tolist())]
    kinds = [fitted.actions.items[d].kind for d in decisions[0].tolist()]
    made = {kind: [p for k, p in zip(kinds, chances, strict=True) if k is kind] for kind in set(kinds)}
    assert [part.probability for part in answer.parts] == pytest.approx(made[Kind.CONNECT], rel=1e-4)
    assert [part.probability for part in answer.spans] == pytest.approx(made[Kind.EVOKE], rel=1e-4)


def test_a_document_is_one_graph_in_which_frames_are_mentioned_again() -> None:
    every = document_records(builtin_documents(sizes=(40, 1, 1))["train"])
    part = [min((each for each in every if any(each.extra["coreference"])), key=len)]
    model = FrameParser.from_data(part, replace(SMALL, attention=6))
    assert Kind.REFER in {action.kind for action in model.actions.items}
    optimizer, examples = torch.optim.Adam(model.parameters(), lr=0.03), model.encode(part, with_tags=True)
    for _ in range(80):
        optimizer.zero_grad()
        model.loss(examples).backward()
        optimizer.step()
    (answer,) = model.eval().predict(part)
    assert model.evaluate(part)["score"] > 0.9
    assert len(answer.value["frames"]) < len(answer.value["mentions"])


def test_raw_text_needs_no_events(fitted: FrameParser) -> None:
    assert [answer.inputs for answer in fitted.predict("Ann visited Rome.")] == [("Ann", "visited", "Rome", ".")]


def test_what_cannot_be_done_is_explained(fitted: FrameParser) -> None:
    with pytest.raises(TrellisworkError, match="got none; check the data"):
        FrameParser.from_data([], SMALL)
    with pytest.raises(TrellisworkError, match="takes no pins"):
        fitted.predict(DATA, pins=[{}] * len(DATA))
    with pytest.raises(TrellisworkError, match="one without; encode"):
        fitted.loss(fitted.encode(DATA))
    strange = replace(DATA[0], tags=("B-ORG", "O", "B-LOC"))
    with pytest.raises(ConstraintError, match=r"got EVOKE\(ORG, 1\)"):
        fitted.loss([strange])
