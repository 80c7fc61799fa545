"""What feature models answer without torch is what the distribution answers."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.data import Sentence
from trelliswork.data.attributes import Templates
from trelliswork.models import FeatureTagger, LearningConfig
from trelliswork.models.taggers.posterior import confidences_of

TRAIN = [
    Sentence(("Ann", "Lee", "saw", "Paris", "Rome"), ("B-PER", "I-PER", "O", "B-LOC", "B-LOC")),
    Sentence(("Bob", "ran"), ("B-PER", "O")),
    Sentence(("Rome",), ("B-LOC",)),
    Sentence(("New", "York", "State", "saw", "Bob", "Ann"), ("B-LOC", "I-LOC", "I-LOC", "O", "B-PER", "I-PER")),
]
IOB1 = [Sentence(each.words, tuple(tag.replace("B-", "I-") for tag in each.tags or ())) for each in TRAIN[1:3]] + [
    Sentence(("Ann", "Bob", "Lee", "ran"), ("I-PER", "B-PER", "I-PER", "O"))
]
TEMPLATES = ["U0:%x[0,0]", "U1:%x[-1,0]", "B"]


@pytest.mark.parametrize("train", [TRAIN, IOB1], ids=["IOB2", "IOB1"])
@pytest.mark.parametrize(
    ("settings", "more"),
    [
        (dict(), []),
        (dict(model="memm"), []),
        (dict(model="logistic"), []),
        (dict(model="hmm"), []),
        (dict(hidden_units=3), []),
        (dict(), ["B1:%x[0,0]"]),
    ],
    ids=["crf", "memm", "logistic", "hmm", "hidden units", "pairs"],
)
def test_the_same_answers(train: list[Sentence], settings: dict[str, object], more: list[str]) -> None:
    config = LearningConfig(max_iterations=None if settings.get("model") == "hmm" else 4, **settings)  # type: ignore[arg-type]
    tagger = FeatureTagger.fit(train, config, templates=Templates.parse(TEMPLATES + more))
    rows = tagger.rows(train)
    own, full = tagger.crf.array_chain(rows), tagger.crf.chain(rows)
    for row, length in enumerate(rows.lengths):
        np.testing.assert_array_equal(own.argmax[row, :length], full.argmax[row, :length])
        np.testing.assert_allclose(own.marginals[row, :length], full.marginals[row, :length], atol=1e-12)
    names = tagger.labels.vocabulary.to_list()
    spans = [
        [(i, j, kind) for kind in ("PER", "LOC") for i in range(n) for j in range(i + 1, n + 1)] for n in rows.lengths
    ]
    found = own.span_probabilities(spans, tags=names, scheme=tagger.labels.scheme)
    wanted = full.span_probabilities(spans, tags=names, scheme=tagger.labels.scheme)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    for sure, same in zip(tagger.confidences(train), confidences_of(full, tagger.labels, train), strict=True):
        assert sure.tags == same.tags and sure.tokens == pytest.approx(same.tokens)


@pytest.mark.parametrize("settings", [dict(latent=2), dict(order=2), dict(samples=2)])
def test_states_that_are_not_labels_have_distributions(settings: dict[str, int]) -> None:
    tagger = FeatureTagger.fit(TRAIN, LearningConfig(max_iterations=4, **settings))  # type: ignore[arg-type]
    assert not tagger.crf.has_array_chain
    assert [each.tags for each in tagger.confidences(TRAIN)] == tagger.tag(TRAIN)
