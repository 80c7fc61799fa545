"""Training of a network that reads through a pretrained encoder: defaults, frozen epochs, kept vectors.

Defaults are those of Devlin et al. (2019, BERT) and Mosbach, Andriushchenko and Klakow (2021, On the stability of
fine-tuning BERT): a small rate that rises over the first tenth of the steps and falls to 0, and gradients clipped at
norm 1. Lower layers have lower rates (Howard and Ruder 2018, Universal language model fine-tuning for text
classification).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from trelliswork.data import Sentence
from trelliswork.nn.encoders.encoding_cache import cached_encodings
from trelliswork.nn.encoders.pretrained import PretrainedEncoder
from trelliswork.training.config import TrainingConfig

FINE_TUNING: Mapping[str, Any] = {
    "lr": 1e-3, "decay": "linear", "warmup": 0.1, "layer_decay": 1.1, "clip": 1.0, "epochs": 10, "batch_tokens": 500,
}  # fmt: skip


def learning_defaults(network: Any, of_model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of training that a model has by default, changed if an encoder is fine-tuned.

    Args:
        network: The settings of the network.
        of_model: What the catalogue says for the model.
    """
    if not getattr(network, "pretrained", "") or network.encoder_training == "frozen":
        return dict(of_model)
    batch_tokens = min(FINE_TUNING["batch_tokens"], of_model.get("batch_tokens", FINE_TUNING["batch_tokens"]))
    return {**of_model, **FINE_TUNING, "batch_tokens": batch_tokens}


def description_of(network: Any, training: TrainingConfig) -> str:
    """Return a line about how the encoder of a network is trained; empty if it has none."""
    if not getattr(network, "pretrained", ""):
        return ""
    how = network.encoder_training
    if how == "frozen":
        return f"pretrained encoder: frozen; all else at rate {training.learning_rate:g}"
    first = f"frozen in the first {network.pretrained_frozen_epochs} epochs, then " if how == "frozen-first" else ""
    layers = f", / {training.layer_decay:g} for each lower layer" if training.layer_decay != 1 else ""
    schedule = f"warm-up over {training.warmup:.0%} of the steps, {training.decay} decay, clipped at {training.clip:g}"
    return (
        f"pretrained encoder: {first}fine-tuned at rate {training.encoder_rate:g}{layers}; all else at "
        f"{training.learning_rate:g}; {schedule} (--encoder-lr, --lr, --pretrained-training)"
    )


def encoders_of(model: nn.Module) -> list[PretrainedEncoder]:
    """Return the pretrained encoders of a network, each once."""
    return [module for module in model.modules() if isinstance(module, PretrainedEncoder)]


def freeze_encoders(model: Any, epoch: int) -> None:
    """Freeze or thaw encoders as the settings want it in an epoch, counted from 1."""
    for encoder in encoders_of(model):
        encoder.freeze(_is_frozen_in(model.config, epoch))
        if not encoder.frozen:
            encoder.cache = None  # its vectors change from now on


def prepare_encoders(model: Any, sentences: Iterable[Sentence], epoch: int, note: Callable[[str], None]) -> None:
    """Compute the vectors of all sentences once, if an encoder is frozen in the epochs to come."""
    encoders = encoders_of(model)
    if not encoders or not _is_frozen_in(model.config, epoch):
        return
    words = [sentence.words for sentence in sentences]
    directory = getattr(model, "encodings_directory", None)
    for encoder in encoders:
        encoder.freeze(True)
        encoder.cache = cached_encodings(encoder, words, None if directory is None else Path(directory), note)


def release_encoders(model: Any) -> None:
    """Forget the vectors that were kept."""
    for encoder in encoders_of(model):
        encoder.cache = None
        encoder.freeze(model.config.encoder_training == "frozen")


def _is_frozen_in(config: Any, epoch: int) -> bool:
    how = config.encoder_training
    return how == "frozen" or (how == "frozen-first" and epoch <= config.pretrained_frozen_epochs)
