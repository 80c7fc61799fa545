"""Triggers, arguments and entities decided together: learned factors, and the best assignment by AD3.

Yang and Mitchell (2016), Joint extraction of events and entities within a document context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.data.events import Event
from trelliswork.distributions import FactorGraph
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.event_network import EventNetwork, Extracted, KnownEntities
from trelliswork.models.events.inputs import SCHEME, Batch, EncodedEvents, Inventory
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.nn.event_factors import DocumentFactors, WithinEvent
from trelliswork.nn.scorers import RoleScorer
from trelliswork.runtime.arrays import INF, Float


@dataclass(frozen=True)
class CandidateGraph:
    """The first token of each sentence of a record, its candidates for triggers and entities, and their graph."""

    starts: Sequence[int]
    triggers: Sequence[Sequence[int]]
    spans: Sequence[Sequence[TokenSpan]]
    document: DocumentFactors

    @cached_property
    def graph(self) -> FactorGraph:
        return self.document.graph()

    def extracted(self, inventory: Inventory, top_k: int, *, confidence: bool) -> Extracted:
        """Return the best assignment of AD3; where the graph is narrow enough, exact probabilities and the k best.

        In a wide graph the whole has no probability, those of parts are the beliefs of loopy propagation, and there is
        one value. If AD3 does not know that its value is the best, a narrow graph is solved exactly.

        Args:
            inventory: Names of types and roles.
            top_k: How many alternatives to return; 0 for none.
            confidence: Whether parts have their probabilities.

        Returns:
            Entities and events of each sentence.
        """
        if not any(m or k for m, k in self.document.sizes):
            return Extracted(probability=1.0)
        value, search = self._best()
        narrow = (confidence or top_k > 0) and self.graph.is_narrow
        marginals = None
        if confidence:
            marginals = self.graph.marginals if narrow else self.graph.propagate().marginals
        assignment = self._values(inventory, value, marginals, search)
        if not narrow:
            return assignment
        values, scores = self.graph.top_k(max(1, top_k))
        shares = (scores - self.graph.log_partition).exp().tolist()
        best = replace(assignment, probability=float(self.graph.log_prob(value).exp()))
        others = [
            replace(self._values(inventory, each, None, search), probability=share)
            for each, share in zip(values, shares, strict=True) if share > 0.0 and not bool((each == value).all())
        ]  # fmt: skip
        return replace(best, others=[best, *others][: max(1, top_k)])

    def _best(self) -> tuple[Tensor, str]:
        solution = self.graph.ad3()
        assert solution.value is not None
        if bool(solution.certified):
            return solution.value, "AD3, certified"
        return (self.graph.argmax, "exact") if self.graph.is_narrow else (solution.value, "AD3")

    def _values(self, inventory: Inventory, value: Tensor, marginals: Tensor | None, search: str) -> Extracted:
        """Return entities and events of an assignment, by positions in the record, with probabilities if given."""
        chosen = value.tolist()
        types, roles, kinds = self.document.split(chosen)
        chances = marginals if marginals is not None else torch.ones(len(chosen), max(chosen) + 1)
        sure = self.document.split([float(p[v]) for p, v in zip(chances, chosen, strict=True)])
        extracted = Extracted(search=search)
        for s, start in enumerate(self.starts):
            there = [j for j, kind in enumerate(kinds[s]) if kind]
            ends = [(start + self.spans[s][j][0], start + self.spans[s][j][1]) for j in there]
            extracted.entities.extend(
                (*span, inventory.kinds[kinds[s][j] - 1]) for span, j in zip(ends, there, strict=True)
            )
            extracted.entity_probs.extend(sure[2][s][j] for j in there)
            for i in (i for i, type_ in enumerate(types[s]) if type_):
                taking_part = [(span, j) for span, j in zip(ends, there, strict=True) if roles[s][i][j]]
                arguments = tuple((*span, inventory.roles[roles[s][i][j]]) for span, j in taking_part)
                extracted.events.append(Event(start + self.triggers[s][i], inventory.types[types[s][i]], arguments))
                extracted.triggers.append(sure[0][s][i])
                extracted.arguments.append([sure[1][s][i][j] for _, j in taking_part])
        return extracted


UNLIKELY = 0.01  # a token whose chance to be a trigger is smaller is no candidate
N_SHARED = 2  # marks of a pair of triggers: the same word, sentences that share a name
TokenSpan = tuple[int, int]


class Candidates(NamedTuple):
    """Candidates in one sentence: likely triggers, and spans of likely entities."""

    row: int
    triggers: list[int]
    spans: list[TokenSpan]


class FactorEvents(EventNetwork):
    """A graph over the types of likely triggers, the types of likely entities, and the roles between them.

    Its factors are learned by the likelihood of each event with all entities of its sentence, of each pair of triggers
    at most `reach` sentences apart, and of the tags of entities, as in the paper.
    """

    STRUCTURE = "factor graph of triggers, roles and entities"

    def __init__(self, config: EventConfig, features: TokenFeatures, inventory: Inventory):
        super().__init__(config, features, inventory)
        dim, n_types, n_roles = self.encoder.dim, len(inventory.types), len(inventory.roles)
        n_kinds = len(inventory.kinds) + 1
        self.proposals = nn.Linear(dim, 1)
        self.types = nn.Linear(dim, n_types)
        self.roles = RoleScorer(dim, 1, n_roles, hidden=config.event_hidden, dropout=config.event_dropout)
        self.kinds = nn.Linear(2 * dim, n_kinds)
        self.pairs = nn.Linear(2 * dim + config.reach + 1 + N_SHARED, n_types * n_types)
        self.type_roles = nn.Parameter(torch.zeros(n_types, n_roles))
        self.role_kinds = nn.Parameter(torch.zeros(n_roles, n_kinds))

    def within(self, batch: Batch, given: Candidates) -> WithinEvent:
        """Score some triggers and entities of a sentence; no roles without a trigger or without an entity."""
        # [S4.282]
        row, triggers, spans = given
        vectors, m, k = batch.vectors[row], len(triggers), len(spans)
        at = torch.tensor(triggers, dtype=torch.long, device=vectors.device)
        ends = torch.tensor(spans, dtype=torch.long, device=vectors.device).reshape(k, 2)
        n_roles, n_kinds = self.role_kinds.shape
        roles, kinds = vectors.new_zeros(m, k, n_roles), vectors.new_zeros(m, k, n_kinds)
        if m and k:
            every = torch.arange(m * k, device=vectors.device)
            roles = self.roles(
                batch.vectors, batch.tokens.mask, row=torch.full_like(every, row), trigger=at[every // k],
                entity=ends[every % k, 1] - 1, event=torch.zeros_like(every),
            ).unflatten(0, (m, k))  # fmt: skip
            of_spans = self.kinds(torch.cat([vectors[ends[:, 0]], vectors[ends[:, 1] - 1]], -1))
            kinds = of_spans.expand(m, k, n_kinds)
        none = torch.zeros_like(self.type_roles, dtype=torch.bool)
        none[0, 1:] = True
        nobody = torch.zeros_like(self.role_kinds, dtype=torch.bool)
        nobody[1:, 0] = True
        return WithinEvent(
            self.types(vectors[at]), roles, self.type_roles.masked_fill(none, -INF), kinds,
            self.role_kinds.masked_fill(nobody, -INF),
        )  # fmt: skip

    def relations(self, batch: Batch, given: Sequence[Candidates]) -> tuple[list[TokenSpan], Float[Tensor, "p t t"]]:
        """Return ln p(t_i, t_i') of each pair of triggers of a document that are near enough; each pair once.

        A pair is described by both tokens, by how many sentences are between them, and by whether they are the same
        word and their sentences share a name.
        """  # [S4.285, 288]
        places = [(number, each.row, token) for number, each in enumerate(given) for token in each.triggers]
        near = combinations(range(len(places)), 2)
        pairs = [(i, j) for i, j in near if places[j][0] - places[i][0] <= self.config.reach]
        n_types = len(self.inventory.types)
        if not pairs:
            return [], batch.vectors.new_zeros(0, n_types, n_types)
        names = [{batch.sentences[each.row].words[end - 1] for _, end in each.spans} for each in given]
        words = [batch.sentences[row].words[token].lower() for _, row, token in places]
        apart = torch.tensor([places[j][0] - places[i][0] for i, j in pairs])
        shared = torch.tensor(
            [[words[i] == words[j], bool(names[places[i][0]] & names[places[j][0]])] for i, j in pairs]
        )
        marks = torch.cat([F.one_hot(apart, self.config.reach + 1), shared], -1).to(batch.vectors)
        rows, tokens = torch.tensor([each[1:] for each in places]).unbind(1)
        vectors = batch.vectors[rows, tokens]
        ends = [vectors[[pair[side] for pair in pairs]] for side in (0, 1)]
        scores = self.pairs(torch.cat([*ends, marks], -1))
        return pairs, scores.log_softmax(-1).unflatten(-1, (n_types, n_types))

    # Candidates

    def likely_triggers(self, batch: Batch) -> list[list[int]]:
        """Return the tokens of each sentence that are most likely triggers, by their place."""
        shares = self.proposals(batch.vectors).squeeze(-1).sigmoid().masked_fill(~batch.tokens.mask, 0.0)
        best, places = shares.topk(min(self.config.proposals, shares.shape[1]), dim=1)
        return [
            sorted(place for place, share in zip(*row, strict=True) if share >= UNLIKELY)
            for row in zip(places.tolist(), best.tolist(), strict=True)
        ]

    def likely_entities(self, batch: Batch) -> list[list[TokenSpan]]:
        """Return the spans of entities in the best taggings of each sentence."""
        values, scores = self.entity_chain(batch).top_k(self.config.analyses)
        spans_of_row: list[set[TokenSpan]] = [set() for _ in batch.sentences]
        for value, score in zip(values.tolist(), scores.tolist(), strict=True):
            for row, each in enumerate(batch.sentences):
                if score[row] > -INF:
                    spans_of_row[row].update((start, end) for start, end, _ in self.spans_of(value[row][: len(each)]))
        return [sorted(spans) for spans in spans_of_row]

    # Learning

    def event_loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return -ln p of the proposals, of each event with all entities, and of pairs of triggers."""  # [S4.283-285]
        is_trigger = torch.zeros(batch.tokens.mask.shape)
        for row, each in enumerate(batch.sentences):
            is_trigger[row, [event.trigger for event in each.events]] = 1.0
        mask = batch.tokens.mask
        logits = self.proposals(batch.vectors).squeeze(-1)[mask]
        total = F.binary_cross_entropy_with_logits(logits, is_trigger.to(logits.device)[mask], reduction="sum")
        with torch.no_grad():
            triggers, spans = self.likely_triggers(batch), self.likely_entities(batch)
        for rows in batch.rows:
            given = [self._with_gold(batch.sentences[row], row, triggers[row], spans[row]) for row in rows]
            gold = [self._targets(batch.sentences[each.row], each) for each in given]
            for candidates, right in zip(given, gold, strict=True):
                if candidates.triggers:
                    total = total - self.within(batch, candidates).log_prob(*right).sum()
            pairs, relations = self.relations(batch, given)
            types = torch.cat([of_types for of_types, _, _ in gold])
            first, second = torch.tensor(pairs, dtype=torch.long, device=types.device).reshape(-1, 2).unbind(1)
            total = total - relations[torch.arange(len(pairs)), types[first], types[second]].sum()
        return total

    def _with_gold(self, each: EncodedEvents, row: int, likely: Sequence[int], near: Sequence[TokenSpan]) -> Candidates:
        triggers = {event.trigger for event in each.events if event.type in self.inventory.types}
        spans = {(start, end) for start, end, _ in each.entities}
        return Candidates(row, sorted({*triggers, *likely}), sorted({*spans, *near}))

    def _targets(self, each: EncodedEvents, given: Candidates) -> tuple[Tensor, Tensor, Tensor]:
        """Return the right types, roles and types of entities of candidates; names that training never saw are none."""
        _, triggers, spans = given
        events = {event.trigger: event for event in each.events if event.type in self.inventory.types}
        kind_of = {(start, end): 1 + self.inventory.kinds.index(kind) for start, end, kind in each.entities}
        kinds = torch.tensor([[kind_of.get(span, 0) for span in spans]] * len(triggers), dtype=torch.long)
        kinds = kinds.reshape(len(triggers), len(spans))
        types, roles = torch.zeros(len(triggers), dtype=torch.long), torch.zeros_like(kinds)
        for i, trigger in enumerate(triggers):
            if trigger in events:
                types[i] = self.inventory.types.index(events[trigger].type)
                for start, end, role in events[trigger].arguments:
                    if (start, end) in kind_of and role in self.inventory.roles:
                        roles[i, spans.index((start, end))] = self.inventory.roles.index(role)
        device = self.type_roles.device
        return types.to(device), roles.to(device), kinds.to(device)

    # Answers

    def candidate_graphs(self, batch: Batch, known: KnownEntities) -> list[CandidateGraph]:
        """Return the graph of each record, with its candidates for triggers and entities."""
        likely = self.likely_entities(batch)
        spans = [
            near if given is None else sorted({(start, end) for start, end, _ in given})
            for near, given in zip(likely, known, strict=True)
        ]
        kinds, triggers = self._entity_scores(batch, spans, known), self.likely_triggers(batch)
        graphs = []
        for rows in batch.rows:
            given = [Candidates(row, triggers[row], spans[row]) for row in rows]
            pairs, relations = self.relations(batch, given)
            document = DocumentFactors(
                [self.within(batch, each) for each in given], pairs, relations, [kinds[row] for row in rows],
                [_overlapping(each.spans) for each in given],
            )  # fmt: skip
            starts = [batch.sentences[row].start for row in rows]
            graphs.append(
                CandidateGraph(starts, [each.triggers for each in given], [each.spans for each in given], document)
            )
        return graphs

    def _entity_scores(
        self, batch: Batch, spans: Sequence[Sequence[TokenSpan]], known: KnownEntities
    ) -> list[Float[Tensor, "k a"]]:
        """Return ln p(a_j), exact by the CRF; of known entities 0 for their types alone."""  # [S4.289]
        names = self.inventory.kinds
        asked = [[(*span, kind) for span in of_row for kind in names] for of_row in spans]
        chain = self.entity_chain(batch)
        scores_of_row = []
        for row, shares in enumerate(chain.span_probabilities(asked, tags=self.inventory.tags, scheme=SCHEME)):
            each = shares.reshape(-1, len(names))
            none = (1.0 - each.sum(-1, keepdim=True)).clamp(min=1e-6)
            scores = torch.cat([none, each.clamp(min=1e-6)], -1).log()
            if known[row] is not None:
                scores = torch.full_like(scores, -INF)
                for start, end, kind in known[row] or ():
                    scores[spans[row].index((start, end)), 1 + names.index(kind)] = 0.0
            scores_of_row.append(scores)
        return scores_of_row

    def extracted(self, batch: Batch, known: KnownEntities, top_k: int, *, confidence: bool) -> list[Extracted]:
        return [
            each.extracted(self.inventory, top_k, confidence=confidence) for each in self.candidate_graphs(batch, known)
        ]


def _overlapping(spans: Sequence[TokenSpan]) -> list[tuple[int, int]]:
    return [
        (i, j) for (i, first), (j, second) in combinations(enumerate(spans), 2)
        if max(first[0], second[0]) < min(first[1], second[1])
    ]  # fmt: skip
