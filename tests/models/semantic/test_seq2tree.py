"""Seq2Tree: probabilities that sum to one over all trees, search against enumeration, forms, storage, commands."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from trelliswork.data import Sentence, Vocabulary
from trelliswork.data.pairs import PairFormat
from trelliswork.errors import DataError, TermError, TrellisworkError
from trelliswork.models.transducers.network import BEGIN, END, UNKNOWN, EncodedPair
from trelliswork.models.transducers.semantic.config import TreeConfig
from trelliswork.models.transducers.semantic.constraints import BracketConstraint
from trelliswork.models.transducers.semantic.forms import LambdaForm, PrologForm, form_of, heads_in
from trelliswork.models.transducers.semantic.seq2tree import Seq2Tree
from trelliswork.terms import free_variables, parse_brackets
from trelliswork.training.config import TrainingConfig
from trelliswork.training.loop import train

SMALL: dict[str, Any] = {"word_dim": 4, "hidden": 4, "dropout": 0.0, "word_dropout": 0.0, "min_count": 1}


def pair(source: str, target: str) -> Sentence:
    return Sentence(tuple(source.split()), target=tuple(target.split()), file="pairs.tsv", line=7)


def tiny(**settings: Any) -> Seq2Tree:
    """A model of the symbols a, ( and )."""
    pairs = [pair("one two", "( a ( a ) )"), pair("two", "a")]
    return Seq2Tree.from_data(pairs, TreeConfig(**{**SMALL, "form": "brackets", **settings}), seed=3).double().eval()


def log_likelihood(model: Seq2Tree, source: tuple[str, ...], tree: tuple[str, ...]) -> float:
    words = torch.tensor(model.source.indices(source))
    gold = torch.tensor(model.target.indices(tree), dtype=torch.long)
    return model.log_likelihoods([EncodedPair(words, gold, source)]).item()


def is_tree(symbols: tuple[str, ...]) -> bool:
    """Not empty, no empty bracket, and every bracket closes."""
    text = " ".join(symbols)
    depth = 0
    for symbol in symbols:
        depth += (symbol == "(") - (symbol == ")")
        if depth < 0:
            return False
    return depth == 0 and bool(symbols) and "( )" not in text


def test_strings_up_to_a_bound_and_what_is_longer_have_all_the_probability() -> None:
    model, source, longest = tiny(), ("one", "two"), 4
    names, total = ["a", "(", ")"], 0.0
    words = torch.tensor(model.source.indices(source))
    for n in range(longest + 1):
        trees = [torch.tensor(model.target.indices(tree)).long() for tree in itertools.product(names, repeat=n)]
        pairs = [EncodedPair(words, tree, source) for tree in trees]
        total += model.log_likelihoods(pairs).exp().sum().item()
    longer = list(itertools.product(names, repeat=longest + 1))  # prefixes that have not ended after as many symbols
    total += sum(map(math.exp, _prefixes(model, source, longer)))
    assert total == pytest.approx(1.0, abs=1e-9)


def _prefixes(model: Seq2Tree, source: tuple[str, ...], strings: Sequence[tuple[str, ...]]) -> list[float]:
    """log p of the strings that begin with each of some strings of one length."""
    words = torch.tensor(model.source.indices(source))
    pairs = [EncodedPair(words, torch.tensor(model.target.indices(each)), source) for each in strings]
    found, gold = model._unrolled(pairs)
    log_probs = model.next_log_probs(found.hidden)[:, :-1]
    shares: list[float] = log_probs.gather(-1, gold[:, :-1, None]).sum((1, 2)).tolist()
    return shares


def test_a_wide_beam_finds_every_tree_in_order_of_probability() -> None:
    model, source, longest = tiny(beam=400), ("one", "two"), 6
    model.limits["longest"] = longest + 1
    trees = [each for n in range(longest + 1) for each in itertools.product("a()", repeat=n) if is_tree(each)]
    expected = sorted(((log_likelihood(model, source, tree), tree) for tree in trees), reverse=True)
    found = model.transduced([source], len(trees) + 5, sure=False)[0].best
    allowed = [tree for _, tree in expected]
    assert [tree for tree, _ in found] == allowed
    scores = {tree: score for score, tree in expected}
    for tree, score in found:
        assert score == pytest.approx(scores[tree], abs=1e-9)
    assert [tree for tree, _ in model.transduced([source], 1, sure=False)[0].best] == allowed[:1]


def test_parts_have_the_probabilities_whose_product_is_that_of_the_tree() -> None:
    model = tiny()
    found = model.transduced([("one", "two")], 1, sure=True)[0]
    tree, score = found.best[0]
    assert tuple(part.label for part in found.parts) == tree
    assert all(0 <= part.start < part.end <= 2 for part in found.parts)
    whole = math.prod(part.probability or 0 for part in found.parts)
    ends = math.exp(score - _prefixes(model, ("one", "two"), [tree])[0])
    assert whole * ends == pytest.approx(math.exp(score), rel=1e-9)


def test_the_loss_is_the_negative_log_likelihood() -> None:
    """Erratum 31: the log-likelihood is made large, and what is minimised is minus it."""
    model = tiny()
    pairs = [pair("one two", "( a ( a ) )"), pair("two", "a")]
    expected = -sum(log_likelihood(model, each.words, each.target or ()) for each in pairs)
    assert model.loss(pairs).item() == pytest.approx(expected)
    assert model.train().loss(pairs).item() == pytest.approx(expected)  # no dropout, no smoothing
    before = [log_likelihood(model, each.words, each.target or ()) for each in pairs]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model.loss(pairs).backward()
    optimizer.step()
    after = [log_likelihood(model, each.words, each.target or ()) for each in pairs]
    assert sum(after) > sum(before)


# --- forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "( A , ( _capital ( A ) , _loc ( A , B ) , _const ( B , _stateid ( var0 ) ) ) )",
        "( A , _count ( B , ( _river ( B ) , \\+ ( _traverse ( B , C ) , _state ( C ) ) ) , A ) )",
        "( A , \\+ _const ( A , x ) , _const ( B , _placeid ( mount var0 ) ) )",
        "f ( a )",
        "a",
        "( ( a ) )",
    ],
)
def test_prolog_there_and_back(text: str) -> None:
    form = PrologForm()
    symbols = tuple(text.split())
    assert form.written(form.read(symbols)) == symbols
    assert form_of([symbols, ("f", "(", "a", ",", "b", ")")]) == "prolog"


@pytest.mark.parametrize(
    "text", ["( a , )", "( & , a )", "~", "( , a )", "f ( )", "a , b", "( a", "a )", "( A , ? )", "f ( ^0 )"]
)
def test_broken_prolog_is_said(text: str) -> None:
    with pytest.raises(TermError, match="expected"):
        PrologForm().read(text.split())


MISSING = "( lambda $v0 e ( and ( flight $v0 ) ( to $v0 denver : ci ) )"  # a bracket
SWAPPED = "( lambda x e ( and ( to x denver : ci ) ( flight x ) ) )"


def test_lambda_terms_that_mean_the_same_are_learned_as_one() -> None:
    form = LambdaForm()
    one = tuple(MISSING.split())
    other = tuple(SWAPPED.split())
    assert form.is_repaired(one) and not form.is_repaired(other)
    assert form.read(one) == form.read(other)
    assert " ".join(form.written(form.read(one))) == "( lambda $0 e ( and ( flight $0 ) ( to $0 denver : ci ) ) )"
    assert form_of([one, other]) == "lambda"
    assert form.compared(["(", "lambda"]) == ("(", "lambda")  # what cannot be read is compared as it is
    assert form_of([["(", "a", ")"]]) == "brackets"


# --- what may be written --------------------------------------------------------------------------------------


def strings_of(constraint: BracketConstraint, names: list[str], longest: int) -> set[tuple[str, ...]]:
    """All strings that the constraint accepts."""
    found: set[tuple[str, ...]] = set()
    waiting: list[tuple[tuple[str, ...], Hashable]] = [((), constraint.start(0))]
    while waiting:
        prefix, state = waiting.pop()
        if constraint.distance(state) == 1:
            found.add(prefix)
        for symbol, after in constraint.successors(state).items():
            if len(prefix) + constraint.distance(after) <= longest:
                waiting.append(((*prefix, names[symbol]), after))
    return found


def test_a_constrained_lambda_term_always_reads_and_every_term_is_allowed() -> None:
    names = [UNKNOWN, BEGIN, END, "(", ")", "lambda", "$0", "e", "f"]
    arities = {"f": (1, 1), "lambda": (3, 3)}
    constraint = BracketConstraint(tw_vocabulary(names), "lambda", arities, ["$0", "e"], deepest=4)
    found = strings_of(constraint, names, longest=12)
    expected = {string for string in _terms(12, bound=False, may_bind=True) if string.count("lambda") <= 1}
    assert found == expected
    for string in found:
        assert not free_variables(parse_brackets(" ".join(heads_in(string))))


def _terms(room: int, bound: bool, may_bind: bool) -> Iterator[tuple[str, ...]]:
    """All terms of the constants e and f and one variable, in as many symbols."""
    if room >= 1:
        yield ("e",)
        if bound:
            yield ("$0",)
    if room >= 4:
        for inner in _terms(room - 3, bound, may_bind):
            yield ("f", "(", *inner, ")")
    if room >= 6 and may_bind:
        for inner in _terms(room - 5, True, False):
            yield ("lambda", "(", "$0", "e", *inner, ")")


def test_constrained_prolog_refers_to_variables_in_scope_alone() -> None:
    names = [UNKNOWN, BEGIN, END, "(", ")", "&", "?", "^0", "^1", "p"]
    arities = {"p": (2, 2), "&": (1, None), "?": (1, None)}
    constraint = BracketConstraint(tw_vocabulary(names), "prolog", arities, ["?", "^0", "^1"], deepest=9)
    expected = {string for string, _ in _clauses(10, 0)}
    assert ("p", "(", "?", "^0", ")") in expected and ("p", "(", "^0", "?", ")") not in expected
    assert strings_of(constraint, names, longest=10) == expected


Clauses = Iterator[tuple[tuple[str, ...], bool]]  # and whether a variable is new in it


def _clauses(room: int, in_scope: int) -> Clauses:
    """All trees of p with two arguments, conjunctions and variables, in at most as many symbols."""
    if room >= 1:
        yield ("?",), True
        yield from (((f"^{i}",), False) for i in range(min(2, in_scope)))
    for head, inner in (("?", in_scope + 1), ("&", in_scope)):
        for conjuncts in _conjuncts(room - 3, inner):
            yield (head, "(", *conjuncts, ")"), head == "?"
    for first, is_new in _clauses(room - 4, in_scope) if room >= 5 else ():
        for second, _ in _clauses(room - 3 - len(first), in_scope + is_new):
            yield ("p", "(", *first, *second, ")"), False


def _conjuncts(room: int, in_scope: int) -> Iterator[tuple[str, ...]]:
    for first, _ in _clauses(room, in_scope) if room >= 1 else ():
        yield first
        for others in _conjuncts(room - len(first), in_scope):
            yield (*first, *others)


def tw_vocabulary(names: list[str]) -> Any:
    return Vocabulary.from_list(names, unknown=UNKNOWN)


# --- training, storage, commands --------------------------------------------------------------------------------

PLACES = ["river", "city", "lake", "state"]
PAIRS = [pair(f"{ask} the {a} in {b}", f"( A , ( _{a} ( A ) , _loc ( A , {b} ) ) )")
         for a in PLACES for b in ("var0", "var1") for ask in ("show", "what is", "name")]  # fmt: skip


def test_it_learns_a_small_language_and_comes_back_from_disk(tmp_path: Path) -> None:
    config = TreeConfig(word_dim=32, hidden=32, dropout=0.0, word_dropout=0.0, min_count=1, beam=3)
    model = Seq2Tree.from_data(PAIRS, config, seed=1)
    training = TrainingConfig(epochs=25, patience=8, lr=0.01, batch_tokens=60)
    result = train(model, PAIRS, PAIRS[::3], training, out=tmp_path / "m")
    assert result.best_score == 1.0
    loaded: Any = tw.load(tmp_path / "m")
    question = "what is the lake in var1"
    answer = loaded.predict(question, top_k=2)[0]
    assert answer.value == "( A , ( _lake ( A ) , _loc ( A , var1 ) ) )"
    right = loaded.encode([pair(question, answer.value)], with_tags=True)
    assert math.log(answer.probability) == pytest.approx(loaded.log_likelihoods(right).item(), rel=1e-4)
    assert len(answer.alternatives) == 2
    assert answer.alternatives[0].value == answer.value
    assert loaded.form.name == "prolog"
    assert model.predict([question, "river"])[0].value == answer.value


def test_brackets_that_do_not_close_are_said_with_their_place() -> None:
    with pytest.raises(DataError, match=r"pairs.tsv:7: expected every bracket to be closed"):
        Seq2Tree.from_data([pair("a", "( b , c")], TreeConfig(form="prolog"))
    with pytest.raises(TrellisworkError, match="got none"):
        Seq2Tree.from_data([])
    with pytest.raises(TrellisworkError, match="source alone"):
        Seq2Tree.from_data([Sentence(("a",))], TreeConfig(form="brackets"))


def test_a_repaired_target_is_noted() -> None:
    data = [pair("x", "( lambda $0 e ( f $0 )"), pair("y", "( lambda $0 e ( g $0 ) )")]
    model = Seq2Tree.from_data(data, TreeConfig(**SMALL))
    notes = model.notes(data, [])
    assert any("1 target without all closing brackets" in note for note in notes)
    assert any("lambda terms" in note for note in notes)
    assert model.format == PairFormat("blanks", "blanks", "none")
