"""MultiTagger: heads on one encoder learn together, answer as taggers do, save and load."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import DataError, ModelError, TrellisworkError
from trelliswork.models import MultiTagger, TaggerConfig
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

TASKS = ("pos", "chunk")


@pytest.fixture(scope="module")
def fitted(sentences: list[Sentence], config: TaggerConfig) -> MultiTagger:
    tagger = MultiTagger.from_data(sentences, TASKS, config, seed=1)
    train(tagger, sentences, sentences, TrainingConfig(epochs=25, batch_tokens=20, lr=0.02), progress=Progress())
    return tagger


def test_learns_all_tasks(fitted: MultiTagger, sentences: list[Sentence]) -> None:
    expected = [{"pos": list(each.features[0]), "chunk": list(each.tags or ())} for each in sentences]
    assert fitted.tag(sentences) == expected
    scores = fitted.evaluate(sentences)
    assert scores["score"] == 1 and scores["tasks"]["pos"]["metric"] == "accuracy"
    assert scores["tasks"]["chunk"]["metric"] == "f1"


def test_text_and_words_are_one_sentence(fitted: MultiTagger, sentences: list[Sentence]) -> None:
    words = sentences[0].words
    (expected,) = fitted.tag([Sentence(words)])
    assert fitted.tag(" ".join(words)) == fitted.tag(list(words)) == fitted.tag(sentences[0]) == expected


def test_vectors_are_read_beside_the_words(sentences: list[Sentence], config: TaggerConfig) -> None:
    words = sorted({word.lower() for sentence in sentences for word in sentence.words})
    vectors = WordVectors(tuple(words), torch.eye(len(words), 3).numpy())
    tagger = MultiTagger.from_data(sentences, TASKS, config, vectors=vectors)
    table = tagger.first.inputs.lookup.tables[tagger.features.names.index("vector")]
    assert isinstance(table, torch.nn.Embedding) and tagger.config.vector_dim == 3
    assert table.weight[2:].tolist() == vectors.matrix.tolist()
    assert tagger.features.coverage(sentences) == 1


def test_the_loss_is_the_sum_of_those_of_the_heads(fitted: MultiTagger, sentences: list[Sentence]) -> None:
    fitted.eval()
    pos = fitted.heads["pos"].loss([Sentence(each.words, each.features[0]) for each in sentences])
    chunk = fitted.heads["chunk"].loss([Sentence(each.words, each.tags) for each in sentences])
    torch.testing.assert_close(fitted.loss(sentences), pos + chunk)


def test_every_task_teaches_the_one_encoder(sentences: list[Sentence], config: TaggerConfig) -> None:
    tagger = MultiTagger.from_data(sentences, TASKS, config).eval()
    assert tagger.heads["pos"].encoder is tagger.heads["chunk"].encoder
    parameters = list(tagger.first.encoder.parameters())
    whole = torch.autograd.grad(tagger.loss(sentences), parameters)
    by_head = [
        torch.autograd.grad(tagger.heads[task].loss([Sentence(s.words, tags(s)) for s in sentences]), parameters)
        for task, tags in (("pos", lambda s: s.features[0]), ("chunk", lambda s: s.tags))
    ]
    for found, pos, chunk in zip(whole, *by_head, strict=True):
        torch.testing.assert_close(found, pos + chunk)


def test_saves_shared_weights_once_and_loads(fitted: MultiTagger, sentences: list[Sentence], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    fitted.save(folder)
    loaded = MultiTagger.load(folder)
    assert loaded.tag(sentences) == fitted.tag(sentences)
    assert loaded.tasks == TASKS
    assert (folder / "weights.safetensors").stat().st_size < 4.5 * fitted.n_parameters + 4000
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"pos": {', '"pos": {"labels": ["N"], "scheme": "plain"}, "x": {'))
    with pytest.raises(ModelError, match=r"config\.json"):
        MultiTagger.load(folder)


def test_a_head_answers_as_a_tagger_does(fitted: MultiTagger, sentences: list[Sentence]) -> None:
    found = fitted.heads["chunk"].confidences([Sentence(sentences[0].words)])[0]
    assert found.tags == list(sentences[0].tags or ())
    assert all(0 < confidence <= 1 for confidence in found.tokens)


def test_wrong_input_is_explained(sentences: list[Sentence], config: TaggerConfig) -> None:
    with pytest.raises(DataError, match=r"expected 3 columns of tags \(a, b, c\) in addition to the word, got 2"):
        MultiTagger.from_data(sentences, ("a", "b", "c"), config)
    with pytest.raises(TrellisworkError, match="tasks must be different names"):
        MultiTagger.from_data(sentences, ("a", "a"), config)
    with pytest.raises(TrellisworkError, match="got none"):
        MultiTagger.from_data([], TASKS, config)
