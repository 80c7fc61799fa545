"""Models of events: their losses, answers, pins and folders; the best assignment against all assignments."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.data.corpus import builtin_corpus, event_sentences
from trelliswork.data.events import entities_of, events_of
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.event_network import EventNetwork
from trelliswork.models.events.factor_events import Candidates, FactorEvents
from trelliswork.models.events.memory_events import MemoryEvents
from trelliswork.structures.factors.structure import score_places
from trelliswork.tags.schemes import tags_of

KINDS = [MemoryEvents, FactorEvents]
SMALL = EventConfig(
    encoder="lstm", hidden=8, word_dim=8, prefix_lengths=(), suffix_lengths=(), event_hidden=8, entity_dim=3, context=1,
    dropout=0.0, event_dropout=0.0, unknown_dropout=0.0,
)  # fmt: skip


def known(text: str, tags: str, *events: dict[str, Any], heads: str = "") -> Sentence:
    n = len(text.split())
    extra = {"events": list(events), "heads": [2] + [2] * (n - 1), "relations": ["dep"] * n}
    extra["heads"][1] = 0
    extra["relations"][0] = "subj"
    return Sentence(tuple(text.split()), tuple(tags.split()), extra=extra)


def event(trigger: int, type_: str, *arguments: tuple[int, int, str]) -> dict[str, Any]:
    return {"trigger": trigger, "type": type_, "arguments": [list(each) for each in arguments]}


DATA = [
    known("Ann visited Rome", "B-PER O B-LOC", event(1, "Visit", (0, 1, "Agent"), (2, 3, "Place"))),
    known("Bob met Ann", "B-PER O B-PER", event(1, "Meet", (0, 1, "Agent"), (2, 3, "Other"))),
    known("Ann met Bob Lee", "B-PER O B-PER I-PER", event(1, "Meet", (0, 1, "Agent"), (2, 4, "Other"))),
    known("Bob visited York", "B-PER O B-LOC", event(1, "Visit", (0, 1, "Agent"), (2, 3, "Place"))),
    known("York sleeps", "B-LOC O"),
    known("Ann came and visited", "B-PER O O O", event(1, "Meet", (0, 1, "Agent")), event(3, "Visit", (0, 1, "Agent"))),
]


def made(kind: type[EventNetwork], config: EventConfig = SMALL) -> Any:
    return kind.from_data(DATA, config).eval()


def fitted(kind: type[EventNetwork], steps: int, config: EventConfig = SMALL) -> Any:
    model = kind.from_data(DATA, config)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    examples = model.encode(DATA, with_tags=True)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(examples).backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_of_a_batch_is_that_of_its_sentences(kind: type[EventNetwork]) -> None:
    model = made(kind)
    whole = model.loss(DATA)
    torch.testing.assert_close(whole, sum(model.loss([each]) for each in DATA), atol=1e-3, rtol=1e-4)
    whole.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for n, p in model.named_parameters() if _learns(n))


def _learns(name: str) -> bool:
    """A single event type of roles has a constant vector, and transitions that no gold sequence has may have none."""
    return "roles.types" not in name and not name.startswith("crf.")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_learns_its_data_and_keeps_what_it_learned(kind: type[EventNetwork], tmp_path: Path) -> None:
    model = fitted(kind, 60)
    scores = model.evaluate(DATA)
    assert scores["metric"] == "argument f1" and scores["score"] == scores["arguments"] > 0.9
    assert scores["entities"] > 0.9 and scores["triggers"] > 0.9
    model.save(tmp_path / "events")
    loaded: Any = tw.load(tmp_path / "events")
    assert type(loaded) is kind and loaded.inventory == model.inventory
    for sentence, before, after in zip(DATA, model.predict(DATA), loaded.predict(DATA), strict=True):
        assert before.value == after.value and before.inputs == sentence.words
        assert [part.probability for part in before.parts] == pytest.approx([p.probability for p in after.parts])
        assert all(0 < part.probability <= 1.000001 for part in (*after.parts, *after.spans))
    first = loaded.predict([DATA[0]])[0]
    assert first.value["events"] == DATA[0].extra["events"]
    assert first.value["entities"] == [list(each) for each in entities_of(DATA[0])]
    assert "arguments, entities given" in loaded.report(DATA).text
    assert "Visit" in loaded.describe().labels["types"]
    assert loaded.predict([Sentence((), extra={"heads": [], "relations": []})])[0].value == {
        "entities": [],
        "events": [],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_pinned_entities_are_the_answer_and_roles_are_theirs(kind: type[EventNetwork]) -> None:
    model = fitted(kind, 30)
    pins = [{"entities": [(2, 3, "PER")]}, {}]
    first, second = model.predict(DATA[:2], pins=pins)
    assert first.value["entities"] == [[2, 3, "PER"]]
    assert all(argument[:2] == [2, 3] for each in first.value["events"] for argument in each["arguments"])
    assert second.value == model.predict(DATA[1:2])[0].value
    with pytest.raises(TrellisworkError, match="within 3 tokens of LOC, PER"):
        model.predict(DATA[:1], pins=[{"entities": [(2, 9, "PER")]}])


def test_ad3_against_every_assignment_of_small_sentences() -> None:
    """The graph of a learned model: types of triggers, entities and roles, with nothing that overlaps."""
    model = fitted(FactorEvents, 6)  # still unsure, so that the parts disagree
    judged = 0
    with model.evaluating():
        documents = [
            each.document for each in model.candidate_graphs(model.read(model.encode(DATA)), [None] * len(DATA))
        ]
    for document in documents:
        ((m, k),) = document.sizes
        m, k, within = min(m, 2), min(k, 2), document.within[0]
        within = within._replace(types=within.types[:m], roles=within.roles[:m, :k], kinds=within.kinds[:m, :k])
        pairs = [pair for pair in document.pairs if max(pair) < m]
        clashes = [pair for pair in document.clashes[0] if max(pair) < k]
        small = document._replace(
            within=[within], pairs=pairs, relations=document.relations[: len(pairs)],
            entities=[document.entities[0][:k]], clashes=[clashes],
        )  # fmt: skip
        (n_types, n_roles), n_kinds = within.type_roles.shape, within.role_kinds.shape[1]
        everything = list(itertools.product(*map(range, [n_types] * m + [n_kinds] * k + [n_roles] * m * k)))
        y = torch.tensor(everything)
        types, kinds, roles = y[:, :m], y[:, m : m + k], y[:, m + k :].reshape(len(y), m, k)
        total = torch.zeros(len(y))
        for i in range(m):
            one = within._replace(
                **{name: getattr(within, name)[i : i + 1].expand(len(y), *getattr(within, name).shape[1:])
                   for name in ("types", "roles", "kinds")}
            )  # fmt: skip
            total = total + one.score(types[:, i], roles[:, i], kinds)
        for (i, j), table in zip(pairs, small.relations, strict=True):
            total = total + table[types[:, i], types[:, j]]
        for j in range(k):
            total = total + small.entities[0][j, kinds[:, j]]
        for i, j in clashes:
            total = torch.where((kinds[:, i] > 0) & (kinds[:, j] > 0), -torch.inf, total)
        best, found = small.best()
        value = (*best.types[0], *best.kinds[0], *itertools.chain(*best.roles[0]))
        assert total[everything.index(value)].item() == pytest.approx(total.max().item(), abs=1e-4)
        assert bool(found.certified)
        judged += len(everything) > 500
    assert judged >= 3


def test_overlapping_entities_are_never_answered_together() -> None:
    model = fitted(FactorEvents, 10)
    for answer in model.predict(DATA):
        ends = [0, *itertools.chain(*(entity[:2] for entity in answer.value["entities"]))]
        assert ends == sorted(ends)


def test_sentences_without_likely_triggers_still_have_entities() -> None:
    model = fitted(FactorEvents, 30)
    torch.nn.init.constant_(model.proposals.weight, 0.0)
    torch.nn.init.constant_(model.proposals.bias, -20.0)
    answers = model.predict(DATA)
    assert all(not answer.value["events"] for answer in answers)
    assert sum(len(answer.value["entities"]) for answer in answers) > 5
    assert model.loss(DATA).isfinite()


def test_dependencies_go_in_and_are_asked_for() -> None:
    model = made(MemoryEvents)
    assert model.inventory.relations == ("dep", "subj")
    batch = model.read(model.encode(DATA[:1]))
    assert batch.dependencies[0].tolist() == [[0, 1], [1, 1], [1, 0]]  # of all arcs at a word
    bare = [replace(each, extra={"events": each.extra["events"]}) for each in DATA]
    with pytest.raises(DataError, match=r'3 heads in 0\.\.3 under "heads", as the model reads dependencies'):
        model.predict(bare[:1])
    without = MemoryEvents.from_data(bare, SMALL)
    assert without.inventory.relations == () and without.predict("Ann visited Rome.")[0].inputs
    assert MemoryEvents.from_data(DATA, replace(SMALL, dependencies=False)).inventory.relations == ()


def test_words_entity_types_and_dependencies_make_the_input() -> None:
    """x_i = [word; type of its entity; dependencies], through the reader, whose output the decoder sees."""
    model = made(MemoryEvents)
    seen = []
    model.reader.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    encoded = model.encode(DATA[:1])
    batch = model.read(encoded)
    read = model.with_entities(batch, [[(0, 1, "PER"), (2, 3, "LOC")]])
    kinds = torch.tensor([[2, 0, 1]])  # LOC is 1, PER is 2
    expected = torch.cat([batch.inputs, model.entity_types(kinds), batch.dependencies], -1)
    torch.testing.assert_close(seen[0], expected)
    assert read.entity.tolist() == [[0, 2]] and read.kind.tolist() == [[2, 1]]
    assert read.arcs[0].tolist() == [[0, 0, 0], [2, 0, 1], [0, 0, 0]]


def test_what_cannot_be_learned_from_or_asked_is_explained() -> None:
    with pytest.raises(TrellisworkError, match="sentences with events to learn from, got none"):
        MemoryEvents.from_data(DATA[4:5], SMALL)
    with pytest.raises(DataError, match='a list of events under "events"'):
        MemoryEvents.from_data([Sentence(("a",), ("O",))], SMALL)
    with pytest.raises(TrellisworkError, match="one without; encode"):
        made(MemoryEvents).loss(made(MemoryEvents).encode(DATA))


def answered(sentence: Sentence, value: dict[str, Any]) -> Sentence:
    """The sentence with an answer as its gold."""
    tags = tags_of([tuple(each) for each in value["entities"]], len(sentence), "IOB2")
    return replace(sentence, tags=tuple(tags), extra={**sentence.extra, "events": value["events"]})


def test_the_probability_of_a_memory_models_answer_is_exp_of_minus_its_loss() -> None:
    model = fitted(MemoryEvents, 5)  # still unsure
    record = document_of(DATA[:3])
    for sentence, answer in zip([*DATA, record], model.predict([*DATA, record], top_k=4), strict=True):
        assert answer.search == "beam" and len(answer.alternatives) == 4
        assert answer.alternatives[0].value == answer.value
        for each in answer.alternatives:
            expected = (-model.loss([answered(sentence, each.value)])).exp().item()
            assert each.probability == pytest.approx(expected, rel=1e-3)
        shares = [each.probability for each in answer.alternatives]
        assert shares == sorted(shares, reverse=True)
        greedy = model.predict([sentence])[0]
        assert greedy.search == "greedy" and greedy.probability <= answer.probability * (1 + 1e-4)
        value = model.predict([sentence], top_k=0, confidence=False)[0].value
        assert greedy.value == value


def test_all_answers_of_a_memory_model_have_all_the_probability() -> None:
    model = fitted(MemoryEvents, 3)
    (answer,) = model.predict([DATA[4]], top_k=6000)
    assert 1000 < len(answer.alternatives) < 6000
    assert sum(each.probability for each in answer.alternatives) == pytest.approx(1.0, abs=1e-4)


def test_probabilities_of_the_graph_are_those_of_all_assignments() -> None:
    """Of the whole, of the three best, and of each part."""
    model = fitted(FactorEvents, 8, replace(SMALL, proposals=2, analyses=1))
    with model.evaluating():
        graphs = model.candidate_graphs(model.read(model.encode(DATA)), [None] * len(DATA))
    answers = model.predict(DATA, top_k=3), model.predict(DATA, top_k=0, confidence=False)
    n_parts = 0
    for each, answer, plain in zip(graphs, *answers, strict=True):
        assert answer.search in ("AD3, certified", "exact") and plain.value == answer.value and not plain.parts
        sizes = each.graph.sizes
        everything = torch.cartesian_prod(*map(torch.arange, sizes))
        parts = each.graph._parts  # as score() does, but not one assignment after the other
        scores = parts.flat[0][score_places(parts.graph, everything)].sum(-1)
        torch.testing.assert_close(scores[::400], each.graph.score(everything[::400]), check_dtype=False)
        shares = scores.double().softmax(0)
        best = shares.topk(3)
        assert [one.probability for one in answer.alternatives] == pytest.approx(best.values.tolist(), rel=1e-3)
        assert answer.probability == pytest.approx(best.values[0].item(), rel=1e-3)
        chosen = everything[best.indices[0]].tolist()
        sure = [float(shares[everything[:, v] == value].sum()) for v, value in enumerate(chosen)]
        types, roles, kinds = each.document.split(list(zip(chosen, sure, strict=True)))
        expected = []
        for (value, p), of_roles in zip(types[0], roles[0], strict=True):
            expected += [p, *(q for role, q in of_roles if role)] if value else []
        assert [part.probability for part in answer.parts] == pytest.approx(expected, rel=1e-3)
        assert [part.probability for part in answer.spans] == pytest.approx([p for v, p in kinds[0] if v], rel=1e-3)
        n_parts += len(expected)
    assert n_parts > 5


def test_a_wide_graph_has_one_value_without_a_probability() -> None:
    model, document = fitted(FactorEvents, 2, replace(SMALL, reach=5)), document_of([*DATA, *DATA])
    (answer,) = model.predict([document], top_k=2)
    assert answer.probability is None and answer.search.startswith("AD3") and not answer.alternatives
    assert all(0 <= part.probability <= 1.000001 for part in (*answer.parts, *answer.spans))


def document_of(sentences: list[Sentence]) -> Sentence:
    """Sentences as one document."""
    words, tags, extra = list[str](), list[str](), {"events": [], "heads": [], "relations": [], "sentences": []}
    for each in sentences:
        start = len(words)
        extra["events"] += [one.moved(start).record() for one in events_of(each)]
        extra["heads"] += [head + start if head else 0 for head in each.extra["heads"]]
        extra["relations"] += each.extra["relations"]
        extra["sentences"].append([start, start + len(each)])
        words += each.words
        tags += each.tags or ()
    return Sentence(tuple(words), tuple(tags), extra=extra)


@pytest.mark.parametrize(("kind", "alone"), [(MemoryEvents, {"across": False}), (FactorEvents, {"reach": 0})])
def test_nothing_but_memories_and_pairs_goes_from_sentence_to_sentence(
    kind: type[EventNetwork], alone: dict[str, Any]
) -> None:
    document, model = document_of(DATA), fitted(kind, 12)
    apart = kind.from_stored({**model.stored_config(), "settings": replace(SMALL, **alone).to_dict()})
    if kind is MemoryEvents:
        apart.load_state_dict(model.state_dict())
    apart.eval()
    torch.testing.assert_close(apart.loss([document]), apart.loss(DATA), atol=1e-3, rtol=1e-4)
    together = made(kind)
    assert not torch.isclose(together.loss([document]), together.loss(DATA), atol=1e-2)
    (found,), start = apart.predict([document]), 0
    for sentence, single in zip(DATA, apart.predict(DATA), strict=True):
        end = start + len(sentence)
        own = [[i - start, j - start, name] for i, j, name in found.value["entities"] if start <= i < end]
        assert own == single.value["entities"]
        triggers = [(e["trigger"] - start, e["type"]) for e in found.value["events"] if start <= e["trigger"] < end]
        assert triggers == [(e["trigger"], e["type"]) for e in single.value["events"]]
        start = end
    if kind is MemoryEvents:
        assert found.probability == pytest.approx(
            float(torch.tensor([each.probability for each in apart.predict(DATA)]).prod()), rel=1e-3
        )


def test_pairs_of_triggers_are_at_most_so_many_sentences_apart() -> None:
    document = document_of(DATA)
    for reach in range(3):
        model = made(FactorEvents, replace(SMALL, reach=reach))
        batch = model.read(model.encode([document]))
        given = [Candidates(row, [0, 1], [(2, 3)] if row < 2 else []) for row in range(len(DATA))]
        pairs, relations = model.relations(batch, given)
        assert pairs == [(i, j) for i, j in itertools.combinations(range(2 * len(DATA)), 2) if j // 2 - i // 2 <= reach]
        places = [(row, token) for row in range(len(DATA)) for token in (0, 1)]
        for (i, j), table in zip(pairs[::7], relations[::7], strict=True):
            (first, a), (second, b) = places[i], places[j]
            words = DATA[first].words[a].lower(), DATA[second].words[b].lower()
            names = [{DATA[row].words[2]} if row < 2 else set() for row in (first, second)]
            marks = [float(second - first == apart) for apart in range(reach + 1)]
            marks += [float(words[0] == words[1]), float(bool(names[0] & names[1]))]
            g = torch.cat([batch.vectors[first, a], batch.vectors[second, b], torch.tensor(marks)])
            expected = model.pairs(g).exp() / model.pairs(g).exp().sum()
            torch.testing.assert_close(table.exp().flatten(), expected)


def test_scores_of_entities_are_the_marginals_of_all_taggings() -> None:
    model, spans = fitted(FactorEvents, 5), [(0, 1), (0, 2), (2, 3)]
    with model.evaluating():
        batch = model.read(model.encode(DATA[:1]))
        (found,) = model._entity_scores(batch, [spans], [None])
        every = list(itertools.product(range(len(model.inventory.tags)), repeat=3))
        shares = [model.entity_chain(batch).log_prob(torch.tensor([tags])).exp().item() for tags in every]
    for j, (start, end) in enumerate(spans):
        expected = [
            sum(p for tags, p in zip(every, shares, strict=True) if p and (start, end, kind) in model.spans_of(tags))
            for kind in model.inventory.kinds
        ]
        torch.testing.assert_close(found[j].exp(), torch.tensor([1 - sum(expected), *expected]), atol=2e-5, rtol=1e-3)


def test_pins_of_a_document_are_within_sentences() -> None:
    model, document = fitted(MemoryEvents, 10), document_of(DATA[:2])
    (answer,) = model.predict([document], pins=[{"entities": [(0, 1, "PER"), (5, 6, "PER")]}])
    assert answer.value["entities"] == [[0, 1, "PER"], [5, 6, "PER"]]
    with pytest.raises(TrellisworkError, match="each in one sentence"):
        model.predict([document], pins=[{"entities": [(2, 4, "PER")]}])


def test_sentences_of_the_corpus_go_in_and_unseen_names_do_not_matter() -> None:
    part = event_sentences(builtin_corpus(sizes=(12, 1, 1))["train"])
    model = MemoryEvents.from_data(part[:6], SMALL)
    assert model.loss(part).item() > 0
    assert len(model.predict(part)) == len(part) and any(events_of(each) for each in part)
