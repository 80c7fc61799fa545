"""A factor graph over the events of a document: types of triggers, roles and types of entities, scored jointly.

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
from trelliswork.runtime.arrays import INF, Float, Int

MOST_ENTRIES = 1 << 20  # numbers in the tables of a junction tree; larger graphs get no exact answer
T = TypeVar("T")


class WithinEvent(NamedTuple):
    """Scores of the triggers i of a sentence with its entities j; value 0 of a type, role or entity type means none.

    Attributes:
        types: θ1 f1(t_i), scores of the type of each of m triggers.
        roles: θ2 f2(r_ij), scores of the role of each of k entities in each event.
        type_roles: θ3 f3(t, r), scores of a type together with a role.
        kinds: θ4 f4(a_j), scores of the type of each entity, for each trigger.
        role_kinds: θ5 f5(r, a), scores of a role together with the type of an entity.
    """

    types: Float[Tensor, "m t"]
    roles: Float[Tensor, "m k r"]
    type_roles: Float[Tensor, "t r"]
    kinds: Float[Tensor, "m k a"]
    role_kinds: Float[Tensor, "r a"]

    def entity_sums(self) -> Float[Tensor, "m k t"]:
        """Return ln Σ_{r, a} of the scores that entity j adds to each type of trigger i."""
        of_roles = (self.kinds[:, :, None] + self.role_kinds).logsumexp(-1)  # (m, k, r)
        return (self.roles[:, :, None] + self.type_roles + of_roles[:, :, None]).logsumexp(-1)

    def type_sums(self) -> Float[Tensor, "m t"]:
        """Return ln Σ_{r, a} over the roles and types of all entities, for each type of a trigger."""
        return self.types + self.entity_sums().sum(1)

    def score(
        self, types: Int[Tensor, "m"], roles: Int[Tensor, "m k"], kinds: Int[Tensor, "m k"]
    ) -> Float[Tensor, "m"]:
        """Return the exponent of the within-event model for each trigger.

        Args:
            types: Type of each trigger, [m].
            roles: Role of each entity in each event, [m, k].
            kinds: Type of each entity, [m, k].
        """  # [S4.282]
        of_roles = self.roles.gather(2, roles[..., None]).squeeze(2) + self.type_roles[types[:, None], roles]
        of_kinds = self.kinds.gather(2, kinds[..., None]).squeeze(2) + self.role_kinds[roles, kinds]
        return self.types.gather(1, types[:, None]).squeeze(1) + (of_roles + of_kinds).sum(1)

    def log_prob(
        self, types: Int[Tensor, "m"], roles: Int[Tensor, "m k"], kinds: Int[Tensor, "m k"]
    ) -> Float[Tensor, "m"]:
        """Return ln p(t_i, r_i, a | document) of each trigger; its factors form a tree, so the normaliser is exact.

        Args:
            types: Type of each trigger, [m].
            roles: Role of each entity in each event, [m, k].
            kinds: Type of each entity, [m, k].
        """
        # [S4.281, 284]
        return self.score(types, roles, kinds) - self.type_sums().logsumexp(-1)

    def type_probabilities(self) -> Float[Tensor, "m t"]:
        """Return p(t_i | document), with roles and entities summed out."""
        return self.type_sums().softmax(-1)


class Assignment(NamedTuple):
    """Values of the variables of a document, one list per sentence.

    Attributes:
        types: The type of each trigger.
        roles: The role of each entity in each event.
        kinds: The type of each entity.
    """

    types: list[list[int]]
    roles: list[list[list[int]]]
    kinds: list[list[int]]


class DocumentFactors(NamedTuple):
    """The scores of a document to decode; a trigger takes its roles from the entities of its own sentence.

    Attributes:
        within: For each sentence the within-event scores of its m triggers and k entities.
        pairs: Pairs of triggers, numbered through the document; each pair counts once.
        relations: ln p(t_i, t_i') of each pair of triggers.
        entities: For each sentence ln p(a_j) of its entities.
        clashes: For each sentence the pairs of entities that exclude each other.
    """

    within: Sequence[WithinEvent]
    pairs: Sequence[tuple[int, int]]
    relations: Float[Tensor, "p t t"]
    entities: Sequence[Float[Tensor, "k a"]]
    clashes: Sequence[Sequence[tuple[int, int]]] = ()

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Return the numbers of triggers and entities of each sentence."""
        return [(scores.roles.shape[0], scores.roles.shape[1]) for scores in self.within]

    def graph(self) -> FactorGraph:
        """Return the factor graph of the document, whose score is Σ_i E + Σ_{i<i'} R + Σ_j D.

        Its variables are all types of triggers t, then all types of entities a, then all roles r. E is the exponent of
        the within-event model, up to a constant ln p(t_i, r_i, a). It includes the coupling of types and roles, which
        the sum of marginals in the paper leaves out.
        """  # [S4.286-289]
        n_types, n_roles = self.within[0].type_roles.shape
        n_kinds, width = self.within[0].role_kinds.shape[1], max(n_types, n_roles, self.within[0].role_kinds.shape[1])
        n, n_entities = (sum(counts) for counts in zip(*self.sizes, strict=True))
        of_kinds = [sentence.kinds.sum(0) + own for sentence, own in zip(self.within, self.entities, strict=True)]
        of_types, of_roles = [part.types for part in self.within], [part.roles.flatten(0, 1) for part in self.within]
        # Variables with fewer values are padded to one width; `sizes` below tells the graph how many are real.
        unary = torch.cat([_pad_values(scores, width) for scores in (*of_types, *of_kinds, *of_roles)])
        factors = list[tuple[tuple[int, ...], Tensor]](zip(self.pairs, self.relations, strict=True))
        exclusive = torch.full((n_kinds, n_kinds), -INF, dtype=unary.dtype)
        exclusive[0, :] = exclusive[:, 0] = 0.0  # of two entities that clash, at most one has a type
        first, entity, role = 0, n, n + n_entities  # numbers of the first variables of the sentence
        for number, (m, k) in enumerate(self.sizes):
            within = self.within[number]
            for i, j in product(range(m), range(k)):
                factors.append(((first + i, role + i * k + j), within.type_roles))
                factors.append(((role + i * k + j, entity + j), within.role_kinds))
            clashes = self.clashes[number] if self.clashes else ()
            factors += [((entity + j, entity + other), exclusive) for j, other in clashes]
            first, entity, role = first + m, entity + k, role + m * k
        sizes = [n_types] * n + [n_kinds] * n_entities + [n_roles] * (role - n - n_entities)
        return FactorGraph(unary, factors, sizes=sizes, max_entries=MOST_ENTRIES)

    def split(self, values: Sequence[T]) -> tuple[list[list[T]], list[list[list[T]]], list[list[T]]]:
        """Split one value per variable of the graph into types, roles and types of entities of each sentence."""
        n, n_entities = (sum(counts) for counts in zip(*self.sizes, strict=True))
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
        """Return the best assignment that AD3 finds, and its result with the bound on the best score."""
        result = self.graph().ad3()
        assert result.value is not None
        return Assignment(*self.split(result.value.tolist())), result


def _pad_values(scores: Float[Tensor, "v c"], width: int) -> Float[Tensor, "v w"]:
    return torch.nn.functional.pad(scores, (0, width - scores.shape[1]))
