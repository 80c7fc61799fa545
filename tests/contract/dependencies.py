"""Dependency trees to try, and a brute force of their own that knows nothing of the library.

Spanning and projective trees share the parts, the values and therefore the hooks of the contract; they differ in which
head sequences are allowed.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, PartialKnowledge, Plain, StructureContract
from tests.oracles.dependencies import trees

UNREAD = 77  # stands at padding, going in


def n_rows(instance: Instance) -> int:
    return instance.scores["arcs"].shape[:-2].numel()


@lru_cache(maxsize=4096)
def lengths(instance: Instance) -> list[int]:
    n = instance.scores["arcs"].shape[-1] - 1
    if "lengths" in instance.options:
        return instance.options["lengths"].reshape(-1).tolist()
    return [n] * n_rows(instance)


def single_root(instance: Instance) -> bool:
    return bool(instance.options.get("single_root", True))


def rows_of(instance: Instance) -> Tensor:
    arcs = instance.scores["arcs"]
    return arcs.reshape(-1, *arcs.shape[-2:])


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int, projective: bool) -> dict[Plain, float]:
    """Every tree of a row with a score above -inf, and that score."""
    arcs = rows_of(instance)[row].double().tolist()
    found = {}
    for heads in trees(lengths(instance)[row], single_root(instance), projective):
        score = sum(arcs[head][word] for word, head in enumerate(heads, 1))
        if score > -INF:
            found[heads] = score
    return found


# --- instances -----------------------------------------------------------------------------------------------


def arcs(
    seed: int,
    batch: tuple[int, ...] = (3,),
    n: int = 4,
    *,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    multi_root: bool = False,
    forbidden: tuple[tuple[int, ...], ...] = (),
    **options: Tensor,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn((*batch, n + 1, n + 1), generator=generator, dtype=torch.float64)
    for place in forbidden:
        scores[place] = -INF
    if multi_root:
        options["single_root"] = torch.tensor(False)
    return Instance({"arcs": scores.to(dtype)}, options)


RAGGED = torch.tensor([4, 1, 3])
SOME = ((0, 1, 2), (0, 0, 3), (0, 4, 1), (2, 2, 1), (2, 0, 1))


def many() -> dict[str, Instance]:
    ties = arcs(6, lengths=RAGGED).mapped(lambda part: part.round())
    mutual = arcs(12, n=3)  # two words that prefer each other by 400 nats: no determinant sees the rest
    mutual.scores["arcs"][:, 1, 2] += 400.0
    mutual.scores["arcs"][:, 2, 1] += 400.0
    only_root_word = arcs(13, lengths=RAGGED, forbidden=((0, 1, 4), (0, 2, 4), (0, 3, 4)))
    return {
        "full, multi-root": arcs(1, n=3, batch=(2,), multi_root=True),
        "ragged": arcs(2, lengths=RAGGED),
        "forbidden": arcs(4, lengths=RAGGED, forbidden=SOME),
        "forbidden, multi-root": arcs(5, lengths=RAGGED, forbidden=SOME, multi_root=True),
        "ties": ties,
        "all equal": arcs(7, batch=(2,), n=3, scale=0.0),
        "wide": arcs(8, scale=200.0, lengths=RAGGED),
        "wide, multi-root": arcs(9, scale=300.0, lengths=RAGGED, forbidden=SOME, multi_root=True),
        "a thousand": arcs(10, scale=1000.0, n=3),
        "mutual": mutual,
        "one word must be the root": only_root_word,
        "no batch": arcs(14, batch=(), lengths=torch.tensor(3)),
        "two batch axes": arcs(15, batch=(2, 2), n=3, lengths=torch.tensor([[3, 2], [1, 3]])),
        "float32": arcs(16, dtype=torch.float32, lengths=RAGGED),
    }


def small() -> dict[str, Instance]:
    return {
        "ragged": arcs(30, batch=(2,), n=2, lengths=torch.tensor([2, 1])),
        "forbidden": arcs(31, batch=(1,), n=3, forbidden=((0, 1, 2), (0, 0, 1))),
        "multi-root": arcs(32, batch=(1,), n=2, multi_root=True),
        "wide": arcs(33, batch=(1,), n=2).mapped(lambda part: 400 * part.sign()),
    }


# --- hooks ---------------------------------------------------------------------------------------------------


class DependencyContract(StructureContract):
    """The hooks that both families of trees fill in the same way."""

    gradient_of = "arcs"
    projective: bool

    def instances(self) -> dict[str, Instance]:
        return many()

    def small_instances(self) -> dict[str, Instance]:
        return small()

    def impossible(self) -> tuple[Instance, int]:
        """The second row has two words, and neither may hang from the root."""
        return arcs(21, lengths=torch.tensor([4, 2, 3]), forbidden=((1, 0, 1), (1, 0, 2))), 1

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return support(instance, row, self.projective)

    def n_rows(self, instance: Instance) -> int:
        return n_rows(instance)

    def to_plain(self, instance: Instance, value: Tensor) -> list[Plain]:
        rows = value.reshape(n_rows(instance), -1).tolist()
        for row, length in zip(rows, lengths(instance), strict=True):
            assert not any(row[length:]), "padding comes out as 0"
        return [tuple(row[:length]) for row, length in zip(rows, lengths(instance), strict=True)]

    def to_value(self, instance: Instance, plain: list[Any]) -> Tensor:
        shape = instance.scores["arcs"].shape
        value = torch.full((n_rows(instance), shape[-1] - 1), UNREAD)
        for row, (heads, length) in enumerate(zip(plain, lengths(instance), strict=True)):
            value[row, :length] = torch.tensor(heads[:length])
        return value.reshape(*shape[:-2], -1)

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["arcs"].shape[-2:], dtype=torch.float64)
        for word, head in enumerate(plain, 1):
            marks[head, word] = 1.0
        return marks

    def enumerated_marginals(self, instance: Instance) -> Tensor:
        marginals = super().enumerated_marginals(instance)
        return marginals.reshape(instance.scores["arcs"].shape)

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        return [self.pinned(instance), self.sets(instance), self.nothing_known(instance)]

    def pinned(self, instance: Instance) -> PartialKnowledge:
        """The first word of each row has the head that it has in the best tree."""
        known = [
            max(found.items(), key=lambda pair: pair[1])[0][0] if found else 0  # type: ignore[index]
            for found in self.supports(instance)
        ]
        argument = torch.full((n_rows(instance), instance.scores["arcs"].shape[-1] - 1), -100)
        argument[:, 0] = torch.tensor(known)
        shape = instance.scores["arcs"].shape
        return PartialKnowledge(argument.reshape(*shape[:-2], -1), lambda row, heads: heads[0] == known[row])

    def sets(self, instance: Instance) -> PartialKnowledge:
        """The last word of each row hangs from another word; where no arc can be, none is allowed either."""
        allowed = self.is_arc(instance)
        for row, length in enumerate(lengths(instance)):
            allowed[row, 0, length] = False
        shape = instance.scores["arcs"].shape
        return PartialKnowledge(allowed.reshape(shape), lambda row, heads: heads[-1] != 0)

    def nothing_known(self, instance: Instance) -> PartialKnowledge:
        shape = instance.scores["arcs"].shape
        return PartialKnowledge(torch.full((*shape[:-2], shape[-1] - 1), -100), lambda row, heads: True)

    def is_arc(self, instance: Instance) -> Tensor:
        found = torch.zeros(rows_of(instance).shape, dtype=torch.bool)
        for row, length in enumerate(lengths(instance)):
            for head, word in itertools.product(range(length + 1), range(1, length + 1)):
                found[row, head, word] = head != word
        return found

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        return instance.mapped(lambda part: part + by), [by * length for length in lengths(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        size = lengths(instance)[row] + 1
        options = {name: option for name, option in instance.options.items() if name == "single_root"}
        return Instance({"arcs": rows_of(instance)[row, :size, :size][None]}, options)

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        kept = torch.where(self.is_arc(instance), rows_of(instance), garbage)
        return instance.with_scores(arcs=kept.reshape(instance.scores["arcs"].shape))

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        changed = rows_of(instance).clone()
        changed[row, plain[-1], len(plain)] = -INF
        return instance.with_scores(arcs=changed.reshape(instance.scores["arcs"].shape))
