"""Pretrained encoders, with a tiny BERT of random weights and a tokenizer made here: no network."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.tiny_bert import bert, encoder, tokenizer, write_bert
from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.nn.encoders.pretrained import PretrainedEncoder, _check_fit
from trelliswork.nn.encoders.subwords import window_of, windows


def test_windows_cover_everything_and_overlap() -> None:
    for n in range(40):
        for room in range(1, 12):
            for overlap in range(room):
                ranges = windows(n, room, overlap)
                assert ranges[0][0] == 0
                assert ranges[-1][1] == n
                assert all(last - first <= room for first, last in ranges)
                assert all(before[1] - after[0] >= overlap for before, after in itertools.pairwise(ranges))
                for at in range(n):
                    to_edges = [
                        -1 if not a <= at < b else min(at - a if a else n, b - 1 - at if b < n else n)
                        for a, b in ranges
                    ]
                    assert window_of(at, ranges) == to_edges.index(max(to_edges))


def test_a_word_is_its_first_sub_word() -> None:
    pretrained = encoder()
    ids = torch.tensor([[2, 4, 5, 6, 10, 3]])  # [CLS] Ann sing ##s . [SEP]
    expected = pretrained.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
    torch.testing.assert_close(pretrained([["Ann", "sings", "."]])[0], expected[[1, 2, 4]])


def test_a_sentence_is_encoded_alike_alone_and_in_a_batch() -> None:
    pretrained, sentences = encoder(), [["Ann", "sings", "abc", "."], ["abcabc"], ["Ann", ""], ["Ann"] * 40, []]
    together = pretrained(sentences)
    assert together.shape == (5, 40, 8)
    for row, words in zip(together, sentences, strict=True):
        torch.testing.assert_close(row[: len(words)], pretrained([words])[0], rtol=1e-4, atol=1e-5)
        assert not row[len(words) :].any()


def test_long_sentences_are_read_in_windows_and_each_word_far_from_their_edges() -> None:
    pretrained, words = encoder(), ["Ann", "abc", "sings", "."] * 8  # 56 sub-words, 14 at a time
    ids, firsts = pretrained.subwords.split(words)
    assert (len(ids), pretrained.longest) == (56, 16)
    states = {}
    for first, last in windows(56, 14, 4):
        inputs = torch.tensor([pretrained.subwords.with_special_tokens(ids[first:last])])
        states[first] = pretrained.model(input_ids=inputs).last_hidden_state[0, 1:-1]
    answer = pretrained([words])[0]
    for word, at in enumerate(firsts):
        room = {first: min(at - first if first else 99, first + 13 - at if first + 14 < 56 else 99) for first in states}
        inside = {first: free for first, free in room.items() if first <= at < first + 14}
        best = max(inside, key=lambda first: inside[first])
        torch.testing.assert_close(answer[word], states[best][at - best], rtol=1e-4, atol=1e-5)


def test_gradients_reach_the_model() -> None:
    pretrained = encoder()
    pretrained([["Ann", "sings"]])[0, :, 0].sum().backward()  # all dimensions together are normalised: no gradient
    assert pretrained.model.embeddings.word_embeddings.weight.grad[4].any()


def test_scales_multiply_the_embeddings_of_all_sub_words_of_a_word() -> None:
    """In every window of a long sentence, special tokens as they are; a factor of 1 changes nothing."""
    pretrained, words = encoder(), ["Ann", "sings", "abc", "."]
    ids = torch.tensor([[2, 4, 5, 6, 7, 8, 9, 10, 3]])  # [CLS] Ann sing ##s a ##b ##c . [SEP]
    factors = torch.tensor([[1, 0.5, 2, 2, 0, 0, 0, 3, 1]])
    embeddings = pretrained.model.embeddings.word_embeddings(ids) * factors[..., None]
    expected = pretrained.model(inputs_embeds=embeddings, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
    scaled = pretrained([words], torch.tensor([[0.5, 2.0, 0.0, 3.0]]))[0]
    torch.testing.assert_close(scaled, expected[[1, 2, 4, 7]])
    long = [words * 8, ["Ann"]]
    torch.testing.assert_close(pretrained(long, torch.ones(2, 32)), pretrained(long))


def test_votes_of_a_pretrained_encoder_are_those_of_words_and_complete(tmp_path: Path) -> None:
    made = encoder()
    made.model.save_pretrained(tmp_path / "bert")
    made.subwords.tokenizer.save_pretrained(tmp_path / "bert")
    config = TaggerConfig(pretrained=str(tmp_path / "bert"), encoder="none", word_dim=4, affix_dim=2)
    model = Tagger.from_data([Sentence(("Ann", "sings", "."), ("N", "V", "P"))], config).eval()
    torch.manual_seed(2)
    with torch.no_grad():
        model.scorer.linear.weight.normal_()
        model.inputs.pretrained.model.embeddings.word_embeddings.weight.normal_()
    (explained,) = model.explain([["Ann", "sings", "abc"]])
    reason = explained.tokens[0].reason
    assert reason is not None and len(reason.votes) == 4  # three words, and what is there without them
    assert sum(vote.score for vote in reason.votes) == pytest.approx(reason.difference, abs=reason.error + 1e-4)
    assert reason.error <= 0.02 * max(1.0, abs(reason.difference) + 5)
    assert all(vote.parts["pretrained"] for vote in reason.votes if vote.parts)  # the last word, through attention


def test_comes_back_without_the_hub() -> None:
    made = encoder()
    again = PretrainedEncoder.from_dict(json.loads(json.dumps(made.to_dict()))).eval()
    again.load_state_dict(made.state_dict())
    sentences = [["Ann", "sings", "abc"], ["?"] * 30]
    torch.testing.assert_close(again(sentences), made(sentences))


def test_bad_settings_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TrellisworkError, match=r"overlap must lie in 0\.\.13 for windows of 14 sub-words; got 14"):
        encoder(overlap=14)
    with pytest.raises(TrellisworkError, match="expected a model of Hugging Face, got"):
        PretrainedEncoder.from_name(str(tmp_path))


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


FAULTS: dict[str, Any] = {
    "it has no tokenizer.json": lambda folder: (folder / "tokenizer.json").unlink(),
    "expected a tokenizer, got 5 special tokens and no sub-words; copy tokenizer.json": lambda folder: [
        (folder / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json")
    ],
    "its weights are damaged": lambda folder: _cut_short(folder / "model.safetensors"),
    "its config.json and weights do not fit": lambda folder: _changed(folder / "config.json", ": 12,", ": 16,"),
    "expected the weights of its config.json, got a file that lacks 16, such as encoder.layer.2": lambda folder: (
        _changed(folder / "config.json", '"num_hidden_layers": 2', '"num_hidden_layers": 3')
    ),
    "expected at most 192 sub-words, as the model has vectors for, got 193; use the tokenizer of this": lambda folder: (
        _changed(folder / "tokenizer.json", '"[PAD]": 0,', '"[PAD]": 0, "more": 192,')
    ),
}


def test_a_folder_with_a_part_missing_or_foreign(tmp_path: Path) -> None:
    """Without a word, transformers fills in random weights and tokenizers that know nothing."""
    whole = write_bert(tmp_path / "whole")
    assert PretrainedEncoder.from_name(str(whole)).dim == 8
    for i, (problem, damage) in enumerate(FAULTS.items()):
        damage(shutil.copytree(whole, tmp_path / str(i)))
        with pytest.raises(TrellisworkError, match=problem):
            PretrainedEncoder.from_name(str(tmp_path / str(i)))


def test_a_model_that_writes_is_no_encoder() -> None:
    config = SimpleNamespace(is_encoder_decoder=True, model_type="t5")
    model = SimpleNamespace(config=config, get_input_embeddings=lambda: torch.nn.Embedding(300, 2))
    with pytest.raises(TrellisworkError, match=r"got an encoder with a decoder \(t5\); choose a model such as bert"):
        _check_fit("t5", model, tokenizer(), [])


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(TrellisworkError, match=r"pip install \"trelliswork\[transformers\]\""):
        PretrainedEncoder.from_name("bert-base-cased")


def test_a_tagger_over_it_learns_and_comes_back_from_disk(tmp_path: Path) -> None:
    pretrained = encoder()
    pretrained.model.save_pretrained(tmp_path / "bert")
    pretrained.subwords.tokenizer.model_max_length = 16
    pretrained.subwords.tokenizer.save_pretrained(tmp_path / "bert")
    sentences = [Sentence(("Ann", "sings", "."), ("N", "V", "P")), Sentence(("abc", "."), ("N", "P"))]
    config = TaggerConfig(pretrained=str(tmp_path / "bert"), encoder="none", word_dim=2, affix_dim=2)
    tagger = Tagger.from_data(sentences, config, seed=1)
    assert tagger.inputs.dim == tagger.inputs.lookup.dim + 8
    tagger.loss(sentences).backward()
    assert tagger.inputs.pretrained is not None
    assert any(weight.grad is not None and weight.grad.any() for weight in tagger.inputs.pretrained.parameters())
    tagger.eval().save(tmp_path / "model")
    for file in (tmp_path / "bert").iterdir():
        file.unlink()
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.confidences(sentences) == tagger.confidences(sentences)


def slow_vectors(pretrained: PretrainedEncoder, words: list[str]) -> torch.Tensor:
    """All layers of a short sentence, [n, layers, dim], sub-word by sub-word."""
    owners, ids = [], []
    for i, word in enumerate(words):
        pieces, _ = pretrained.subwords.split([word])
        ids += pieces
        owners += [i] * len(pieces)
    inputs = torch.tensor([pretrained.subwords.with_special_tokens(ids)])
    states = torch.stack(pretrained.model(input_ids=inputs, output_hidden_states=True).hidden_states)[:, 0, 1:-1]
    rows = []
    for i in range(len(words)):
        own = [states[:, at] for at, owner in enumerate(owners) if owner == i]
        rows.append(own[0] if pretrained.words == "first" else sum(own) / len(own))
    return torch.stack(rows)


@pytest.mark.parametrize("words", ["first", "mean"])
@pytest.mark.parametrize("layers", ["last", "mix"])
def test_words_and_layers_against_a_plain_slow_version(words: str, layers: str) -> None:
    pretrained = encoder(words=words, layers=layers)
    sentences = [["abcb", "sings", "."], ["Ann", "", "abc"], ["."], []]
    weights = torch.tensor([1.0])
    if pretrained.mix is not None:
        with torch.no_grad():
            pretrained.mix.weights.copy_(torch.tensor([0.5, -1.0, 2.0]))
            pretrained.mix.scale.fill_(1.5)
        weights = 1.5 * torch.tensor([0.5, -1.0, 2.0]).softmax(0)
    for answer, sentence in zip(pretrained(sentences), sentences, strict=True):
        assert not answer[len(sentence) :].any()
        if not sentence:
            continue
        slow = slow_vectors(pretrained, sentence)[:, -len(weights) :]
        expected = torch.stack([sum(w * row[i] for i, w in enumerate(weights)) for row in slow])
        torch.testing.assert_close(answer[: len(sentence)], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("words", ["first", "mean"])
def test_windows_are_near_what_one_long_window_gives(words: str) -> None:
    """A model in which sub-words hardly look at each other: windows may only differ by positions, which are 0."""
    long, short = (PretrainedEncoder(bert(11, 200), tokenizer(), words=words, longest=n) for n in (200, 16))
    for pretrained in (long, short):
        pretrained.eval()
        torch.nn.init.zeros_(pretrained.model.embeddings.position_embeddings.weight)
        for layer in pretrained.model.encoder.layer:  # all places look alike to attention, and values are the same
            torch.nn.init.zeros_(layer.attention.self.value.weight)
    sentence = ["Ann", "abc", "sings", "abcbcb", "."] * 8
    assert len(windows(len(short.subwords.split(sentence)[0]), 14, short.overlap)) > 5
    torch.testing.assert_close(short([sentence]), long([sentence]), rtol=1e-4, atol=1e-5)


def test_the_mix_learns_and_so_do_all_layers() -> None:
    pretrained = encoder(layers="mix")
    pretrained([["Ann", "sings"]])[0, :, 0].sum().backward()
    assert pretrained.mix is not None and pretrained.mix.weights.grad is not None and pretrained.mix.weights.grad.any()
    again = PretrainedEncoder.from_dict(json.loads(json.dumps(pretrained.to_dict()))).eval()
    again.load_state_dict(pretrained.state_dict())
    torch.testing.assert_close(again([["Ann", "abc"]]), pretrained([["Ann", "abc"]]))


def test_a_frozen_encoder_has_no_dropout_and_no_gradients() -> None:
    pretrained = encoder().train()
    noisy = [pretrained([["Ann", "sings", "."]]) for _ in range(2)]
    assert not torch.equal(*noisy)
    pretrained.freeze(True)
    plain = [pretrained([["Ann", "sings", "."]]) for _ in range(2)]
    assert torch.equal(*plain) and not plain[0].requires_grad and not pretrained.model.training
    pretrained.freeze(False)
    assert pretrained.model.training and pretrained([["Ann"]]).requires_grad


def test_code_that_a_config_names_is_left_out() -> None:
    stored = encoder().to_dict()
    stored["model"] |= {"auto_map": {"AutoModel": "evil.Model"}, "_attn_implementation": "evil/kernels"}
    assert PretrainedEncoder.from_dict(stored).model.config.to_dict().get("auto_map") is None
    stored["tokenizer"]["rules"] = "{"
    with pytest.raises(TrellisworkError, match="expected rules of a tokenizer, got other text"):
        PretrainedEncoder.from_dict(stored)


def test_parameters_by_layer_have_each_parameter_once() -> None:
    pretrained = encoder()
    groups = pretrained.layers_from_below()
    assert [len(group) for group in groups] == [5, 16, 18]  # embeddings, two layers, the pooler with the last
    assert sum(map(len, groups)) == len(list(pretrained.model.parameters()))
