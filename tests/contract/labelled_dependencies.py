"""Dependency trees with labels to try: the brute force multiplies the trees of `dependencies.py` by all labellings."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tests.contract import dependencies
from tests.contract.base import INF, Instance, PartialKnowledge, Plain
from tests.contract.dependencies import UNREAD, DependencyContract, lengths, n_rows, rows_of, single_root
from tests.oracles.dependencies import trees


def label_rows(instance: Instance) -> Tensor:
    labels = instance.scores["labels"]
    return labels.reshape(-1, *labels.shape[-3:])


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int, projective: bool) -> dict[Plain, float]:
    """Every tree with labels whose score is above -inf; a value is a tuple of (head, label) pairs."""
    arcs, labels = rows_of(instance)[row].double().tolist(), label_rows(instance)[row].double().tolist()
    n_labels, found = label_rows(instance).shape[-1], {}
    for heads in trees(lengths(instance)[row], single_root(instance), projective):
        for chosen in itertools.product(range(n_labels), repeat=len(heads)):
            pairs = tuple(zip(heads, chosen, strict=True))
            score = sum(arcs[head][word] + labels[head][word][label] for word, (head, label) in enumerate(pairs, 1))
            if score > -INF:
                found[pairs] = score
    return found


def labelled(seed: int, n_labels: int, *, scale: float = 1.0, forbidden: Any = (), **given: Any) -> Instance:
    """`dependencies.arcs` with labels; `forbidden` are places (row, head, word, label)."""
    unlabelled = dependencies.arcs(seed, scale=scale, **given)
    arcs = unlabelled.scores["arcs"]
    generator = torch.Generator().manual_seed(1000 + seed)
    labels = scale * torch.randn((*arcs.shape, n_labels), generator=generator, dtype=torch.float64)
    for place in forbidden:
        labels[place] = -INF
    return unlabelled.with_scores(labels=labels.to(arcs.dtype))


RAGGED = torch.tensor([3, 1, 2])
SOME = ((0, 1, 2, 0), (0, 1, 2, 1), (0, 0, 3, 1), (2, 2, 1, 0), (1, 0, 1, 1))


class LabelledDependencyContract(DependencyContract):
    """The hooks that differ when arcs have labels."""

    gradient_of = "labels"

    def instances(self) -> dict[str, Instance]:
        return {
            "ragged": labelled(40, 2, n=3, lengths=RAGGED),
            "ragged, multi-root, forbidden": labelled(41, 2, n=3, lengths=RAGGED, multi_root=True, forbidden=SOME),
            "wide": labelled(42, 2, n=3, scale=300.0, forbidden=SOME, lengths=RAGGED),
            "ties": labelled(43, 2, batch=(1,), n=3).mapped(torch.round),
            "one label": labelled(44, 1, batch=(2,), n=3),
            "two batch axes, float32": labelled(45, 3, batch=(1, 2), n=2, dtype=torch.float32),
        }

    def small_instances(self) -> dict[str, Instance]:
        return {"forbidden": labelled(50, 2, batch=(1,), n=2, forbidden=((0, 1, 2, 0), (0, 0, 1, 1)))}

    def impossible(self) -> tuple[Instance, int]:
        none_from_root = ((1, 0, 1, 0), (1, 0, 1, 1), (1, 0, 2, 0), (1, 0, 2, 1))
        return labelled(51, 2, n=3, lengths=torch.tensor([3, 2, 1]), forbidden=none_from_root), 1

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return support(instance, row, self.projective)

    def to_plain(self, instance: Instance, value: Tensor) -> list[Plain]:
        rows = value.reshape(n_rows(instance), -1, 2).tolist()
        for row, length in zip(rows, lengths(instance), strict=True):
            assert not any(map(any, row[length:])), "padding comes out as 0"
        return [tuple(map(tuple, row[:length])) for row, length in zip(rows, lengths(instance), strict=True)]

    def to_value(self, instance: Instance, plain: list[Any]) -> Tensor:
        shape = instance.scores["arcs"].shape
        value = torch.full((n_rows(instance), shape[-1] - 1, 2), UNREAD)
        for row, (pairs, length) in enumerate(zip(plain, lengths(instance), strict=True)):
            value[row, :length] = torch.tensor(pairs[:length])
        return value.reshape(*shape[:-2], -1, 2)

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["labels"].shape[-3:], dtype=torch.float64)
        for word, (head, label) in enumerate(plain, 1):
            marks[head, word, label] = 1.0
        return marks

    def enumerated_marginals(self, instance: Instance) -> Tensor:
        rows = super(DependencyContract, self).enumerated_marginals(instance)
        return rows.reshape(instance.scores["labels"].shape)

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        return [self.pinned(instance), self.a_label(instance), self.heads_only(instance), self.a_mask(instance)]

    def best(self, instance: Instance) -> list[Any]:
        found = self.supports(instance)
        return [max(each.items(), key=lambda pair: pair[1])[0] if each else ((0, 0),) for each in found]

    def unknown(self, instance: Instance) -> Tensor:
        shape = instance.scores["arcs"].shape
        return torch.full((n_rows(instance), shape[-1] - 1, 2), -100)

    def pairs(self, instance: Instance, argument: Tensor) -> Tensor:
        return argument.reshape(*instance.scores["arcs"].shape[:-2], -1, 2)

    def pinned(self, instance: Instance) -> PartialKnowledge:
        """The first word of each row has the head and the label that it has in the best tree."""
        known, argument = [pairs[0] for pairs in self.best(instance)], self.unknown(instance)
        argument[:, 0] = torch.tensor(known)
        return PartialKnowledge(self.pairs(instance, argument), lambda row, pairs: pairs[0] == known[row])

    def a_label(self, instance: Instance) -> PartialKnowledge:
        """Only the label of the last word is known, not its head."""
        known, argument = [pairs[-1][1] for pairs in self.best(instance)], self.unknown(instance)
        for row, length in enumerate(lengths(instance)):
            argument[row, length - 1, 1] = known[row]
        return PartialKnowledge(self.pairs(instance, argument), lambda row, pairs: pairs[-1][1] == known[row])

    def heads_only(self, instance: Instance) -> PartialKnowledge:
        known, argument = [pairs[0][0] for pairs in self.best(instance)], self.unknown(instance)[..., 0]
        argument[:, 0] = torch.tensor(known)
        argument = argument.reshape(*instance.scores["arcs"].shape[:-2], -1)
        return PartialKnowledge(argument, lambda row, pairs: pairs[0][0] == known[row])

    def a_mask(self, instance: Instance) -> PartialKnowledge:
        """Label 0 is not allowed on arcs from word 1."""
        allowed = torch.ones_like(label_rows(instance), dtype=torch.bool)
        allowed[:, 1, :, 0] = False
        shape = instance.scores["labels"].shape
        return PartialKnowledge(allowed.reshape(shape), lambda row, pairs: (1, 0) not in pairs)

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        moved = instance.with_scores(labels=instance.scores["labels"] + by)
        return moved, [by * length for length in lengths(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        alone, size = super().one_row(instance, row), lengths(instance)[row] + 1
        return alone.with_scores(labels=label_rows(instance)[row, :size, :size][None])

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        changed = super().with_garbage(instance, garbage)
        kept = torch.where(self.is_arc(instance)[..., None], label_rows(instance), garbage)
        return changed.with_scores(labels=kept.reshape(instance.scores["labels"].shape))

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        changed, (head, label) = label_rows(instance).clone(), plain[-1]
        changed[row, head, len(plain), label] = -INF
        return instance.with_scores(labels=changed.reshape(instance.scores["labels"].shape))
