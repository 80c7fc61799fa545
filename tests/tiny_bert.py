"""A tiny BERT of random weights with a tokenizer made here: what tests of pretrained encoders read through."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trelliswork.nn.encoders.pretrained import PretrainedEncoder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PIECES = [*SPECIAL, "Ann", "sing", "##s", "a", "##b", "##c", "."]
LETTERS = [letter for letter in string.printable if letter.strip()]
SPELLING = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]  # any word, letter by letter


def tokenizer(pieces: Sequence[str] = PIECES) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    rules = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    rules.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    rules.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=rules, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )


def bert(n_pieces: int, positions: int = 16, dim: int = 8, layers: int = 2) -> Any:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=n_pieces, hidden_size=dim, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=positions,
    )  # fmt: skip
    return BertModel(config)


def encoder(**settings: Any) -> PretrainedEncoder:
    """One that reads windows of 14 sub-words."""
    return PretrainedEncoder(bert(len(PIECES)), tokenizer(), **{"overlap": 4, **settings}).eval()


def write_bert(folder: Path, *, positions: int = 64, layers: int = 2) -> Path:
    """Leave a folder as `save_pretrained` does, of a model that spells words letter by letter."""
    with torch.random.fork_rng(devices=[]):
        bert(len(SPELLING), positions, layers=layers).save_pretrained(folder)
    rules = tokenizer(SPELLING)
    rules.model_max_length = positions
    rules.save_pretrained(folder)
    return folder
