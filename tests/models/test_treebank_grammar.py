"""The treebank grammar: probabilities against enumeration on a toy treebank, unknown words, its folder, bad input."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.data.brackets import sentence_of
from trelliswork.errors import ConstraintError, DataError, TrellisworkError
from trelliswork.models.parsers.constituency.config import GrammarConfig
from trelliswork.models.parsers.constituency.derivations import expected_brackets
from trelliswork.models.parsers.constituency.grammar_words import WordTags
from trelliswork.models.parsers.constituency.pcfg import TreebankGrammar
from trelliswork.models.parsers.constituency.treebank_rules import RuleCounts, annotated, label_of, word_of
from trelliswork.structures.grammar.tree import Tree

TEXTS = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT the) (JJ old) (NN cat))) (. .))",
    "(S (NP (PRP we)) (VP (VBP sleep)) (. .))",
    "(S (NP (PRP we)) (VP (VBP see) (NP (NP (DT the) (NN cat)) (PP (IN in) (NP (DT the) (NN house))))) (. .))",
    "(S (NP (PRP we)) (VP (VBP see) (NP (DT the) (NN cat)) (PP (IN in) (NP (DT the) (NN house)))) (. .))",
    "(S (VP (VB stop)) (. .))",
]
TRAIN = [sentence_of(Tree.parse(text)) for text in TEXTS]
AMBIGUOUS = ("we", "see", "the", "dog", "in", "the", "house", ".")


WHOLE = GrammarConfig(least_context=1)  # contexts as rare as those of a toy


@pytest.fixture(scope="module")
def grammar() -> TreebankGrammar:
    return TreebankGrammar.fit(TRAIN, replace(WHOLE, decoding="best"))


@pytest.fixture(scope="module")
def expecting() -> TreebankGrammar:
    return TreebankGrammar.fit(TRAIN, replace(WHOLE, frequent=4))


def enumerated(model: TreebankGrammar, words: tuple[str, ...]) -> dict[tuple[Any, ...], float]:
    """Every derivation of a sentence in symbols of the grammar, with its weight; the toy has no unary cycle."""
    binary, unary = model.counts.weights()
    weights, total = model.words.weights(words), model.counts.roots.total()
    memory: dict[Any, list[Any]] = {}

    def below(i: int, j: int, a: str) -> list[Any]:
        if (i, j, a) not in memory:
            own = weights[i, model.place[a]] if j - i == 1 else 0.0
            found = [(((i, j, a),), own)] if own > 0 else []
            for (parent, child), weight in unary.items():
                if parent == a:
                    found += [(((i, j, a), *nodes), weight * w) for nodes, w in below(i, j, child)]
            for (parent, left, right), weight in binary.items():
                for k in range(i + 1, j) if parent == a else ():
                    for nodes, w in below(i, k, left):
                        found += [(((i, j, a), *nodes, *more), weight * w * v) for more, v in below(k, j, right)]
            memory[i, j, a] = found
        return memory[i, j, a]

    n = len(words)
    return {nodes: count / total * w for a, count in model.counts.roots.items() for nodes, w in below(0, n, a)}


@pytest.mark.parametrize("words", [AMBIGUOUS, ("stop", "."), ("dogs", "bark", ".")])
def test_probabilities_are_those_of_all_derivations(grammar: TreebankGrammar, words: tuple[str, ...]) -> None:
    every = enumerated(grammar, words)
    z = math.fsum(every.values())
    (answer,) = grammar.predict([words], top_k=3)
    assert answer.probability == pytest.approx(max(every.values()) / z)
    wanted = sorted(every.values(), reverse=True)[:3]
    assert [each.probability for each in answer.alternatives] == pytest.approx([each / z for each in wanted])
    shares: Counter[tuple[int, int, str]] = Counter()
    for nodes, weight in every.items():
        for i, j, name in {(i, j, label_of(symbol)) for i, j, symbol in nodes}:
            shares[i, j, name or ""] += weight / z
    for each in [*answer.spans, *answer.parts]:
        assert each.probability == pytest.approx(shares[each.start, each.end, each.label])


def labelled(nodes: Any) -> set[tuple[int, int, str]]:
    return {(i, j, name) for i, j, symbol in nodes if (name := label_of(symbol)) is not None}


PINS: list[list[tuple[int, int, str | None]]] = [
    [(2, 7, "NP")], [(2, 4, None), (4, 7, "PP")], [(1, 7, "VP")], [(0, 1, "NP"), (0, 8, "S"), (3, 7, None)],
]  # fmt: skip


@pytest.mark.parametrize("pins", PINS)
@pytest.mark.parametrize("decoding", ["best", "expected"])
def test_pins_leave_the_trees_that_have_them(pins: Any, decoding: Any) -> None:
    model = TreebankGrammar.fit(TRAIN, replace(WHOLE, decoding=decoding))
    kept = {
        nodes: weight for nodes, weight in enumerated(model, AMBIGUOUS).items()
        if all(any((i, j, each) in labelled(nodes) for each in ([label] if label else model.labels))
               for i, j, label in pins)
    }  # fmt: skip
    if not kept:
        with pytest.raises(ConstraintError, match=r"no tree of the grammar agrees with the pins of 'we see .*'"):
            model.predict([AMBIGUOUS], pins=[pins])
        return
    z = math.fsum(kept.values())
    (answer,) = model.predict([AMBIGUOUS], pins=[pins], top_k=3)
    wanted = sorted(kept.values(), reverse=True)[:3]
    assert [each.probability for each in answer.alternatives] == pytest.approx([each / z for each in wanted])
    found = {(each.start, each.end, each.label): each.probability for each in answer.spans}
    for i, j, label in pins:
        assert (i, j, label) in found if label else any(place[:2] == (i, j) for place in found)
    for place, share in found.items():
        assert share == pytest.approx(math.fsum(w for nodes, w in kept.items() if place in labelled(nodes)) / z)
    entropy = -math.fsum(w / z * math.log(w / z) for w in kept.values())
    assert model.entropy(AMBIGUOUS, pins) == pytest.approx(entropy, abs=1e-9)


def test_pins_that_cannot_be_are_said(grammar: TreebankGrammar) -> None:
    for pins, problem in (
        ([(0, 2, None), (1, 3, None)], "no tree of the grammar agrees with the pins"),
        ([(0, 1, "XP")], "a pin must have one of the labels NP, PP, S, VP; got 'XP'"),
        ([(0, 1, "NP"), (0, 1, "S")], "expected one pin for words 1 to 1, got two"),
    ):
        with pytest.raises(TrellisworkError, match=problem):
            grammar.predict([AMBIGUOUS], pins=[pins])
    short = TreebankGrammar.fit(TRAIN, replace(WHOLE, longest=5))
    with pytest.raises(TrellisworkError, match="pins need a sentence of at most 5 words, got one of 8"):
        short.predict([AMBIGUOUS], pins=[[(0, 1, "NP")]])
    assert short.predict([AMBIGUOUS], pins=[[]])[0].probability is None


def test_explanations_have_the_probabilities_of_all_derivations(expecting: TreebankGrammar) -> None:
    every = enumerated(expecting, AMBIGUOUS)
    z = math.fsum(every.values())
    (found,) = expecting.explain([Sentence(AMBIGUOUS)])
    shown = [part for each in found.spans for part in (*each.brackets, *each.labels, *each.crossing)]
    for part in shown:
        having = [w for nodes, w in every.items() if (part.start, part.end, part.label) in labelled(nodes)]
        assert part.probability == pytest.approx(math.fsum(having) / z)
        some = [
            w for nodes, w in every.items()
            if any((part.start, part.end, label) in labelled(nodes) for label in expecting.labels)
        ]  # fmt: skip
        assert part.span_probability == pytest.approx(math.fsum(some) / z)
    (phrase,) = (each for each in found.spans if each.brackets[0].label == "PP")
    assert phrase.brackets[0].probability == pytest.approx(1.0) and not phrase.crossing
    crossed = {(part.start, part.end) for each in found.spans for part in each.crossing}
    assert not crossed & {(part.start, part.end) for each in found.spans for part in each.brackets}
    assert "  5-7 PP" in str(found) and "in the house" in str(found)
    long = TreebankGrammar.fit(TRAIN, replace(WHOLE, longest=5)).explain([Sentence(AMBIGUOUS)])[0]
    assert "%" not in str(long) and "1-8 TOP" in str(long) and "%" not in long._repr_html_()


def bracketings(start: int, end: int) -> list[list[tuple[int, int]]]:
    """The spans of every binary tree over some words."""
    if end - start == 1:
        return [[(start, end)]]
    return [
        [(start, end), *left, *right]
        for middle in range(start + 1, end)
        for left in bracketings(start, middle)
        for right in bracketings(middle, end)
    ]


def highest_expected(shares: Any) -> float:
    """The highest 2 E[right] / (predicted + E[gold]) of any labelled spans of one tree."""
    best = 0.0
    for spans in bracketings(0, len(shares)):
        own = sorted((float(share) for i, j in spans for share in shares[i, j - 1]), reverse=True)
        best = max(best, *(2 * math.fsum(own[:m]) / (m + shares.sum()) for m in range(1, len(own) + 1)))
    return best


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_the_expected_brackets_are_the_best_of_all(n: int) -> None:
    random = np.random.default_rng(n)
    for _ in range(20):
        shares = np.triu(random.random((3, n, n))).transpose(1, 2, 0) ** 2
        found = [share for i, j, labels in expected_brackets(shares) for share in shares[i, j - 1, labels]]
        assert 2 * sum(found) / (len(found) + shares.sum()) == pytest.approx(highest_expected(shares))


def test_expected_brackets_nest_and_have_an_order(expecting: TreebankGrammar) -> None:
    (answer,) = expecting.predict([AMBIGUOUS], top_k=2)
    every = enumerated(expecting, AMBIGUOUS)
    z = math.fsum(every.values())
    shown = {tree_text(nodes, AMBIGUOUS): weight / z for nodes, weight in every.items()}
    assert answer.probability == pytest.approx(shown[str(answer.value)]), "the tree's own, not that of the likeliest"
    assert [each.probability for each in answer.alternatives] == pytest.approx(sorted(shown.values())[::-1][:2])
    assert str(expecting.predict([("we", "sleep", ".")])[0].value) == TEXTS[1]
    assert str(expecting.predict([("stop", ".")])[0].value) == "(S (VP (VB stop)) (. .))"


def tree_text(nodes: Any, words: tuple[str, ...]) -> str:
    shown = [(i, j, label_of(symbol)) for i, j, symbol in nodes]
    return str(Tree.from_spans([(i, j, label) for i, j, label in shown if label is not None], words))


def test_frequent_words_have_tags_of_their_own(expecting: TreebankGrammar) -> None:
    assert set(expecting.counts.frequent) == {("DT", "the"), (".", ".")}
    the, unknown = expecting.words.weights(["The", "an"])
    own = [i for i, symbol in enumerate(expecting.symbols) if word_of(symbol) == "the" and label_of(symbol) == "DT"]
    assert (the[own] > 0).all() and not unknown[own].any(), "a tag of one word is for no other"


def test_it_parses_its_treebank(grammar: TreebankGrammar) -> None:
    found = grammar.predict([each.words for each in TRAIN[:2]])
    assert [str(each.value) for each in found] == TEXTS[:2]
    attached = [str(each.value) for each in grammar.predict([AMBIGUOUS], top_k=2)[0].analyses]
    assert len(set(attached)) == 2 and sum("(NP (NP" in each for each in attached) == 1
    assert grammar.evaluate(TRAIN)["tagging_accuracy"] > 0.9
    assert grammar.notes(TRAIN, TRAIN) == []


def test_labels_name_what_is_above_them() -> None:
    tree = Tree.parse("(S (NP (NP (NN a)) (NN b)) (VP (VB c)))")
    plain = GrammarConfig(vertical=1, tag_parents=False, mark_single=False, mark_base=False)
    assert str(annotated(tree, plain)) == str(tree)
    above = replace(plain, vertical=2, tag_parents=True)
    assert str(annotated(tree, above)) == "(S^ (NP^S (NP^NP (NN^NP a)) (NN^NP b)) (VP^S (VB^VP c)))"
    assert "(NP^NP^S (NN^NP a))" in str(annotated(tree, replace(above, vertical=3)))
    marked = annotated(tree, replace(plain, mark_single=True), {("NN", "a")})
    assert str(marked) == "(S (NP (NP^=1 (NN^=a a)) (NN b)) (VP^=1 (VB c)))"
    base = annotated(Tree.parse("(S (NP (DT a) (NN b)) (VP (VB c)))"), replace(plain, mark_base=True))
    assert str(base) == "(S (NP^=0 (DT a) (NN b)) (VP^=0 (VB c)))"
    assert [label_of(each) for each in ("NP^NP^S", "S|<NP>", ".")] == ["NP", None, "."]


def test_rules_are_shares_of_their_left_hand_side() -> None:
    texts = ("(S (A a) (B b))", "(S (A a) (C b))", "(S (A a) (B b))", "(S (D a))")
    binary, unary = RuleCounts.of([Tree.parse(text) for text in texts], PLAIN).weights()
    assert binary == {("S", "A", "B"): 0.5, ("S", "A", "C"): 0.25} and unary == {("S", "D"): 0.25}


def test_rules_are_smoothed_by_those_below_other_ancestors() -> None:
    text = "(S (NP (A a) (B b)) (VP (V v) (NP (C c))))"
    config = replace(PLAIN, vertical=2, ancestor_smoothing=2.0)
    binary, unary = RuleCounts.of([Tree.parse(text)] * 2, config).weights()
    assert binary["NP^S", "A", "B"] == unary["NP^VP", "C"] == pytest.approx((2 + 2 * 0.5) / (2 + 2))
    assert unary["NP^S", "C"] == binary["NP^VP", "A", "B"] == pytest.approx(2 * 0.5 / (2 + 2))
    assert binary["VP^S", "V", "NP^VP"] == 1.0, "nothing else is known of a constituent with one ancestor"


PLAIN = GrammarConfig(vertical=1, tag_parents=False, mark_single=False, mark_base=False, least_context=2)


@pytest.mark.parametrize("side", ["right", "left"])
def test_contexts_are_as_long_as_they_were_seen_often(side: Any) -> None:
    texts = ["(S (A a) (B a) (C a) (D a))", "(S (A a) (B a) (C a) (E a))", "(S (A a) (B a) (F a))"]
    trees = [Tree.parse(text) for text in texts]
    rules = set(RuleCounts.of(trees, replace(PLAIN, side=side)).binary)
    if side == "right":  # B C was seen twice, B F once, C D and C E once, and C twice
        wanted = {("S", "A", "S|<B-C>"), ("S", "A", "S|<B>"), ("S|<B-C>", "B", "S|<C>"), ("S|<C>", "C", "D"),
                  ("S|<C>", "C", "E"), ("S|<B>", "B", "F")}  # fmt: skip
    else:  # from the last child on: C B was seen twice, and B A three times
        wanted = {("S", "S|<C-B>", "D"), ("S", "S|<C-B>", "E"), ("S|<C-B>", "S|<B-A>", "C"), ("S|<B-A>", "A", "B"),
                  ("S", "S|<B-A>", "F")}  # fmt: skip
    assert rules == wanted


def test_unknown_words_go_by_their_spelling() -> None:
    counts = {("running", "VBG"): 1, ("jumping", "VBG"): 1, ("dogs", "NNS"): 1, ("Ann", "NNP"): 1, ("the", "DT"): 50}
    lexicon = WordTags.from_counts(counts, 3, 1.0, 1.0)

    def best(word: str, first: bool = False) -> str:
        shares = lexicon.shares(word, first=first)
        assert math.fsum(shares.values()) == pytest.approx(1.0)
        return max(shares, key=shares.__getitem__)

    assert [best(each) for each in ("walking", "cats", "Bob", "the")] == ["VBG", "NNS", "NNP", "DT"]
    assert best("The", first=True) == "DT", "a capital at the beginning says little"


@pytest.mark.parametrize("decoding", ["best", "expected"])
def test_a_sentence_that_no_rules_fit_gets_flat_tags(decoding: Any) -> None:
    grammar = TreebankGrammar.fit(TRAIN, replace(WHOLE, rare=1, decoding=decoding))
    (answer,) = grammar.predict([("in", "in", "in")])
    assert str(answer.value) == "(TOP (IN in) (IN in) (IN in))" and answer.probability is None


def test_long_sentences_are_parsed_in_pieces() -> None:
    model = TreebankGrammar.fit(TRAIN, replace(WHOLE, longest=3))
    (answer,) = model.predict([("we", "sleep", ".") * 700])
    assert len(answer.value.words) == 2100 and answer.probability is None
    assert str(answer.value).startswith("(TOP (S (NP (PRP we)) (VP (VBP sleep)) (. .)) (S ")
    model = TreebankGrammar.fit(TRAIN, replace(WHOLE, longest=80))
    long = Sentence(("we", "sleep", ".") * 40, ("X",) * 120, brackets=((0, 120, "S"),))
    assert len(model.predict([long])[0].value.children) == 3, "pieces of forty words"
    assert "1 sentence of more than 80 words parsed in pieces" in model.readable_gold([long])[1][0]


@pytest.mark.parametrize("name", ["grammar", "expecting"])
def test_a_grammar_comes_back_from_its_folder(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    grammar = request.getfixturevalue(name)
    grammar.save(tmp_path / "pcfg")
    again: Any = tw.load(tmp_path / "pcfg")
    assert type(again) is TreebankGrammar and again.counts.binary == grammar.counts.binary
    (one,), (other,) = grammar.predict([AMBIGUOUS], top_k=2), again.predict([AMBIGUOUS], top_k=2)
    assert [str(each.value) for each in one.alternatives] == [str(each.value) for each in other.alternatives]
    assert one.probability == pytest.approx(other.probability) and one.probability > 0
    assert "most frequent rules" in [title for title, _ in again.describe().sections]


def test_sentences_without_trees_are_refused() -> None:
    with pytest.raises(DataError, match="expected a tree in brackets, got a sentence without"):
        TreebankGrammar.fit([Sentence(("a",), ("NN",))])
    with pytest.raises(TrellisworkError, match="expected sentences with brackets to count rules of, got none"):
        TreebankGrammar.fit([])
