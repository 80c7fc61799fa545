"""The biaffine parser against enumeration of all trees with all labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.parsers.dependency.config import ParserConfig
from trelliswork.nn.scorers import biaffine
from trelliswork.training import TrainingConfig, train
from trelliswork.training.objectives import OBJECTIVES, make_objective

SMALL: dict[str, Any] = dict(
    encoder="lstm", hidden=6, word_dim=5, arc_dim=7, label_dim=4, prefix_lengths=(), suffix_lengths=(2,)
)
TRAIN = [
    Sentence(("Ann", "sings"), ("nsubj", "root"), heads=(2, 0), columns={"UPOS": ("PROPN", "VERB")}),
    Sentence(
        ("she", "saw", "it"), ("nsubj", "root", "obj"), heads=(2, 0, 2), columns={"UPOS": ("PRON", "VERB", "PRON")}
    ),
    Sentence(("stop",), ("root",), heads=(0,), columns={"UPOS": ("VERB",)}),
]
CROSSING = Sentence(("a", "b", "c", "d"), ("x", "x", "root", "x"), heads=(3, 4, 0, 3), columns={"UPOS": ("X",) * 4})
WORDS = [Sentence(("she", "sings", "it")), Sentence(("stop",)), Sentence(("Ann", "saw"))]


def parser(projective: bool = False, **settings: Any) -> BiaffineParser:
    model = BiaffineParser.from_data(TRAIN if projective else [*TRAIN, CROSSING], ParserConfig(**SMALL, **settings))
    with torch.no_grad():
        for parameter in model.scorer.parameters():
            parameter.mul_(3)  # so that trees differ in probability
    return model.eval()


def trees_of(n: int, projective: bool) -> Iterator[tuple[int, ...]]:
    """All trees over n words with one root."""
    for heads in itertools.product(range(n + 1), repeat=n):
        is_tree = heads.count(0) == 1 and all(_reaches_root(heads, word) for word in range(1, n + 1))
        if is_tree and not (projective and _crossing(heads)):
            yield heads


def _reaches_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


def _crossing(heads: tuple[int, ...]) -> bool:
    arcs = [sorted((word, head)) for word, head in enumerate(heads, 1)]
    return any(a < c < b < d for (a, b), (c, d) in itertools.product(arcs, arcs))


def enumerated(model: BiaffineParser, sentence: Sentence, projective: bool) -> dict[tuple[tuple[int, str], ...], float]:
    """The probability of every tree with labels, from the scores of arcs and labels."""
    with torch.no_grad():
        tokens = model.token_batch(model.encode([sentence]))
        arcs, labels = (each[0].double() for each in model.scorer(model.encode_tokens(tokens)))
    shares = labels.softmax(-1)
    found: dict[tuple[tuple[int, str], ...], float] = {}
    for heads in trees_of(len(sentence), projective):
        score = sum(float(arcs[head, word]) for word, head in enumerate(heads, 1))
        for chosen in itertools.product(range(len(model.labels)), repeat=len(heads)):
            share = torch.stack([shares[head, word, chosen[word - 1]] for word, head in enumerate(heads, 1)]).prod()
            tree = tuple((head, model.labels[label]) for head, label in zip(heads, chosen, strict=True))
            found[tree] = float(share) * torch.tensor(score).double().exp().item()
    total = sum(found.values())
    return {tree: value / total for tree, value in found.items()}


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("tags", ["none", "joint"])
def test_answers_are_those_of_enumeration(projective: bool, tags: str) -> None:
    model = parser(projective, tags=tags)
    assert model.crf.projective == projective
    for sentence, answer in zip(WORDS, model.predict(WORDS, top_k=4), strict=True):
        every = sorted(enumerated(model, sentence, projective).items(), key=lambda each: -each[1])
        assert tuple(answer.value) == every[0][0]
        assert answer.probability == pytest.approx(every[0][1], rel=1e-4)
        for part, arc in zip(answer.parts, answer.value, strict=True):
            expected = sum(share for tree, share in every if tree[part.start] == arc)
            assert (part.head, part.label) == arc
            assert part.probability == pytest.approx(expected, rel=1e-4)
        best = [(tuple(each.value), pytest.approx(each.probability, rel=1e-4)) for each in answer.alternatives]
        assert best == every[: len(best)] and len(best) == min(4, len(every))


@pytest.mark.parametrize("pins", [{0: (3, None)}, {0: (None, "obj")}, {2: (1, "nsubj"), 0: (0, None)}, {1: (0, "obj")}])
def test_pins_are_conditions(pins: dict[int, tuple[int | None, str | None]]) -> None:
    model = parser()
    answer = model.predict(WORDS[:1], top_k=3, pins=[pins])[0]
    every = {
        tree: share for tree, share in enumerated(model, WORDS[0], False).items()
        if all(head in (None, tree[i][0]) and label in (None, tree[i][1]) for i, (head, label) in pins.items())
    }  # fmt: skip
    total = sum(every.values())
    best = sorted(every.items(), key=lambda each: -each[1])
    assert tuple(answer.value) == best[0][0]
    assert answer.probability == pytest.approx(best[0][1] / total, rel=1e-4)
    assert [tuple(each.value) for each in answer.alternatives] == [tree for tree, _ in best[:3]]
    for part, arc in zip(answer.parts, answer.value, strict=True):
        expected = sum(share for tree, share in every.items() if tree[part.start] == arc) / total
        assert part.probability == pytest.approx(expected, rel=1e-4)


def test_expected_decoding_has_the_most_arcs_that_are_expected_to_be_right() -> None:
    model = parser(decoding="expected")
    for seed in range(8):
        with torch.no_grad():
            torch.manual_seed(seed)
            model.scorer.arc_bilinear.weight.normal_(0, 2)
        found = tuple(model.predict(WORDS[:1])[0].value)
        every = enumerated(model, WORDS[0], False)

        def expected(tree: tuple[tuple[int, str], ...], every: dict[Any, float] = every) -> float:
            return sum(share * sum(a == b for a, b in zip(tree, other, strict=True)) for other, share in every.items())

        assert expected(found) == pytest.approx(max(map(expected, every)), rel=1e-5)


@pytest.mark.parametrize("projective", [True, False])
def test_the_loss_is_minus_log_p_of_gold(projective: bool) -> None:
    model = parser(projective)
    gold = TRAIN if projective else [*TRAIN, Sentence(CROSSING.words[:3], ("x", "root", "x"), heads=(3, 0, 2))]
    expected = 0.0
    for sentence in gold:
        tree = tuple(zip(sentence.heads or (), sentence.tags or (), strict=True))
        expected -= torch.tensor(enumerated(model, Sentence(sentence.words), projective)[tree]).log().item()
    assert model.loss(gold).item() == pytest.approx(expected, rel=1e-4)


def test_objectives_of_trees() -> None:
    model, gold = parser(), TRAIN[1]
    tree = tuple(zip(gold.heads or (), gold.tags or (), strict=True))
    every = enumerated(model, Sentence(gold.words), False)

    def cost(other: tuple[tuple[int, str], ...]) -> int:
        return sum(a != b for a, b in zip(tree, other, strict=True))

    scores = {each: torch.tensor(share).double().log().item() for each, share in every.items()}
    expected = {
        "perceptron": max(scores.values()) - scores[tree],
        "margin": max(score + cost(each) for each, score in scores.items()) - scores[tree],
        "risk": sum(share * cost(each) for each, share in every.items()),
        "local": _alone(model, gold, tree),
    }
    found, values = model.scored([gold])
    for name, objective in OBJECTIVES.items():
        assert objective(found, values).sum().item() == pytest.approx(expected[name], rel=1e-4), name


def _alone(model: BiaffineParser, sentence: Sentence, tree: tuple[tuple[int, str], ...]) -> float:
    """Each word's head is a softmax over the other words and the root."""
    arcs, labels = (each[0] for each in model.scorer(model.encode_tokens(model.token_batch(model.encode([sentence])))))
    total = 0.0
    for word, (head, label) in enumerate(tree, 1):
        others = [h for h in range(len(tree) + 1) if h != word]
        share = arcs[others, word].softmax(0)[others.index(head)]
        total -= (share * labels[head, word].softmax(-1)[model.labels.index(label)]).log().item()
    return total


def test_batches_with_padding_learn_as_sentences_alone_do() -> None:
    model = parser(tags="joint")
    for name in ("likelihood", *OBJECTIVES):
        loss = make_objective(name, model)
        with torch.no_grad():
            alone = sum(loss([sentence]).item() for sentence in TRAIN)
            assert loss(TRAIN).item() == pytest.approx(alone, rel=1e-4), name


@pytest.mark.parametrize("decoding", ["best", "expected"])
@pytest.mark.parametrize("pins", [None, [{0: (None, "obj"), 2: (1, None)}, {}, {}]])
def test_the_answer_does_not_depend_on_when_labels_are_found(
    monkeypatch: pytest.MonkeyPatch, decoding: str, pins: Any
) -> None:
    for seed in range(5):
        model = parser(decoding=decoding)
        with torch.no_grad():
            torch.manual_seed(seed)
            model.scorer.label_bilinear.weight.normal_(0, 5)  # labels matter more than arcs
        found = model.predict(WORDS, pins=pins)
        with monkeypatch.context() as patch:
            patch.setattr(biaffine, "ROUNDS", 0)  # all labels at once,
            patch.setattr(biaffine, "CHUNK", 1)  # one dependent at a time
            every = model.predict(WORDS, pins=pins)
        for a, b in zip(found, every, strict=True):
            assert a.value == b.value
            assert a.probability == pytest.approx(b.probability, rel=1e-5)


def test_labels_are_found_where_they_matter_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = parser(), 0
    whole = model.scorer.labels_of_pairs

    def counted(heads: torch.Tensor, dependents: torch.Tensor) -> torch.Tensor:
        nonlocal seen
        seen += len(heads)
        return whole(heads, dependents)

    with torch.no_grad():
        model.scorer.arc_bilinear.weight.mul_(10_000)  # one head of each word is far better than the others
    monkeypatch.setattr(model.scorer, "labels_of_pairs", counted)
    model.predict(WORDS, top_k=0)
    assert seen == sum(map(len, WORDS))


@pytest.mark.parametrize("decoding", ["best", "expected"])
def test_the_best_tree_is_the_first_of_several(decoding: str) -> None:
    model = parser(decoding=decoding)
    for one, two in zip(model.predict(WORDS, top_k=1), model.predict(WORDS, top_k=2), strict=True):
        assert [each.value for each in one.alternatives] == [two.alternatives[0].value]
        assert one.alternatives[0].probability == pytest.approx(two.alternatives[0].probability, rel=1e-4)


def test_it_learns_and_is_stored(tmp_path: Path) -> None:
    model = BiaffineParser.from_data(TRAIN, ParserConfig(**SMALL, tags="joint", dropout=0.0, score_dropout=0.0))
    train(model, TRAIN * 4, None, TrainingConfig(epochs=20, batch_tokens=12, lr=0.02), out=tmp_path / "parser")
    loaded = tw.load(tmp_path / "parser")
    answers = loaded.predict(TRAIN)
    assert [each.value for each in answers] == [each.value for each in model.predict(TRAIN)]
    assert [each.columns["UPOS"] for each in answers] == [list(each.columns["UPOS"]) for each in TRAIN]
    assert loaded.predict([Sentence(())])[0].value == []
    assert "LAS" in loaded.report(TRAIN).text
    scores = loaded.evaluate(TRAIN)
    assert (scores["metric"], scores["score"], scores["upos_accuracy"]) == ("las", 1.0, 1.0)
    assert "projective" in loaded.describe().kind


def test_bad_data_get_a_sentence() -> None:
    with pytest.raises(DataError, match="without heads"):
        parser().loss([Sentence(("a",), ("root",))])
    with pytest.raises(TrellisworkError, match="UPOS"):
        BiaffineParser.from_data([Sentence(("a",), ("root",), heads=(0,))], ParserConfig(tags="joint"))
    with pytest.raises(TrellisworkError, match="the head of word 1 must be another"):
        parser().predict(WORDS[:1], pins=[{0: (1, None)}])
    with pytest.raises(TrellisworkError, match="one of the labels"):
        parser().predict(WORDS[:1], pins=[{0: (None, "nosuch")}])
    with pytest.raises(TrellisworkError, match="on word 0"):
        parser().predict(WORDS[:1], pins=[{7: (0, None)}])


def test_calibrated_temperatures_make_held_out_trees_most_probable() -> None:
    model = parser(tags="joint")
    unknown = Sentence(("new",), ("nosuch",), heads=(0,), columns={"UPOS": ("NEW",)})
    model.calibrate([*TRAIN, unknown])
    arcs, labels = model.temperatures.tolist()

    def loss(temperatures: tuple[float, float]) -> float:
        model.temperatures.copy_(torch.tensor(temperatures))
        with torch.no_grad():
            tokens = model.token_batch(model.encode(TRAIN))
            gold = torch.nn.utils.rnn.pad_sequence([torch.tensor(model.gold(each)) for each in TRAIN], True)
            return model.tree_loss(model.encode_tokens(tokens), gold[..., 0], gold[..., 1], tokens).item()

    assert (arcs, labels) != (1.0, 1.0)
    factors = itertools.product((0.95, 1.0, 1.05), repeat=2)
    for others in [(1.0, 1.0), *((a * arcs, b * labels) for a, b in factors)]:
        if max(others) <= 8:  # temperatures are not sought beyond
            assert loss((arcs, labels)) < loss(others) + 1e-4
    model.calibrate([])
