"""A factor graph of the events of a document: types of triggers, roles, and types of entities, scored together.

Yang and Mitchell (2016), Joint extraction of events and entities within a document context.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from trelliswork.distributions.approximation import Approximation
from trelliswork.distributions.factor_graph import FactorGraph
from trelliswork.runtime.shapes import Float, Int

INF = float("inf")
MOST_ENTRIES = 1 << 20  # numbers in the tables of a junction tree; wider graphs have no exact answers
T = TypeVar("T")


class WithinEvent(NamedTuple):
    """Scores of triggers i with all entities j of their document: θ1 f1(t_i), θ2 f2(r_ij), θ3 f3(t, r), θ4 f4(a_j)
    and θ5 f5(r, a). Value 0 is none of each.
    """

    types: Float[Tensor, "m t"]
    roles: Float[Tensor, "m k r"]
    type_roles: Float[Tensor, "t r"]
    kinds: Float[Tensor, "m k a"]
    role_kinds: Float[Tensor, "r a"]

    def entity_sums(self) -> Float[Tensor, "m k t"]:
        """ln Σ_{r, a} of what entity j adds to each type of trigger i."""
        of_roles = (self.kinds[:, :, None] + self.role_kinds).logsumexp(-1)  # (m, k, r)
        return (self.roles[:, :, None] + self.type_roles + of_roles[:, :, None]).logsumexp(-1)

    def type_sums(self) -> Float[Tensor, "m t"]:
        """ln Σ_{r, a} of all for each type."""
        return self.types + self.entity_sums().sum(1)

    def score(
        self, types: Int[Tensor, "m"], roles: Int[Tensor, "m k"], kinds: Int[Tensor, "m k"]
    ) -> Float[Tensor, "m"]:
        """The exponent of the within-event model."""  # [S4.282]
        of_roles = self.roles.gather(2, roles[..., None]).squeeze(2) + self.type_roles[types[:, None], roles]
        of_kinds = self.kinds.gather(2, kinds[..., None]).squeeze(2) + self.role_kinds[roles, kinds]
        return self.types.gather(1, types[:, None]).squeeze(1) + (of_roles + of_kinds).sum(1)

    def log_prob(
        self, types: Int[Tensor, "m"], roles: Int[Tensor, "m k"], kinds: Int[Tensor, "m k"]
    ) -> Float[Tensor, "m"]:
        """ln p(t_i, r_i, a | document) of each trigger; its factors are a tree, whose sum is exact."""  # [S4.281, 284]
        return self.score(types, roles, kinds) - self.type_sums().logsumexp(-1)

    def type_probabilities(self) -> Float[Tensor, "m t"]:
        """p(t_i | document), roles and entities summed out."""
        return self.type_sums().softmax(-1)


class Assignment(NamedTuple):
    """Values of a document, sentence by sentence: types of triggers, roles of entities in each, types of entities."""

    types: list[list[int]]
    roles: list[list[list[int]]]
    kinds: list[list[int]]


class Document(NamedTuple):
    """A document to decode, sentence by sentence: the within-event scores of its m triggers and k entities, and
    ln p(a_j) of these, with `clashes`, pairs of entities that exclude one another. Roles are those of entities of the
    same sentence. `relations` has ln p(t_i, t_i') of pairs of triggers, which are counted through the document; each
    pair counts once.
    """

    within: Sequence[WithinEvent]
    pairs: Sequence[tuple[int, int]]
    relations: Float[Tensor, "p t t"]
    entities: Sequence[Float[Tensor, "k a"]]
    clashes: Sequence[Sequence[tuple[int, int]]] = ()

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """How many triggers and entities each sentence has."""
        return [(each.roles.shape[0], each.roles.shape[1]) for each in self.within]

    def graph(self) -> FactorGraph:
        """Variables: all types t, all types of entities a, all roles r; Σ_i E + Σ_{i<i'} R + Σ_j D is the score.

        E is the exponent of the within-event model with its coupling of types and roles, which the sum of marginals of
        the paper leaves out; up to a constant it is ln p(t_i, r_i, a).
        """  # [S4.286-289]
        n_types, n_roles = self.within[0].type_roles.shape
        n_kinds, width = self.within[0].role_kinds.shape[1], max(n_types, n_roles, self.within[0].role_kinds.shape[1])
        n, n_entities = (sum(each) for each in zip(*self.sizes, strict=True))
        of_kinds = [each.kinds.sum(0) + own for each, own in zip(self.within, self.entities, strict=True)]
        scores = [*(each.types for each in self.within), *of_kinds, *(each.roles.flatten(0, 1) for each in self.within)]
        unary = torch.cat([_wide(each, width) for each in scores])
        factors = list[tuple[tuple[int, ...], Tensor]](zip(self.pairs, self.relations, strict=True))
        alone = torch.full((n_kinds, n_kinds), -INF, dtype=unary.dtype)
        alone[0, :] = alone[:, 0] = 0.0
        first, entity, role = 0, n, n + n_entities
        for number, (m, k) in enumerate(self.sizes):
            within = self.within[number]
            for i, j in product(range(m), range(k)):
                factors.append(((first + i, role + i * k + j), within.type_roles))
                factors.append(((role + i * k + j, entity + j), within.role_kinds))
            clashes = self.clashes[number] if self.clashes else ()
            factors += [((entity + j, entity + other), alone) for j, other in clashes]
            first, entity, role = first + m, entity + k, role + m * k
        sizes = [n_types] * n + [n_kinds] * n_entities + [n_roles] * (role - n - n_entities)
        return FactorGraph(unary, factors, sizes=sizes, max_entries=MOST_ENTRIES)

    def split(self, values: Sequence[T]) -> tuple[list[list[T]], list[list[list[T]]], list[list[T]]]:
        """What is said of each variable of the graph, as types, roles and types of entities of each sentence."""
        n, n_entities = (sum(each) for each in zip(*self.sizes, strict=True))
        of_types, of_kinds, of_roles = (
            iter(values[:n]),
            iter(values[n : n + n_entities]),
            iter(values[n + n_entities :]),
        )
        types, roles, kinds = list[list[T]](), list[list[list[T]]](), list[list[T]]()
        for m, k in self.sizes:
            types.append(list(islice(of_types, m)))
            kinds.append(list(islice(of_kinds, k)))
            roles.append([list(islice(of_roles, k)) for _ in range(m)])
        return types, roles, kinds

    def best(self) -> tuple[Assignment, Approximation]:
        """The best assignment that AD3 finds, and what it says about it."""
        found = self.graph().ad3()
        assert found.value is not None
        return Assignment(*self.split(found.value.tolist())), found


def _wide(scores: Float[Tensor, "v c"], width: int) -> Float[Tensor, "v w"]:
    return torch.nn.functional.pad(scores, (0, width - scores.shape[1]))
