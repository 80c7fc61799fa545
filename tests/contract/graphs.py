"""Factor graphs to try, and a brute force of their own that knows nothing of the library: plain loops, plain numbers.

Score tensors are named: "unary"; "shared ..." for a clique template; "each ..." for scores by clique,
[*batch, cliques, ...]. The cliques of a name are in the options, under the name with " cliques".
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain
from tests.contract.chains import whole_numbers, with_forbidden

Cliques = list[tuple[int, ...]]


def n_rows(instance: Instance) -> int:
    return instance.scores["unary"].shape[:-2].numel()


def sizes(instance: Instance) -> list[int]:
    n, c = instance.scores["unary"].shape[-2:]
    return instance.options["sizes"].tolist() if "sizes" in instance.options else [c] * n


def present(instance: Instance) -> Tensor:
    """[rows, n] True where a row has the variable."""
    n = instance.scores["unary"].shape[-2]
    mask = instance.options.get("mask", torch.ones(n_rows(instance), n, dtype=torch.bool))
    return mask.reshape(-1, n)


def cliques(instance: Instance, name: str) -> list[list[int]]:
    return instance.options[f"{name} cliques"].tolist()


def names(instance: Instance) -> list[str]:
    return [name for name in instance.scores if name != "unary"]


def read(instance: Instance) -> Tensor:
    """[rows, n, c] True where unary is read."""
    c = instance.scores["unary"].shape[-1]
    return present(instance)[..., None] & (torch.arange(c) < torch.tensor(sizes(instance))[:, None])


def tables(instance: Instance, name: str, row: int) -> list[Tensor]:
    """The scores of each clique, in this row."""
    scores, found = instance.scores[name].double(), cliques(instance, name)
    m = len(found[0])
    if name.startswith("shared"):
        return [scores] * len(found)
    return list(scores.reshape(-1, len(found), *scores.shape[scores.dim() - m :])[row])


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every assignment of a row with a score above -inf, and that score; 0 for variables that the row does not have."""
    n, c = instance.scores["unary"].shape[-2:]
    unary = instance.scores["unary"].double().reshape(-1, n, c)[row].tolist()
    here, found = present(instance)[row].tolist(), {}
    factors = [
        (clique, table.tolist())
        for name in names(instance)
        for clique, table in zip(cliques(instance, name), tables(instance, name, row), strict=True)
        if all(here[variable] for variable in clique)
    ]
    for values in itertools.product(*(range(s) if h else [0] for s, h in zip(sizes(instance), here, strict=True))):
        score = sum(unary[v][values[v]] for v in range(n) if here[v])
        for clique, table in factors:
            entry = table
            for variable in clique:
                entry = entry[values[variable]]
            score += entry
        if score > -INF:
            found[values] = float(score)
    return found


# --- instances -----------------------------------------------------------------------------------------------


def graph(
    seed: int,
    batch: tuple[int, ...] = (2,),
    n: int = 4,
    c: int = 2,
    *,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    shared: dict[str, Cliques] | None = None,
    each: dict[str, Cliques] | None = None,
    **options: Tensor,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)
    sizes = options["sizes"].tolist() if "sizes" in options else [c] * n

    def draw(*shape: int) -> Tensor:
        return (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)

    scores = {"unary": draw(*batch, n, c)}
    for kind, found in (("shared", shared), ("each", each)):
        for name, given in (found or {}).items():
            shape = [sizes[variable] for variable in given[0]]
            scores[f"{kind} {name}"] = draw(*shape) if kind == "shared" else draw(*batch, len(given), *shape)
            options[f"{kind} {name} cliques"] = torch.tensor(given)
    return Instance(scores, options)


CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]
GRID = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
MIXED = torch.tensor([2, 3, 1, 3])
ABSENT = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1]]).bool()


def many() -> dict[str, Instance]:
    forbidden = graph(5, (3,), c=3, shared={"pair": CYCLE}, each={"triple": [(0, 1, 2), (3, 1, 0)]}, mask=ABSENT)
    return {
        "one variable": graph(1, (3,), n=1, c=3),
        "cycle, shared": graph(2, c=3, shared={"pair": CYCLE}),
        "grid": graph(3, n=6, each={"pair": GRID}),
        "sizes": graph(
            4, c=3, sizes=MIXED, each={"a": [(0, 1), (0, 3)], "b": [(3, 2, 1)]}, shared={"c": [(1, 3), (3, 1)]}
        ),
        "forbidden, ragged": with_forbidden(
            forbidden,
            unary=[(0, 1, 2), (1, 0, 0), (2, 3, 1)],
            **{"shared pair": [(0, 1)], "each triple": [(0, 1, 2, 2)]},
        ),
        "cliques of four": graph(6, n=5, each={"four": [(4, 0, 2, 1)], "pair": [(1, 3), (3, 4)]}),
        "disconnected": graph(7, n=5, shared={"pair": [(0, 4), (2, 1)]}),
        "ties": whole_numbers(graph(8, n=4, c=2, shared={"pair": CYCLE})),
        "wide": graph(10, scale=300.0, c=3, shared={"pair": CYCLE}),
        "no batch": graph(11, (), each={"pair": CYCLE}),
        "two batch axes": graph(12, (2, 2), n=3, shared={"pair": [(0, 1), (1, 2)]}, each={"triple": [(0, 1, 2)]}),
        "float32": graph(13, (3,), c=3, dtype=torch.float32, shared={"pair": CYCLE}, mask=ABSENT),
    }


def small() -> dict[str, Instance]:
    cycle = graph(
        30, (2,), n=3, shared={"pair": [(0, 1), (1, 2), (0, 2)]}, mask=torch.tensor([[1, 1, 1], [1, 0, 1]]).bool()
    )
    return {
        "cycle": with_forbidden(cycle, unary=[(0, 1, 0)], **{"shared pair": [(0, 1)]}),
        "triple": with_forbidden(
            graph(31, (1,), n=3, c=3, sizes=torch.tensor([2, 1, 3]), each={"triple": [(2, 1, 0)]}),
            **{"each triple": [(0, 0, 1, 0, 0)]},
        ),
    }
