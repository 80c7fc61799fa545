"""Trees and grammars as symbols: brackets, binarisation, unary chains, rules, counts. And a real treebank, if any."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from trelliswork.distributions import ProbabilisticCFG, WeightedCFG
from trelliswork.errors import ScoreError
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.structures.grammar.rules import Rule, read_rules, without_unary
from trelliswork.structures.grammar.tree import (
    Tree,
    binarise,
    collapse_unary,
    parse_all,
    restore_unary,
    unbinarise,
)

TEXT = "(S (NP (DT the) (JJ big) (JJ red) (NN dog)) (VP (VP (V saw))) (. .))"
TREE = Tree.parse(TEXT)


def test_brackets_in_and_out() -> None:
    assert str(TREE) == TEXT
    assert Tree.parse(f"( {TEXT})") == TREE, "an outer bracket without a label is dropped"
    assert TREE.words == ["the", "big", "red", "dog", "saw", "."]
    assert TREE.spans()[:2] == [(0, 6, "S"), (0, 4, "NP")]
    assert TREE.spans()[-1] == (5, 6, ".")
    assert list(parse_all(f"{TEXT}\n{TEXT}")) == [TREE, TREE]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP", "2 brackets are not closed"),
        ("S)", r"expected '\(' at character 0"),
        ("(S)", r"expected \(label child"),
        ("(S a) (S b)", "expected one tree in brackets; got 2"),
    ],
)
def test_brackets_that_do_not_close_are_named(text: str, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        Tree.parse(text)


@pytest.mark.parametrize("direction", ["left", "right"])
@pytest.mark.parametrize("horizontal", [None, 1, 2])
def test_binarisation_can_be_undone(direction, horizontal: int | None) -> None:  # type: ignore[no-untyped-def]
    cut = binarise(TREE, direction, horizontal)
    assert all(len(node.children) <= 2 for node in cut.subtrees)
    assert cut.words == TREE.words
    assert unbinarise(cut) == TREE


def test_markers_name_what_remains() -> None:
    (noun_phrase, *_) = binarise(TREE, "right", None).children
    assert str(noun_phrase) == "(NP (DT the) (NP|<JJ-JJ-NN> (JJ big) (NP|<JJ-NN> (JJ red) (NN dog))))"
    (first, _) = binarise(TREE, "left", 1).children
    assert isinstance(first, Tree) and first.label == "S|<VP>"


def test_chains_can_be_undone() -> None:
    joint = collapse_unary(TREE)
    assert isinstance(joint.children[1], Tree) and joint.children[1] == Tree("VP+VP+V", ("saw",))
    assert restore_unary(joint) == TREE


# --- rules -----------------------------------------------------------------------------------------------------

TOY = """
S -> NP VP 0.7 | VP 0.3        # a comment
NP -> Det N 0.6 | NP PP 0.3 | N 0.1
VP -> V NP 0.5 | VP PP 0.2 | V 0.2 | V NP PP 0.1
PP -> 'with' NP 1
Det -> 'the' 0.6 | 'a' 0.4
N -> 'dog' 0.5 | 'man' 0.3 | N N 0.2
V -> 'saw' 1
"""


def test_a_grammar_in_normal_form_keeps_its_probabilities() -> None:
    grammar = Grammar.from_rules(TOY)
    totals = grammar.left_hand_totals(grammar.rule_scores, grammar.lexicon).exp()
    torch.testing.assert_close(totals, torch.ones_like(totals))
    assert all(parent < grammar.n_phrases for parent, _, _ in grammar.rules)
    (tree,) = ProbabilisticCFG(grammar, [["saw"]]).argmax
    assert str(grammar.to_tree(tree)) == "(S (VP (V saw)))"
    # S -> VP -> V -> saw: 0.3 * 0.2 * 1
    assert ProbabilisticCFG(grammar, [["saw"]]).log_partition.exp().item() == pytest.approx(0.06)


def test_derivations_and_trees_can_be_exchanged() -> None:
    grammar = Grammar.from_rules(TOY)
    cfg = ProbabilisticCFG(grammar, [["the", "man", "saw", "a", "dog", "with", "a", "dog"]])
    trees, scores = cfg.top_k(4)
    assert scores.exp().sum().item() == pytest.approx(cfg.log_partition.exp().item())
    whole = {str(grammar.to_tree(each[0])) for each, score in zip(trees, scores, strict=True) if score > -math.inf}
    assert "(S (NP (Det the) (N man)) (VP (V saw) (NP (Det a) (N dog)) (PP with (NP (Det a) (N dog)))))" in whole
    assert len(whole) == 3
    for (derivation,), score in zip(trees, scores, strict=True):
        if score > -math.inf:
            assert grammar.to_derivation(grammar.to_tree(derivation)) == derivation


def test_unary_rules_that_go_round_are_summed() -> None:
    """A -> B -> A ... with 0.5 each way: Σ (0.25)^k = 4/3 chains from A to itself."""
    rules, chains = without_unary(read_rules("A -> B 0.5 | 'a' 0.5\nB -> A 0.5 | 'b' 0.5"))
    weights = {(rule.left, *rule.right): rule.weight for rule in rules}
    assert weights["A", "'a'"] == pytest.approx(0.5 * 4 / 3)
    assert weights["A", "'b'"] == pytest.approx(0.5 * 4 / 3 * 0.5)
    assert chains == {("A", "'b'"): ("B",), ("B", "'a'"): ("A",)}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("S NP VP", "must read 'A -> B C 0.5"),
        ("S -> 0.5", "needs a right-hand side"),
        ("S -> A B -1", "a weight above 0"),
        ("", "at least one rule"),
        ("S -> A 'b' 1", r"every symbol needs a rule; got none for \['A'\]"),
        ("A -> B 1\nB -> A 1 | 'b' 1", "unary rules go round with a total weight of 1"),
    ],
)
def test_rules_that_cannot_be_are_refused(rules: str, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        Grammar.from_rules(rules)


def test_rules_as_tuples() -> None:
    grammar = Grammar.from_rules([Rule("S", ("S", "S"), 0.4), ("S", ("'a'",), 0.6)])
    assert grammar.rule_scores.exp().tolist() == pytest.approx([0.4])


def test_a_grammar_counted_from_trees() -> None:
    trees = list(parse_all("(S (N a) (V b)) (S (N a) (VP (V b) (N c))) (S (N c) (V b))"))
    grammar = Grammar.from_trees(trees)
    scores = {
        tuple(grammar.symbols[i] for i in rule): float(grammar.rule_scores[k].exp())
        for rule, k in grammar.rule_index.items()
    }
    assert scores == pytest.approx({("S", "N", "V"): 2 / 3, ("S", "N", "VP"): 1 / 3, ("VP", "V", "N"): 1.0})
    cfg = ProbabilisticCFG(grammar, [tree.words for tree in trees])
    assert [grammar.to_tree(each) for each in cfg.argmax] == trees
    # N -> a has 2 of 4, V -> b 3 of 3
    assert cfg.log_prob(cfg.argmax).exp()[0].item() == pytest.approx(2 / 3 * 0.5)


def test_a_root_of_one_word() -> None:
    grammar = Grammar.from_trees(parse_all("(X (Y hello)) (S (A a) (B b))"))
    cfg = WeightedCFG(grammar, [["hello"], ["a", "b"]])
    assert [str(grammar.to_tree(each)) for each in cfg.argmax] == ["(X (Y hello))", "(S (A a) (B b))"]


# --- a real treebank -------------------------------------------------------------------------------------------

TREEBANK = Path(__file__).parents[2].parent / "shared" / "data" / "constituency_masc"


def cleaned(tree: Tree) -> Tree | None:
    """Without traces, function tags and indices; words give way to their tags, which are what is parsed."""
    label = re.split(r"[-=|]", tree.label)[0] or tree.label
    if len(tree.children) == 1 and isinstance(tree.children[0], str):
        return None if tree.label == "-NONE-" else Tree(label, (tree.label,))
    children = [cleaned(each) for each in tree.children if isinstance(each, Tree)]
    kept = tuple(each for each in children if each is not None)
    return Tree(label, kept) if kept else None


def treebank(name: str, longest: int) -> Iterator[Tree]:
    for tree in parse_all((TREEBANK / f"{name}.mrg").read_text(encoding="utf-8")):
        found = cleaned(tree)
        if found is not None and 1 < len(found.words) <= longest:
            yield Tree("TOP", (found,))


def brackets(tree: Tree) -> Counter[tuple[int, int, str]]:
    return Counter((i, j, label) for i, j, label in tree.spans() if j - i > 1 and label != "TOP")


@pytest.mark.skipif(not TREEBANK.exists(), reason="no treebank beside the project (shared/data/constituency_masc)")
def test_a_treebank_grammar_parses_unseen_sentences() -> None:
    grammar = Grammar.from_trees(treebank("train", 40))
    known = [tree for tree in treebank("dev", 25) if set(tree.words) <= set(grammar.words)][:40]
    derived = WeightedCFG(grammar, [tree.words for tree in known]).log_partition > -math.inf
    assert derived.float().mean() > 0.9
    gold = [tree for tree, there in zip(known, derived.tolist(), strict=True) if there]
    cfg = WeightedCFG(grammar, [tree.words for tree in gold])
    found = [grammar.to_tree(each) for each in cfg.argmax]
    both = sum((brackets(a) & brackets(b)).total() for a, b in zip(gold, found, strict=True))
    sizes = sum(brackets(a).total() for a in gold), sum(brackets(b).total() for b in found)
    f1 = 2 * both / sum(sizes)
    print(f"bracket F1 {f1:.3f} on {len(gold)} sentences; {grammar.n_rules} rules, {len(grammar.symbols)} symbols")
    assert [tree.words for tree in found] == [tree.words for tree in gold]
    assert f1 > 0.6


def test_quoted_words_may_have_signs_in_them() -> None:
    grammar = Grammar.from_rules("P -> '|' 0.2|'#' 0.3 | \"don't\" 0.1 | 'a b' 0.1 | '->' 0.3 # 'all'")
    assert grammar.words == ("#", "->", "a b", "don't", "|")
    assert grammar.lexicon.exp().sum() == pytest.approx(1.0)
    assert Rule.parse("A->'a'") == [Rule("A", ("'a'",))]


def test_weights_of_a_rule_given_twice_add_up() -> None:
    assert Grammar.from_rules("S -> 'a' 1 | 'a' 1").lexicon.exp().tolist() == [[2.0]]
    grammar = Grammar.from_rules("S -> A A A A 1 | A A A A 1 | B A A A 1\nA -> 'a'\nB -> 'b'")
    weights = {tuple(grammar.symbols[i] for i in rule): grammar.rule_scores[r].exp() for rule, r in
               grammar.rule_index.items()}  # fmt: skip
    assert weights["S", "A", "S|<A-A-A>"] == 2.0
    assert weights["S|<A-A-A>", "A", "S|<A-A>"] == weights["S|<A-A>", "A", "A"] == 1.0


def test_a_symbol_below_a_unary_rule_needs_a_rule() -> None:
    with pytest.raises(ScoreError, match="every symbol needs a rule"):
        Grammar.from_rules("S -> NPP 0.5 | 'a' 0.5")


def test_rules_as_tuples_need_weights() -> None:
    with pytest.raises(ScoreError, match="a rule must be"):
        Grammar.from_rules([("S", ("'a'",))])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "text", ["(S (A a) (+ +))", "(S (NP+X (A a)) (B b))", "(S (+ (A a)) (B b))", "(S (NP we) saw it)"]
)
@pytest.mark.parametrize("horizontal", [None, 0, 1])
def test_labels_with_a_plus_and_words_beside_nodes_come_back(text: str, horizontal: int | None) -> None:
    tree = Tree.parse(text)
    grammar = Grammar.from_trees([tree], direction="left", horizontal=horizontal)
    derivation = grammar.to_derivation(tree)
    assert WeightedCFG(grammar, [tree.words]).log_prob([derivation]) <= 0
    assert grammar.to_tree(derivation) == tree


def test_no_names_of_children_on_either_side() -> None:
    flat = Tree.parse("(S (A a) (B b) (C c) (D d))")
    for direction in ("left", "right"):
        assert {node.label for node in binarise(flat, direction, 0).subtrees} == {"S", "S|<>", "A", "B", "C", "D"}


def test_scores_of_unknown_words_are_one_a_symbol() -> None:
    with pytest.raises(ScoreError, match="unknown must be"):
        WeightedCFG(Grammar.from_rules("S -> S S 1 | 'a' 1"), [["z"]], unknown=torch.zeros(3))


def test_a_grammar_is_shown_by_its_sizes() -> None:
    grammar = Grammar.from_rules("S -> NP VP 1\nNP -> 'we' 1\nVP -> 'sleep' 1")
    assert repr(grammar) == "Grammar(3 symbols, 1 rules, 2 words)"
