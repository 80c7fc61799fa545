"""Frames and label strings to try, and a brute force of their own that knows nothing of the library: plain loops."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain
from tests.oracles.ctc import collapsed


def n_rows(instance: Instance) -> int:
    return instance.scores["log_probs"].shape[:-2].numel()


@lru_cache(maxsize=4096)
def frames(instance: Instance) -> list[int]:
    t = instance.scores["log_probs"].shape[-2]
    return instance.options["lengths"].reshape(-1).tolist() if "lengths" in instance.options else [t] * n_rows(instance)


def strings(instance: Instance) -> list[tuple[int, ...]]:
    targets = instance.options["targets"]
    u = targets.shape[-1]
    sizes = [u] * n_rows(instance)
    if "target_lengths" in instance.options:
        sizes = instance.options["target_lengths"].reshape(-1).tolist()
    return [tuple(row[:size]) for row, size in zip(targets.reshape(n_rows(instance), u).tolist(), sizes, strict=True)]


def blank(instance: Instance) -> int:
    return int(instance.options.get("blank", 0))


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every path of a row that collapses to its labels with a score above -inf, and that score."""
    t, c = instance.scores["log_probs"].shape[-2:]
    scores = instance.scores["log_probs"].double().reshape(-1, t, c)[row].tolist()
    found = {}
    for path in itertools.product(range(c), repeat=frames(instance)[row]):
        score = sum(scores[i][symbol] for i, symbol in enumerate(path))
        if score > -INF and collapsed(path, blank(instance)) == strings(instance)[row]:
            found[path] = score
    return found


# --- instances -----------------------------------------------------------------------------------------------

TARGETS = torch.tensor([[1, 2], [2, 0], [1, 1]])


def labelled(
    seed: int,
    batch: tuple[int, ...] = (3,),
    t: int = 5,
    c: int = 3,
    *,
    targets: Tensor = TARGETS,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    forbidden: tuple[tuple[int, ...], ...] = (),
    **options: Any,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn((*batch, t, c), generator=generator, dtype=torch.float64)
    for place in forbidden:
        scores[place] = -INF
    return Instance({"log_probs": scores.to(dtype)}, {"targets": targets, **options})


RAGGED = {"lengths": torch.tensor([4, 1, 3]), "target_lengths": torch.tensor([2, 1, 2])}
SOME = ((0, 1, 0), (0, 2, 1), (2, 0, 0))


def many() -> dict[str, Instance]:
    sizes = {"target_lengths": torch.tensor([2, 1, 2])}
    return {
        "plain": labelled(0, **sizes),
        "ragged": labelled(1, **RAGGED),
        "float32": labelled(2, dtype=torch.float32, **RAGGED),
        "forbidden": labelled(3, forbidden=SOME, **RAGGED),
        "ties": labelled(4, **RAGGED).mapped(torch.zeros_like),
        "wide": labelled(5, scale=300.0, **sizes),
        "empty string": labelled(6, targets=torch.tensor([[1], [0], [2]]), target_lengths=torch.tensor([1, 0, 1])),
        "blank last": labelled(
            7, targets=torch.tensor([[0, 1], [1, 1], [0, 2]]), target_lengths=torch.tensor([2, 2, 1]),
            blank=torch.tensor(2),
        ),
        "no batch": labelled(8, (), t=4, targets=torch.tensor([2, 1])),
        "two axes": labelled(9, (2, 2), t=3, targets=torch.tensor([[[1], [2]], [[2], [1]]])),
    }  # fmt: skip
