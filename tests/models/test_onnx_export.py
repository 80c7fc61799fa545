"""The ONNX graph of a tagger gives the library's tags."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.data.corpus import builtin_corpus
from trelliswork.errors import ModelError
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.models.onnx_export import DecodingTagger, export_onnx


@pytest.mark.parametrize("encoder", ["window", "lstm"])
def test_the_plain_viterbi_is_the_librarys(sentences: list[Sentence], config: TaggerConfig, encoder: str) -> None:
    tagger = Tagger.from_data(sentences, replace(config, encoder=encoder), seed=3).eval()
    batch = tagger.token_batch(tagger.encode(sentences))
    tags, score = DecodingTagger(tagger)(*batch[:4])
    chain = tagger.chain(sentences)
    assert tags[batch.mask].tolist() == chain.argmax[batch.mask].tolist()
    torch.testing.assert_close(score, chain.score(chain.argmax))


@pytest.mark.parametrize(("encoder", "characters"), [("window", "none"), ("lstm", "cnn"), ("gru", "lstm")])
def test_equal_under_onnxruntime(config: TaggerConfig, tmp_path: Path, encoder: str, characters: str) -> None:
    pytest.importorskip("onnx", reason="needs the extra [onnx]")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
    corpus = builtin_corpus(sizes=(1000, 10, 10))
    found = [Sentence(each.words, each.entities) for each in corpus["train"]]
    settings = replace(config, encoder=encoder, characters=characters, layers=2 if encoder == "lstm" else 1)
    tagger = Tagger.from_data(found, settings, seed=5).eval()
    beside = export_onnx(tagger, tmp_path / "model.onnx")
    assert json.loads(beside.read_text())["labels"] == tagger.labels.vocabulary.to_list()
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    names = ["features", "mask", "forms", "spellings"]
    for start, size in ((0, 1), (1, 3), (4, 96), (100, 900)):
        part = found[start : start + size]
        batch = tagger.token_batch(tagger.encode(part))
        given = {name: each.numpy() for name, each in zip(names, batch, strict=True) if each is not None}
        tags, _ = session.run(None, given)
        own = [tagger.labels.tags(row[: len(each)]) for row, each in zip(tags.tolist(), part, strict=True)]
        assert own == tagger.tag(part)


def test_only_chains_are_exported(sentences: list[Sentence], config: TaggerConfig, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="got a Segmenter"):
        export_onnx(Segmenter.from_data(sentences, config), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="got local normalisation"):
        DecodingTagger(Tagger.from_data(sentences, replace(config, normalization="local")))
