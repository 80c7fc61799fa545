"""Expected numbers of parts with error bars: every analysis listed with its probability is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.models.test_span_parser import TRAIN as BRACKETS
from tests.models.test_transition_parser import TRAIN as ARCS
from trelliswork.data import Sentence
from trelliswork.data.brackets import sentence_of
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models import Ensemble, FeatureTagger, LearningConfig, MultiTagger, Segmenter, Tagger, TaggerConfig
from trelliswork.models.base import Answer
from trelliswork.models.expected_counts import ExpectedCount, total_counts
from trelliswork.models.parsers.constituency.config import SpanConfig
from trelliswork.models.parsers.constituency.span_cky import SpanParser
from trelliswork.models.parsers.dependency.biaffine import BiaffineParser
from trelliswork.models.parsers.dependency.config import ParserConfig
from trelliswork.tags.schemes import convert, spans_of

IOB2 = [
    Sentence(("Ann", "Lee", "met", "Bob"), ("B-PER", "I-PER", "O", "B-PER")),
    Sentence(("Rome", "won"), ("B-LOC", "O")),
    Sentence(("Ann",), ("B-PER",)),
]
IOB1 = [replace(each, tags=tuple(convert(each.tags or (), "IOB2", "IOB1"))) for each in IOB2]
UNTYPED = [replace(each, tags=tuple(tag[0] for tag in each.tags or ())) for each in IOB2]
PLAIN = [Sentence(("Ann", "met", "Bob"), ("N", "V", "N")), Sentence(("so",), ("A",))]
SMALL = TaggerConfig(word_dim=4, hidden=4, affix_dim=2, max_length=3, segment_dim=3)
BARE: dict[str, Any] = dict(encoder="lstm", hidden=3, word_dim=3, prefix_lengths=(), suffix_lengths=())
ALL = 300  # more than there are: probabilities add up to one


def random(model: Any, size: float = 1.0) -> Any:
    """A network with weights for which no two analyses are alike."""
    generator = torch.Generator().manual_seed(5)
    for each in model.parameters():
        noise = size * torch.randn(each.shape, generator=generator)
        each.data += noise.where(each.data > -1e4, torch.zeros(()))
    return model


def feature_crf(sentences: list[Sentence], **settings: Any) -> FeatureTagger:
    tagger = FeatureTagger.fit(sentences, LearningConfig(max_iterations=2, c2=0.5, **settings))
    tagger.crf.weights[:] = torch.randn(len(tagger.crf.weights), generator=torch.Generator().manual_seed(3)).numpy()
    return tagger


def few(sentences: list[Sentence]) -> list[Sentence]:
    """Those with so few words that all trees of them are soon listed."""
    return [each for each in sentences if len(each) <= 3][:2]


MODELS: dict[str, Callable[[], tuple[Any, list[Sentence]]]] = {
    "crf": lambda: (feature_crf(IOB2), IOB2),
    "crf, illegal tags": lambda: (feature_crf(IOB2, constrained=False), IOB2),
    "crf, IOB1": lambda: (feature_crf(IOB1, constrained=False), IOB1),
    "crf, no types": lambda: (feature_crf(UNTYPED, constrained=False), UNTYPED),
    "crf, tags": lambda: (feature_crf(PLAIN), PLAIN),
    "crf, order 2": lambda: (feature_crf(IOB2, order=2, constrained=False), IOB2),
    "memm": lambda: (feature_crf(IOB2, model="memm"), IOB2),
    "bilstm-crf": lambda: (random(Tagger.from_data(IOB2, SMALL)), IOB2),
    "bilstm-crf, IOB1": lambda: (random(Tagger.from_data(IOB1, SMALL)), IOB1),
    "bilstm-crf, labels as tags": lambda: (random(Tagger.from_data(IOB2, replace(SMALL, label_scheme="data"))), IOB2),
    "bilstm-crf, tags": lambda: (random(Tagger.from_data(PLAIN, SMALL)), PLAIN),
    "ensemble": lambda: (Ensemble([random(Tagger.from_data(IOB2, SMALL, seed=i), 0.3 + i) for i in (0, 1)]), IOB2),
    "segmenter": lambda: (random(Segmenter.from_data(IOB2, SMALL)), IOB2),
    "biaffine": lambda: (
        random(BiaffineParser.from_data(ARCS, ParserConfig(**BARE, arc_dim=3, label_dim=2), seed=1)),
        few(ARCS),
    ),
    "span-cky": lambda: (random(SpanParser.from_data(BRACKETS, SpanConfig(**BARE, span_dim=3)), 0.3), few(BRACKETS)),
}


def parts_of(answer: Answer, value: Any, scheme: str) -> list[str]:
    """The labels of the parts of a value."""
    if answer.has_brackets:
        return [label for _, _, label in sentence_of(value).brackets]
    if answer.has_arcs:
        return [label for _, label in value]
    return value if scheme == "plain" else [kind for _, _, kind in spans_of(value, scheme)]


def moments(answer: Answer, label: str, scheme: str) -> tuple[float, float]:
    """Mean and variance of how often a label occurs, over all analyses."""
    pairs = [(each.probability, parts_of(answer, each.value, scheme).count(label)) for each in answer.alternatives]
    assert sum(p for p, _ in pairs) == pytest.approx(1.0, abs=1e-5)
    mean = sum(p * n for p, n in pairs)
    return mean, sum(p * (n - mean) ** 2 for p, n in pairs)


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_of_all_analyses(name: str) -> None:
    model, sentences = MODELS[name]()
    found = model.expected_counts(sentences)
    assert model.counts_parts and len(found) == len(sentences)
    for i, answer in enumerate(model.predict(sentences, top_k=ALL, confidence=False)):
        assert len(found[i]) > 1 or name == "crf, no types"
        for each in found[i]:
            expected = moments(answer, each.label, model.scheme)
            assert (each.mean, each.variance) == pytest.approx(expected, abs=1e-4), (i, each)
        spread = [each.variance for each in found[i]]
        assert max(spread) > 1e-3, "a count that is certain tests nothing"


@pytest.mark.parametrize("name", ["crf", "segmenter", "biaffine"])
def test_pins_are_kept(name: str) -> None:
    model, sentences = MODELS[name]()
    known = (0, model.labels[0]) if name == "biaffine" else "B-LOC"
    given, pins = sentences[:2], [{0: known}, {}]
    found, free = model.expected_counts(given, pins=pins), model.expected_counts(given)
    answer = model.predict(given, top_k=ALL, pins=pins, confidence=False)[0]
    for each in found[0]:
        assert (each.mean, each.variance) == pytest.approx(moments(answer, each.label, model.scheme), abs=1e-4)
    assert [each.mean for each in found[0]] != pytest.approx([each.mean for each in free[0]], abs=1e-3)
    assert [each.mean for each in found[1]] == pytest.approx([each.mean for each in free[1]], abs=1e-5)


def test_counts_are_those_of_samples() -> None:
    tagger, sentences = MODELS["bilstm-crf"]()
    (total,) = total_counts(tagger.expected_counts(sentences, ["PER"]))
    chain, n = tagger.distribution(sentences), 20_000
    drawn = torch.zeros(n)
    for i, each in enumerate(sentences):
        values = chain.sample((n,), torch.Generator().manual_seed(7 + i))[:, i, : len(each)]
        rows, numbers = values.unique(dim=0, return_inverse=True)
        spans = [spans_of(tagger.labels.tags(row), "IOB2") for row in rows.tolist()]
        drawn += torch.tensor([sum(kind == "PER" for _, _, kind in row) for row in spans])[numbers]
    assert float(drawn.mean()) == pytest.approx(total.mean, abs=5 * total.deviation / n**0.5)
    assert float(drawn.std()) == pytest.approx(total.deviation, rel=0.05)


def test_inputs_are_independent_and_empty_ones_have_nothing() -> None:
    tagger, sentences = MODELS["crf"]()
    rows = tagger.expected_counts([*sentences, Sentence(())], ["LOC", "PER"])
    assert rows[-1] == [ExpectedCount("LOC", 0.0, 0.0), ExpectedCount("PER", 0.0, 0.0)]
    loc, per = total_counts(rows)
    assert (loc.label, per.label) == ("LOC", "PER")
    assert per.mean == pytest.approx(sum(row[1].mean for row in rows))
    assert per.deviation**2 == pytest.approx(sum(row[1].variance for row in rows))
    assert total_counts([]) == []


def test_what_cannot_be_counted_is_said() -> None:
    tagger, sentences = MODELS["crf"]()
    with pytest.raises(ConstraintError, match="no answer agrees with the pins"):
        tagger.expected_counts(sentences, pins=[{}, {0: "I-PER"}, {}])
    with pytest.raises(TrellisworkError, match="expected one of the labels PER, LOC; got 'PERS'; did you mean PER"):
        tagger.expected_counts(sentences, ["PERS"])
    tasks = [Sentence(each.words, each.tags, (("X",) * len(each),)) for each in IOB2]
    several = MultiTagger.from_data(tasks, ("pos", "ner"), SMALL)
    assert not several.counts_parts
    with pytest.raises(TrellisworkError, match="an exact distribution over its answers, such as a CRF; got a MultiT"):
        several.expected_counts(tasks)


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (12.34, 1.1, "12.3 +- 1.1 X"),
        (3, 0, "3 +- 0 X"),
        (150.2, 11.9, "150 +- 12 X"),
        (0.002, 0.0447, "0.002 +- 0.045 X"),
    ],
)
def test_as_many_digits_as_the_error_bar_bears(mean: float, deviation: float, text: str) -> None:
    assert str(ExpectedCount("X", mean, deviation**2)) == text
