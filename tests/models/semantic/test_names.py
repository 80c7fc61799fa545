"""The lexicon of names: what it learns, what it leaves alone, and networks whose names are open."""

from __future__ import annotations

import random
from pathlib import Path

import torch

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.models.transducers.semantic.config import TreeConfig
from trelliswork.models.transducers.semantic.names import NameLexicon, constants_of, is_open_name
from trelliswork.models.transducers.semantic.seq2tree import Seq2Tree
from trelliswork.training.config import TrainingConfig
from trelliswork.training.loop import train

AIRLINES = {"american": "aa:al", "delta": "dl:al", "united": "ua:al"}
CITIES = ("boston", "denver", "san francisco", "new york", "salt lake city")


def symbols(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def question(rng: random.Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    airline, (start, end) = rng.choice(list(AIRLINES)), rng.sample(CITIES, 2)
    polite = "may i have " if rng.random() < 0.5 else "show "
    day = rng.choice(["", " in may", " in all"])
    tree = f"and ( airline:e ( $0 {AIRLINES[airline]} ) from ( $0 {start.replace(' ', '_')}:ci )"
    tree += f" to ( $0 {end.replace(' ', '_')}:ci ){' month ( $0 may:mn )' if 'may' in day else ''} )"
    return symbols(f"{polite}{airline} flights from {start} to {end}{day}"), symbols(tree)


def drawn(n: int, seed: int = 0) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    rng = random.Random(seed)
    return [question(rng) for _ in range(n)]


def test_phrases_name_constants_as_they_are_spelled_or_as_they_occur_together() -> None:
    lexicon = NameLexicon.learned(drawn(300))
    expected = {tuple(city.split()): f"{city.replace(' ', '_')}:ci" for city in CITIES}
    expected |= {(word,): constant for word, constant in AIRLINES.items()}
    assert lexicon.phrases == expected | {("in", "may"): "may:mn"}  # "may" alone is polite too often
    assert NameLexicon.from_stored(lexicon.stored()).phrases == lexicon.phrases


def test_a_phrase_beside_a_name_does_not_take_its_place() -> None:
    """Both questions with "cheap" are about boston, which its own name explains."""
    pairs = [(symbols("cheap boston flights"), symbols("to ( $0 boston:ci )"))] * 2
    assert NameLexicon.learned(pairs).phrases == {("boston",): "boston:ci"}


def test_heads_with_a_kind_are_no_constants() -> None:
    assert constants_of(symbols("= ( airline:e ( $0 ) ua:al )")) == {"ua:al"}
    assert constants_of(symbols("dfw:ap")) == {"dfw:ap"}
    assert constants_of(symbols("f ( : $0 a: :b )")) == set()


def test_open_names_are_numbered_by_kind_and_closed_again() -> None:
    lexicon = NameLexicon({("new", "york"): "new_york:ci", ("york",): "york:ci", ("delta",): "dl:al"})
    words = symbols("delta from new york to york or new york")
    opened = lexicon.opened(words)
    assert opened.words == ("al0", "from", "ci0", "to", "ci1", "or", "ci0")
    assert opened.names == {"al0": "dl:al", "ci0": "new_york:ci", "ci1": "york:ci"}
    assert [" ".join(words[slice(*opened.span(i))]) for i in range(7)] == [
        "delta", "from", "new york", "to", "york", "or", "new york",
    ]  # fmt: skip
    tree = symbols("and ( from ( $0 new_york:ci ) to ( $0 york:ci ) stop ( $0 denver:ci ) )")
    assert opened.tree(tree) == symbols("and ( from ( $0 ci0 ) to ( $0 ci1 ) stop ( $0 denver:ci ) )")
    assert opened.closed(opened.tree(tree)) == tree
    assert NameLexicon({}).opened(words).words == words


def pair(question: str, target: str) -> Sentence:
    return Sentence(tuple(question.split()), target=tuple(target.split()))


def pairs_of(n: int, seed: int) -> list[Sentence]:
    found = []
    for words, tree in drawn(n, seed):
        text = " ".join(tree).replace("and (", "( lambda $0 e ( and", 1) + " )"
        for name in ("airline:e", "from", "to", "month"):
            text = text.replace(f" {name} (", f" ( {name}")
        found.append(Sentence(tuple(words), target=tuple(text.split())))
    return found


def test_a_network_learns_names_that_it_has_rarely_seen(tmp_path: Path) -> None:
    pairs = [each for each in pairs_of(100, 1) if each.words[-1] != "may"]
    config = TreeConfig(word_dim=16, hidden=32, dropout=0.0, word_dropout=0.0, min_count=1)
    model = Seq2Tree.from_data(pairs, config, seed=0)
    assert "ci1" in model.target and "boston:ci" not in model.target
    learning = TrainingConfig(epochs=7, patience=7, batch_tokens=200, bucket=10, lr=0.01, decay="constant")
    train(model, pairs, pairs[-20:], learning, out=tmp_path / "model")
    model = tw.load(tmp_path / "model")
    test = [each for each in pairs_of(60, 2) if each.words[-1] != "may"]
    assert model.evaluate(test)["exact match"] == 1.0
    answer = model.predict("show delta flights from salt lake city to new york")[0]
    assert "from $0 salt_lake_city : ci" in answer.value and "to $0 new_york : ci" in answer.value
    units = model.lexicon.opened(answer.inputs).places
    assert {range(part.start, part.end) for part in answer.parts} <= set(units)  # whole names
    assert "salt_lake_city:ci" in [part.label for part in answer.parts]


def test_conjuncts_are_in_the_order_of_open_names() -> None:
    pairs = [
        pair("from boston or denver", "( lambda $0 e ( or ( from $0 boston : ci ) ( from $0 denver : ci ) ) )"),
        pair("from denver or boston", "( lambda $0 e ( or ( from $0 boston : ci ) ( from $0 denver : ci ) ) )"),
    ]
    model = Seq2Tree.from_data(pairs, TreeConfig(min_count=1))
    first, second = model.encode(pairs, with_tags=True)
    assert first.target is not None and second.target is not None
    assert first.target.tolist() == second.target.tolist()


def test_names_that_a_question_lacks_are_not_written() -> None:
    pairs = pairs_of(60, 1)
    config = TreeConfig(word_dim=4, hidden=4, min_count=1, beam=8)
    model = Seq2Tree.from_data(pairs, config, seed=0).eval()  # never trained: all symbols are about as probable
    with torch.no_grad():
        found = model.transduced([("show", "flights"), ("delta", "to", "boston")], 8, sure=False)
    kinds = model.lexicon.kinds
    assert not any(is_open_name(symbol, kinds) for each in found for tree, _ in each.best for symbol in tree)
    assert len(found[0].best) > 4


def test_names_are_kept_on_request() -> None:
    model = Seq2Tree.from_data(pairs_of(60, 1), TreeConfig(open_names=False))
    assert "boston:ci" in model.target and not model.lexicon.phrases
