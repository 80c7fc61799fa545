"""Answers that must not depend on what was compiled before them; run as a program with the things to do, in order.

python -m tests.runtime.orders checks chain
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import torch

import trelliswork
from trelliswork.data import Sentence
from trelliswork.distributions.registry import example_of
from trelliswork.models import FeatureTagger, LearningConfig, Tagger, TaggerConfig
from trelliswork.structures.record import Scores
from trelliswork.structures.registry import STRUCTURES

BY_NAME = {structure.name: structure for structure in STRUCTURES}
SENTENCES = [Sentence(("Ann", "sings"), ("B-X", "O")), Sentence(("Stop",), ("O",))] * 3
BAD = {"NaN": math.nan, "+inf": math.inf}


def random_scores(first: float | None = None) -> Scores:
    """Random scores, the same for every process; with a value in place of two of the first ones."""
    generator, waiting = torch.Generator().manual_seed(1), [] if first is None else [first]

    def scores(*shape: int) -> torch.Tensor:
        drawn = torch.randn(shape, dtype=torch.float64, generator=generator)
        if waiting:
            drawn.view(-1)[[1, -1]] = waiting.pop()  # one of them is a part of every structure
        return drawn.requires_grad_()

    return scores


def checks() -> dict[str, Any]:
    """What each structure says of a score that is not one."""
    return {f"{name} with {what}": said(name, bad) for name in BY_NAME for what, bad in BAD.items()}


def said(name: str, bad: float) -> str:
    try:
        example_of(BY_NAME[name], random_scores(bad))
    except (trelliswork.TrellisworkError, ValueError) as error:
        return str(error)
    return "nothing"


def structure(name: str) -> dict[str, Any]:
    """The sum over all values: the kernel that calls most of the others."""
    return {f"{name}: log Z": example_of(BY_NAME[name], random_scores()).log_partition.tolist()}


def training() -> dict[str, Any]:
    """Losses of a network and of a feature model."""
    torch.manual_seed(5)
    tagger = Tagger.from_data(SENTENCES, TaggerConfig(word_dim=4, hidden=16, min_count=1))
    loss = tagger.loss(SENTENCES)
    loss.backward()
    features = FeatureTagger.fit(SENTENCES, LearningConfig(max_iterations=2))
    return {"training: loss": loss.item(), "training: tags": [list(tags) for tags in features.tag(SENTENCES)]}


def answers(order: list[str]) -> dict[str, Any]:
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for what in order:
        found |= checks() if what == "checks" else training() if what == "training" else structure(what)
    return found


if __name__ == "__main__":
    print(json.dumps(answers(sys.argv[1:])))
