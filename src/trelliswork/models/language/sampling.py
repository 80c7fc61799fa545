"""Continuations of a text: samples from the distribution of a language model or its likely part, and beams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from trelliswork.models.language.base import LanguageModel
from trelliswork.models.language.config import GenerationSettings
from trelliswork.nn.decoders.generation import keep_best, nucleus, tempered


class Continuation(NamedTuple):
    """Units after a prefix, and the log probability of the units and of the end, if it was reached."""

    units: tuple[str, ...]
    log_prob: float
    ended: bool


def samples(
    model: LanguageModel, prefix: Sequence[str], wanted: GenerationSettings, top_k: int = 0
) -> Iterator[Continuation]:
    """Yield independent samples; the log probabilities are those of the model itself.

    Args:
        model: The language model.
        prefix: Units that come before.
        wanted: Number, length and distribution of the samples.
        top_k: Number of units that are drawn from, 0 for all.
    """
    generator = torch.Generator().manual_seed(wanted.seed)
    for _ in range(wanted.sample):
        units, total, ended = list(prefix), 0.0, False
        while not ended and len(units) < len(prefix) + wanted.longest:
            logs = model.next_log_probs(units)
            choice = int(torch.multinomial(_shaped(logs, wanted, top_k).exp(), 1, generator=generator))
            total += float(logs[choice])
            ended = choice == len(model.names)
            units += [] if ended else [model.names[choice]]
        yield Continuation(tuple(units[len(prefix) :]), total, ended)


def _shaped(logs: np.ndarray, wanted: GenerationSettings, top_k: int) -> torch.Tensor:
    """Return the distribution that is drawn from."""
    log_probs = torch.from_numpy(logs).double().log_softmax(-1)
    if wanted.temperature != 1:
        log_probs = tempered(log_probs, wanted.temperature)
    if top_k:
        log_probs = keep_best(log_probs, top_k)
    return nucleus(log_probs, wanted.nucleus) if wanted.nucleus != 1 else log_probs


def beam_search(model: LanguageModel, prefix: Sequence[str], width: int, longest: int) -> list[Continuation]:
    """Return the best continuations of a beam search, at most `width`, the most probable first.

    Args:
        model: The language model.
        prefix: Units that come before.
        width: Number of continuations that are kept.
        longest: Largest number of units of a continuation.
    """
    alive, finished = [Continuation((), 0.0, False)], list[Continuation]()
    for _ in range(longest + 1):
        grown = list[Continuation]()
        for each in alive:
            logs = model.next_log_probs((*prefix, *each.units))
            for i in np.argsort(-logs, kind="stable")[:width].tolist():
                ended = i == len(model.names)
                units = each.units if ended else (*each.units, model.names[i])
                grown.append(Continuation(units, each.log_prob + float(logs[i]), ended))
        best = sorted(grown, key=lambda each: -each.log_prob)[:width]
        finished = sorted([*finished, *(each for each in best if each.ended)], key=lambda each: -each.log_prob)[:width]
        alive = [each for each in best if not each.ended and len(each.units) <= longest]
        if not alive or (len(finished) == width and finished[-1].log_prob >= alive[0].log_prob):
            break
    return finished or [each for each in best if len(each.units) <= longest] or best
