"""The span parser: its probabilities against enumeration of all trees, its answers, its folder, bad input."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.data.brackets import sentence_of
from trelliswork.errors import ConstraintError, DataError, TrellisworkError
from trelliswork.models.parsers.constituency.config import SpanConfig
from trelliswork.models.parsers.constituency.derivations import ChainLabels, brackets_of
from trelliswork.models.parsers.constituency.span_cky import SpanParser
from trelliswork.structures.grammar.tree import Tree
from trelliswork.training import TrainingConfig, make_progress, train

TEXTS = [
    "(S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ sees) (NP (PRP us))) (. .))",
    "(S (NP (PRP we)) (VP (VBP sleep)))",
    "(S (VP (VB sleep)))",
    "(INTJ (UH yes))",
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat))))",
]
TRAIN = [sentence_of(Tree.parse(text)) for text in TEXTS]
SMALL: dict[str, Any] = dict(
    encoder="lstm", word_dim=12, hidden=12, affix_dim=4, span_dim=16, dropout=0.0, span_dropout=0.0, unknown_dropout=0.0
)


def parser(**settings: Any) -> SpanParser:
    return SpanParser.from_data(TRAIN, SpanConfig(**{**SMALL, **settings}))


@pytest.fixture(scope="module")
def trained() -> SpanParser:
    model = parser()
    train(model, TRAIN, TRAIN, TrainingConfig(epochs=60, patience=60, batch_tokens=10, lr=0.02),
          progress=make_progress(False))  # fmt: skip
    return model


def splits(start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """Every way to cut words start..end-1 into one part or more."""
    yield [(start, end)]
    for first in range(start + 1, end):
        for rest in splits(first, end):
            yield [(start, first), *rest]


def trees(start: int, end: int, labels: list[str], scores: Any) -> list[tuple[tuple[Any, ...], float]]:
    """Every tree above some words as labelled spans, with its score: a label, and two children or more."""
    found = []
    for y in range(1, len(labels)):
        own, value = (start, end, labels[y]), float(scores[start][end - 1][y])
        if end - start == 1:
            found.append(((own,), value))
            continue
        for parts in splits(start, end):
            if len(parts) == 1:
                continue
            options = [[*([((), 0.0)] if j - i == 1 else []), *trees(i, j, labels, scores)] for i, j in parts]
            for chosen in product(*options):
                nodes = (own, *(node for each, _ in chosen for node in each))
                found.append((nodes, value + sum(score for _, score in chosen)))
    return found


def test_the_distribution_is_that_of_all_trees_of_any_arity() -> None:
    """The score of a tree is the sum of its constituents' scores, and each tree counts once."""
    model = parser()
    words = ("the", "dog", "sleep", "yes")
    dist = model.distribution([Sentence(words)])
    assert dist.spans[0, :, :, 0].abs().max() == 0, "what is no constituent scores 0"
    kept = [0, 1, 2]  # three labels are enough to enumerate
    small = tw.SpanTree(5 * dist.spans[..., kept].double(), empty=0)
    every = trees(0, 4, [model.labels.names[y] for y in kept], small.spans[0].tolist())
    assert len(every) == small.count.item() == len({nodes for nodes, _ in every})
    log_z = math.log(math.fsum(math.exp(score) for _, score in every))
    assert small.log_partition.item() == pytest.approx(log_z, abs=1e-10)
    best = sorted((score - log_z for _, score in every), reverse=True)[:5]
    values, scores = small.top_k(5)
    torch.testing.assert_close((scores - small.log_partition)[:, 0], torch.tensor(best, dtype=torch.float64))
    found = {(i, j, small_label) for i, j, small_label in values[0][0] if small_label}
    names = [model.labels.names[y] for y in kept]
    assert {(i, j, names[y]) for i, j, y in found} == set(max(every, key=lambda each: each[1])[0])


def test_the_loss_is_the_log_probability_of_the_tree_and_of_the_tags() -> None:
    model = parser(tag_weight=0.5).eval()
    sentence = TRAIN[0]
    dist = model.distribution([sentence])
    nodes = model.labels.nodes(len(sentence), brackets_of(sentence))
    of_tags = model(model.token_batch(model.encode([sentence]))).tags[0].log_softmax(-1)
    gold = [model.tags.index(tag) for tag in sentence.tags or ()]
    wanted = -dist.log_prob([nodes]) - 0.5 * of_tags[range(len(gold)), gold].sum()
    torch.testing.assert_close(model.loss([sentence]), wanted[0])


@pytest.mark.parametrize("text", [*TEXTS, "(TOP (A (B (C (NN a) (NN b)) (D (NN c))) (NN d)))"])
def test_nodes_of_a_tree_and_back(text: str) -> None:
    sentence = sentence_of(Tree.parse(text))
    labels = ChainLabels.from_sentences([sentence])
    nodes = labels.nodes(len(sentence), brackets_of(sentence))
    assert len(nodes) == 2 * len(sentence) - 1
    assert labels.brackets(nodes) == list(brackets_of(sentence))
    n = len(sentence)
    assert tw.SpanTree(torch.zeros(1, n, n, len(labels)), empty=0).log_prob([nodes]).isfinite().all()


def test_it_learns_its_treebank(trained: SpanParser) -> None:
    answers = trained.predict([list(each.words) for each in TRAIN], top_k=3)
    assert [str(each.value) for each in answers] == TEXTS
    assert trained.evaluate(TRAIN)["score"] == 1.0
    first = answers[0]
    assert first.probability is not None and first.probability == pytest.approx(first.alternatives[0].probability)
    assert [(each.start, each.end, each.label) for each in first.spans] == list(TRAIN[0].brackets or ())
    assert all(first.probability <= each.probability + 1e-6 <= 1 + 1e-5 for each in first.spans)
    assert [each.label for each in first.parts] == list(TRAIN[0].tags or ())
    shares = [each.probability for each in first.alternatives]
    assert shares == sorted(shares, reverse=True) and len({str(each.value) for each in first.alternatives}) == 3
    assert "100.00" in trained.report(TRAIN).text


def test_probabilities_of_constituents_sum_the_chains_they_are_in() -> None:
    model = parser()
    dist = model.distribution([TRAIN[1]])
    (answer,) = model.predict([TRAIN[1]])
    for each in answer.spans:
        having = [y for y, chain in enumerate(model.labels.chains) if each.label in chain]
        assert each.probability == pytest.approx(float(dist.marginals[0, each.start, each.end - 1, having].sum()))


def test_pins_are_kept_and_others_give_way() -> None:
    model = parser()
    (answer,) = model.predict([TRAIN[0]], pins=[[(1, 4, "VP"), (0, 6, "S")]])
    found = {(each.start, each.end, each.label) for each in answer.spans}
    assert {(1, 4, "VP"), (0, 6, "S")} <= found
    sure = {(each.start, each.end, each.label): each.probability for each in answer.spans}
    assert sure[1, 4, "VP"] == pytest.approx(1.0)
    (same,) = model.predict([TRAIN[0]], pins=[{1: (4, "VP")}])
    assert (1, 4, "VP") in {(each.start, each.end, each.label) for each in same.spans}
    with pytest.raises(TrellisworkError, match="one of the labels INTJ, NP, S, VP; got 'XP'"):
        model.predict([TRAIN[0]], pins=[[(0, 1, "XP")]])
    with pytest.raises(TrellisworkError, match=r"within 0..6; got \(0, 9, None\)"):
        model.predict([TRAIN[0]], pins=[[(0, 9, None)]])
    with pytest.raises(ConstraintError):
        model.predict([TRAIN[0]], pins=[[(0, 2, None), (1, 3, None)]])
    assert model.pinned("4:NP", 6) == (4, "NP") and model.pinned("4") == (4, None)
    with pytest.raises(TrellisworkError, match=r"expected FIRST=LAST.*within its 3 words; got '4'"):
        model.pinned("4", 3)


def test_explanations_have_the_probabilities_of_all_trees() -> None:
    """Of a parser with so few labels that its trees over three words can be enumerated."""
    texts = ["(S (NP (DT the) (NN dog)) (VP (VBZ sees) (PRP us)))", "(S (VBZ sees) (NP (DT the) (NN dog) (PRP us)))"]
    model = SpanParser.from_data([sentence_of(Tree.parse(text)) for text in texts], SpanConfig(**SMALL))
    sentence = Sentence(("the", "dog", "sees"))
    every = trees(0, 3, model.labels.names, model.distribution([sentence]).spans[0].tolist())
    z = math.fsum(math.exp(score) for _, score in every)

    def share(start: int, end: int, label: str | None) -> float:
        held = (math.exp(score) for nodes, score in every
                if any(node[:2] == (start, end) and label in (None, node[2]) for node in nodes))  # fmt: skip
        return math.fsum(held) / z

    (found,) = model.explain([sentence])
    assert {(part.start, part.end, part.label) for each in found.spans for part in each.brackets} == {
        (each.start, each.end, each.label) for each in model.predict([sentence])[0].spans
    }
    for each in found.spans:
        for part in (*each.brackets, *each.labels, *each.crossing):
            assert part.probability == pytest.approx(share(part.start, part.end, part.label), abs=1e-5)
            assert part.span_probability == pytest.approx(share(part.start, part.end, None), abs=1e-5)
        start, end = each.brackets[0].start, each.brackets[0].end
        spans = [(i, j) for i in range(3) for j in range(i + 1, 4) if i < start < j < end or start < i < end < j]
        wanted = sorted((share(i, j, None) for i, j in spans), reverse=True)[:3]
        assert [part.span_probability for part in each.crossing] == pytest.approx(wanted, abs=1e-5)
        assert [part.probability for part in each.labels] == sorted((p.probability for p in each.labels), reverse=True)
    assert " 1-3 " in str(found) and '<table class="arcs">' in found._repr_html_()
    assert any(each.crossing for each in found.spans) and "  x " in str(found)
    (nothing,) = model.explain([Sentence(())])
    assert str(nothing) == ""


def has(found: Any, start: int, end: int, label: str | None) -> bool:
    return any(each[:2] == (start, end) and label in (None, each[2]) for each in found)


@pytest.mark.parametrize("pins", [[], [(0, 2, None)], [(1, 3, "NP"), (2, 3, None)]])
def test_answers_are_the_best_of_all_trees(pins: Any) -> None:
    """The most probable one, and that of the highest expected F1, with the probabilities of enumeration."""
    texts = [
        "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (PRP us)))",
        "(S (VBZ sees) (NP (NP (DT the) (NN dog) (PRP us))))",
    ]
    few = [sentence_of(Tree.parse(text)) for text in texts]
    for seed, decoding in product(range(4), ("best", "expected")):
        model = SpanParser.from_data(few, SpanConfig(**SMALL, decoding=decoding), seed=seed)
        with torch.no_grad():
            model.scorer.labels.weight.mul_(6)
        sentence = Sentence(("the", "dog", "sees"))
        every = [
            (model.labels.brackets([(i, j, model.labels.names.index(label)) for i, j, label in nodes]), math.exp(score))
            for nodes, score in trees(0, 3, model.labels.names, model.distribution([sentence]).spans[0].tolist())
        ]
        kept = {tuple(found): w for found, w in every if all(has(found, *pin) for pin in pins)}
        z = math.fsum(kept.values())
        gold = math.fsum(len(found) * w for found, w in kept.items()) / z
        shares: Counter[Any] = Counter()
        for other, w in kept.items():
            shares.update({(each, m): w / z for each, n in Counter(other).items() for m in range(1, n + 1)})

        def expected(other: Any, shares: Any = shares, gold: float = gold) -> float:
            right = sum(shares[each, m] for each, n in Counter(other).items() for m in range(1, n + 1))
            return float(2 * right / (len(other) + gold))

        (answer,) = model.predict([sentence], pins=[pins])
        found = tuple((each.start, each.end, each.label) for each in answer.spans)
        own = kept[found] / z
        assert answer.probability == pytest.approx(own, rel=1e-4)
        assert [each.probability for each in answer.spans] == pytest.approx(
            [shares[each, 1] for each in found], abs=1e-5
        )
        if decoding == "best":
            assert own == pytest.approx(max(kept.values()) / z)
        else:
            assert expected(found) == pytest.approx(max(map(expected, kept)), abs=1e-6)


@pytest.mark.parametrize("objective", ["margin", "perceptron", "risk"])
def test_other_objectives_learn_too(objective: Any) -> None:
    model = parser()
    config = TrainingConfig(epochs=40, patience=40, batch_tokens=10, lr=0.02, objective=objective)
    train(model, TRAIN, TRAIN, config, progress=make_progress(False))
    assert model.evaluate(TRAIN)["score"] > 0.8


def test_a_model_comes_back_from_its_folder(trained: SpanParser, tmp_path: Path) -> None:
    trained.save(tmp_path / "parser")
    again: Any = tw.load(tmp_path / "parser")
    for one, other in zip(trained.predict(TRAIN), again.predict(TRAIN), strict=True):
        assert str(one.value) == str(other.value) and one.probability == pytest.approx(other.probability)


def test_other_encoders_and_minimum_risk_answer_with_trees() -> None:
    for settings in (
        dict(encoder="window"),
        dict(encoder="transformer", hidden=16, heads=2),
        dict(decoding="expected"),
    ):
        (answer,) = parser(**settings).predict([TRAIN[0].words])
        assert answer.value.words == list(TRAIN[0].words)


def test_a_long_sentence_is_parsed() -> None:
    (answer,) = parser().predict([["dog"] * 400], top_k=0, confidence=False)
    assert answer.value.words == ["dog"] * 400


def test_sentences_without_trees_are_refused() -> None:
    with pytest.raises(DataError, match=r"x.mrg:7: expected a tree in brackets, got a sentence without"):
        SpanParser.from_data([Sentence(("a",), ("NN",), file="x.mrg", line=7)])
    with pytest.raises(TrellisworkError, match="expected sentences with brackets to build a parser from, got none"):
        SpanParser.from_data([])
    unseen = replace(TRAIN[0], brackets=((0, 6, "XX"),))
    with pytest.raises(TrellisworkError, match=r"expected one of the labels .*; got 'XX'"):
        parser().loss([unseen])
    (note,) = parser().notes(TRAIN, [unseen])
    assert note.startswith("note: labels that training never saw count as mistakes, here with their first places: XX (")
