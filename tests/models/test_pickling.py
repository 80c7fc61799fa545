"""Networks travel as Python objects: pickle, torch.save and the arguments of another process."""

from __future__ import annotations

import io
import multiprocessing
import pickle
from typing import Any

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.models import MultiTagger, Segmenter, Tagger, TaggerConfig

SENTENCES = [
    Sentence(("Jan", "lives", "in", "Gent"), ("B-PER", "O", "O", "B-LOC")),
    Sentence(("Ann", "Lee"), ("B-PER", "I-PER")),
] * 2
SMALL: dict[str, Any] = dict(word_dim=2, hidden=4, affix_dim=2)
MODELS = {
    "characters": lambda: Tagger.from_data(SENTENCES, TaggerConfig(encoder="lstm", characters="cnn", **SMALL)),
    "templates": lambda: Tagger.from_data(SENTENCES, TaggerConfig(templates=("default",), ngrams=(3,), **SMALL)),
    "segments": lambda: Segmenter.from_data(SENTENCES, TaggerConfig(segment_dim=4, max_length=2, **SMALL)),
    "tasks": lambda: MultiTagger.from_data(
        [Sentence(each.words, each.tags, (each.tags or (),)) for each in SENTENCES],
        ("one", "two"),
        TaggerConfig(**SMALL),
    ),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]()


def test_a_copy_gives_the_same_answers(model: Any) -> None:
    model.predict(SENTENCES)  # what is remembered of words stays behind
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(model)), torch.load(file, weights_only=False)):
        assert copy.predict([["Jan"], ["Gent"]]) == model.predict([["Jan"], ["Gent"]])


def test_a_network_goes_through_spawn() -> None:
    tagger = MODELS["characters"]()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(tagger.tag, ([["Jan"], ["Gent"]],)) == tagger.tag([["Jan"], ["Gent"]])


def test_words_stand_for_sentences_in_every_question() -> None:
    tagger = MODELS["characters"]()
    words, sentences = [["Jan"], ["Gent", "Jan"]], [Sentence(("Jan",)), Sentence(("Gent", "Jan"))]
    assert tagger.predict(words) == tagger.predict(sentences)
    assert tagger.confidences(words) == tagger.confidences(sentences)
    assert tagger.analyses(words) == tagger.analyses(sentences)
    assert tagger.spans(words) == tagger.spans(sentences)
    assert tagger.distribution(words).log_partition.equal(tagger.distribution(sentences).log_partition)
    assert tagger.tag(each for each in words) == tagger.tag(sentences)
