"""Scores of triggers and roles that depend on earlier decisions: the decoder of a joint model of events."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.runtime.arrays import Bool, Float, Int

OTHER = 0  # no trigger, no role


class EventInputs(NamedTuple):
    """The input of the decoder: the tokens and entity mentions of a batch of sentences or documents.

    Attributes:
        hidden: Output of the encoder for each token.
        words: Vector of each word, without context.
        mask: True at tokens, False at padding.
        entity: The token that stands for each of k entity mentions.
        kind: Type of each entity mention.
        present: True at entity mentions, False at padding.
        arcs: At [head, dependent], 1 + the dependency relation, or 0 if there is no arc.
        sentence: Number of the sentence of each token, if a row is a document.
        same: True at pairs of mentions of one entity, and on the diagonal.
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
        """Return which entities can take part in the event of a token: those of its sentence."""
        own = self.sentence[row[:, None], self.entity[row]] == self.sentence[row, token][:, None]
        return self.present[row] & own


class EventHistory(NamedTuple):
    """Earlier decisions, as 0 or 1.

    Attributes:
        types: 1 for each type that a trigger had.
        roles: 1 for each role that an entity had.
        role_types: 1 for each type of event in which an entity had a role.
    """

    types: Float[Tensor, "*batch t"]
    roles: Float[Tensor, "*batch k r"]
    role_types: Float[Tensor, "*batch k t"]


class EventMemory(nn.Module):
    """Decoder of triggers and roles, token by token from the left, each given all decisions before it.

    The type of token i is scored from [h_i; words around i; G_trg]; if it is a trigger, the role of entity j is scored
    from [h_i; h_j; words around both; B_ij; G_arg[j]; G_arg/trg[j]], where B_ij is a layer over binary features: the
    distance, the types of trigger and entity, and the dependencies between them. G are the memories of earlier tokens;
    those of entities are shared by all their mentions.

    Args:
        dim: Width of the output of the encoder.
        word_dim: Width of the vectors of words.
        n_types: Number of types of triggers; 0 is none.
        n_roles: Number of roles; 0 is none.
        n_kinds: Number of types of entities.
        n_relations: Number of dependency relations.
        hidden: Units of the hidden layers.
        context: Number of words to either side of a token that are read with it.
        max_distance: Largest distance between trigger and entity with a feature of its own.
        dropout: Share of inputs that are dropped.
        remember: Whether memories are used; they stay empty if not.
        across: Whether memories last for a whole document; they are cleared before each sentence if not.

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

    def around(self, inputs: EventInputs) -> Float[Tensor, "batch n a"]:
        """Return the vectors of each word and those around it, side by side; zeros outside the sentence."""
        d, n = self.context, inputs.mask.shape[1]
        number = torch.where(inputs.mask, inputs.sentence, -1)
        padded, numbers = F.pad(inputs.words, (0, 0, d, d)), F.pad(number, (d, d), value=-1)
        shifts = range(2 * d + 1)
        return torch.cat([padded[:, i : i + n] * (numbers[:, i : i + n] == number)[..., None] for i in shifts], -1)

    def empty(self, inputs: EventInputs) -> EventHistory:
        """Return the memories before the first decision."""
        batch, k = inputs.entity.shape
        zeros = inputs.hidden.new_zeros
        return EventHistory(zeros(batch, self.n_types), zeros(batch, k, self.n_roles), zeros(batch, k, self.n_types))

    def update(
        self, memory: EventHistory, types: Int[Tensor, "b"], roles: Int[Tensor, "b k"], same: Bool[Tensor, "b k k"]
    ) -> EventHistory:
        """Add the decisions about a token to the memories, G = max(G, new); the value none adds nothing.

        Args:
            memory: The memories before the token.
            types: Type of the token in each row.
            roles: Role of each entity in its event.
            same: True at pairs of mentions of one entity.
        """
        if not self.remember:
            return memory
        type_, role = F.one_hot(types, self.n_types), F.one_hot(roles, self.n_roles)
        takes_part = (roles != OTHER)[..., None]
        of_entities = torch.cat([role * takes_part, type_[..., None, :] * takes_part], -1).to(memory.roles.dtype)
        shared = (same.to(of_entities.dtype) @ of_entities).clamp(max=1.0)  # by all mentions of an entity
        new = (type_ * (types != OTHER)[..., None], *shared.split([self.n_roles, self.n_types], -1))
        return EventHistory(*(torch.maximum(old, part.to(old.dtype)) for old, part in zip(memory, new, strict=True)))

    def at(self, memory: EventHistory, inputs: EventInputs, i: int) -> EventHistory:
        """Return the memories at token i; they are cleared if it begins a sentence, unless `across`.

        Args:
            memory: Memories after token i - 1.
            inputs: The batch.
            i: The token.
        """
        if self.across or i == 0:
            return memory
        goes_on = inputs.sentence[:, i] == inputs.sentence[:, i - 1]
        return EventHistory(*(part * goes_on.reshape(-1, *[1] * (part.dim() - 1)) for part in memory))

    def before(
        self, inputs: EventInputs, types: Int[Tensor, "batch n"], roles: Int[Tensor, "batch n k"]
    ) -> EventHistory:
        """Return the memories before each token of known events, [batch, n, ...].

        Args:
            inputs: The batch.
            types: Type of each token, [batch, n].
            roles: Role of each entity in the event of each token, [batch, n, k].
        """
        memory, memories = self.empty(inputs), list[EventHistory]()
        for i in range(types.shape[1]):
            memory = self.at(memory, inputs, i)
            memories.append(memory)
            memory = self.update(memory, types[:, i], roles[:, i], inputs.same)
        return EventHistory(*(torch.stack(parts, 1) for parts in zip(*memories, strict=True)))

    def binary_features(
        self, inputs: EventInputs, row: Int[Tensor, "m"], token: Int[Tensor, "m"], type_: Int[Tensor, "m"]
    ) -> Float[Tensor, "m k b"]:
        """Return the binary features of m triggers with each entity of their rows.

        Args:
            inputs: The batch.
            row: Row of each trigger.
            token: Token of each trigger.
            type_: Type of each trigger.
        """
        entity = inputs.entity[row]
        distance = (entity - token[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
        down, up = inputs.arcs[row[:, None], token[:, None], entity], inputs.arcs[row[:, None], entity, token[:, None]]
        types = type_[:, None].expand_as(entity)
        sizes = (2 * self.max_distance + 1, self.n_types, self.n_kinds, self.n_relations + 1, self.n_relations + 1)
        values = (distance, types, inputs.kind[row], down, up)
        features = [F.one_hot(value, size) for value, size in zip(values, sizes, strict=True)]
        return torch.cat(features, -1).to(inputs.hidden.dtype)

    def score_roles(
        self,
        inputs: EventInputs,
        around: Float[Tensor, "batch n a"],
        row: Int[Tensor, "m"],
        token: Int[Tensor, "m"],
        type_: Int[Tensor, "m"],
        memory: EventHistory,
    ) -> Float[Tensor, "m k r"]:
        """Return the scores of the roles of all entities in the events of m tokens.

        Args:
            inputs: The batch.
            around: The words around each token, from `around`.
            row: Row of each of the m tokens.
            token: Their positions.
            type_: Their types.
            memory: The memories before each of them.
        """  # [S4.234]
        rows, entity = row[:, None], inputs.entity[row]
        own = torch.cat([inputs.hidden[row, token], around[row, token]], -1)[:, None].expand(-1, entity.shape[1], -1)
        others = torch.cat([inputs.hidden[rows, entity], around[rows, entity]], -1)
        binary = torch.tanh(self.binary(self.binary_features(inputs, row, token, type_)))
        scores: Tensor = self.role_scores(torch.cat([own, others, binary, memory.roles, memory.role_types], -1))
        return scores

    def score_types(
        self, hidden: Float[Tensor, "*b d"], around: Float[Tensor, "*b a"], types: Float[Tensor, "*b t"]
    ) -> Float[Tensor, "*b t"]:
        """Return the scores of the types of tokens, given the memory of earlier types.

        Args:
            hidden: Vectors of the tokens.
            around: Vectors of the words around them.
            types: Memory of the types that earlier tokens have been given.

        Returns:
            Scores, before the softmax.
        """  # [S4.232-233]
        scores: Tensor = self.type_scores(torch.cat([hidden, around, types], -1))
        return scores

    def log_probs(
        self, inputs: EventInputs, types: Int[Tensor, "batch n"], roles: Int[Tensor, "batch n k"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n k"]]:
        """Return ln p of the type of each token and of the roles in its event, given earlier decisions; 0 elsewhere.

        Args:
            inputs: The batch.
            types: Type of each token, [batch, n].
            roles: Role of each entity in the event of each token, [batch, n, k].
        """
        around, memory = self.around(inputs), self.before(inputs, types, roles)
        of_types = self.score_types(inputs.hidden, around, memory.types).log_softmax(-1)
        chosen = torch.where(inputs.mask, of_types.gather(2, types[..., None]).squeeze(2), 0.0)
        none = chosen.new_zeros(roles.shape)
        row, token = ((types != OTHER) & inputs.mask).nonzero().unbind(1)
        if not len(row) or not inputs.entity.shape[1]:
            return chosen, none
        own = EventHistory(*(part[row, token] for part in memory))
        of_roles = self.score_roles(inputs, around, row, token, types[row, token], own).log_softmax(-1)
        chosen_roles = of_roles.gather(2, roles[row, token][..., None]).squeeze(2)
        return chosen, none.index_put((row, token), torch.where(inputs.near(row, token), chosen_roles, 0.0))

    def loss(
        self, inputs: EventInputs, types: Int[Tensor, "batch n"], roles: Int[Tensor, "batch n k"]
    ) -> Float[Tensor, ""]:
        """Return -Σ log p(type of a token | earlier) - Σ over triggers and entities log p(role | earlier).

        Args:
            inputs: The batch.
            types: Type of each token, [batch, n].
            roles: Role of each entity in the event of each token, [batch, n, k].
        """
        of_types, of_roles = self.log_probs(inputs, types, roles)
        return -of_types.sum() - of_roles.sum()

    def decode(self, inputs: EventInputs) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n k"]]:
        """Choose the best type of each token, then the best role of each entity in its event, from left to right."""
        batch, n, k = *inputs.mask.shape, inputs.entity.shape[1]
        around, memory = self.around(inputs), self.empty(inputs)
        types, roles = inputs.entity.new_zeros(batch, n), inputs.entity.new_zeros(batch, n, k)
        for i in range(n):
            memory = self.at(memory, inputs, i)
            best = self.score_types(inputs.hidden[:, i], around[:, i], memory.types).argmax(-1)
            types[:, i] = torch.where(inputs.mask[:, i], best, OTHER)
            row = (types[:, i] != OTHER).nonzero().flatten()
            if len(row) and k:
                own, token = EventHistory(*(part[row] for part in memory)), torch.full_like(row, i)
                scores = self.score_roles(inputs, around, row, token, types[row, i], own)
                roles[row, i] = torch.where(inputs.near(row, token), scores.argmax(-1), OTHER)
            memory = self.update(memory, types[:, i], roles[:, i], inputs.same)
        return types, roles


def _scores(dim: int, hidden: int, n: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(Dropout(dropout), nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, n))
