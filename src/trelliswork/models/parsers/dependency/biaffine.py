"""A graph-based dependency parser: every arc has a score, and a tree the sum of them.

    >>> parser = BiaffineParser.from_data(train_sentences)                     # doctest: +SKIP
    >>> train(parser, train_sentences, dev_sentences, out="parser")            # doctest: +SKIP
    >>> tw.load("parser").predict([["Ann", "sings"]])[0].value                 # doctest: +SKIP
    [(2, 'nsubj'), (0, 'root')]

p(heads, labels | words) = p(heads | words) Π_m p(label of m | head of m, m). The first factor sums over all trees with
one root, projective or not, and the second is a choice of one label for each arc.

Dozat and Manning (2017), Deep biaffine attention for neural dependency parsing; Koo, Globerson, Carreras and Collins
(2007), Structured prediction models via the matrix-tree theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, Vocabulary, token_budget_batches
from trelliswork.data.treebank import is_projective
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.models.base import Readable
from trelliswork.models.batched import BUDGET, in_batches
from trelliswork.models.expected_counts import Counting
from trelliswork.models.networks.attribution import Attribution, affordable
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.word_network import EncodedSentence
from trelliswork.models.parsers.dependency.arc_explanation import ArcExplanation, arc_text
from trelliswork.models.parsers.dependency.config import ParserConfig
from trelliswork.models.parsers.dependency.parser import Arc, DependencyParser, ParsedArcs, Pins, heads_of, labels_of
from trelliswork.models.parsers.dependency.pins import allowed_arcs, pinned_labels
from trelliswork.models.part_choices import PartChoices, arc_choices
from trelliswork.nn.dependency_crf import DependencyCRF
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.scorers.biaffine import BestLabels, BiaffineScorer
from trelliswork.runtime.arrays import INF, Float, Int

BEST, LONGEST_BEST = 3, 100  # trees that explanations show, of sentences of at most this many words
Value = Sequence[tuple[int, int]]  # head and label of each word


class ArcScores(NamedTuple):
    """Of a batch: `arcs` sum out the labels."""

    arcs: Float[Tensor, "batch n+1 n+1"]
    labels: BestLabels


class BiaffineParser(DependencyParser):
    """Biaffine scores of arcs and labels over the encoder, and a CRF over trees."""

    CONFIG = ParserConfig
    temperatures: Tensor
    explains = counts_parts = True
    budget = 2048  # what the encoder holds of them then fits into the cache of a processor

    def __init__(
        self,
        config: ParserConfig,
        features: TokenFeatures,
        labels: Vocabulary,
        tags: Mapping[str, Vocabulary] | None = None,
    ):
        super().__init__(config, features, labels, tags)
        self.scorer = BiaffineScorer(
            self.encoder.dim, len(labels), arc_dim=config.arc_dim, label_dim=config.label_dim,
            dropout=config.score_dropout, initialization=config.initialization,
        )  # fmt: skip
        self.crf = DependencyCRF(projective=config.trees == "projective")
        self.register_buffer("temperatures", torch.ones(2))  # of arcs and of labels: see `calibrate`

    @property
    def STRUCTURE(self) -> str:  # type: ignore[override]  # noqa: N802
        return f"CRF over {'projective' if self.crf.projective else 'all'} dependency trees"

    @classmethod
    def resolve_config(cls, config: ParserConfig, train: Sequence[Sentence]) -> ParserConfig:
        if config.trees != "auto":
            return config
        crossing = any(not is_projective(heads_of(each)) for each in train)
        return replace(config, trees="non-projective" if crossing else "projective")

    # Learning

    def tree_loss(
        self,
        vectors: Float[Tensor, "batch n d"],
        heads: Int[Tensor, "batch n"],
        labels: Int[Tensor, "batch n"],
        tokens: TokenBatch,
    ) -> Float[Tensor, ""]:
        """Return -log p(heads | words) - Σ log p(label | arc)."""
        nodes = self.scorer.nodes(vectors)
        of_labels = self.scorer.labels_at(nodes, heads)[tokens.mask] / self.temperatures[1]
        log_likelihood = self.crf(self._arcs(nodes), heads, mask=tokens.mask)
        return F.cross_entropy(of_labels, labels[tokens.mask], reduction="sum") - log_likelihood

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[DependencyTree, Int[Tensor, "batch n 2"]]:
        """Return p(heads, labels | words) of a batch and its gold trees, for objectives other than the likelihood."""
        encoded, rows = self.encoded(batch)
        tokens = self.token_batch(encoded)
        gold = pad_sequence(list(rows), batch_first=True)[..., :2]
        return self._labelled(self.encode_tokens(tokens), tokens), gold.to(tokens.mask.device)

    def _labelled(self, vectors: Float[Tensor, "batch n d"], tokens: TokenBatch) -> DependencyTree:
        nodes = self.scorer.nodes(vectors)
        return self.crf.distribution(self._arcs(nodes), self._labels(nodes, nodes).log_softmax(-1), mask=tokens.mask)

    def _arcs(self, nodes: Float[Tensor, "batch n+1 d"]) -> Float[Tensor, "batch n+1 n+1"]:
        return self.scorer.arcs(nodes) / self.temperatures[0]

    def _labels(self, heads: Float[Tensor, "batch h d"], dependents: Tensor) -> Float[Tensor, "batch h m l"]:
        return self.scorer.labels(heads, dependents) / self.temperatures[1]

    def calibrate(self, sentences: Sequence[Sentence]) -> bool:
        """Make probabilities as large as they should be: divide scores by the temperatures that sentences, which it
        has not learned from, are most probable with.

        Networks grow too sure of what they have seen. One temperature of arcs and one of labels keep the order of the
        trees of arcs, and nearly all answers.

        Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.
        """
        if sentences:
            self.temperatures.fill_(1.0)
            self.temperatures.copy_(torch.tensor(fitted_temperatures(self, sentences)))
        return bool(sentences)

    # Answers

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> DependencyTree:
        """Return p(heads, labels | words, pins) of a batch, with every query: entropy, samples, k best, and so on."""
        with self.evaluating():
            tokens = self.token_batch(self.encode(self.sentences_of(sentences)))
            trees = self._labelled(self.encode_tokens(tokens), tokens)
            return trees if pins is None else self._pinned(trees, sentences, pins)

    def explain(self, sentences: Readable) -> list[ArcExplanation]:
        """Explain the arcs of each best tree: other heads of each word, and the words that decided."""
        return [self._explained(each) for each in self.sentences_of(sentences)]

    def _explained(self, sentence: Sentence) -> ArcExplanation:
        if not len(sentence):
            return ArcExplanation((), (), ())
        (answer,) = self.predict([sentence], top_k=BEST if len(sentence) <= LONGEST_BEST else 0, confidence=False)
        trees = self.distribution([sentence])
        marginals, n = trees.marginals[0].detach().cpu(), len(sentence)
        value = [(head, self.labels.index(label)) for head, label in answer.value]
        order = sorted(range(n), key=lambda i: float(marginals[value[i][0], i + 1, value[i][1]]))
        compared = self._compared(trees, value, sorted(order[: affordable(n)]))
        shares = self._attributed(sentence, list(compared.values()))
        reasons = {
            i: self.reason(sentence, each, arc_text(sentence.words, rival[i][0], self.labels[rival[i][1]]))
            for (i, (_, rival)), each in zip(compared.items(), shares, strict=True)
        }
        return ArcExplanation.of(
            sentence.words, answer.value, marginals, self.known_labels, reasons, answer.alternatives
        )

    def _compared(self, trees: DependencyTree, value: Value, asked: Sequence[int]) -> dict[int, tuple[Value, Value]]:
        """Return for some words the best tree of one sentence with its arc, and the best one with another arc."""
        assert trees.labels is not None
        arcs, labels, compared = trees.arcs[0], trees.labels[0], {}
        best = self._best_tree(arcs, labels)
        for i in asked:
            (head, label), without, only = value[i], labels.clone(), torch.full_like(labels[:, i + 1], -INF)
            without[head, i + 1, label] = -INF  # the head may stay, with another label
            only[head, label] = labels[head, i + 1, label]
            kept, rival = best, self._best_tree(arcs, without)
            if kept is None or kept[i] != value[i]:
                kept = self._best_tree(arcs, labels.index_copy(1, torch.tensor([i + 1]), only[:, None]))
            if kept is not None and rival is not None:
                compared[i] = kept, rival
        return compared

    def _best_tree(self, arcs: Float[Tensor, "n+1 n+1"], labels: Float[Tensor, "n+1 n+1 l"]) -> Value | None:
        best = labels.max(-1)
        trees = self.crf.distribution((arcs + best.values)[None])
        if not bool(trees.log_partition > -INF):
            return None
        return [(head, int(best.indices[head, m])) for m, head in enumerate(trees.argmax[0].tolist(), 1)]

    def _attributed(self, sentence: Sentence, compared: Sequence[tuple[Value, Value]]) -> list[Attribution]:
        """Return the shares of the words in the differences between the scores of two trees."""
        signed = []  # of each pair: (head, word, label, 1 or -1), where one of the trees has the arc and not the other
        for pair in compared:
            own, other = ({(head, m, label) for m, (head, label) in enumerate(each, 1)} for each in pair)
            signed.append([(*arc, 1) for arc in own - other] + [(*arc, -1) for arc in other - own])

        def margins(batch: TokenBatch, which: Int[Tensor, " rows"]) -> Tensor:
            nodes = self.scorer.nodes(self.encode_tokens(batch))
            arcs = [(row, *arc) for row, d in enumerate(which.tolist()) for arc in signed[d]]
            rows, heads, words, labels, signs = torch.tensor(arcs, device=nodes.device).unbind(1)
            ends = self.scorer.as_heads(nodes[rows, heads]), self.scorer.as_dependents(nodes[rows, words])
            of_labels = (self.scorer.labels_of_pairs(*ends) / self.temperatures[1]).log_softmax(-1)
            scores = self._arcs(nodes)[rows, heads, words] + of_labels.gather(1, labels[:, None])[:, 0]
            return nodes.new_zeros(len(which)).index_add(0, rows, scores * signs)

        return self.attribute(sentence, margins, len(compared))

    def choices(
        self, inputs: Readable, *, pins: Sequence[Pins] | None = None, most: int | None = None
    ) -> list[list[PartChoices]]:
        """Return the heads and labels that each word may have, by their exact probability given the pins."""

        def answer(batch: Sequence[Sentence], known: Sequence[Pins] | None) -> list[list[PartChoices]]:
            tables = self.distribution(batch, known).marginals.detach().double().cpu().numpy()
            sizes = [len(each) + 1 for each in batch]
            return [arc_choices(table[:n, :n], self.known_labels, most) for table, n in zip(tables, sizes, strict=True)]

        return in_batches(self, self.sentences_of(inputs), pins, answer, empty=list, budget=self.budget)

    def counting(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> Counting:
        trees = self.distribution(batch, pins)
        assert trees.labels is not None
        labels = trees.labels

        def of_label(label: str) -> dict[str, Tensor]:
            costs = torch.arange(labels.shape[-1], device=labels.device) == self.labels.index(label)
            return {"costs": costs.to(labels.dtype).expand(labels.shape)}

        return Counting([trees], self.known_labels, of_label)

    def _pinned(self, trees: DependencyTree, sentences: Sequence[Sentence], pins: Sequence[Pins]) -> DependencyTree:
        assert trees.labels is not None
        allowed = allowed_arcs(sentences, pins, trees.n)[..., None].expand(trees.labels.shape).clone()
        for row, word, label in pinned_labels(sentences, pins, self.labels):
            only = torch.zeros(allowed.shape[-1], dtype=torch.bool)
            only[label] = True
            allowed[row, :, word + 1] &= only
        return trees.constrain(allowed.to(trees.labels.device))

    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedArcs]:
        tokens = self.token_batch(self.encode(batch))
        vectors = self.encode_tokens(tokens)
        scores = self._scores(self.scorer.nodes(vectors), batch, pins)
        trees = self.crf.distribution(scores.arcs, mask=tokens.mask)
        heads = self._best_heads(trees, scores, tokens)
        labels, log_shares = scores.labels.at(heads)
        lengths, tags = list(map(len, batch)), self.tags_of(vectors, list(map(len, batch)))
        best_arcs = self._arcs_of(heads, labels, lengths)
        best: Sequence[Sequence[tuple[list[Arc], float]]] = [()] * len(batch)
        if top_k > 1 or (top_k and self.config.decoding != "best"):
            best = self._best_trees(vectors, tokens, batch, pins, top_k)
        if not (sure or top_k):
            return [ParsedArcs(arcs, tags=tags[i]) for i, arcs in enumerate(best_arcs)]
        whole = (trees.log_prob(heads) + (log_shares * tokens.mask).sum(1)).exp().tolist()
        if top_k == 1 and self.config.decoding == "best":
            best = [[(arcs, share)] for arcs, share in zip(best_arcs, whole, strict=True)]
        if not sure:
            return [ParsedArcs(arcs, best=best[i], tags=tags[i]) for i, arcs in enumerate(best_arcs)]
        words = torch.arange(1, heads.shape[1] + 1)
        of_heads = trees.arc_marginals[torch.arange(len(heads))[:, None], heads, words]
        both = zip((log_shares.exp() * of_heads).tolist(), of_heads.tolist(), lengths, strict=True)
        sure_of = [(arcs[:n], of[:n]) for arcs, of, n in both]
        return [ParsedArcs(arcs, whole[i], *sure_of[i], best[i], tags[i]) for i, arcs in enumerate(best_arcs)]

    def _arcs_of(self, heads: Tensor, labels: Tensor, lengths: Sequence[int]) -> list[list[Arc]]:
        names = self.known_labels
        return [
            [(head, names[label]) for head, label in zip(row[:n], of[:n], strict=True)]
            for row, of, n in zip(heads.tolist(), labels.tolist(), lengths, strict=True)
        ]

    def _scores(
        self, nodes: Float[Tensor, "batch n+1 d"], batch: Sequence[Sentence], pins: Sequence[Pins] | None
    ) -> ArcScores:
        """Return scores of all arcs as far as the pins allow them, and their labels."""
        arcs, labels = self._arcs(nodes), BestLabels(self.scorer, nodes, self.temperatures[1])
        if pins is None or not any(pins):
            return ArcScores(arcs, labels)
        arcs = torch.where(allowed_arcs(batch, pins, arcs.shape[-1] - 1).to(arcs.device), arcs, -INF)
        for row, word, label in pinned_labels(batch, pins, self.labels):
            arcs[row, :, word + 1] += labels.fix(row, word, label)
        return ArcScores(arcs, labels)

    def _best_heads(self, trees: DependencyTree, scores: ArcScores, tokens: TokenBatch) -> Int[Tensor, "batch n"]:
        """Return the heads of the answer."""
        expected = trees.arc_marginals if self.config.decoding == "expected" else None

        def search(rows: Int[Tensor, "rows"]) -> Int[Tensor, "rows n"]:
            arcs, log_shares = scores.arcs[rows], scores.labels.log_shares[rows]
            arc_scores = arcs + log_shares
            if expected is not None:  # the marginal of an arc bounds that of an arc with a label
                arc_scores = torch.where(arcs == -INF, arcs, expected[rows] * log_shares.exp())
            heads: Tensor = self.crf.distribution(arc_scores, mask=tokens.mask[rows]).argmax
            return heads

        return scores.labels.best_heads(search, tokens.mask)

    def _best_trees(
        self,
        vectors: Float[Tensor, "batch n d"],
        tokens: TokenBatch,
        batch: Sequence[Sentence],
        pins: Sequence[Pins] | None,
        top_k: int,
    ) -> list[list[tuple[list[tuple[int, str]], float]]]:
        """Return the `top_k` best trees of each sentence with their probabilities."""
        trees = self._labelled(vectors, tokens)
        trees = trees if pins is None else self._pinned(trees, batch, pins)
        values, scores = trees.top_k(top_k)
        shares = (scores - trees.log_partition).exp().T.tolist()
        ranked = []
        for row, sentence in enumerate(batch):
            rows = values[:, row, : len(sentence)].tolist()
            ranked.append([
                ([(head, self.labels[label]) for head, label in tree], share)
                for tree, share in zip(rows, shares[row], strict=True) if share > 0
            ])  # fmt: skip
        return ranked


# Temperatures of arcs and labels that make held-out trees most probable.

WIDEST = math.log(8)  # temperatures are sought in 1/8 .. 8


def fitted_temperatures(parser: BiaffineParser, sentences: Sequence[Sentence]) -> tuple[float, float]:
    """Fit the temperature of arcs and that of labels; labels that the parser does not know do not count."""
    known = [each for each in sentences if len(each) and all(label in parser.labels for label in labels_of(each))]
    if not known:
        return 1.0, 1.0
    batches = token_budget_batches([len(each) for each in known], BUDGET, shuffle=False)
    with parser.evaluating():
        scored = [_scored(parser, [known[i] for i in batch]) for batch in batches]

        def of_arcs(temperature: float) -> float:
            return -sum(parser.crf(arcs / temperature, heads, mask=mask).item() for arcs, heads, mask, _, _ in scored)

        def of_labels(temperature: float) -> float:
            return sum(
                F.cross_entropy(scores / temperature, labels, reduction="sum").item()
                for _, _, _, scores, labels in scored
            )

        return _best(of_arcs), _best(of_labels)


def _scored(parser: BiaffineParser, batch: Sequence[Sentence]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return scores of all arcs, gold heads and the mask; scores of the labels of gold arcs, and which are right."""
    tokens = parser.token_batch(parser.encode(batch))
    rows = [torch.tensor([heads_of(each), parser.labels.indices(labels_of(each))]).T for each in batch]
    gold = pad_sequence(rows, batch_first=True).to(tokens.mask.device)
    nodes = parser.scorer.nodes(parser.encode_tokens(tokens))
    labels = parser.scorer.labels_at(nodes, gold[..., 0])[tokens.mask]
    return parser.scorer.arcs(nodes), gold[..., 0], tokens.mask, labels, gold[..., 1][tokens.mask]


def _best(loss: Callable[[float], float]) -> float:
    """Minimise a loss that has one valley, on a scale of logarithms; return the temperature."""
    minimum = minimize_scalar(
        lambda log: loss(math.exp(log)), bounds=(-WIDEST, WIDEST), method="bounded", options={"xatol": 1e-3}
    )
    return math.exp(minimum.x)
