"""The neural edit transducer as a model: it learns, copies what it never saw, aligns, and answers as it says."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

import trelliswork as tw
from trelliswork.data import PairFormat, Sentence
from trelliswork.models.transducers.config import EditConfig
from trelliswork.models.transducers.edit import EditTransducer
from trelliswork.training import TrainingConfig, train

SMALL = EditConfig(symbol_dim=16, hidden=24, cell_dim=24, dropout=0.1, unknown_dropout=0.1)
FORMAT = PairFormat("characters", "characters", "none")


def plural(word: str) -> str:
    """Copies, substitutions, insertions and deletions."""
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word[:-1] + "s" if word.endswith("e") else word + "s"


def pairs(n: int, seed: int) -> list[Sentence]:
    drawn = random.Random(seed)
    words = ("".join(drawn.choices("abdey", k=drawn.randint(1, 5))) for _ in range(n))
    return [Sentence(tuple(word), target=tuple(plural(word))) for word in words]


def trained(config: EditConfig, epochs: int = 12) -> EditTransducer:
    model = EditTransducer.from_data(pairs(150, 0), config, format=FORMAT)
    train(model, pairs(150, 0), None, TrainingConfig(epochs=epochs, batch_tokens=120, lr=0.01))
    return model


@pytest.fixture(scope="module")
def model() -> EditTransducer:
    return trained(SMALL)


def test_it_learns(model):
    assert model.evaluate(pairs(60, 1))["word_error_rate"] < 0.05


def test_one_path_learns_too():
    assert trained(replace(SMALL, paths="best")).evaluate(pairs(40, 1))["word_error_rate"] < 0.1


def test_symbols_that_were_never_seen_are_copied(model):
    assert [answer.value for answer in model.predict(["aZda", "bÄdÖa"])] == ["aZdas", "bÄdÖas"]


def test_without_copies_they_are_not():
    assert "Z" not in trained(replace(SMALL, copy=False), epochs=2).predict("aZda")[0].value


def test_alternatives_have_their_exact_probabilities(model):
    answer = model.predict("bay", top_k=4)[0]
    assert len({each.value for each in answer.alternatives}) == 4
    given = [Sentence(tuple("bay"), target=tuple(each.value)) for each in answer.alternatives]
    exact = [math.exp(each) for each in model.log_probs(given)]
    assert [each.probability for each in answer.alternatives] == pytest.approx(exact, rel=1e-4)
    assert exact == sorted(exact, reverse=True)
    assert model.predict("bay")[0].value == answer.value == "baies"


def test_answers_do_not_depend_on_the_batch(model):
    words = ["a", "deby", "ye", "bbbbb"]
    alone = [model.predict(word)[0] for word in words]
    together = model.predict(words)
    assert [each.value for each in together] == [each.value for each in alone]
    assert [each.probability for each in together] == pytest.approx([each.probability for each in alone], rel=1e-4)


def test_symbols_are_aligned(model):
    parts = model.predict("bay")[0].parts
    assert "".join(part.label for part in parts) == "baies"
    assert [(part.start, part.end) for part in parts[:2]] == [(0, 1), (1, 2)]
    assert all(0 <= part.start <= part.end <= 3 and 0 < part.probability <= 1 for part in parts)
    shares = math.prod(part.probability for part in parts)
    assert model.predict("bay")[0].probability <= shares <= 1


def test_posteriors_of_alignments(model):
    found = model.alignments([Sentence(tuple("bad"), target=tuple("bads"))])
    marginals = found.marginals[0]
    written = marginals[..., 0].sum(0) + marginals[..., 2].sum(0)
    assert written[1:].tolist() == pytest.approx([1.0] * 4)  # each symbol is written once
    assert found.pair_probability(0, 0).item() > 0.9


def test_a_target_that_nothing_can_write(model):
    given = [Sentence(("a",), target=("?",)), Sentence(("?",), target=("?", "s"))]
    impossible, possible = model.log_probs(given)
    assert impossible == -math.inf
    assert -10 < possible < 0


def test_a_stored_model_answers_the_same(model, tmp_path):
    model.save(tmp_path / "model")
    again = tw.load(tmp_path / "model")
    assert again.predict("dab")[0] == model.predict("dab")[0]


def test_a_long_source(model):
    word = "ab" * 300 + "y"
    assert len(model.predict(word)[0].value) > 500
