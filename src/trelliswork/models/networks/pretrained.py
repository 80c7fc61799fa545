"""A pretrained encoder in a network: defaults of its training, frozen epochs, kept vectors, files of a model folder.

Defaults are those of Devlin et al. (2019, BERT) and Mosbach, Andriushchenko and Klakow (2021, On the stability of
fine-tuning BERT): a small rate that rises over the first tenth of the steps and falls to 0, and gradients clipped at
norm 1. Lower layers have lower rates (Howard and Ruder 2018, Universal language model fine-tuning for text
classification). On a processor that multiplies bf16 an encoder is tuned in bf16, its weights being float32: three to
four times as fast (decision 68).

In a model folder the settings of the encoder are in config.json under "pretrained" and its weights among the others, in
half precision on request. The rules of its tokenizer are in tokenizer.json, as the library `tokenizers` writes them.
Nothing else is needed: neither the hub nor the folder that training started from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence
from trelliswork.data.folder_files import read_regular
from trelliswork.data.settings import Settings
from trelliswork.errors import ModelError
from trelliswork.models.networks.config import PretrainedConfig
from trelliswork.nn.encoders.encoding_cache import cached_encodings
from trelliswork.nn.encoders.pretrained import PretrainedWords
from trelliswork.runtime.devices import multiplies_bf16
from trelliswork.training.config import TrainingConfig

BATCH_TOKENS = 500
SECONDS_PER_WEIGHT = 1.3e-10  # of an encoder and a word: 700 words a second through MiniLM, on one core
FINE_TUNING: Mapping[str, float | str] = {
    "lr": 1e-3, "decay": "linear", "warmup": 0.1, "layer_decay": 1.1, "clip": 1.0, "epochs": 10,
}  # fmt: skip


def learning_defaults(network: Settings, of_model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of training that a model has by default, changed if an encoder is fine-tuned.

    Args:
        network: The settings of the network.
        of_model: The settings of training in the catalogue.
    """
    if not _has_encoder(network) or network.encoder_training == "frozen":
        return dict(of_model)
    batch_tokens = min(BATCH_TOKENS, of_model.get("batch_tokens", BATCH_TOKENS))
    precision = "bf16" if multiplies_bf16() else "float32"
    return {**of_model, **FINE_TUNING, "batch_tokens": batch_tokens, "precision": precision}


def description_of(network: Settings, training: TrainingConfig) -> str:
    """Return a line about how the encoder of a network is trained; empty if it has none."""
    if not _has_encoder(network):
        return ""
    how = network.encoder_training
    if how == "frozen":
        return f"pretrained encoder: frozen; all else at rate {training.learning_rate:g}"
    first = f"frozen in the first {network.pretrained_frozen_epochs} epochs, then " if how == "frozen-first" else ""
    layers = f", / {training.layer_decay:g} for each lower layer" if training.layer_decay != 1 else ""
    schedule = f"warm-up over {training.warmup:.0%} of the steps, {training.decay} decay, clipped at {training.clip:g}"
    return (
        f"pretrained encoder: {first}fine-tuned at rate {training.encoder_rate:g}{layers}; all else at "
        f"{training.learning_rate:g}; {schedule}; {training.precision} (--encoder-lr, --lr, --pretrained-training, "
        "--precision)"
    )


def _has_encoder(network: Settings) -> TypeGuard[PretrainedConfig]:
    return isinstance(network, PretrainedConfig) and bool(network.pretrained)


def encoders_of(model: nn.Module) -> list[PretrainedWords]:
    """Return the pretrained encoders of a network, each once."""
    return [module for module in model.modules() if isinstance(module, PretrainedWords)]


def encoder_seconds(model: nn.Module, n: int) -> float:
    """Return about how many seconds the pretrained encoders of a network take for n words."""
    layers = [layer for encoder in encoders_of(model) for layer in encoder.layers_from_below()[1:]]
    return SECONDS_PER_WEIGHT * n * sum(parameter.numel() for layer in layers for parameter in layer)


def freeze_encoders(model: nn.Module, epoch: int) -> None:
    """Freeze or thaw encoders as the settings want it in an epoch, counted from 1."""
    for encoder in encoders_of(model):
        encoder.freeze(_is_frozen_in(model, epoch))
        if not encoder.frozen:
            encoder.cache = None  # its vectors change from now on


def prepare_encoders(
    model: nn.Module, sentences: Iterable[Sentence], epoch: int, note: Callable[[str], None], directory: str | None
) -> None:
    """Compute the vectors of all sentences once, if an encoder is frozen in the epochs to come.

    Args:
        model: A network.
        sentences: What it reads in training.
        epoch: The first epoch to come.
        note: Is given a line about what is done.
        directory: Keeps vectors for later runs.
    """
    encoders = encoders_of(model)
    if not encoders or not _is_frozen_in(model, epoch):
        return
    words = [sentence.words for sentence in sentences]
    for encoder in encoders:
        encoder.freeze(True)
        encoder.cache = cached_encodings(encoder, words, None if directory is None else Path(directory), note)


def release_encoders(model: nn.Module) -> None:
    """Forget the vectors that were kept, and leave encoders as a new model has them."""
    for encoder in encoders_of(model):
        encoder.cache = None
        encoder.freeze(_settings_of(model).encoder_training == "frozen")


def _is_frozen_in(model: nn.Module, epoch: int) -> bool:
    settings = _settings_of(model)
    how = settings.encoder_training
    return how == "frozen" or (how == "frozen-first" and epoch <= settings.pretrained_frozen_epochs)


def _settings_of(model: nn.Module) -> PretrainedConfig:
    settings = model.config
    assert isinstance(settings, PretrainedConfig)
    return settings


# Files of a model folder.

TOKENIZER = "tokenizer.json"
_ENCODER, _OF_TOKENIZER, _RULES = "pretrained", "tokenizer", "rules"
_WEIGHTS = ".pretrained.model."  # in the names of weights


def without_tokenizer(config: Mapping[str, object]) -> tuple[Mapping[str, object], dict[str, str]]:
    """Return a config without the rules of a tokenizer, and the file that has them."""
    encoder = config.get(_ENCODER)
    if not isinstance(encoder, dict) or _OF_TOKENIZER not in encoder:
        return config, {}
    tokenizer = dict(encoder[_OF_TOKENIZER])
    rules = tokenizer.pop(_RULES)
    return {**config, _ENCODER: {**encoder, _OF_TOKENIZER: tokenizer}}, {TOKENIZER: rules}


def with_tokenizer(config: Mapping[str, object], directory: str | Path) -> Mapping[str, object]:
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


def weights_to_store(model: nn.Module, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return weights as they are written: those of an encoder in half precision, if the settings want that."""
    if not encoders_of(model) or _settings_of(model).pretrained_storage != "float16":
        return weights
    return {
        name: tensor.to(torch.float16) if _WEIGHTS in f".{name}" and tensor.is_floating_point() else tensor
        for name, tensor in weights.items()
    }
