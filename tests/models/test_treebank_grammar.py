"""The treebank grammar: probabilities against enumeration on a toy treebank, unknown words, its folder, bad input."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.data.brackets import sentence_of
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.parsers.pcfg import TreebankGrammar
from trelliswork.models.parsers.pcfg_config import GrammarConfig
from trelliswork.models.parsers.treebank_rules import RuleCounts, annotated, label_of
from trelliswork.models.parsers.word_tags import WordTags
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


@pytest.fixture(scope="module")
def grammar() -> TreebankGrammar:
    return TreebankGrammar.fit(TRAIN)


def enumerated(model: TreebankGrammar, words: tuple[str, ...]) -> dict[tuple[Any, ...], float]:
    """Every derivation of a sentence in symbols of the grammar, with its weight; the toy has no unary cycle."""
    binary, unary = model.counts.weights()
    weights, total = model.word_weights(words), model.counts.roots.total()
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


def test_it_parses_its_treebank(grammar: TreebankGrammar) -> None:
    found = grammar.predict([each.words for each in TRAIN[:2]])
    assert [str(each.value) for each in found] == TEXTS[:2]
    attached = [str(each.value) for each in grammar.predict([AMBIGUOUS], top_k=2)[0].analyses]
    assert len(set(attached)) == 2 and sum("(NP (NP" in each for each in attached) == 1
    assert grammar.evaluate(TRAIN)["tagging_accuracy"] > 0.9
    assert grammar.notes(TRAIN, TRAIN) == []


def test_labels_name_what_is_above_them() -> None:
    tree = Tree.parse("(S (NP (NP (NN a)) (NN b)) (VP (VB c)))")
    assert str(annotated(tree, 1, False)) == str(tree)
    assert str(annotated(tree, 2, True)) == "(S^ (NP^S (NP^NP (NN^NP a)) (NN^NP b)) (VP^S (VB^VP c)))"
    assert "(NP^NP^S (NN^NP a))" in str(annotated(tree, 3, True))
    assert [label_of(each) for each in ("NP^NP^S", "S|<NP>", ".")] == ["NP", None, "."]


def test_rules_are_shares_of_their_left_hand_side() -> None:
    counts = RuleCounts(GrammarConfig(vertical=1, horizontal=0, tag_parents=False))
    for text in ("(S (A a) (B b))", "(S (A a) (C b))", "(S (A a) (B b))", "(S (D a))"):
        counts.add(Tree.parse(text))
    binary, unary = counts.weights()
    assert binary == {("S", "A", "B"): 0.5, ("S", "A", "C"): 0.25} and unary == {("S", "D"): 0.25}


def test_unknown_words_go_by_their_spelling() -> None:
    counts = {("running", "VBG"): 1, ("jumping", "VBG"): 1, ("dogs", "NNS"): 1, ("Ann", "NNP"): 1, ("the", "DT"): 50}
    lexicon = WordTags.from_counts(counts, 3, 1.0)

    def best(word: str, first: bool = False) -> str:
        shares = lexicon.shares(word, first=first)
        assert math.fsum(shares.values()) == pytest.approx(1.0)
        return max(shares, key=shares.__getitem__)

    assert [best(each) for each in ("walking", "cats", "Bob", "the")] == ["VBG", "NNS", "NNP", "DT"]
    assert best("The", first=True) == "DT", "a capital at the beginning says little"


def test_a_sentence_that_no_rules_fit_gets_flat_tags(grammar: TreebankGrammar) -> None:
    (answer,) = grammar.predict([("in", "in", "in")])
    assert str(answer.value) == "(TOP (IN in) (IN in) (IN in))" and answer.probability is None


def test_long_sentences_are_parsed_in_pieces() -> None:
    model = TreebankGrammar.fit(TRAIN, GrammarConfig(longest=3))
    (answer,) = model.predict([("we", "sleep", ".") * 700])
    assert len(answer.value.words) == 2100 and answer.probability is None
    assert str(answer.value).startswith("(TOP (S (NP (PRP we)) (VP (VBP sleep)) (. .)) (S ")


def test_a_grammar_comes_back_from_its_folder(grammar: TreebankGrammar, tmp_path: Path) -> None:
    grammar.save(tmp_path / "pcfg")
    again: Any = tw.load(tmp_path / "pcfg")
    assert type(again) is TreebankGrammar and again.counts.binary == grammar.counts.binary
    (one,), (other,) = grammar.predict([AMBIGUOUS], top_k=2), again.predict([AMBIGUOUS], top_k=2)
    assert [str(each.value) for each in one.alternatives] == [str(each.value) for each in other.alternatives]
    assert one.probability == pytest.approx(other.probability)
    assert "most frequent rules" in [title for title, _ in again.describe().sections]


def test_what_a_grammar_cannot_do_is_said(grammar: TreebankGrammar) -> None:
    with pytest.raises(TrellisworkError, match="a treebank grammar takes no pins"):
        grammar.predict([AMBIGUOUS], pins=[[(0, 1, "NP")]])
    with pytest.raises(DataError, match="expected a tree in brackets, got a sentence without"):
        TreebankGrammar.fit([Sentence(("a",), ("NN",))])
    with pytest.raises(TrellisworkError, match="expected sentences with brackets to count rules of, got none"):
        TreebankGrammar.fit([])
