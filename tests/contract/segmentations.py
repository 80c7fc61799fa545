"""Segmentations to try, and a brute force of their own that knows nothing of the library: plain loops."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain
from tests.contract.chains import edge_scores, whole_numbers, with_forbidden
from tests.oracles.segments import cuts

Segmentation = tuple[tuple[int, int, int], ...]


def n_rows(instance: Instance) -> int:
    return instance.scores["segments"].shape[:-3].numel()


def lengths(instance: Instance) -> list[int]:
    n = instance.scores["segments"].shape[-3]
    if "lengths" in instance.options:
        return instance.options["lengths"].reshape(-1).tolist()
    return [n] * n_rows(instance)


def longest(instance: Instance) -> list[int]:
    """The longest segment of each label."""
    k, c = instance.scores["segments"].shape[-2:]
    return instance.options["max_lengths"].tolist() if "max_lengths" in instance.options else [k] * c


def read(instance: Instance) -> Tensor:
    """[rows, n, k, c] True at the segments that fit into their row and are not too long for their label."""
    n, k, c = instance.scores["segments"].shape[-3:]
    marks = torch.zeros(n_rows(instance), n, k, c, dtype=torch.bool)
    for row, length in enumerate(lengths(instance)):
        for i in range(length):
            for y, most in enumerate(longest(instance)):
                marks[row, i, : min(most, length - i), y] = True
    return marks


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every segmentation of a row with a score above -inf, and that score."""
    n, k, c = instance.scores["segments"].shape[-3:]
    scores = instance.scores["segments"].double().reshape(-1, n, k, c)[row].tolist()
    zeros = torch.zeros(c, c, dtype=torch.float64)
    arcs = instance.scores.get("transitions", zeros).double().tolist()
    start, end = edge_scores(instance, "start", c), edge_scores(instance, "end", c)
    found: dict[Plain, float] = {}
    for segments in cuts(0, lengths(instance)[row], longest(instance)):
        score = start[segments[0][2]] + end[segments[-1][2]]
        for index, (i, j, y) in enumerate(segments):
            score += scores[i][j - i - 1][y]
            if index > 0:
                score += arcs[segments[index - 1][2]][y]
        if score > -INF:
            found[segments] = score
    return found


# --- instances -----------------------------------------------------------------------------------------------


def semi(
    seed: int,
    batch: tuple[int, ...] = (3,),
    n: int = 4,
    k: int = 3,
    c: int = 2,
    *,
    first_order: bool = True,
    edges: bool = True,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    **options: Tensor,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)

    scores = {"segments": draw(*batch, n, k, c)}
    if first_order:
        scores["transitions"] = draw(c, c)
    if edges:
        scores |= {"start": draw(c), "end": draw(c)}
    return Instance(scores, options)


RAGGED = torch.tensor([4, 1, 3])


def many() -> dict[str, Instance]:
    forbidden = with_forbidden(
        semi(6, c=3, lengths=RAGGED),
        segments=[(0, 1, 0, 2), (0, 2, 1, 0), (1, 0, 0, 0), (2, 0, 2, 0)],
        transitions=[(0, 1), (2, 2)],
        start=[(2,)],
        end=[(0,)],
    )
    return {
        "full": semi(0),
        "without start and end": semi(1, edges=False),
        "0th order": semi(2, first_order=False, lengths=RAGGED),
        "only segments": semi(3, first_order=False, edges=False),
        "ragged": semi(4, c=3, lengths=RAGGED),
        "k is 1": semi(5, k=1, lengths=RAGGED),
        "forbidden": forbidden,
        "forbidden, 0th order": with_forbidden(
            semi(7, first_order=False, lengths=RAGGED), segments=[(0, 1, 0, 1), (2, 0, 0, 0), (0, 3, 0, 1)], end=[(0,)]
        ),
        "one position": semi(8, n=1, k=1),
        "k beyond n": semi(9, n=2, k=4, lengths=torch.tensor([2, 1, 2])),
        "one label": semi(10, c=1, lengths=RAGGED.clamp(min=2)),
        "limits": semi(11, lengths=RAGGED, max_lengths=torch.tensor([3, 1])),
        "limits, 0th order": semi(12, first_order=False, max_lengths=torch.tensor([1, 2])),
        "ties": whole_numbers(semi(13, lengths=RAGGED)),
        "all equal": semi(14, batch=(2,), n=3, scale=0.0),
        "wide": semi(15, scale=300.0, lengths=RAGGED),
        "wide, 0th order": semi(16, scale=300.0, first_order=False, lengths=RAGGED),
        "no batch": semi(17, batch=(), lengths=torch.tensor(3)),
        "two batch axes": semi(18, batch=(2, 3), n=3, k=2, lengths=torch.tensor([[3, 2, 1], [1, 3, 2]])),
        "float32": semi(19, dtype=torch.float32, lengths=RAGGED),
        "float32, 0th order": semi(20, dtype=torch.float32, first_order=False, lengths=RAGGED),
    }


def small() -> dict[str, Instance]:
    ragged = semi(30, batch=(2,), n=3, k=2, lengths=torch.tensor([3, 2]))
    return {
        "first order": with_forbidden(ragged, segments=[(0, 1, 0, 0)], end=[(1,)]),
        "0th order": with_forbidden(semi(31, batch=(1,), n=3, k=3, first_order=False), segments=[(0, 0, 1, 1)]),
        "limits": with_forbidden(
            semi(32, batch=(1,), n=3, k=2, max_lengths=torch.tensor([2, 1])), transitions=[(0, 1)]
        ),
        "wide": with_forbidden(ragged.mapped(lambda part: 400 * part.sign()), segments=[(0, 1, 0, 0)]),
    }
