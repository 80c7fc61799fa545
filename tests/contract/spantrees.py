"""Labelled binary trees to try, and a brute force of their own that knows nothing of the library."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain

Bracketing = tuple[tuple[int, int], ...]


def n_rows(instance: Instance) -> int:
    return instance.scores["spans"].shape[:-3].numel()


def lengths(instance: Instance) -> list[int]:
    if "lengths" in instance.options:
        return instance.options["lengths"].reshape(-1).tolist()
    return [instance.scores["spans"].shape[-2]] * n_rows(instance)


def rows_of(instance: Instance) -> Tensor:
    spans = instance.scores["spans"]
    return spans.reshape(-1, *spans.shape[-3:])


def read(instance: Instance) -> Tensor:
    """[rows, n, n, c] True at the spans of each row."""
    marks = torch.zeros(rows_of(instance).shape, dtype=torch.bool)
    for row, length in enumerate(lengths(instance)):
        for i in range(length):
            marks[row, i, i:length] = True
    return marks


def bracketings(start: int, end: int) -> list[Bracketing]:
    if end - start == 1:
        return [((start, end),)]
    return [
        ((start, end), *left, *right)
        for split in range(start + 1, end)
        for left in bracketings(start, split)
        for right in bracketings(split, end)
    ]


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every tree of a row with a score above -inf, and that score: nodes are labelled one after the other."""
    scores = rows_of(instance)[row].double().tolist()
    c = instance.scores["spans"].shape[-1]
    found: dict[Plain, float] = {}
    for brackets in bracketings(0, lengths(instance)[row]):
        partial: list[tuple[Any, float]] = [((), 0.0)]
        for start, end in brackets:
            partial = [
                ((*nodes, (start, end, y)), score + scores[start][end - 1][y])
                for nodes, score in partial
                for y in range(c)
                if scores[start][end - 1][y] > -INF
            ]
        found |= dict(partial)
    return found


def spans(
    seed: int,
    batch: tuple[int, ...] = (3,),
    n: int = 3,
    c: int = 2,
    *,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    forbidden: tuple[tuple[int, ...], ...] = (),
    **options: Tensor,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn((*batch, n, n, c), generator=generator, dtype=torch.float64)
    for place in forbidden:
        scores[place] = -INF
    return Instance({"spans": scores.to(dtype)}, options)


RAGGED = torch.tensor([3, 1, 2])
SOME = ((0, 1, 2), (0, 0, 2, 1), (2, 0, 0, 0))


def many() -> dict[str, Instance]:
    return {
        "full": spans(0),
        "ragged": spans(1, lengths=RAGGED),
        "forbidden": spans(2, lengths=RAGGED, forbidden=SOME),
        "five tokens, one label": spans(3, batch=(2,), n=5, c=1, lengths=torch.tensor([5, 4])),
        "ties": spans(4, lengths=RAGGED).mapped(lambda part: part.round()),
        "all equal": spans(5, batch=(1,), scale=0.0),
        "wide": spans(6, scale=300.0, lengths=RAGGED),
        "one token": spans(7, n=1, c=3),
        "no batch": spans(8, batch=(), lengths=torch.tensor(2)),
        "two batch axes": spans(9, batch=(2, 2), lengths=torch.tensor([[3, 2], [1, 3]])),
        "float32": spans(10, dtype=torch.float32, lengths=RAGGED),
    }


def small() -> dict[str, Instance]:
    return {
        "ragged": spans(30, batch=(2,), forbidden=((0, 1, 2, 0),), lengths=torch.tensor([3, 1])),
        "wide": spans(31, batch=(1,), forbidden=((0, 0, 1, 1),)).mapped(lambda part: 100 * part.sign()),
    }
