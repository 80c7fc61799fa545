"""The transition-based parser against every sequence of decisions, and what it learns."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from tests.oracles import transitions
from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models.parsers.dependency.config import TransitionConfig
from trelliswork.models.parsers.dependency.transition import TransitionParser
from trelliswork.training import EpochRecord, TrainingConfig, make_progress, train

SMALL: dict[str, Any] = dict(
    encoder="lstm", hidden=6, word_dim=5, state_dim=8, state_dropout=0.0, prefix_lengths=(), suffix_lengths=(2,)
)
CLEAN = dict(dropout=0.0, unknown_dropout=0.0)
TRAIN = [
    Sentence(("Ann", "sings"), ("nsubj", "root"), heads=(2, 0), columns={"UPOS": ("PROPN", "VERB")}),
    Sentence(("she", "saw", "it"), ("nsubj", "root", "x"), heads=(2, 0, 2), columns={"UPOS": ("PRON", "VERB", "PRON")}),
    Sentence(("stop",), ("root",), heads=(0,), columns={"UPOS": ("VERB",)}),
]
CROSSING = Sentence(("a", "b", "c", "d"), ("x", "x", "root", "x"), heads=(3, 4, 0, 3), columns={"UPOS": ("X",) * 4})
WORDS = [Sentence(("she", "sings", "it")), Sentence(("stop",)), Sentence(("Ann", "saw"))]
SYSTEMS = ["arc-standard", "arc-hybrid", "swap"]
ALL = 3000
Tree = tuple[tuple[int, str], ...]


def parser(sentences: list[Sentence] = TRAIN, **settings: Any) -> TransitionParser:
    model = TransitionParser.from_data(sentences, TransitionConfig(**SMALL, **settings))
    with torch.no_grad():
        for parameter in model.unit.parameters():
            parameter.mul_(2)  # so that decisions differ in probability
    return model.eval()


def enumerated(model: TransitionParser, sentence: Sentence, *, local: bool) -> dict[Tree, float]:
    """Σ over the derivations of each tree of p, or of p and the value of each state."""
    found: dict[Tree, float] = defaultdict(float)
    with torch.no_grad():
        tokens = model.token_batch(model.encode([sentence]))
        system = model.system_kind(torch.tensor([len(sentence)]), len(model.labels))
        how = model.unit.connect if local else model.unit.connect_global
        connected, scorer = how(system, model.unit.project(model.encode_tokens(tokens)))
        for decisions, score in transitions.sequences(connected, scorer, 0, local=local).items():
            state = system.initial()
            for decision in decisions:
                state = system.step(state, torch.tensor([[decision]]))
            pairs = zip(state.heads[0, 0, 1:].tolist(), state.labels[0, 0, 1:].tolist(), strict=True)
            found[tuple((head, model.labels[label]) for head, label in pairs)] += score.exp().item()
    return found


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("is_global", [True, False])
def test_a_beam_of_everything_is_every_derivation(system: str, is_global: bool) -> None:
    model = parser(system=system, beam=ALL)
    model.is_global.fill_(is_global)
    torch.nn.init.normal_(model.unit.value.weight, std=float(is_global))
    words = WORDS if system == "arc-hybrid" else WORDS[1:]  # the others have thousands of derivations
    for sentence, answer in zip(words, model.predict(words, top_k=4), strict=True):
        every = enumerated(model, sentence, local=not is_global)
        total = sum(every.values())
        assert is_global or total == pytest.approx(1.0, rel=1e-5)
        ranked = sorted(every.items(), key=lambda each: -each[1])
        assert tuple(answer.value) == ranked[0][0]
        for (tree, share), found in zip(ranked, answer.alternatives, strict=False):
            assert tuple(found.value) == tree and found.probability == pytest.approx(share / total, rel=1e-4)
        for part in answer.parts:
            arc = sum(share for tree, share in every.items() if tree[part.start] == (part.head, part.label))
            assert part.probability == pytest.approx(arc / total, rel=1e-4)


def test_greedy_answers_have_the_probability_of_their_decisions() -> None:
    model = parser()
    assert (model.config.system, model.config.oracle, model.config.beam) == ("arc-hybrid", "dynamic", 1)
    answer = model.predict(WORDS[:1])[0]
    with torch.no_grad():
        tokens = model.token_batch(model.encode(WORDS[:1]))
        system = model.system_kind(torch.tensor([3]), len(model.labels))
        connected = model.unit.connect(system, model.unit.project(model.encode_tokens(tokens)))
        sequence = tw.beam.greedy(*connected)
        share = tw.beam.local_log_prob(*connected, sequence.decisions[:, 0]).exp().item()
    assert [head for head, _ in answer.value] == sequence.state.heads[0, 0, 1:].tolist()
    assert answer.probability == pytest.approx(share, rel=1e-5)
    assert all(share <= part.probability <= 1 for part in answer.parts)
    assert answer.columns == {"HEAD": [str(h) for h, _ in answer.value], "DEPREL": [label for _, label in answer.value]}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("settings", [dict(), dict(beam=3), dict(cell="lstm")])
def test_explanations_have_the_probability_of_each_decision(system: str, settings: dict[str, Any]) -> None:
    """Against every sequence of decisions: that of a decision is p(all so far) / p(all before)."""
    model = parser(system=system, **settings)
    words = WORDS[0] if system == "arc-hybrid" and not settings else WORDS[2]
    (found,), (answer,) = model.explain([words]), model.predict([words])
    with torch.no_grad():
        tokens = model.token_batch(model.encode([words]))
        moves = model.system_kind(torch.tensor([len(words)]), len(model.labels))
        connected = model.unit.connect(moves, model.unit.project(model.encode_tokens(tokens)))
        every = {d: p.exp().item() for d, p in transitions.sequences(*connected, 0, local=True).items()}

    def share(prefix: tuple[int, ...]) -> float:
        return sum(p for decisions, p in every.items() if decisions[: len(prefix)] == prefix)

    arcs, taken, stack, queue = {}, (), [0], list(range(1, len(words) + 1))
    for step in found.steps:
        assert (step.top, step.next) == (stack[-1], queue[0] if queue else None)
        possible = {d[len(taken)] for d in every if d[: len(taken)] == taken}
        shares = {d: share((*taken, d)) / share(taken) for d in possible}
        (decision,) = [d for d, p in shares.items() if abs(p - step.taken.probability) < 1e-5]
        others = sorted((p for d, p in shares.items() if d != decision and p >= 0.001), reverse=True)[:4]
        assert [each.probability for each in step.others] == pytest.approx(others, rel=1e-4)
        taken = (*taken, decision)
        if step.taken.kind == "shift":
            stack.append(queue.pop(0))
        elif step.taken.kind == "swap":
            queue.insert(0, stack.pop(-2))
        else:
            arcs[step.taken.word] = (step.taken.head, step.taken.label)
            stack.remove(step.taken.word)
    assert [arcs[i] for i in range(1, len(words) + 1)] == list(answer.value)
    assert f"1 (root) / 1 {words.words[0]}" in str(found) and '<table class="arcs">' in found._repr_html_()
    assert str(model.explain([Sentence(())])[0]) == ""


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_other_cells_learn_and_answer(cell: str) -> None:
    model = parser(cell=cell, beam=2, global_epochs=1)
    assert model.config.oracle == "static"
    for epoch in (1, 2):
        model.begin_epoch(epoch, 2)
        loss = model.loss(TRAIN)
        loss.backward()
        assert bool(model.is_global) == (epoch == 2) and loss.item() > 0
    assert model.unit.before is not None and bool((model.unit.before.weight.grad != 0).any())
    assert [len(answer.value) for answer in model.predict(WORDS)] == [3, 1, 2]
    with pytest.raises(TrellisworkError, match="pins need a feed-forward cell"):
        model.predict(WORDS[:1], pins=[{0: (2, None)}])


def test_chained_units_learn_through_the_link() -> None:
    """The loss of the tree alone moves the tagger, and that of the tags alone does not move the parser."""
    model = parser(tags="chained")
    tokens = model.token_batch(model.encode(TRAIN))
    vectors = model.encode_tokens(tokens)
    model.tree_loss(
        vectors, torch.tensor([[2, 0, 0], [2, 0, 2], [0, 0, 0]]), torch.zeros(3, 3).long(), tokens
    ).backward()
    assert bool((model.tagger.word.weight.grad != 0).any()) and model.tag_scorers["UPOS"].weight.grad is None
    model.zero_grad()
    model.tag_scores(model.encode_tokens(tokens))["UPOS"].logsumexp(-1).sum().backward()
    assert bool((model.tagger.word.weight.grad != 0).any()) and model.unit.slots.weight.grad is None
    assert set(model.predict(WORDS)[0].columns) == {"UPOS", "HEAD", "DEPREL"}


def test_the_data_choose_the_system() -> None:
    assert parser(TRAIN * 9 + [CROSSING]).config.system == "arc-hybrid"
    assert parser([*TRAIN, CROSSING]).config.system == "swap"
    model = parser([*TRAIN, CROSSING], oracle="dynamic")
    assert model.config.system == "arc-hybrid"
    assert model.notes([*TRAIN, CROSSING], [])[0] == (
        "arc-hybrid transitions with a dynamic oracle; 1 of 4 sentences have crossing arcs, "
        "whose trees are made projective"
    )
    assert torch.isfinite(model.loss([CROSSING]))


@pytest.mark.parametrize(
    "settings",
    [
        {"system": "arc-standard"},
        {"system": "swap", "tags": "joint"},
        {"explore": 0.5, "beam": 3, "global_epochs": 4, "tags": "chained"},
    ],
)
def test_it_learns_trees_and_is_the_same_from_disk(settings: dict[str, Any], tmp_path: Path) -> None:
    crossing = settings.get("system") == "swap"
    gold = [*TRAIN, CROSSING] if crossing else TRAIN
    model = TransitionParser.from_data(gold, TransitionConfig(**SMALL, **settings, **CLEAN))
    train(model, gold * 8, gold, TrainingConfig(epochs=14, lr=0.02, batch_tokens=9, patience=14), out=tmp_path / "m")
    assert model.evaluate(gold)["las"] == 1.0
    again = tw.load(tmp_path / "m")
    assert isinstance(again, TransitionParser) and bool(again.is_global) == bool(model.is_global)
    for one, other in zip(model.predict(WORDS, top_k=2), again.predict(WORDS, top_k=2), strict=True):
        assert one == other


def test_the_last_epochs_are_global() -> None:
    model, seen = parser(beam=4, global_epochs=2), []
    shown = make_progress(False, on_epoch=lambda record: seen.append((bool(model.is_global), model.explores)))
    train(model, TRAIN, TRAIN, TrainingConfig(epochs=4, patience=9), progress=shown)
    assert seen == [(False, False), (False, True), (True, True), (True, True)]


def test_a_finished_parser_goes_on_globally(tmp_path: Path) -> None:
    """What a state is worth is learned then, from a parser that was trained without."""
    model, seen = parser(), []
    train(model, TRAIN, TRAIN, TrainingConfig(epochs=2, patience=9), out=tmp_path / "m")
    assert not bool(tw.load(tmp_path / "m").unit.value.weight.any())
    again = parser(beam=4, global_epochs=2)
    longer = TrainingConfig(epochs=4, patience=9)

    def look(record: EpochRecord) -> None:
        seen.append((record.epoch, bool(again.unit.value.weight.any())))

    train(again, TRAIN, TRAIN, longer, out=tmp_path / "m", resume=True, progress=make_progress(on_epoch=look))
    assert seen == [(3, True), (4, True)]
    with pytest.raises(TrellisworkError, match=r"explore was 0\.9 and is 0\.5"):
        train(parser(explore=0.5), TRAIN, TRAIN, longer, out=tmp_path / "m", resume=True)


@pytest.mark.parametrize("oracle", ["static", "dynamic"])
def test_the_loss_of_global_epochs_has_both_parts(oracle: str) -> None:
    found = {}
    for weight in (0.0, 0.5):
        model = parser(beam=4, global_epochs=1, local_weight=weight, oracle=oracle, explore=1.0, static_epochs=0)
        for epoch in (1, 2) if weight else (2,):
            model.begin_epoch(epoch, 2)
            found[weight, epoch] = model.loss(TRAIN).item()
    assert found[0.5, 2] == pytest.approx(found[0.0, 2] + 0.5 * found[0.5, 1], rel=1e-4)


def test_probabilities_of_arcs_are_given_if_asked_for() -> None:
    for model in (parser(), parser(beam=3)):
        assert all(answer.parts for answer in model.predict(WORDS))
        assert not any(answer.parts for answer in model.predict(WORDS, confidence=False))


def test_pins() -> None:
    model = parser()
    answer = model.predict(WORDS[:1], pins=[{0: (3, "x"), 1: (None, "nsubj")}])[0]
    assert answer.value[0] == (3, "x") and answer.value[1][1] == "nsubj"
    with pytest.raises(ConstraintError, match="expected pins that a projective tree with one root can have"):
        model.predict(WORDS[:1], pins=[{0: (0, None), 1: (0, None)}])
    with pytest.raises(TrellisworkError, match=r"must be another of the words 1\.\.3"):
        model.predict(WORDS[:1], pins=[{0: (9, None)}])
    swapping = parser(system="swap")
    assert swapping.predict(WORDS[:1], pins=[{0: (None, "x")}])[0].value[0][1] == "x"
    with pytest.raises(TrellisworkError, match="pinned heads need a parser with arc-hybrid transitions"):
        swapping.predict(WORDS[:1], pins=[{0: (2, None)}])


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(TrellisworkError, match='oracle="dynamic" needs system="arc-hybrid"'):
        TransitionConfig(oracle="dynamic", system="swap")
    with pytest.raises(TrellisworkError, match="global_epochs needs a beam of at least 2"):
        TransitionConfig(global_epochs=2)
