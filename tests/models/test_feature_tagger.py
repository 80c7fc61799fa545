"""A feature tagger from sentences to disk and back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from trelliswork.data import Sentence
from trelliswork.data.attributes import Templates
from trelliswork.data.corpus import builtin_corpus
from trelliswork.errors import DataError, ModelError, ScoreError
from trelliswork.models.taggers.features.learners.base import Progress
from trelliswork.models.taggers.features.learners.config import ALGORITHMS, Algorithm, LearningConfig
from trelliswork.models.taggers.features.recipe import DevScores
from trelliswork.models.taggers.features.tagger import FeatureTagger, strongest
from trelliswork.tags.schemes import violations

CORPUS = builtin_corpus(sizes=(400, 100, 1))
TRAIN, TEST = ([Sentence(x.words, x.chunks, (x.pos,)) for x in CORPUS[part]] for part in ("train", "dev"))


@pytest.fixture(scope="module")
def tagger() -> FeatureTagger:
    return FeatureTagger.fit(TRAIN)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_learns_the_corpus(algorithm: Algorithm) -> None:
    found = FeatureTagger.fit(TRAIN, LearningConfig(algorithm, max_iterations=10))
    assert found.evaluate(TEST)["score"] > 0.8


@pytest.mark.parametrize("config", [LearningConfig(), LearningConfig(hidden_units=4)])
def test_while_it_learns_its_scores_are_those_of_evaluate(config: LearningConfig) -> None:
    """Though the attributes of the sentences are made once."""
    dev = [*TEST[:20], Sentence((), (), ((),)), *TEST[20:]]
    scores, found = DevScores(dev), list[float]()

    def told(progress: Progress, tagger: FeatureTagger) -> bool:
        assert scores.of(tagger) == tagger.evaluate(dev)
        found.append(scores.of(tagger)["score"])
        return progress.iteration == 6

    FeatureTagger.fit(TRAIN, config, on_progress=told)
    assert len(set(found)) > 2


def test_saved_and_loaded_it_answers_the_same(tagger: FeatureTagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert again.tag(TEST) == tagger.tag(TEST)
    assert again.confidences(TEST[:3]) == tagger.confidences(TEST[:3])
    assert list(strongest(again, 5)) == list(strongest(tagger, 5))
    assert list(again.names) == list(tagger.names)
    assert len(again.names) == len(again.crf.index)


def test_names_belong_to_their_weights(tagger: FeatureTagger) -> None:
    from trelliswork.data.attributes.key_index import keys_of

    assert tagger.crf.index.find(keys_of(tagger.names)).tolist() == list(range(len(tagger.names)))


def test_sparse_models_are_small() -> None:
    dense, sparse = (
        FeatureTagger.fit(TRAIN),
        FeatureTagger.fit(TRAIN, LearningConfig(c1=1.0, c2=0.0, max_iterations=60)),
    )
    assert sparse.n_parameters < dense.n_parameters / 5
    assert sparse.evaluate(TEST)["score"] > 0.8


def test_pins_and_alternatives(tagger: FeatureTagger) -> None:
    sentence = TEST[0]
    best, second = tagger.analyses([sentence], 2)[0]
    assert best.probability >= second.probability > 0
    tag = second.tags[next(i for i, (a, b) in enumerate(zip(best.tags, second.tags, strict=True)) if a != b)]
    place = next(i for i, (a, b) in enumerate(zip(best.tags, second.tags, strict=True)) if a != b)
    assert tagger.tag([sentence], [{place: tag}])[0][place] == tag
    assert tagger.tag([Sentence(()), sentence])[0] == []


def test_progress_may_end_it() -> None:
    seen = list[int]()

    def look(progress: Progress, tagger: FeatureTagger) -> bool:
        seen.append(progress.iteration)
        assert len(tagger.tag(TEST[:1])[0]) == len(TEST[0])
        return progress.iteration == 3

    FeatureTagger.fit(TRAIN[:50], on_progress=look)
    assert seen == [1, 2, 3]


def test_without_b_there_are_no_transitions() -> None:
    found = FeatureTagger.fit(TRAIN[:50], templates=Templates.parse(["U:%x[0,0]"]))
    assert len(found.crf.parameters.arcs) == 0
    assert len(found.tag(TEST[:1])[0]) == len(TEST[0])


def test_templates_that_look_at_two_tags(tmp_path: Path) -> None:
    templates = Templates.parse(["U0:%x[0,0]", "B1:%x[0,1]"])
    found = FeatureTagger.fit(TRAIN, templates=templates)
    assert len(found.crf.parameters.arcs) == 0
    assert found.crf.parameters.n_pairs > 50
    assert found.evaluate(TEST)["score"] > 0.8
    found.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert again.tag(TEST) == found.tag(TEST)
    assert again.confidences(TEST[:3]) == found.confidences(TEST[:3])
    assert any(" -> " in label for _, _, label in strongest(again, 20))
    sentence = TEST[0]
    (explanation,), chain = again.explain([sentence]), again.chain([sentence])
    total = sum(token.score for token in explanation.tokens)
    assert total == pytest.approx(float(chain.score(chain.argmax)))
    assert any(vote.name.startswith("B1:") and " after " in vote.name for vote in explanation.tokens[1].votes)


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"model": "memm"}])
def test_the_rival_is_the_best_legal_sequence_with_another_tag(settings: dict[str, Any], constrained: bool) -> None:
    """By enumeration over all sequences of tags that IOB2 allows: never an I-X after O."""
    train = [
        Sentence(("Ann", "Lee", "left", "Rome"), ("B-PER", "I-PER", "O", "B-LOC")),
        Sentence(("the", "old", "Rome"), ("O", "B-LOC", "I-LOC")),
    ]
    model = FeatureTagger.fit(train, LearningConfig(max_iterations=4, constrained=constrained, **settings))
    sentence, names = Sentence(("Lee", "left", "old")), list(model.labels.vocabulary)
    chain, (found,) = model.chain([sentence]), model.explain([sentence])
    every = [y for y in itertools.product(range(len(names)), repeat=3) if is_legal([names[i] for i in y])]
    scores = chain.score(torch.tensor(every)[:, None])[:, 0].tolist()
    for i, token in enumerate(found.tokens):
        others = [(score, y) for score, y in zip(scores, every, strict=True) if names[y[i]] != token.label]
        assert token.rival == names[max(others)[1][i]]
        assert token.rival_votes
    assert not found.tokens[0].rival.startswith("I-")  # type: ignore[union-attr]


def is_legal(tags: list[str]) -> bool:
    return not violations(tags, "IOB2")


def test_the_edge_of_a_sentence_is_said_once(tagger: FeatureTagger) -> None:
    """Templates that look past the edge say the same, whatever column or spelling they look at: their votes are one."""
    (found,) = tagger.explain(TEST[:1])
    for token in found.tokens:
        words = [vote.words for vote in token.votes]
        assert len(words) == len(set(words))
        edges = [each for each in words if each.startswith("no ") and " and " not in each]
        assert sum("before" in each or "previous" in each for each in edges) <= 1
        assert sum("after" in each or "next" in each for each in edges) <= 1
    assert "no previous word" in {vote.words for vote in found.tokens[0].votes}
    chain = tagger.chain(TEST[:1])
    assert sum(token.score for token in found.tokens) == pytest.approx(float(chain.score(chain.argmax)))


def test_bad_input_gets_a_sentence(tagger: FeatureTagger, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="asks for column 3"):
        FeatureTagger.fit(TRAIN, templates=Templates.parse(["U:%x[0,3]"]))
    with pytest.raises(DataError, match="columns in addition to the words"):
        FeatureTagger.fit([TRAIN[0], replace(TRAIN[1], features=(*TRAIN[1].features, TRAIN[1].words))])
    with pytest.raises(ScoreError, match="algorithm must be one of"):
        LearningConfig("adam")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="c1 1 cannot be combined with algorithm perceptron"):
        LearningConfig("perceptron", c1=1.0)
    tagger.save(tmp_path / "model")
    weights = tmp_path / "model" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match="truncated or not safetensors"):
        FeatureTagger.load(tmp_path / "model")


def _set(name: str, value: int) -> Callable[[dict[str, torch.Tensor]], object]:
    return lambda arrays: arrays[name].fill_(value)


@pytest.mark.parametrize(
    "change",
    [
        _set("labels", 999),
        _set("labels", -1),
        _set("arcs", 999),
        _set("arcs", -1),
        _set("numbers", 10**8),
        _set("offsets", 10**9),
        _set("keys", 1),
        lambda arrays: arrays["weights"].fill_(float("nan")),
        lambda arrays: arrays.update(keys=arrays["keys"][:1000].clone()),
        lambda arrays: arrays.update(offsets=arrays["offsets"].float()),
    ],
)
def test_arrays_that_kernels_must_not_read_are_refused(
    tagger: FeatureTagger, tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], object]
) -> None:
    tagger.save(tmp_path / "model")
    path = tmp_path / "model" / "weights.safetensors"
    arrays = safetensors.torch.load_file(path)
    change(arrays)
    safetensors.torch.save_file(arrays, path)
    with pytest.raises(ModelError, match=r"(do not fit .*copy it again|expected finite weights, got NaN)"):
        FeatureTagger.load(tmp_path / "model")


@pytest.mark.parametrize(
    "change",
    [
        _set("pair_arcs", 10**6),
        _set("pair_arcs", -1),
        _set("pair_offsets", 10**9),
        lambda arrays: arrays.update(pair_arcs=arrays["pair_arcs"][:3].clone()),
        lambda arrays: arrays.update(pair_offsets=arrays["pair_offsets"].float()),
    ],
)
def test_pairs_that_kernels_must_not_read_are_refused(
    tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], object]
) -> None:
    templates = Templates.parse(["U0:%x[0,0]", "B1:%x[0,1]"])
    FeatureTagger.fit(TRAIN[:20], LearningConfig(max_iterations=2), templates=templates).save(tmp_path / "model")
    path = tmp_path / "model" / "weights.safetensors"
    arrays = safetensors.torch.load_file(path)
    change(arrays)
    safetensors.torch.save_file(arrays, path)
    with pytest.raises(ModelError, match=r"do not fit .*copy it again"):
        FeatureTagger.load(tmp_path / "model")


def test_names_that_are_missing_or_too_few_are_refused(tagger: FeatureTagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    path = tmp_path / "model" / "attributes.txt"
    path.write_text("\n".join(tagger.names[:5]) + "\n", encoding="utf-8")
    with pytest.raises(ModelError, match=f"expected {len(tagger.names)} names, got 5"):
        FeatureTagger.load(tmp_path / "model")
    path.unlink()
    with pytest.raises(ModelError, match=r"attributes\.txt: missing; copy the whole model folder"):
        FeatureTagger.load(tmp_path / "model")


def test_line_ends_within_words_survive_the_disk(tmp_path: Path) -> None:
    sentences = [Sentence(("a\rb", "c\nd"), ("X", "Y"))] * 2
    tagger = FeatureTagger.fit(sentences)
    tagger.save(tmp_path / "model")
    assert FeatureTagger.load(tmp_path / "model").tag(sentences) == tagger.tag(sentences)


@pytest.mark.parametrize(
    "settings", [{"algorithm": "sgd", "c2": 0.0}, {"c1": float("nan")}, {"c2": float("inf")}, {"max_iterations": 0}]
)
def test_settings_that_no_learner_can_use(settings: dict[str, Any]) -> None:
    with pytest.raises(ScoreError, match="must be"):
        LearningConfig(**settings)


def test_a_folder_with_a_long_name(tmp_path: Path) -> None:
    sentences = [Sentence(("Ann", "sings"), ("N", "V"))]
    for _ in range(2):
        FeatureTagger.fit(sentences, LearningConfig(max_iterations=2)).save(tmp_path / ("m" * 250))
    assert [path.name for path in tmp_path.iterdir()] == ["m" * 250]
    assert FeatureTagger.load(tmp_path / ("m" * 250)).tag(sentences[0]) == ["N", "V"]
