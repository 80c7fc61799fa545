"""Answers that must not depend on what was compiled before them; run as a program with the things to do, in order; the
name of a structure stands for its check.

python -m tests.runtime.orders "chain loss" chain checks
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import torch

import trelliswork
from trelliswork.distributions.registry import STRUCTURES, example_of
from trelliswork.nn import CRF, SemiCRF
from trelliswork.structures.record import Scores

BY_NAME = {structure.name: structure for structure in STRUCTURES}
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
    return {what: sentence for name in BY_NAME for what, sentence in check(name).items()}


def check(name: str) -> dict[str, Any]:
    """What one structure says of it."""
    return {f"{name} with {what}": said(name, bad) for what, bad in BAD.items()}


def said(name: str, bad: float) -> str:
    try:
        example_of(BY_NAME[name], random_scores(bad))
    except (trelliswork.TrellisworkError, ValueError) as error:
        return str(error)
    return "nothing"


def chain_loss() -> dict[str, Any]:
    """The likelihood of tags, by a kernel with fast arithmetic that calls the check of scores."""
    torch.manual_seed(5)
    crf = CRF(3, batch_first=True).double()
    with torch.no_grad():
        return {"chain loss": crf(random_scores()(2, 4, 3), torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]])).item()}


def segment_loss() -> dict[str, Any]:
    """The likelihood of segmentations, by another such kernel."""
    torch.manual_seed(5)
    crf = SemiCRF(2, max_length=3).double()
    with torch.no_grad():
        return {"segment loss": crf(random_scores()(1, 4, 3, 2), [[(0, 3, 1), (3, 4, 0)]]).item()}


THINGS = {"checks": checks, "chain loss": chain_loss, "segment loss": segment_loss}


def answers(order: list[str]) -> dict[str, Any]:
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for what in order:
        found |= THINGS[what]() if what in THINGS else check(what)
    return found


if __name__ == "__main__":
    print(json.dumps(answers(sys.argv[1:])))
