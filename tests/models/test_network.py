"""Every encoder, input and scorer that a setting can name: made, trained a little, saved and loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.models.networks.sparse_features import TemplateFeatures, WordNgrams, ngrams_of, parse_templates
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

FAST = TrainingConfig(epochs=40, patience=40, batch_tokens=20, lr=0.02)
SETTINGS: dict[str, dict[str, Any]] = {
    "sentence": dict(encoder="sentence"),
    "transformer": dict(encoder="transformer", layers=2),
    "dilated": dict(encoder="dilated", layers=2),
    "causal": dict(encoder="dilated", layers=2, width=2, causal=True),
    "ngrams": dict(encoder="none", ngrams=(2, 3), ngram_dim=8, ngram_buckets=500),
    "characters and ngrams": dict(characters="cnn", ngrams=(3,), ngram_dim=8, ngram_buckets=500),
    "templates": dict(encoder="none", templates=("default",), template_min_count=1),
    "dropouts": dict(encoder="gru", word_dropout=0.05, embedding_dropout=0.05),
    "hidden units": dict(scorer="hidden-units", hidden_units=20),
    "tensor": dict(scorer="tensor", tensor_slices=6),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_learns_and_comes_back_from_disk(
    name: str, sentences: list[Sentence], config: TaggerConfig, tmp_path: Path
) -> None:
    tagger = Tagger.from_data(sentences, replace(config, **SETTINGS[name]), seed=1)
    train(tagger, sentences, sentences, FAST, progress=Progress())
    assert tagger.tag(sentences) == [list(sentence.tags or ()) for sentence in sentences]
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.config == tagger.config
    unknown = [*sentences, Sentence(("Zoe", "zzz", "!"), None, (("N", "V", "P"),))]
    assert loaded.confidences(unknown) == tagger.confidences(unknown)
    for sentence, answer in zip(unknown, loaded.confidences(unknown), strict=True):
        (alone,) = loaded.confidences([sentence])
        assert alone.tokens == pytest.approx(answer.tokens, abs=1e-5)


def test_direct_connections_are_added_to_the_emissions(sentences: list[Sentence], config: TaggerConfig) -> None:
    lines = ("U00:%x[0,0]", "U01:%x[-1,1]", "B")
    tagger = Tagger.from_data(sentences, replace(config, templates=lines, template_min_count=1), seed=1).eval()
    batch = tagger.token_batch(tagger.encode(sentences))
    assert tagger.direct is not None
    before = tagger(batch)
    torch.testing.assert_close(before, tagger.scorer(tagger.encode_tokens(batch), batch.mask))
    names = tagger.features.vocabularies["templates"].to_list()
    with torch.no_grad():
        tagger.direct.table.weight[names.index("U00:Rome"), 1] = 5.0
        tagger.direct.table.weight[names.index("U01:_B-1"), 0] = 3.0
    added = tagger(batch) - before
    for row, sentence in enumerate(sentences):
        for i, word in enumerate(sentence.words):
            assert added[row, i, 1].item() == pytest.approx(5.0 * (word == "Rome"), abs=1e-5)
            assert added[row, i, 0].item() == pytest.approx(3.0 * (i == 0), abs=1e-5)


def test_a_segment_has_the_direct_scores_of_its_tokens(sentences: list[Sentence], config: TaggerConfig) -> None:
    wanted = replace(config, templates=("U00:%x[0,0]",), template_min_count=1, max_length=3, segment_dim=8)
    segmenter = Segmenter.from_data(sentences, wanted, seed=1).eval()
    batch = segmenter.token_batch(segmenter.encode(sentences))
    assert segmenter.direct is not None
    before = segmenter(batch)
    torch.nn.init.normal_(segmenter.direct.table.weight)
    added, direct = segmenter(batch) - before, segmenter.direct(batch)
    for row, sentence in enumerate(sentences):
        for first in range(len(sentence)):
            for length in range(1, min(3, len(sentence) - first) + 1):
                expected = direct[row, first : first + length].sum(0)
                torch.testing.assert_close(added[row, first, length - 1], expected, rtol=1e-4, atol=1e-4)


def test_rare_attributes_are_left_out() -> None:
    sentences = [Sentence(("a", "b", "a")), Sentence(("c", "a"))]
    kept = TemplateFeatures.from_sentences(sentences, ("U:%x[0,0]",), min_count=2)
    assert kept.names == ["U:a"]
    assert [each.tolist() for each in kept.encode([Sentence(("a", "z")), Sentence(("c",))])] == [[[2], [0]], [[0]]]


def test_names_of_attributes_are_enough_to_find_them_again() -> None:
    sentences = [Sentence(("Ünï", "x"), None, (("N", "V"),))]
    made = TemplateFeatures.from_sentences(sentences, ("default",), min_count=1)
    again = TemplateFeatures(parse_templates(("default",), 2), made.names)
    (one,), (other,) = made.encode(sentences), again.encode(sentences)
    assert torch.equal(one, other)
    assert (one >= TemplateFeatures.FIRST).all()


def test_ngrams_of_the_print_and_their_rows() -> None:
    assert ngrams_of("where", [3]) == ["<wh", "whe", "her", "ere", "re>", "<where>"]
    assert ngrams_of("a", [3]) == ["<a>"]
    rows = WordNgrams([2, 3], 10).batch(["where", "a"])
    assert rows.shape == (2, 12)
    assert rows.max() <= 10
    assert rows[1].tolist()[3:] == [0] * 9
    assert (rows[1, :3] >= 1).all()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"encoder": "rnn"}, "encoder must be one of window, sentence, lstm, gru, transformer, dilated, deep, none"),
        ({"encoder": "transformer", "hidden": 30}, "hidden must be a multiple of twice the heads"),
        ({"ngrams": (0,)}, "prefix_lengths, suffix_lengths and ngrams must be at least 1"),
        ({"templates": ("B",)}, "expected templates that begin with U"),
        ({"templates": ("U:%x[0,4]",)}, "asks for column 4"),
        ({"templates": ("X:%x[0,0]",)}, "begins with U or B"),
        ({"word_dropout": 1.0}, r"word_dropout must lie in \[0, 1\)"),
    ],
)
def test_bad_settings(sentences: list[Sentence], setting: dict[str, Any], message: str) -> None:
    with pytest.raises((TrellisworkError, DataError), match=message):
        Tagger.from_data(sentences, TaggerConfig(**setting))
