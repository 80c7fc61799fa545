"""A factor graph of the events of a document: types of triggers, roles, and types of entities, scored together.

Yang and Mitchell (2016), Joint extraction of events and entities within a document context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.distributions.approximation import Approximation
from trelliswork.distributions.factor_graph import FactorGraph
from trelliswork.runtime.shapes import Float, Int

INF = float("inf")


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


class Document(NamedTuple):
    """A document to decode: the within-event scores of its m triggers and k entities, ln p(t_i, t_i') of pairs of
    triggers, each pair once, and ln p(a_j) of entities. `clashes` are pairs of entities that exclude one another.
    """

    within: WithinEvent
    pairs: Sequence[tuple[int, int]]
    relations: Float[Tensor, "p t t"]
    entities: Float[Tensor, "k a"]
    clashes: Sequence[tuple[int, int]] = ()

    def graph(self) -> FactorGraph:
        """Variables t_1..t_m, a_1..a_k, r_11..r_mk with Σ_i E + Σ_{i<i'} R + Σ_j D as score.

        E is the exponent of the within-event model with its coupling of types and roles, which the sum of marginals of
        the paper leaves out; up to a constant it is ln p(t_i, r_i, a).
        """  # [S4.286-289]
        types, roles, type_roles, kinds, role_kinds = self.within
        m, k, n_roles = roles.shape
        n_types, n_kinds = type_roles.shape[0], role_kinds.shape[1]
        width = max(n_types, n_kinds, n_roles)
        of_kinds = kinds.sum(0) + self.entities
        unary = torch.cat([_wide(each, width) for each in (types, of_kinds, roles.reshape(m * k, n_roles))])
        role = [[m + k + i * k + j for j in range(k)] for i in range(m)]
        factors = [((i, role[i][j]), type_roles) for i in range(m) for j in range(k)]
        factors += [((role[i][j], m + j), role_kinds) for i in range(m) for j in range(k)]
        factors += [(pair, table) for pair, table in zip(self.pairs, self.relations, strict=True)]
        alone = torch.full((n_kinds, n_kinds), -INF, dtype=types.dtype)
        alone[0, :] = alone[:, 0] = 0.0
        factors += [((m + j, m + other), alone) for j, other in self.clashes]
        return FactorGraph(unary, factors, sizes=[n_types] * m + [n_kinds] * k + [n_roles] * m * k)

    def best(self) -> tuple[list[int], list[list[int]], list[int], Approximation]:
        """Types, roles and kinds of the best assignment that AD3 finds, and what it says about it."""
        m, k, _ = self.within.roles.shape
        found = self.graph().ad3()
        assert found.value is not None
        values = found.value.tolist()
        types, kinds, roles = values[:m], values[m : m + k], values[m + k :]
        return types, [roles[i * k : (i + 1) * k] for i in range(m)], kinds, found


def _wide(scores: Float[Tensor, "v c"], width: int) -> Float[Tensor, "v w"]:
    return torch.nn.functional.pad(scores, (0, width - scores.shape[1]))
