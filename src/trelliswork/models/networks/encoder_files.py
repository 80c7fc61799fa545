"""A pretrained encoder in a model folder: its tokenizer is a file of its own, its weights may have half precision.

tokenizer.json    the rules of the tokenizer, as the library `tokenizers` writes them

Settings of the encoder are in config.json under "pretrained", weights among the others. Nothing else is needed to read
them: neither the hub nor the folder that training started from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trelliswork.data.folder_files import read_regular
from trelliswork.errors import ModelError

TOKENIZER = "tokenizer.json"
_ENCODER, _OF_TOKENIZER, _RULES = "pretrained", "tokenizer", "rules"
_WEIGHTS = ".pretrained.model."  # in the names of weights


def without_tokenizer(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a config without the rules of a tokenizer, and the file that has them."""
    encoder = config.get(_ENCODER)
    if encoder is None:
        return dict(config), {}
    tokenizer = dict(encoder[_OF_TOKENIZER])
    rules = tokenizer.pop(_RULES)
    return {**config, _ENCODER: {**encoder, _OF_TOKENIZER: tokenizer}}, {TOKENIZER: rules}


def with_tokenizer(config: Mapping[str, Any], directory: str | Path) -> Mapping[str, Any]:
    """Return the config of a model folder with the rules of its tokenizer; older folders have them in config.json."""
    encoder = config.get(_ENCODER)
    tokenizer = encoder.get(_OF_TOKENIZER) if isinstance(encoder, dict) else None
    if not isinstance(encoder, dict) or not isinstance(tokenizer, dict) or _RULES in tokenizer:
        return config
    path = Path(directory) / TOKENIZER
    try:
        rules = read_regular(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not UTF-8; copy the model again or train again") from error
    return {**config, _ENCODER: {**encoder, _OF_TOKENIZER: {**tokenizer, _RULES: rules}}}


def weights_to_store(weights: Mapping[str, Tensor], config: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Return weights as they are written: those of the encoder in half precision, if the settings want that."""
    if _ENCODER not in config or config["settings"].get("pretrained_storage") != "float16":
        return weights
    return {
        name: tensor.to(torch.float16) if _WEIGHTS in f".{name}" and tensor.is_floating_point() else tensor
        for name, tensor in weights.items()
    }
