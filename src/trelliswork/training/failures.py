"""A batch that cannot be learned from: which, and what to change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, ScoreError, TrellisworkError, is_out_of_memory
from trelliswork.training.config import TrainingConfig

RUN_AWAY = 1e15  # no weight that is of any use is as large


class BadBatchError(TrellisworkError):
    """Training cannot go on from this batch."""


class BadValueError(BadBatchError):
    """Not finite: the weights may be at fault as well as the batch."""


def refuse_bad_value(
    name: str,
    value: float,
    place: str,
    sentences: Sequence[Sentence],
    config: TrainingConfig,
    cause: Exception | None = None,
) -> None:
    """A loss or a gradient that is not finite would spoil every weight.

    Args:
        name: What the value is, loss or gradient.
        value: The value.
        place: Where it came up, for the message.
        sentences: The sentences of the batch.
        config: Settings of training.
        cause: The error that it came from, if any.
    """
    if not math.isfinite(value):
        raise BadValueError(
            f"expected a finite {name}, got {value} in {place} ({describe(sentences)}); "
            f"lower the learning rate (now {config.learning_rate:g}) or clip harder"
        ) from cause


@contextmanager
def explaining_weights(
    model: nn.Module, place: str, sentences: Sequence[Sentence], config: TrainingConfig
) -> Iterator[None]:
    """Weights that have run away make scores that no structure takes; say so rather than what it says of them.

    Args:
        model: The model that is trained.
        place: Epoch and batch, in words.
        sentences: The batch.
        config: Settings of the training.

    Returns:
        A context in which an error of the scores is explained.
    """
    try:
        yield
    except (ScoreError, ConstraintError) as error:
        if not any(_has_run_away(parameter) for parameter in model.parameters()):
            raise
        refuse_bad_value("loss", math.nan, place, sentences, config, error)


def _has_run_away(weights: Tensor) -> bool:
    return not bool((weights.detach().abs() < RUN_AWAY).all())


@contextmanager
def explaining_memory(place: str, sentences: Sequence[Sentence], config: TrainingConfig) -> Iterator[None]:
    """Say which sentences did not fit into memory, and which settings would help.

    Args:
        place: Epoch and batch, in words.
        sentences: The batch.
        config: Settings of the training.

    Returns:
        A context in which an error of the memory is explained.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        longest = max(sentences, key=len)
        fix = f"set max_sentence_length below {len(longest)}, or split the sentence"
        if len(sentences) > 1:
            fix = f"lower batch_tokens (now {config.batch_tokens}), or {fix}"
        raise BadBatchError(
            f"expected {place} to fit into memory; it has {_count(sentences)}, the longest of {len(longest)} tokens at "
            f"{_place(longest)}; {fix}"
        ) from error


@contextmanager
def half_precision(device: str) -> Iterator[None]:
    """Network arithmetic in bf16; a processor that announces it and cannot do it gets a sentence.

    Virtual machines may announce the matrix unit AMX of the processor without letting programs use it.
    """
    try:
        with torch.autocast(device, torch.bfloat16):
            yield
    except RuntimeError as error:
        if "could not create a primitive" not in str(error):
            raise
        raise TrellisworkError(
            "expected a processor that computes in bf16, got one that announces it and refuses; train with precision "
            "float32, or set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
        ) from error


def describe(sentences: Sequence[Sentence]) -> str:
    """Return a batch in a few words: "3 sentences of up to 17 tokens, the first at train.conll:812"."""
    longest = max(map(len, sentences))
    return f"{_count(sentences)} of up to {longest} tokens, the first at {_place(sentences[0])}"


def _count(sentences: Sequence[Sentence]) -> str:
    return "1 sentence" if len(sentences) == 1 else f"{len(sentences)} sentences"


def _place(sentence: Sentence) -> str:
    return f"{sentence.file or 'sentence'}:{sentence.line}"


def fits(sentence: Sentence, config: TrainingConfig) -> bool:
    """Return whether a sentence is trained on: it has words, and not too many."""
    return 0 < len(sentence) <= (config.max_sentence_length or math.inf)
