"""A constituency parser that scores labelled spans, and finds trees by CKY.

    >>> parser = SpanParser.from_data(train_sentences)                        # doctest: +SKIP
    >>> train(parser, train_sentences, dev_sentences, out="parser")           # doctest: +SKIP
    >>> str(tw.load("parser").predict([["We", "sleep"]])[0].value)            # doctest: +SKIP
    '(S (NP (PRP We)) (VP (VBP sleep)))'

p(tree | words) is proportional to exp of the sum of the scores of its constituents, over all trees of any arity; a
chain of constituents over the same words has one joint label (`derivations`). Parts of speech are a choice of their own
for each word, on the same encoder: probabilities of trees leave them out.

Stern, Andreas and Klein (2017), A minimal span-based neural constituency parser; Gaddy, Stern and Klein (2018), What's
going on in neural constituency parsers? An analysis; Goodman (1996), Parsing algorithms and metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, Vocabulary, WordVectors
from trelliswork.distributions.span_tree import SpanTree
from trelliswork.distributions.span_values import allowed_by_nodes
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Description, Readable
from trelliswork.models.expected_counts import Counting
from trelliswork.models.networks.attribution import Attribution, affordable
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import network_described
from trelliswork.models.networks.word_network import EncodedSentence, WordNetwork
from trelliswork.models.parsers.constituency.bracket_explanation import BracketShares, rival_text
from trelliswork.models.parsers.constituency.config import SpanConfig
from trelliswork.models.parsers.constituency.derivations import Bracket, ChainLabels, Node, brackets_of
from trelliswork.models.parsers.constituency.folded_spans import FoldedSpans
from trelliswork.models.parsers.constituency.parser import (
    ConstituencyParser,
    GivenPins,
    ParsedTree,
    Pins,
    check_pins,
    listed,
)
from trelliswork.models.part_choices import NO_CONSTITUENT, PartChoices, span_choices
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.models.votes import Reason
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.scorers.spans import SpanPlaces, SpanScorer
from trelliswork.runtime.arrays import INF, Bool, Float, Int

Sure = tuple[float | None, Sequence[float], Sequence[float]]  # of a tree, of its constituents and of its tags
_UNSURE: Sure = None, (), ()
CHUNK = 1 << 16  # spans, padding included, whose charts are in memory at a time


class BatchScores(NamedTuple):
    """A batch: its trees, and the scores of the tags of each word."""

    trees: SpanTree
    tags: Float[Tensor, "batch n t"]


class SpanParser(ConstituencyParser, WordNetwork):
    """Inputs, encoder, scores of labelled spans and of tags, and a CRF over trees of any arity.

    Args:
        config: settings.
        features: What is read of words.
        labels: Labels of constituents by number.
        tags: Parts of speech by number.
    """

    CONFIG, CPU_ONLY = SpanConfig, True
    pins_chains = counts_parts = True
    STRUCTURE = "CRF over constituency trees"

    def __init__(self, config: SpanConfig, features: TokenFeatures, labels: ChainLabels, tags: Vocabulary):
        super().__init__(config, features)
        self.labels, self.tags = labels, tags
        self.scorer = SpanScorer(
            self.encoder.dim, len(labels), hidden=config.span_dim, dropout=config.span_dropout,
            initialization=config.initialization,
        )  # fmt: skip
        self.tag_scorer = nn.Linear(self.encoder.dim, len(tags))

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """A chart over n words, and what a pretrained encoder takes."""
        chart = super().cost(n, top_k=top_k, choices=choices, explain=explain)
        return chart + self.encoder_cost(n, explain=explain)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: SpanConfig | None = None,
        *,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new parser whose vocabularies and labels come from sentences with brackets.

        Args:
            train: Sentences with brackets and parts of speech.
            config: Settings.
            vectors: Pretrained vectors of words.
            seed: Seed of the first weights.

        Returns:
            The parser, not trained.
        """
        if not train:
            raise TrellisworkError("expected sentences with brackets to build a parser from, got none; check the data")
        config = replace(config or SpanConfig(), vector_dim=0 if vectors is None else vectors.dim)
        labels = ChainLabels.from_sentences(train)
        tags = Vocabulary.from_counts(Counter(tag for each in train for tag in each.tags or ()))
        features = TokenFeatures.from_sentences(train, config, () if vectors is None else vectors.words)
        return cls.initialised(train, vectors, seed, config, features, labels, tags)

    @classmethod
    def from_material(cls, material: Material, config: SpanConfig, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, vectors=material.files, seed=seed)

    # Learning

    def gold(self, sentence: Sentence) -> list[list[int]]:
        """Return the nodes of the tree (start, end, label), and the tag of word r in row r, -1 in the rows behind."""
        nodes = self.labels.nodes(len(sentence), brackets_of(sentence))
        tags = [self.tags.index(tag) for tag in sentence.tags or ()]
        return [[*node, tag] for node, tag in zip(nodes, tags + [-1] * (len(sentence) - 1), strict=True)]

    def forward(self, batch: TokenBatch) -> BatchScores:
        """Return p(tree | words), and scores of tags."""
        vectors = self.encode_tokens(batch)
        lengths = batch.mask.sum(1)
        spans = self.scorer(vectors * batch.mask[..., None], lengths)
        return BatchScores(SpanTree(spans, lengths=lengths, empty=0), self.tag_scorer(vectors))

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """Return -log p(tree | words), and that of the tags times their weight, summed over the batch."""
        trees, gold, of_tags = self.scored(batch)
        return of_tags - trees.log_prob(gold).sum()

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[SpanTree, Int[Tensor, "batch nodes 3"], Float[Tensor, ""]]:
        """Return p(tree | words) of a batch, its gold trees, and the loss of the tags, for every objective."""
        encoded, rows = self.encoded(batch)
        scores = self(self.token_batch(encoded))
        gold = pad_sequence(list(rows), batch_first=True, padding_value=-1).to(scores.tags.device)
        tags = gold[:, : scores.tags.shape[1], 3]
        of_tags = F.cross_entropy(scores.tags.flatten(0, 1), tags.flatten(), ignore_index=-1, reduction="sum")
        return scores.trees, gold[..., :3], self.config.tag_weight * of_tags

    # Answers

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> SpanTree:
        """Return p(tree | words, pins) of a batch, with every query: entropy, samples, k best, and so on.

        Labels are indices into `labels.names`; `labels.brackets` makes constituents of the nodes of a value.
        """
        given = self.sentences_of(sentences)
        with self.evaluating():
            return self._pinned(self(self.token_batch(self.encode(given))).trees, pins)

    def counting(self, batch: Sequence[Sentence], pins: Sequence[GivenPins] | None) -> Counting:
        trees = self.distribution(batch, None if pins is None else [listed(each) for each in pins])

        def of_label(label: str) -> dict[str, Tensor]:
            costs = trees.spans.new_tensor([chain.count(label) for chain in self.labels.chains])
            return {"costs": costs.expand(trees.spans.shape)}

        return Counting([trees], list(self.labels.single), of_label)

    def choices(
        self, inputs: Readable, *, pins: Sequence[GivenPins] | None = None, most: int | None = None
    ) -> list[list[PartChoices]]:
        """Return the labels of each span, chains of them as S+VP, with exact probabilities given the pins."""
        sentences = self.sentences_of(inputs)
        known: list[Pins] = [()] * len(sentences) if pins is None else [listed(each) for each in pins]
        choices = []
        for sentence, of_it in zip(sentences, known, strict=True):
            check_pins(sentence, of_it)
            trees = self.distribution([sentence], [of_it]) if len(sentence) else None
            shares = np.zeros((0, 0, 1)) if trees is None else trees.marginals[0].detach().double().cpu().numpy()
            choices.append(span_choices(shares, [NO_CONSTITUENT, *self.labels.names[1:]], most))
        return choices

    def _pinned(self, trees: SpanTree, pins: Sequence[Pins] | None) -> SpanTree:
        if pins is None or not any(pins):
            return trees
        _, n, _, c = trees.spans.shape
        known = [[(start, end, None) for start, end, _ in row] for row in pins]
        allowed = allowed_by_nodes(known, trees.lengths.tolist(), n, c, trees.spans.device)
        for (row, start, end), having in self._allowed(pins).items():
            allowed[row, start, end - 1] &= having.to(allowed.device)
        return trees.constrain(allowed)

    def _allowed(self, pins: Sequence[Pins] | None) -> dict[tuple[int, int, int], Bool[Tensor, "c"]]:
        """Return the labels that pinned spans (row, start, end) may have."""
        allowed: dict[tuple[int, int, int], Tensor] = {}
        for row, known in enumerate(pins or ()):
            for start, end, label in known:
                place, having = (row, start, end), self._having(label)
                allowed[place] = having & allowed.get(place, having)
        return allowed

    def _having(self, label: str | None) -> Bool[Tensor, "c"]:
        having = torch.tensor(self.labels.with_label(label))
        if not bool(having.any()):
            known = ", ".join(self.known_labels)
            raise TrellisworkError(f"a pin must have one of the labels {known}; got {label!r}")
        return having

    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedTree]:
        tokens = self.token_batch(self.encode(batch))
        vectors, lengths = self.encode_tokens(tokens) * tokens.mask[..., None], list(map(len, batch))
        shares = self.tag_scorer(vectors).softmax(-1).max(-1)
        names, parses = self.tags.to_list(), list[ParsedTree]()
        tags = [[names[t] for t in row[:n]] for row, n in zip(shares.indices.tolist(), lengths, strict=True)]
        for first, last in _small(lengths):
            rows, known = slice(first, last), None if pins is None else pins[first:last]
            part = FoldedSpans(
                self.scorer, vectors[rows, : max(lengths[rows])], tokens.mask[rows].sum(1), self.labels,
                self._allowed(known),
            )  # fmt: skip
            values = part.best() if self.config.decoding == "best" else part.expected()
            best = self._top(batch[rows], known, tags[rows], top_k) if top_k else [[]] * len(values)
            sure_of = self._probabilities(part, values, shares.values[rows]) if sure else [_UNSURE] * len(values)
            parses += [
                ParsedTree(own, self.labels.brackets(value), *probabilities, ranked)
                for own, value, probabilities, ranked in zip(tags[rows], values, sure_of, best, strict=True)
            ]
        return parses

    def _probabilities(
        self, part: FoldedSpans, values: Sequence[Sequence[Node]], of_tags: Float[Tensor, "batch n"]
    ) -> list[Sure]:
        """Return the probability of each tree, those of its constituents, in whichever chain, and those of its tags."""
        whole = part.log_prob(values).exp().clamp(max=1.0).tolist()
        brackets = [self.labels.brackets(value) for value in values]
        single = self.labels.single
        asked = [((row * part.n + i) * part.n + j - 1, single[label])
                 for row, each in enumerate(brackets) for i, j, label in each]  # fmt: skip
        cells, labels = torch.tensor(asked, device=part.lengths.device).reshape(-1, 2).unbind(1)
        shares = part.shares(cells)
        sure = iter((shares * self.labels.having.to(shares)[labels, 1:]).sum(-1).clamp(max=1.0).tolist())
        return [
            (whole[row], [next(sure) for _ in each], of_tags[row, : int(part.lengths[row])].tolist())
            for row, each in enumerate(brackets)
        ]

    def shares(self, sentence: Sentence) -> BracketShares:
        marginals = self.distribution([sentence]).marginals[0].detach().cpu()
        of_labels = marginals @ self.labels.having.T.to(marginals)
        return BracketShares(list(self.labels.single), of_labels.numpy(), marginals[..., 1:].sum(-1).numpy())

    def reasons(self, sentence: Sentence, parse: ParsedTree) -> dict[tuple[int, int], Reason]:
        """Return the words that decide each span: the best tree with its labels is compared with the best without."""
        n = len(sentence)
        trees, value = self.distribution([sentence]), self.labels.nodes(n, parse.brackets)
        labelled = [node for node in value if node[2]]
        marginals = trees.marginals[0]
        labelled.sort(key=lambda node: float(marginals[node[0], node[1] - 1, node[2]]))
        compared, (best,) = {}, trees.argmax
        for node in sorted(labelled[: affordable(n)]):
            start, end, label = node
            without = torch.ones_like(trees.spans, dtype=torch.bool)
            without[0, start, end - 1, label] = False
            kept, rival = best, _best_of(trees.constrain(without))
            if node not in map(tuple, best):
                having = allowed_by_nodes([[(start, end, None)]], [n], n, trees.spans.shape[-1], trees.spans.device)
                having[0, start, end - 1] &= ~without[0, start, end - 1]
                kept = _best_of(trees.constrain(having))
            if kept is not None and rival is not None:
                compared[start, end] = kept, rival
        shares = self._attributed(sentence, list(compared.values()))
        return {
            span: self.reason(sentence, each, rival_text(span, self.labels.brackets(rival), sentence.words))
            for (span, (_, rival)), each in zip(compared.items(), shares, strict=True)
        }

    def _attributed(
        self, sentence: Sentence, compared: Sequence[tuple[Sequence[Node], Sequence[Node]]]
    ) -> list[Attribution]:
        """Return the shares of the words in the differences between the scores of two trees."""
        signed = []  # of each pair: (start, end, label, 1 or -1), where one of the trees has the node and not the other
        for pair in compared:
            own, other = (Counter(map(tuple, each)) for each in pair)
            signed.append([(*node, sign) for sign, nodes in ((1, own - other), (-1, other - own)) for node in nodes])

        def margins(batch: TokenBatch, which: Int[Tensor, " rows"]) -> Tensor:
            vectors = self.encode_tokens(batch)
            n_posts = vectors.shape[1] + 1
            nodes = [(row, *node) for row, d in enumerate(which.tolist()) for node in signed[d] if node[2]]
            rows, starts, ends, labels, signs = torch.tensor(nodes, device=vectors.device).reshape(-1, 5).unbind(1)
            places = SpanPlaces(rows * n_posts + starts, rows * n_posts + ends, rows)
            scores = torch.cat([each for _, each in self.scorer.scores(self.scorer.ends(vectors), places)])
            chosen = scores.gather(1, labels[:, None] - 1)[:, 0] * signs
            return vectors.new_zeros(len(which)).index_add(0, rows, chosen)

        return self.attribute(sentence, margins, len(compared))

    def _top(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, tags: Sequence[Sequence[str]], top_k: int
    ) -> list[list[tuple[Sequence[str], list[Bracket], float]]]:
        """Return the `top_k` best trees of each sentence, all with the best tags, and their probabilities."""
        trees = self.distribution(batch, pins)
        values, scores = trees.top_k(top_k)
        shares = (scores.double() - trees.log_partition.double()).exp().clamp(max=1.0).T.tolist()
        exists = (scores > -INF).T.tolist()
        return [
            [
                (tags[row], self.labels.brackets(values[rank][row]), shares[row][rank])
                for rank in range(top_k)
                if exists[row][rank]
            ]
            for row in range(len(tags))
        ]

    # What it is

    @property
    def known_labels(self) -> list[str]:
        return sorted(set(self.labels.single))

    def describe(self, top: int = 20) -> Description:
        shown = {"constituents": self.labels.names[1:], "parts of speech": self.tags.to_list()}
        return network_described(self, self.STRUCTURE, shown, {"labels": self.labels.names[1:]}, [])

    @property
    def size(self) -> str:
        return f"{len(self.labels) - 1} labels of constituents, {self.n_parameters:,} parameters"

    def stored_config(self) -> dict[str, object]:
        return super().stored_config() | {"labels": self.labels.names, "tags": self.tags.to_list()}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        settings = SpanConfig.from_dict(config["settings"])
        features = TokenFeatures.from_stored(settings, config)
        return cls(settings, features, ChainLabels(config["labels"]), Vocabulary(config["tags"]))


def _best_of(trees: SpanTree) -> Sequence[Node] | None:
    """Return the best tree of one sentence; None if none is allowed."""
    return trees.argmax[0] if bool(trees.log_partition > -INF) else None


def _small(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose charts are in memory together; one row at least."""
    first, longest = 0, 0
    for i, n in enumerate(lengths):
        longest = max(longest, n)
        if i > first and (i + 1 - first) * longest * longest > CHUNK:
            yield first, i
            first, longest = i, n
    yield first, len(lengths)
