"""Pretrained encoders, with a tiny BERT of random weights and a tokenizer made here: no network."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.nn.encoders.pretrained import PretrainedEncoder, windows

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "Ann", "sing", "##s", "a", "##b", "##c", "."]


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    rules = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    rules.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    rules.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=rules, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )


def encoder(**settings: Any) -> PretrainedEncoder:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=16,
    )  # fmt: skip
    return PretrainedEncoder(BertModel(config), tokenizer(), **{"overlap": 4, **settings}).eval()


def test_windows_cover_everything_and_overlap() -> None:
    for n in range(40):
        for room in range(1, 12):
            for overlap in range(room):
                ranges = windows(n, room, overlap)
                assert ranges[0][0] == 0
                assert ranges[-1][1] == n
                assert all(last - first <= room for first, last in ranges)
                assert all(before[1] - after[0] >= overlap for before, after in itertools.pairwise(ranges))


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
