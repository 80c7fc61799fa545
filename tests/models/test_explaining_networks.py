"""Explanations of networks: votes of words that sum to differences of scores, alternatives against enumeration."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from trelliswork.data import Sentence, VectorSequence
from trelliswork.errors import TrellisworkError
from trelliswork.models import (
    Ensemble,
    FeatureTagger,
    LearningConfig,
    MultiTagger,
    Segmenter,
    Tagger,
    TaggerConfig,
    VectorTagger,
    VectorTaggerConfig,
)
from trelliswork.models.catalogue import ENTRIES
from trelliswork.models.networks.attribution import attribute
from trelliswork.models.votes import TOLERANCE, WITHOUT_WORDS, Reason
from trelliswork.tags.schemes import violations

SMALL: dict[str, Any] = dict(
    word_dim=6, affix_dim=3, hidden=8, column_dim=4, heads=2, layers=1, segment_dim=4, max_length=3, hidden_units=4,
    pretrain_epochs=0, character_dim=4, character_hidden=6, affix_min_count=1, dropout=0.5,
)  # fmt: skip
TRAIN = [
    Sentence(("Ann", "met", "Bob", "Lee"), ("B-PER", "O", "B-PER", "I-PER"), (("N", "V", "N", "N"),)),
    Sentence(("Rome", "is", "old"), ("B-LOC", "O", "O"), (("N", "V", "A"),)),
]
SENTENCE = Sentence(("Bob", "met", "old", "Xanthippe"), features=(("N", "V", "A", "N"),))
NETWORKS = {name: entry for name, entry in ENTRIES.items() if entry.kind in ("Tagger", "Segmenter")}


def wide(model: Any, scale: float = 1.5, seed: int = 1) -> Any:
    """The network with weights that make its scores differ."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * scale / max(parameter.shape[-1], 1) ** 0.5)
    return model


def is_complete(reason: Reason) -> bool:
    total = sum(vote.score for vote in reason.votes)
    slack = TOLERANCE * max(1.0, abs(reason.difference) + 5.0)
    return abs(total - reason.difference) <= min(reason.error + 1e-4, slack)


@pytest.mark.parametrize("name", NETWORKS)
def test_votes_sum_to_the_difference_of_scores(name: str) -> None:
    entry = NETWORKS[name]
    kind: Any = {"Tagger": Tagger, "Segmenter": Segmenter}[entry.kind]
    model = wide(kind.from_data(TRAIN, TaggerConfig(**{**entry.values, **SMALL})))
    (found,) = model.explain([SENTENCE])
    (value,) = model.best_values([SENTENCE], None)
    assert [each.label for each in found.tokens] == model.tag(SENTENCE)
    for i, token in enumerate(found.tokens):
        assert token.reason is not None and is_complete(token.reason)
        others = tuple(tag for tag in model.known_labels if tag != token.label)
        (rival,) = model.best_values([SENTENCE], [{i: others}])
        chain = model.distribution([SENTENCE]) if kind is Tagger else model.segmentations([SENTENCE])
        given = [torch.tensor([each]) if kind is Tagger else [each] for each in (value, rival)]
        difference = float((chain.score(given[0]) - chain.score(given[1])).detach())
        assert token.reason.difference == pytest.approx(difference, abs=1e-3, rel=1e-4)
        assert token.reason.rival == model.tags_of_value(rival, 4)[i] != token.label
    assert model.training  # explaining leaves the network as it was


def test_a_linear_network_is_attributed_exactly() -> None:
    """With a linear score, the share of a word is what it adds to it: weights times the word, the baseline being 0."""
    torch.manual_seed(0)
    config = VectorTaggerConfig(hidden=5, layers=1, activation="relu")
    model = VectorTagger.from_data([VectorSequence(torch.randn(3, 5), ("a", "b", "c"))], config)
    model.encoder = _Linear()  # type: ignore[assignment]
    with torch.no_grad():
        model.scorer.linear.weight.normal_()  # type: ignore[union-attr]
    sequence = VectorSequence(torch.randn(4, 5), None)
    value, rival = [0, 1, 2, 0], [0, 2, 2, 1]
    (found,) = model.attributed(sequence, value, [rival])
    weights = model.scorer.linear.weight.detach()  # type: ignore[union-attr]
    expected = [float((weights[a] - weights[b]) @ x) for a, b, x in zip(value, rival, sequence.vectors, strict=True)]
    assert found.shares[:, 0].tolist() == pytest.approx(expected, abs=1e-5)
    assert found.error < 1e-5 and found.steps == 8
    assert found.difference == pytest.approx(sum(expected) + found.base, abs=1e-4)


class _Linear(nn.Module):
    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return vectors


def test_steps_grow_until_the_integral_is_complete() -> None:
    """|s - 1/3| has a kink that few steps miss; the share of a word without influence is 0."""

    def margins(scales: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        return 40 * (scales[:, 0, 0] - 1 / 3).abs() + which * scales[:, 0, 0] ** 2

    kinked, also = attribute(margins, (2, 1), 2, torch.zeros(()))
    assert kinked.steps > 8 and also.steps > 8
    assert kinked.error <= TOLERANCE * 40 / 3
    assert kinked.shares[0, 0] == pytest.approx(40 / 3, rel=0.03) and kinked.shares[1, 0] == 0


@pytest.mark.parametrize("characters", ["none", "cnn", "lstm"])
def test_every_part_of_a_word_is_counted(characters: str) -> None:
    """Characters, n-grams, columns and attributes of templates all have their share, and their sum is complete."""
    templates = ("U:%x[0,0]", "U:%x[-1,0]/%x[0,0]")
    config = TaggerConfig(**SMALL, characters=characters, ngrams=(3,), templates=templates, encoder="lstm")
    model = wide(Tagger.from_data(TRAIN, config))
    (found,) = model.explain([SENTENCE])
    reason = found.tokens[0].reason
    assert reason is not None and is_complete(reason)
    own = next(vote for vote in reason.votes if vote.words == "word = 'Bob'")
    spelled = {"characters"} if characters != "none" else set()
    assert {"word", "suffix2", "n-grams", "templates"} | spelled == set(own.parts) - {
        "capitals", "prefix2", "prefix3", "prefix4", "suffix3", "suffix4",
    }  # fmt: skip
    assert all(own.parts[name] for name in {"word", "n-grams", *spelled})
    assert sum(own.parts.values()) == pytest.approx(own.score)
    assert {"column 1 = 'N'", "next column 1 = 'V'", WITHOUT_WORDS} <= {vote.words for vote in reason.votes}


def test_columns_have_the_names_of_the_training_data() -> None:
    model = wide(Tagger.from_data(TRAIN, TaggerConfig(**SMALL)))
    model.metrics["data"] = {"format": {"names": ["word", "pos", "tag"], "feature_columns": [2]}}
    (found,) = model.explain([SENTENCE])
    assert found.tokens[1].reason is not None
    assert "previous pos = 'N'" in {vote.words for vote in found.tokens[1].reason.votes}


def test_alternatives_are_those_of_enumeration() -> None:
    model = wide(Tagger.from_data(TRAIN, replace(TaggerConfig(**SMALL), label_scheme="data")))
    (found,) = model.explain([SENTENCE])
    chain, labels = model.distribution([SENTENCE]), list(model.labels.vocabulary)
    every = list(itertools.product(range(len(labels)), repeat=len(SENTENCE)))
    log_probs = chain.log_prob(torch.tensor(every)[:, None])[:, 0].tolist()
    order = sorted(range(len(every)), key=lambda k: -log_probs[k])
    assert [each.value for each in found.best] == [[labels[y] for y in every[k]] for k in order[:3]]
    assert [each.probability for each in found.best] == pytest.approx([math.exp(log_probs[k]) for k in order[:3]])
    best = every[order[0]]
    for i, token in enumerate(found.tokens):
        rival = next(every[k] for k in order if every[k][i] != best[i])
        assert token.reason is not None and token.reason.rival == labels[rival[i]]
        wanted = log_probs[order[0]] - max(log_probs[k] for k in order if every[k][i] != best[i])
        assert token.reason.difference == pytest.approx(wanted, abs=1e-4)
        assert not violations([labels[y] for y in rival], "IOB2")
        shares = {y: sum(math.exp(log_probs[k]) for k in order if every[k][i] == y) for y in range(len(labels))}
        assert {other.label: pytest.approx(other.probability) for other in token.others}.items() <= {
            labels[y]: share for y, share in shares.items()
        }.items()


def test_explaining_is_deterministic_and_needs_no_more_than_words() -> None:
    model = wide(Tagger.from_data([replace(each, features=()) for each in TRAIN], TaggerConfig(**SMALL)))
    torch.manual_seed(5)
    first, again = (str(model.explain("Bob met Ann.")[0]) for _ in range(2))
    assert first == again and "word = 'Bob'" in first and "best answers:" in first
    assert str(model.explain([Sentence(())])[0]) == ""


def test_a_long_sentence_is_explained_where_it_is_least_certain() -> None:
    words = [replace(each, features=()) for each in TRAIN]
    model = wide(Tagger.from_data(words, TaggerConfig(**SMALL)), scale=1.0)
    sentence = Sentence(tuple(f"w{i % 7}" for i in range(600)))
    (found,) = model.explain([sentence])
    explained = [each.probability for each in found.tokens if each.reason is not None]
    others = [each.probability for each in found.tokens if each.reason is None]
    assert 1 <= len(explained) < 20 and len(explained) + len(others) == 600
    assert max(explained) <= min(others) + 1e-6
    said = f"votes: only those of the {len(explained)} least certain of 600 tokens"
    assert said in str(found) and said in found._repr_html_()


def test_words_of_any_script_and_length_are_isolated_in_html() -> None:
    model = wide(Tagger.from_data([replace(each, features=()) for each in TRAIN], TaggerConfig(**SMALL)))
    page = model.explain([Sentence(("\u05e9\u05dc\u05d5\u05dd", "a" * 300, "<b>"))])[0]._repr_html_()
    assert "<bdi>\u05e9\u05dc\u05d5\u05dd</bdi>" in page and "a" * 300 in page
    assert "<b><bdi>&lt;b&gt;</bdi></b>" in page and "<bdi><b>" not in page


def test_several_tasks_explain_each_for_itself() -> None:
    tasks = [replace(each, features=(("N", "V", "N", "N")[: len(each)],)) for each in TRAIN]
    model = wide(MultiTagger.from_data(tasks, ("pos", "ner"), TaggerConfig(**SMALL)))
    (found,) = model.explain([SENTENCE])
    assert list(found.tasks) == ["pos", "ner"] and found.words == list(SENTENCE.words)
    for task, explained in found.tasks.items():
        assert [each.label for each in explained.tokens] == model.tag([SENTENCE.words])[0][task]
        assert all(is_complete(each.reason) for each in explained.tokens if each.reason)
    assert str(found).startswith("pos:\n") and set(json.loads(json.dumps(found.record(3)))["tasks"]) == {"pos", "ner"}


def test_vectors_are_attributed_by_their_place() -> None:
    torch.manual_seed(3)
    model = wide(
        VectorTagger.from_data([VectorSequence(torch.randn(3, 4), ("a", "b", "c"))], VectorTaggerConfig(hidden=6))
    )
    (found,) = model.explain([VectorSequence(torch.randn(5, 4), None)])
    assert found.words == ["1", "2", "3", "4", "5"]
    for token in found.tokens:
        assert token.reason is not None and is_complete(token.reason)
        assert WITHOUT_WORDS in {vote.words for vote in token.reason.votes}
    assert model.explain([VectorSequence(torch.zeros(0, 4), None)])[0].tokens == ()


def test_an_ensemble_has_the_mean_votes_of_its_members() -> None:
    members = [wide(Tagger.from_data(TRAIN, TaggerConfig(**SMALL)), seed=seed) for seed in (1, 2)]
    model = Ensemble(members)
    (found,) = model.explain([SENTENCE])
    (value,) = model.best_values([SENTENCE], None)
    assert model.explains and [each.label for each in found.tokens] == model.tag(SENTENCE)
    others = tuple(tag for tag in model.known_labels if tag != found.tokens[0].label)
    (rival,) = model.best_values([SENTENCE], [{0: others}])
    chains = [each.distribution([SENTENCE]) for each in members]
    means = [sum(float(chain.score(torch.tensor([y]))) for chain in chains) / 2 for y in (value, rival)]
    reason = found.tokens[0].reason
    assert reason is not None and reason.difference == pytest.approx(means[0] - means[1], abs=1e-3)
    assert is_complete(reason)
    features = Ensemble([FeatureTagger.fit(TRAIN, LearningConfig(max_iterations=2))] * 2)
    assert not features.explains
    with pytest.raises(
        TrellisworkError, match=r"expected an ensemble of networks .* got FeatureTagger; explain a member"
    ):
        features.explain([SENTENCE])


def shares_of(reason: Reason) -> Sequence[float]:
    return np.array([vote.score for vote in reason.votes]).tolist()


def test_records_are_plain_values() -> None:
    model = wide(Tagger.from_data(TRAIN, TaggerConfig(**SMALL)))
    (found,) = model.explain([SENTENCE])
    record = json.loads(json.dumps(found.record(2)))
    first, reason = record["votes"][0], found.tokens[0].reason
    assert reason is not None
    assert len(first["votes"]) == 2 and first["more"] == len(reason.votes) - 2
    assert first["score"] == reason.difference and first["rival"] == reason.rival and first["rival_votes"] == []
    assert first["votes"][0]["score"] == shares_of(reason)[0]
    assert record["best"][0]["value"] == model.tag(SENTENCE)
