"""The choices of each part against all answers there are: with a large `top_k`, nothing is left out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.models.test_treebank_grammar import AMBIGUOUS, TRAIN
from tests.models.topic_classifier import TopicClassifier
from trelliswork.data import Sentence
from trelliswork.data.brackets import sentence_of
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models import FeatureTagger, Segmenter, Tagger, TaggerConfig
from trelliswork.models.parsers.constituency.config import GrammarConfig, SpanConfig
from trelliswork.models.parsers.constituency.derivations import brackets_of
from trelliswork.models.parsers.constituency.pcfg import TreebankGrammar
from trelliswork.models.parsers.constituency.span_cky import SpanParser
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.parsers.dependency.config import ParserConfig
from trelliswork.models.taggers.ensemble import Ensemble
from trelliswork.structures.grammar.tree import Tree

SENTENCE = Sentence(("old", "books", "left"), features=(("A", "N", "V"),))
NETWORK: dict[str, Any] = dict(encoder="lstm", hidden=6, word_dim=5, prefix_lengths=(), suffix_lengths=(2,))
TREES = ["(S (NP (DT the) (NN dog)) (VP (VBZ sees)))", "(S (VP (VB sleep)))"]
ARCS = [
    Sentence(("Ann", "sings"), ("nsubj", "root"), heads=(2, 0)),
    Sentence(("a", "b", "c", "d"), ("x", "x", "root", "x"), heads=(3, 4, 0, 3)),
]


def every_answer(model: Any, sentence: Sentence, pins: Any, most: int = 1000) -> list[tuple[Any, float]]:
    """All values that have a probability, which must be all of it."""
    answer = model.predict([sentence], top_k=most, **({} if pins is None else {"pins": [pins]}))[0]
    found = [(each.value, each.probability) for each in answer.alternatives]
    assert sum(p for _, p in found) == pytest.approx(1.0, abs=1e-5)
    return found


def check(model: Any, sentence: Sentence, pins: Any, expected: dict[Any, Counter[Any]], key: Any) -> None:
    """Each part has the choices that it has in all answers, with their shares, and the entropy of these."""
    given = {} if pins is None else {"pins": [pins]}
    for part in model.choices([sentence], **given)[0]:
        found = {key(each): each.probability for each in part.choices}
        wanted = expected[part.start, part.end]
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-5)
        for name in found.keys() | wanted.keys():
            assert found.get(name, 0.0) == pytest.approx(wanted[name], abs=1e-5), (part.start, name)
        bits = -sum(p * math.log2(p) for p in wanted.values() if p > 1e-12)
        assert part.entropy == pytest.approx(bits, abs=1e-3)
        shares = [each.probability for each in part.choices]
        assert shares == sorted(shares, reverse=True)


def tag_shares(model: Any, pins: Any) -> dict[Any, Counter[Any]]:
    expected: dict[Any, Counter[Any]] = {(i, i + 1): Counter() for i in range(len(SENTENCE))}
    for tags, probability in every_answer(model, SENTENCE, pins):
        for i, tag in enumerate(tags):
            expected[i, i + 1][tag] += probability
    return expected


def tagger_of(kind: str, sentences: list[Sentence], config: TaggerConfig) -> Any:
    if kind == "features":
        return FeatureTagger.fit(sentences)
    if kind == "network":
        return Tagger.from_data(sentences, config, seed=1).eval()
    if kind == "ensemble":
        return Ensemble([Tagger.from_data(sentences, config, seed=seed).eval() for seed in (1, 2)])
    return Segmenter.from_data(sentences, replace(config, segment_dim=8, max_length=3), seed=1).eval()


@pytest.mark.parametrize("pins", [None, {1: "I-NP"}, {0: "B-VP", 2: "O|B-NP"}], ids=["free", "one", "several"])
@pytest.mark.parametrize("kind", ["features", "network", "ensemble", "segments"])
def test_tags(kind: str, pins: Any, sentences: list[Sentence], config: TaggerConfig) -> None:
    model = tagger_of(kind, sentences, config)
    check(model, SENTENCE, pins, tag_shares(model, pins), lambda each: each.label)


@pytest.mark.parametrize("kind", ["features", "network", "segments"])
def test_one_of_several_tags_is_the_sum_of_them(kind: str, sentences: list[Sentence], config: TaggerConfig) -> None:
    model = tagger_of(kind, sentences, config)
    free = every_answer(model, SENTENCE, None)
    left = [(tags, p) for tags, p in free if tags[1] in ("O", "B-VP")]
    total = sum(p for _, p in left)
    pinned = {tuple(tags): p for tags, p in every_answer(model, SENTENCE, {1: "O|B-VP"})}
    assert pinned.keys() == {tuple(tags) for tags, _ in left}
    for tags, probability in left:
        assert pinned[tuple(tags)] == pytest.approx(probability / total, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("pins", [None, {0: (2, None)}, {0: (None, "x"), 2: (0, "root")}], ids=["free", "head", "both"])
def test_arcs(pins: Any) -> None:
    model = BiaffineParser.from_data(ARCS, ParserConfig(**NETWORK, arc_dim=7, label_dim=4)).eval()
    with torch.no_grad():
        for parameter in model.scorer.parameters():
            parameter.mul_(3)
    sentence = Sentence(("she", "sings", "it"))
    expected: dict[Any, Counter[Any]] = {(i, i + 1): Counter() for i in range(3)}
    for arcs, probability in every_answer(model, sentence, pins):
        for i, (head, label) in enumerate(arcs):
            expected[i, i + 1][head, label] += probability
    check(model, sentence, pins, expected, lambda each: (each.head, each.label))
    for part in model.choices([sentence])[0]:
        heads = Counter[int]()
        for each in part.choices:
            heads[each.head or 0] += each.probability
        for each in part.choices:
            assert each.head_probability == pytest.approx(heads[each.head or 0], abs=1e-6)


@pytest.mark.parametrize("pins", [None, [(0, 2, "NP")]], ids=["free", "pinned"])
def test_spans_of_trees(pins: Any) -> None:
    train = [sentence_of(Tree.parse(text)) for text in TREES]
    model = SpanParser.from_data(train, SpanConfig(**NETWORK, span_dim=8, affix_dim=4)).eval()
    sentence = Sentence(("the", "dog", "sleeps"))
    expected: dict[Any, Counter[Any]] = {(i, j): Counter() for i in range(3) for j in range(i + 1, 4)}
    for tree, probability in every_answer(model, sentence, pins, 7000):
        labels: dict[tuple[int, int], list[str]] = {}
        for start, end, label in brackets_of(sentence_of(tree)):
            labels.setdefault((start, end), []).append(label)
        for span, shares in expected.items():
            shares["+".join(labels.get(span, []))] += probability
    check(model, sentence, pins, expected, lambda each: each.label)


@pytest.mark.parametrize("pins", [None, [(2, 4, "NP")], [(1, 7, "VP"), (2, 7, None)]], ids=["free", "one", "several"])
def test_constituents_of_a_grammar(pins: Any) -> None:
    model = TreebankGrammar.fit(TRAIN, GrammarConfig(least_context=1))
    sentence = Sentence(AMBIGUOUS)
    n, labels = len(sentence), Counter[Any]()
    tops: dict[Any, Counter[str]] = {(i, j): Counter() for i in range(n) for j in range(i + 1, n + 1)}
    for tree, probability in every_answer(model, sentence, pins, 7000):
        brackets = brackets_of(sentence_of(tree))
        for bracket in set(brackets):
            labels[bracket] += probability
        for span in tops:
            tops[span][next((label for *at, label in brackets if tuple(at) == span), "")] += probability
    found = model.choices([sentence], **({} if pins is None else {"pins": [pins]}))[0]
    listed = {(part.start, part.end, each.label): each.probability for part in found for each in part.choices}
    for start, end, label in labels.keys() | {key for key in listed if key[2]}:
        assert listed.get((start, end, label), 0.0) == pytest.approx(labels[start, end, label], abs=1e-5)
    for part in found:
        assert listed.get((part.start, part.end, ""), 0.0) == pytest.approx(tops[part.start, part.end][""], abs=1e-5)
        shares = [p for p in tops[part.start, part.end].values() if p > 1e-12]
        assert part.entropy == pytest.approx(-sum(p * math.log2(p) for p in shares), abs=1e-3)
    assert len({p for p in listed.values() if 0.01 < p < 0.99}) > 1 or pins
    with pytest.raises(ConstraintError):
        model.choices([sentence], pins=[[(0, 2, "NP")]])
    assert model.choices([Sentence(())]) == [[]]


def test_pins_that_leave_nothing_and_models_without_choices(sentences: list[Sentence], config: TaggerConfig) -> None:
    with pytest.raises(ConstraintError):
        tagger_of("network", sentences, config).choices([SENTENCE], pins=[{0: "I-NP"}])
    with pytest.raises(TrellisworkError, match="expected one of the tags"):
        tagger_of("features", sentences, config).pinned("O|B-XX")
    with pytest.raises(TrellisworkError, match="choices of parts"):
        TopicClassifier.from_data([Sentence(("a",), ("A",))]).choices([SENTENCE])


def test_few_are_the_first_of_all(sentences: list[Sentence]) -> None:
    model = FeatureTagger.fit(sentences)
    every, few = model.choices([SENTENCE])[0], model.choices([SENTENCE, Sentence(())], most=2)
    assert [part.choices[:2] for part in every] == [part.choices for part in few[0]]
    assert [part.entropy for part in every] == [part.entropy for part in few[0]]
    assert few[1] == []
