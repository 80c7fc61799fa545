"""Scores of triggers and roles that remember what was found before: the decoder of a joint model of events."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.runtime.shapes import Bool, Float, Int

OTHER = 0  # no trigger, no role


class Read(NamedTuple):
    """What is known of a batch before anything is decided: of tokens, and of the entities of each sentence.

    `hidden` is the output of the network, `words` are the vectors of the words alone. An entity has a token that
    stands for it and a type. `arcs` has at [head, dependent] 1 + the relation, 0 where there is none. A row may be a
    document: `sentence` numbers the sentence of each token, and `same` marks the mentions of one entity, each its own.
    """

    hidden: Float[Tensor, "batch n d"]
    words: Float[Tensor, "batch n w"]
    mask: Bool[Tensor, "batch n"]
    entity: Int[Tensor, "batch k"]
    kind: Int[Tensor, "batch k"]
    present: Bool[Tensor, "batch k"]
    arcs: Int[Tensor, "batch n n"]
    sentence: Int[Tensor, "batch n"]
    same: Bool[Tensor, "batch k k"]

    def near(self, row: Int[Tensor, "m"], token: Int[Tensor, "m"]) -> Bool[Tensor, "m k"]:
        """The entities that may take part in the event of a token: those of its sentence."""
        own = self.sentence[row[:, None], self.entity[row]] == self.sentence[row, token][:, None]
        return self.present[row] & own


class Memory(NamedTuple):
    """1 for each type that a trigger had, for each role that an entity had, and for each type it had a role in."""

    types: Float[Tensor, "*batch t"]
    roles: Float[Tensor, "*batch k r"]
    role_types: Float[Tensor, "*batch k t"]


class EventMemory(nn.Module):
    """Triggers and roles, token by token from the left, each given all that was found before it.

    Token i has a type by [h_i; words around i; G_trg], and if it is a trigger, entity j has a role by
    [h_i; h_j; words around both; B_ij; G_arg[j]; G_arg/trg[j]], where B_ij is a layer over binary features: the
    distance, the types of trigger and entity, and the dependencies that join them. G are the memories of the tokens
    before, those of entities shared by all their mentions. Without `remember` they stay empty; without `across` they
    are emptied before each sentence of a document.

    Nguyen, Cho and Grishman (2016), Joint event extraction via recurrent neural networks.
    """

    # [S4.232-234]

    def __init__(
        self,
        dim: int,
        word_dim: int,
        *,
        n_types: int,
        n_roles: int,
        n_kinds: int,
        n_relations: int,
        hidden: int = 100,
        context: int = 2,
        max_distance: int = 10,
        dropout: float = 0.3,
        remember: bool = True,
        across: bool = True,
    ) -> None:
        super().__init__()
        self.n_types, self.n_roles, self.n_kinds, self.n_relations = n_types, n_roles, n_kinds, n_relations
        self.context, self.max_distance, self.remember, self.across = context, max_distance, remember, across
        around = (2 * context + 1) * word_dim
        n_binary = 2 * max_distance + 1 + n_types + n_kinds + 2 * (n_relations + 1)
        self.binary = nn.Linear(n_binary, hidden)
        self.type_scores = _scores(dim + around + n_types, hidden, n_types, dropout)
        self.role_scores = _scores(2 * dim + 2 * around + hidden + n_roles + n_types, hidden, n_roles, dropout)

    def around(self, read: Read) -> Float[Tensor, "batch n a"]:
        """The vectors of the words around each token, its own among them; zeros outside of the sentence."""
        d, n = self.context, read.mask.shape[1]
        number = torch.where(read.mask, read.sentence, -1)
        padded, numbers = F.pad(read.words, (0, 0, d, d)), F.pad(number, (d, d), value=-1)
        shifts = range(2 * d + 1)
        return torch.cat([padded[:, i : i + n] * (numbers[:, i : i + n] == number)[..., None] for i in shifts], -1)

    def empty(self, read: Read) -> Memory:
        """Nothing found yet."""
        batch, k = read.entity.shape
        zeros = read.hidden.new_zeros
        return Memory(zeros(batch, self.n_types), zeros(batch, k, self.n_roles), zeros(batch, k, self.n_types))

    def added(
        self, memory: Memory, types: Int[Tensor, "b"], roles: Int[Tensor, "b k"], same: Bool[Tensor, "b k k"]
    ) -> Memory:
        """The memories with what a token has: G = max(G, what is new); nothing is added for none."""
        if not self.remember:
            return memory
        type_, role = F.one_hot(types, self.n_types), F.one_hot(roles, self.n_roles)
        takes_part = (roles != OTHER)[..., None]
        of_entities = torch.cat([role * takes_part, type_[..., None, :] * takes_part], -1).to(memory.roles.dtype)
        shared = (same.to(of_entities.dtype) @ of_entities).clamp(max=1.0)  # by all mentions of an entity
        new = (type_ * (types != OTHER)[..., None], *shared.split([self.n_roles, self.n_types], -1))
        return Memory(*(torch.maximum(old, each.to(old.dtype)) for old, each in zip(memory, new, strict=True)))

    def at(self, memory: Memory, read: Read, i: int) -> Memory:
        """The memories as token i finds them: emptied if it begins a sentence and they do not go across."""
        if self.across or i == 0:
            return memory
        goes_on = read.sentence[:, i] == read.sentence[:, i - 1]
        return Memory(*(each * goes_on.reshape(-1, *[1] * (each.dim() - 1)) for each in memory))

    def before(self, read: Read, types: Int[Tensor, "batch n"], roles: Int[Tensor, "batch n k"]) -> Memory:
        """The memories before each token of known events, [batch, n, ...]."""
        memory, found = self.empty(read), list[Memory]()
        for i in range(types.shape[1]):
            memory = self.at(memory, read, i)
            found.append(memory)
            memory = self.added(memory, types[:, i], roles[:, i], read.same)
        return Memory(*(torch.stack(each, 1) for each in zip(*found, strict=True)))

    def binary_features(
        self, read: Read, row: Int[Tensor, "m"], token: Int[Tensor, "m"], type_: Int[Tensor, "m"]
    ) -> Float[Tensor, "m k b"]:
        """Features of a trigger with each entity of its sentence, 0 or 1."""
        entity = read.entity[row]
        distance = (entity - token[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
        down, up = read.arcs[row[:, None], token[:, None], entity], read.arcs[row[:, None], entity, token[:, None]]
        types = type_[:, None].expand_as(entity)
        sizes = (2 * self.max_distance + 1, self.n_types, self.n_kinds, self.n_relations + 1, self.n_relations + 1)
        given = (distance, types, read.kind[row], down, up)
        found = [F.one_hot(each, size) for each, size in zip(given, sizes, strict=True)]
        return torch.cat(found, -1).to(read.hidden.dtype)

    def score_roles(
        self,
        read: Read,
        around: Float[Tensor, "batch n a"],
        row: Int[Tensor, "m"],
        token: Int[Tensor, "m"],
        type_: Int[Tensor, "m"],
        memory: Memory,
    ) -> Float[Tensor, "m k r"]:
        """Scores of the roles of all entities in the events of some tokens with their memories."""  # [S4.234]
        rows, entity = row[:, None], read.entity[row]
        own = torch.cat([read.hidden[row, token], around[row, token]], -1)[:, None].expand(-1, entity.shape[1], -1)
        others = torch.cat([read.hidden[rows, entity], around[rows, entity]], -1)
        binary = torch.tanh(self.binary(self.binary_features(read, row, token, type_)))
        found: Tensor = self.role_scores(torch.cat([own, others, binary, memory.roles, memory.role_types], -1))
        return found

    def score_types(
        self, hidden: Float[Tensor, "*b d"], around: Float[Tensor, "*b a"], types: Float[Tensor, "*b t"]
    ) -> Float[Tensor, "*b t"]:
        """Scores of the types of tokens, given the types found before."""  # [S4.232-233]
        found: Tensor = self.type_scores(torch.cat([hidden, around, types], -1))
        return found

    def log_probs(
        self, read: Read, types: Int[Tensor, "batch n"], roles: Int[Tensor, "batch n k"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n k"]]:
        """ln p of the type of each token, and of the roles of entities in its event, given all before; 0 for others."""
        around, memory = self.around(read), self.before(read, types, roles)
        of_types = self.score_types(read.hidden, around, memory.types).log_softmax(-1)
        chosen = torch.where(read.mask, of_types.gather(2, types[..., None]).squeeze(2), 0.0)
        found = chosen.new_zeros(roles.shape)
        row, token = ((types != OTHER) & read.mask).nonzero().unbind(1)
        if not len(row) or not read.entity.shape[1]:
            return chosen, found
        own = Memory(*(each[row, token] for each in memory))
        of_roles = self.score_roles(read, around, row, token, types[row, token], own).log_softmax(-1)
        taken = of_roles.gather(2, roles[row, token][..., None]).squeeze(2)
        return chosen, found.index_put((row, token), torch.where(read.near(row, token), taken, 0.0))

    def loss(self, read: Read, types: Int[Tensor, "batch n"], roles: Int[Tensor, "batch n k"]) -> Float[Tensor, ""]:
        """-Σ log p(type of a token | before) - Σ over triggers and entities log p(role | before)."""
        of_types, of_roles = self.log_probs(read, types, roles)
        return -of_types.sum() - of_roles.sum()

    def decode(self, read: Read) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n k"]]:
        """The best type of each token, then the best role of each entity in its event, from left to right."""
        batch, n, k = *read.mask.shape, read.entity.shape[1]
        around, memory = self.around(read), self.empty(read)
        types, roles = read.entity.new_zeros(batch, n), read.entity.new_zeros(batch, n, k)
        for i in range(n):
            memory = self.at(memory, read, i)
            best = self.score_types(read.hidden[:, i], around[:, i], memory.types).argmax(-1)
            types[:, i] = torch.where(read.mask[:, i], best, OTHER)
            row = (types[:, i] != OTHER).nonzero().flatten()
            if len(row) and k:
                own, token = Memory(*(each[row] for each in memory)), torch.full_like(row, i)
                scores = self.score_roles(read, around, row, token, types[row, i], own)
                roles[row, i] = torch.where(read.near(row, token), scores.argmax(-1), OTHER)
            memory = self.added(memory, types[:, i], roles[:, i], read.same)
        return types, roles


def _scores(dim: int, hidden: int, n: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(Dropout(dropout), nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, n))
