"""A transition-based dependency parser: a tree is built decision by decision, each seeing what was built so far.

    >>> parser = TransitionParser.from_data(train_sentences)                   # doctest: +SKIP
    >>> train(parser, train_sentences, dev_sentences, out="parser")            # doctest: +SKIP
    >>> tw.load("parser").predict([["Ann", "sings"]])[0].value                 # doctest: +SKIP
    [(2, 'nsubj'), (0, 'root')]

Probabilities are of decisions, not of trees: that of an answer is the product over its decisions or, after training
with `global_epochs`, its share of the beam; those of arcs likewise. They are not exact marginals.

Kiperwasser and Goldberg (2016), Simple and accurate dependency parsing using bidirectional LSTM feature
representations; Andor et al. (2016), Globally normalized transition-based neural networks; Kong et al. (2017), DRAGNN:
A transition-based framework for dynamically connected neural networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.data import Sentence, Vocabulary
from trelliswork.data.treebank import is_projective
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Readable
from trelliswork.models.networks.attribution import affordable
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.parsers.dependency.config import TransitionConfig
from trelliswork.models.parsers.dependency.decision_explanation import DecisionExplanation
from trelliswork.models.parsers.dependency.parser import Arc, DependencyParser, ParsedArcs, Pins, heads_of
from trelliswork.models.parsers.dependency.pins import allowed_arcs, pinned_labels
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.nn.transitions import ParsingUnit, TaggingUnit
from trelliswork.nn.transitions.kernels import Pinned
from trelliswork.nn.transitions.states import (
    beam_parses,
    explored_states,
    global_loss,
    gold_states,
    greedy_parses,
    local_loss,
    right_decisions,
    right_trees,
)
from trelliswork.runtime.arrays import Float, Int
from trelliswork.structures.beam import (
    ArcHybrid,
    ArcStandard,
    Swap,
    beam_log_prob,
    beam_search,
    local_log_prob,
)
from trelliswork.structures.beam.parse_kernels import lift_rows
from trelliswork.structures.beam.parse_state import DependencySystem, ParseState
from trelliswork.structures.frontier_kernels import NOTHING

SYSTEMS: dict[str, type[DependencySystem]] = {"arc-standard": ArcStandard, "arc-hybrid": ArcHybrid, "swap": Swap}
BEST = 3  # trees that explanations show
MANY_CROSSING = 0.1  # share of trees from which swapping is worth its longer way


class TransitionParser(DependencyParser):
    """An encoder, and a unit that reads the states of a transition system."""

    CONFIG = TransitionConfig
    explains = True
    is_global: Tensor

    def __init__(
        self,
        config: TransitionConfig,
        features: TokenFeatures,
        labels: Vocabulary,
        tags: Mapping[str, Vocabulary] | None = None,
    ):
        super().__init__(config, features, labels, tags)
        self.system_kind = SYSTEMS[config.system]
        n_decisions = 1 + 2 * len(labels) + self.system_kind.MORE_DECISIONS
        dim = self.encoder.dim
        self.tagger = TaggingUnit(dim, config.tag_dim, dropout=config.state_dropout) if self.tags_first else None
        self.unit = ParsingUnit(
            dim + (config.tag_dim if self.tags_first else 0), config.state_dim, n_decisions, cell=config.cell,
            dropout=config.state_dropout,
        )  # fmt: skip
        self.register_buffer("is_global", torch.tensor(False))  # kept with the weights it was true of
        self.explores = True

    @property
    def STRUCTURE(self) -> str:  # type: ignore[override]  # noqa: N802
        return f"{self.config.system} transition system"

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; there are a few decisions for each word, and for each tree of a beam."""
        return 5e-4 + n * (5e-5 + 2e-5 * top_k + 0.1 * explain) + self.encoder_cost(n, explain=explain)

    @classmethod
    def resolve_config(cls, config: TransitionConfig, train: Sequence[Sentence]) -> TransitionConfig:
        system = config.system
        if system == "auto":
            share = sum(not is_projective(heads_of(each)) for each in train) / len(train)
            system = "swap" if share > MANY_CROSSING and config.oracle != "dynamic" else "arc-hybrid"
        dynamic = system == "arc-hybrid" and config.cell == "feed-forward" and config.oracle != "static"
        return replace(config, system=system, oracle="dynamic" if dynamic else "static")

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        n_crossing = sum(not is_projective(heads_of(each)) for each in train)
        how = "" if self.config.system == "swap" or not n_crossing else ", whose trees are made projective"
        chosen = f"{self.config.system} transitions with a {self.config.oracle} oracle"
        note = f"{chosen}; {n_crossing:,} of {len(train):,} sentences have crossing arcs{how}"
        return [note, *super().notes(train, dev)]

    # A tagger that the parser reads

    @property
    def tags_first(self) -> bool:
        """True if units are chained: words are tagged by one, and the parser reads its states."""
        return self.config.tags == "chained"

    @property
    def tag_width(self) -> int:
        return self.config.tag_dim if self.tags_first else super().tag_width

    def tag_scores(self, vectors: Float[Tensor, "*words d"]) -> dict[str, Float[Tensor, "*words tags"]]:
        return super().tag_scores(vectors if self.tagger is None else self.tagger(vectors))

    def _projected(self, vectors: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n+2 slots w"]:
        """Return what each word adds to the states of the parser."""
        read = vectors if self.tagger is None else torch.cat([vectors, self.tagger(vectors)], -1)  # [S4, DRAGNN]
        return self.unit.project(read)

    # Learning

    def begin_epoch(self, epoch: int, n_epochs: int) -> None:
        """Choose what is learned in an epoch, counted from 1."""
        super().begin_epoch(epoch, n_epochs)
        self.explores = epoch > self.config.static_epochs
        self.is_global.fill_(epoch > n_epochs - self.config.global_epochs)

    def tree_loss(
        self,
        vectors: Float[Tensor, "batch n d"],
        heads: Int[Tensor, "batch n"],
        labels: Int[Tensor, "batch n"],
        tokens: TokenBatch,
    ) -> Float[Tensor, ""]:
        """Return -log p of right decisions, each in its state; in the last epochs of sequences over a beam too."""
        system, projected = self._system(tokens), self._projected(vectors)
        if self.config.system != "swap":
            heads = torch.from_numpy(lift_rows(heads.cpu().numpy(), system.lengths.cpu().numpy())).to(heads.device)
        if not bool(self.is_global):
            return self._local_loss(system, projected, heads, labels)
        total = self._global_loss(system, projected, heads, labels)
        if self.config.local_weight:
            total = total + self.config.local_weight * self._local_loss(system, projected, heads, labels)
        return total

    def _local_loss(self, system: DependencySystem, projected: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
        if not self._fuses(projected):
            decisions = system.decisions_of(heads, labels)
            return -local_log_prob(*self.unit.connect(system, projected), decisions).sum()
        if self.config.oracle == "dynamic":
            explore = self.config.explore if self.explores else 0.0
            states = explored_states(system, self.unit, projected, (heads, labels), explore)
        else:
            states = gold_states(system, system.decisions_of(heads, labels))
        return local_loss(self.unit, projected, states)

    def _global_loss(self, system: DependencySystem, projected: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
        """Return the global loss, in which every derivation of a tree is right if the oracle is dynamic."""
        if self._fuses(projected) and self.config.oracle == "dynamic":
            return global_loss(system, self.unit, projected, right_trees(system, heads, labels), self.config.beam)
        decisions = system.decisions_of(heads, labels)
        if self._fuses(projected):
            return global_loss(system, self.unit, projected, right_decisions(decisions), self.config.beam)
        return -beam_log_prob(*self.unit.connect_global(system, projected), decisions, self.config.beam).log_prob.sum()

    def _system(self, tokens: TokenBatch) -> DependencySystem:
        return self.system_kind(tokens.mask.sum(1), len(self.labels))

    def _fuses(self, projected: Tensor) -> bool:
        """Return whether kernels can read the states."""
        return self.config.cell == "feed-forward" and can_fuse(projected)

    # Answers

    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedArcs]:
        tokens = self.token_batch(self.encode(batch))
        vectors, lengths = self.encode_tokens(tokens), list(map(len, batch))
        system, projected = self._system(tokens), self._projected(vectors)
        known = None
        if pins is not None and any(pins):
            known = pinned_rows(batch, pins, self.labels, self.config.system, system.longest)
        beam = max(self.config.beam, top_k)
        if self._fuses(projected):
            searched = self._searched(system, projected, beam, known)
        elif known is None:
            searched = self._plain_search(system, projected, beam)
        else:
            problem = f"pins need a feed-forward cell on the CPU, and this parser has {self.config.cell} on "
            raise TrellisworkError(f"{problem}{projected.device.type}; leave them out, or load another parser")
        return answers(searched, lengths, self.labels, self.tags_of(vectors, lengths), top_k, sure)

    def _searched(self, system: DependencySystem, projected: Tensor, beam: int, known: Pinned | None) -> BuiltTrees:
        if beam == 1:
            one = greedy_parses(system, self.unit, projected, known)
            whole = one.log_prob.exp()[:, None]
            return BuiltTrees(one.heads[:, None], one.labels[:, None], whole, one.arc_log_probs.exp())
        parses = beam_parses(system, self.unit, projected, beam, known)
        return BuiltTrees(parses.heads, parses.labels, probabilities_of(parses.scores, bool(self.is_global)))

    def _plain_search(self, system: DependencySystem, projected: Tensor, beam: int) -> BuiltTrees:
        hypotheses = beam_search(*self.unit.connect_global(system, projected), beam)
        fields = dict(zip(ParseState._fields, hypotheses.state, strict=False))
        heads, labels = fields["heads"][..., 1:], fields["labels"][..., 1:]
        return BuiltTrees(heads, labels, probabilities_of(hypotheses.scores, bool(self.is_global)))

    def explain(self, sentences: Readable) -> list[DecisionExplanation]:
        """Explain the decisions that build each tree: the strongest others, and the words that decided."""
        with self.evaluating():
            return [self._explained(each) for each in self.sentences_of(sentences)]

    def _explained(self, sentence: Sentence) -> DecisionExplanation:
        if not len(sentence):
            return DecisionExplanation((), ())
        (answer,) = self.predict([sentence], top_k=BEST, confidence=False)
        tokens = self.token_batch(self.encode([sentence]))
        system, projected = self._system(tokens), self._projected(self.encode_tokens(tokens))
        hypotheses = beam_search(*self.unit.connect_global(system, projected), self.config.beam)
        fields = dict(zip(ParseState._fields, hypotheses.state, strict=False))
        wanted = torch.tensor([(head, self.labels.index(label)) for head, label in answer.value])
        built = torch.stack([fields["heads"][0, :, 1:], fields["labels"][0, :, 1:]], -1).cpu()
        best = int((built == wanted).all(-1).all(-1).long().argmax())  # of the paths to the tree the most probable
        decisions = [d for d in hypotheses.decisions[0, best].tolist() if d != NOTHING]
        connected = self.unit.connect(system, projected)
        explanation = DecisionExplanation.of(sentence.words, connected, system, decisions, self.known_labels)
        return replace(self._with_reasons(explanation, sentence, decisions), best=tuple(answer.alternatives))

    def _with_reasons(
        self, explanation: DecisionExplanation, sentence: Sentence, decisions: Sequence[int]
    ) -> DecisionExplanation:
        """Add the words that each decision is due to; in a long sentence to the least certain decisions only."""
        cost = len(sentence) * (2 if self.unit.n_links else 1)
        open_steps = [i for i, step in enumerate(explanation.steps) if step.rival is not None]
        by_certainty = sorted(open_steps, key=lambda i: explanation.steps[i].taken.probability)
        asked = by_certainty[: affordable(len(sentence), cost)]
        pairs = torch.tensor([(decisions[i], explanation.steps[i].rival or 0) for i in asked]).reshape(-1, 2)
        places = torch.tensor(asked)

        def margins(batch: TokenBatch, which: Int[Tensor, " rows"]) -> Tensor:
            scores = self._scores_at(batch, decisions, places[which.cpu()].to(which.device))
            kept, rival = scores.gather(1, pairs[which.cpu()].to(which.device)).unbind(1)
            return kept - rival

        steps = list(explanation.steps)
        for i, shares in zip(asked, self.attribute(sentence, margins, len(asked), cost), strict=True):
            steps[i] = replace(steps[i], reason=self.reason(sentence, shares, explanation.text_of(steps[i].others[0])))
        return replace(explanation, steps=tuple(steps))

    def _scores_at(
        self, batch: TokenBatch, decisions: Sequence[int], steps: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch a"]:
        """Return the scores of all decisions in the state of each row in which decision number steps[row] is taken."""
        projected = self._projected(self.encode_tokens(batch))
        system, scorer = self.unit.connect(self._system(batch), projected)
        state, chosen = system.initial(), None
        for i, taken in enumerate(decisions[: int(steps.max()) + 1]):
            if self.unit.n_links or bool((steps == i).any()):
                scores = scorer(state)[:, 0]
                chosen = scores if chosen is None else torch.where((steps == i)[:, None], scores, chosen)
            state = system.step(state, torch.full_like(state[1], taken))
        assert chosen is not None
        return chosen


# From what a search found to trees: equal hypotheses are one, and arcs have their share of the beam.


class BuiltTrees(NamedTuple):
    """Hypotheses of a batch and their probabilities; of greedy search also that of the decision for each arc."""

    heads: Int[Tensor, "batch beam n"]
    labels: Int[Tensor, "batch beam n"]
    probabilities: Float[Tensor, "batch beam"]
    sure: Float[Tensor, "batch n"] | None = None


def probabilities_of(scores: Float[Tensor, "batch beam"], is_global: bool) -> Float[Tensor, "batch beam"]:
    """Return the probability of each hypothesis: its share of the beam if scores are global, else they are ln p."""
    return scores.softmax(-1) if is_global else scores.exp()


def answers(
    searched: BuiltTrees,
    lengths: Sequence[int],
    labels: Vocabulary,
    tags: Sequence[Mapping[str, list[str]]],
    top_k: int,
    sure: bool,
) -> list[ParsedArcs]:
    """Return the tree of each sentence and its `top_k` best; if `sure`, with the probability of each arc.

    A tree that several hypotheses have built has the probability of all of them.

    Args:
        searched: Hypotheses of a batch.
        lengths: Number of words of each sentence.
        labels: Labels of the parser.
        tags: Tags of each sentence by column.
        top_k: Number of best trees of each sentence.
        sure: True for probabilities of arcs.

    Returns:
        A tree for each sentence.
    """
    shares = None if searched.sure is None else searched.sure.tolist()
    rows = zip(searched.heads.tolist(), searched.labels.tolist(), searched.probabilities.tolist(), strict=True)
    parsed, names = [], labels.to_list()
    for i, (heads, named, weights) in enumerate(rows):
        n, trees = lengths[i], dict[tuple[Arc, ...], float]()
        for tree, numbers, weight in zip(heads, named, weights, strict=True):
            if weight > 0 or not trees:
                arcs = tuple(zip(tree[:n], map(names.__getitem__, numbers[:n]), strict=True))
                trees[arcs] = trees.get(arcs, 0.0) + weight
        best = max(trees, key=trees.__getitem__)
        of_arcs = () if not sure else _shares(best, trees) if shares is None else shares[i][:n]
        ranked = sorted(trees.items(), key=lambda each: -each[1])[:top_k]
        others = [(list(tree), p) for tree, p in ranked]
        parsed.append(ParsedArcs(list(best), trees[best], of_arcs, best=others, tags=tags[i]))
    return parsed


def _shares(best: Sequence[Arc], trees: Mapping[tuple[Arc, ...], float]) -> list[float]:
    """Return the share of the beam that has each arc."""
    total = sum(trees.values()) or 1.0
    return [sum(p for tree, p in trees.items() if tree[i] == arc) / total for i, arc in enumerate(best)]


def pinned_rows(sentences: Sequence[Sentence], pins: Sequence[Pins], labels: Vocabulary, system: str, n: int) -> Pinned:
    """Return the pins as arrays for kernels; heads need a system that knows which arcs can still be reached.

    Args:
        sentences: Sentences of a batch.
        pins: Known heads and labels of each sentence.
        labels: Labels of the parser.
        system: Name of the transition system.
        n: Number of words of the longest sentence.

    Returns:
        Heads and labels, [batch, n + 1], -1 where unknown.
    """
    allowed_arcs(sentences, pins, n)  # refuses words and heads that are not there
    heads, names = np.full((len(sentences), n + 1), -1), np.full((len(sentences), n + 1), -1)
    for row, known in enumerate(pins):
        for word, (head, _) in known.items():
            if head is not None:
                heads[row, word + 1] = head
    for row, word, label in pinned_labels(sentences, pins, labels):
        names[row, word + 1] = label
    if system != "arc-hybrid" and (heads >= 0).any():
        problem = f"pinned heads need a parser with arc-hybrid transitions, and this one has {system}"
        raise TrellisworkError(f"{problem}; pin labels alone, or train with --system arc-hybrid")
    return Pinned(heads, names)
