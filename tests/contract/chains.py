"""Chains to try, and a brute force of their own that knows nothing of the library: plain loops over plain numbers."""

from __future__ import annotations

import itertools
from functools import lru_cache

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain

Tags = tuple[int, ...]


def n_rows(instance: Instance) -> int:
    return instance.scores["emissions"].shape[:-2].numel()


def valid(instance: Instance) -> Tensor:
    """[rows, n] True where a position is read."""
    emissions = instance.scores["emissions"]
    n = emissions.shape[-2]
    if "mask" in instance.options:
        return instance.options["mask"].reshape(-1, n).bool()
    if "lengths" in instance.options:
        return torch.arange(n) < instance.options["lengths"].reshape(-1, 1)
    return torch.ones(n_rows(instance), n, dtype=torch.bool)


@lru_cache(maxsize=4096)
def read(instance: Instance) -> list[list[bool]]:
    """`valid` as lists."""
    return valid(instance).tolist()


def places(instance: Instance, row: int) -> list[int]:
    """The positions of a row that are read."""
    return valid(instance)[row].nonzero().flatten().tolist()


def arcs_of(instance: Instance, row: int) -> list[list[list[float]]]:
    """arcs[t][i][j]: from tag i into position t with tag j; those into position 0 do not exist."""
    transitions, n = instance.scores["transitions"].double(), instance.scores["emissions"].shape[-2]
    if transitions.dim() == 2:
        return [transitions.tolist()] * n
    c = transitions.shape[-1]
    by_row = transitions.reshape(n_rows(instance), n - 1, c, c)
    return [[], *by_row[row].tolist()]


def edge_scores(instance: Instance, name: str, c: int) -> list[float]:
    return instance.scores[name].double().tolist() if name in instance.scores else [0.0] * c


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every tag sequence of a row with a score above -inf, and that score."""
    *_, n, c = instance.scores["emissions"].shape
    emissions = instance.scores["emissions"].double().reshape(-1, n, c)[row].tolist()
    arcs, start, end = arcs_of(instance, row), edge_scores(instance, "start", c), edge_scores(instance, "end", c)
    read, found = places(instance, row), {}
    for tags in itertools.product(range(c), repeat=len(read)):
        score = start[tags[0]] + end[tags[-1]]
        for i, t in enumerate(read):
            score += emissions[t][tags[i]]
            if i > 0:
                score += arcs[t][tags[i - 1]][tags[i]]
        if score > -INF:
            found[tags] = score
    return found


# --- instances -----------------------------------------------------------------------------------------------


def chain(
    seed: int,
    batch: tuple[int, ...] = (3,),
    n: int = 4,
    c: int = 3,
    *,
    by_position: bool = False,
    edges: bool = True,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    **options: Tensor,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)

    scores = {
        "emissions": draw(*batch, n, c),
        "transitions": draw(*batch, n - 1, c, c) if by_position else draw(c, c),
    }
    if edges:
        scores |= {"start": draw(c), "end": draw(c)}
    return Instance(scores, options)


def whole_numbers(instance: Instance) -> Instance:
    """Few different scores: ties everywhere."""
    return instance.mapped(lambda part: part.round())


def with_forbidden(instance: Instance, **entries: list[tuple[int, ...]]) -> Instance:
    """-inf at these entries of the named score tensors."""
    changed = {}
    for name, indices in entries.items():
        changed[name] = instance.scores[name].clone()
        for index in indices:
            changed[name][index] = -INF
    return instance.with_scores(**changed)


def barely_probable(n: int = 2, c: int = 8) -> Instance:
    """First tags whose probabilities, but for the last, are near the smallest float64: few of their digits are left."""
    emissions = torch.zeros(1, n, c, dtype=torch.float64)
    emissions[0, 0, :-1] = torch.linspace(-741, -744, c - 1)
    return Instance({"emissions": emissions, "transitions": torch.zeros(c, c, dtype=torch.float64)}, {})


RAGGED = torch.tensor([4, 1, 3])
HOLES = torch.tensor([[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0]]).bool()  # middle; first; last
EDGE_HOLES = torch.tensor([[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1]]).bool()  # both ends; one left; all but the ends


def many() -> dict[str, Instance]:
    forbidden = with_forbidden(
        chain(6, lengths=RAGGED),
        emissions=[(0, 1, 2), (1, 0, 0)],
        transitions=[(0, 1), (2, 2)],
        start=[(2,)],
        end=[(0,)],
    )
    forbidden_by_position = with_forbidden(
        chain(7, by_position=True, mask=HOLES), emissions=[(0, 2, 1)], transitions=[(0, 1, 0, 1), (2, 0, 1, 1)]
    )
    return {
        "full": chain(0),
        "without start and end": chain(1, edges=False),
        "ragged": chain(2, lengths=RAGGED),
        "ragged, arcs by position": chain(3, by_position=True, lengths=RAGGED),
        "holes": chain(4, mask=HOLES),
        "holes, arcs by position": chain(5, by_position=True, mask=EDGE_HOLES),
        "forbidden": forbidden,
        "forbidden, arcs by position": forbidden_by_position,
        "one position": chain(8, n=1),
        "one position, arcs by position": chain(9, n=1, by_position=True),
        "one row, arcs by position": chain(22, batch=(1,), by_position=True),
        "one tag left": with_forbidden(chain(10, n=3, c=2, lengths=torch.tensor([3, 2, 1])), emissions=[(1, 1, 0)]),
        "ties": whole_numbers(chain(11, lengths=RAGGED)),
        "all equal": chain(12, batch=(2,), n=3, scale=0.0),
        "wide": chain(13, scale=200.0, lengths=RAGGED),
        "barely probable": barely_probable(),
        "wide, arcs by position": chain(14, scale=300.0, by_position=True, mask=HOLES),
        "no batch": chain(15, batch=(), lengths=torch.tensor(3)),
        "no batch, arcs by position": chain(16, batch=(), by_position=True, mask=HOLES[0]),
        "two batch axes": chain(17, batch=(2, 3), n=3, c=2, lengths=torch.tensor([[3, 2, 1], [1, 3, 2]])),
        "two batch axes, arcs by position": chain(18, batch=(2, 2), n=3, c=2, by_position=True),
        "float32": chain(19, dtype=torch.float32, lengths=RAGGED),
        "float32, arcs by position": chain(20, dtype=torch.float32, by_position=True, mask=HOLES),
    }


def small() -> dict[str, Instance]:
    shared = chain(30, batch=(2,), n=3, c=2, lengths=torch.tensor([3, 2]))
    by_position = chain(31, batch=(2,), n=3, c=2, by_position=True, mask=torch.tensor([[1, 1, 1], [1, 0, 1]]).bool())
    three = chain(32, batch=(1,), n=3, c=3)
    return {
        "shared": with_forbidden(shared, emissions=[(0, 1, 0)], end=[(1,)]),
        "by position": with_forbidden(by_position, transitions=[(0, 0, 0, 1)], start=[(1,)]),
        "three tags": with_forbidden(three, transitions=[(0, 2), (1, 1)], start=[(1,)]),
        "wide": with_forbidden(
            shared.mapped(lambda part: 150 * part.sign()), emissions=[(0, 1, 0)]
        ),  # beyond scaled exp space
    }
