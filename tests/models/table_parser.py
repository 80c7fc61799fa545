"""A dependency parser in one file: the score of an arc is a weight for its two words, that of a label one for its word.

It answers what `Model` asks. Nothing in training, storage or the commands knows of it. Parts of speech are predicted as
the most frequent one of each word, if the treebank has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, Vocabulary
from trelliswork.data.settings import Settings
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.metrics import attachment
from trelliswork.models.base import Alternative, Answer, Description, PartProbability, Report, arc_columns
from trelliswork.models.batched import in_batches
from trelliswork.models.catalogue import CLASSES
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.parsers.dependency.arc_explanation import ArcExplanation
from trelliswork.models.parsers.dependency.parser import arcs_of
from trelliswork.models.parsers.dependency.pins import head_pin
from trelliswork.models.parsers.dependency.report import report_of
from trelliswork.models.recipe import Material, Note, Options, Recipe, RunOptions
from trelliswork.nn import DependencyCRF
from trelliswork.training import TrainingConfig
from trelliswork.training.loop import carry_out
from trelliswork.training.result import TrainingResult
from trelliswork.training.run import Run

CLASSES["TableParser"] = f"{__name__}:TableParser"
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class _Example:
    """A sentence as indices, the root first, with its heads and labels."""

    words: list[int]
    heads: list[int]
    labels: list[int]

    def __len__(self) -> int:
        return len(self.heads)


class TableParser(StoredNetwork):
    """p(tree | words) by the matrix-tree theorem; it also reads the columns that it is trained with."""

    learns_from, explains = "heads", True

    def __init__(self, words: Vocabulary, labels: Vocabulary, upos: Mapping[str, str], n_columns: int = 0) -> None:
        super().__init__()
        self.words, self.labels, self.upos, self._n_columns = words, labels, dict(upos), n_columns
        self.crf = DependencyCRF(projective=False)
        self.arcs = nn.Parameter(torch.zeros(len(words) + 1, len(words) + 1))  # the root is the last
        self.of_label = nn.Parameter(torch.zeros(len(words) + 1, len(labels)))

    @classmethod
    def from_data(cls, trees: Sequence[Sentence]) -> Self:
        words = Vocabulary([UNKNOWN, *sorted({word for tree in trees for word in _read(tree)})])
        labels = Vocabulary(sorted({label for tree in trees for label in tree.tags or ()}))
        seen: dict[str, Counter[str]] = {}
        for tree in trees:
            for word, tag in zip(tree.words, tree.columns.get("UPOS", ()), strict=False):
                seen.setdefault(word, Counter())[tag] += 1
        upos = {word: tags.most_common(1)[0][0] for word, tags in seen.items()}
        return cls(words, labels, upos, len(trees[0].features))

    # Learning

    def encode(self, trees: Sequence[Sentence], *, with_tags: bool = False) -> list[_Example]:
        return [
            _Example(self._indices(tree), list(tree.heads or ()), [self.labels.index(each) for each in tree.tags or ()])
            for tree in trees
        ]

    def _indices(self, tree: Sentence) -> list[int]:
        known = [self.words.index(word if word in self.words else UNKNOWN) for word in _read(tree)]
        return [len(self.words), *known]

    def loss(self, batch: Sequence[_Example]) -> Tensor:
        arcs, labels, lengths = self._scores([each.words for each in batch])
        heads, gold = (_padded([getattr(each, name) for each in batch]) for name in ("heads", "labels"))
        return -self.crf(arcs, heads, labels, gold, lengths=lengths)

    def _scores(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
        words = _padded(rows)
        arcs = self.arcs[words[:, :, None], words[:, None, :]]
        labels = self.of_label[words][:, None].expand(-1, words.shape[1], -1, -1)
        return arcs, labels, torch.tensor([len(row) - 1 for row in rows])

    # Answers

    def pinned(self, text: str, n: int | None = None) -> tuple[int | None, str | None]:
        return head_pin(text, self.labels.to_list(), n)

    def predict(self, inputs: Any, *, top_k: int = 1, pins: Any = None, confidence: bool = True) -> list[Answer]:
        return in_batches(
            self, self.sentences_of(inputs), pins, lambda batch, known: self._answers(batch, known, top_k, confidence),
            empty=lambda: Answer([], 1.0, columns=arc_columns([])),
        )  # fmt: skip

    def _trees(self, batch: Sequence[Sentence], pins: Sequence[Mapping[int, Any]] | None) -> DependencyTree:
        arcs, labels, lengths = self._scores([self._indices(each) for each in batch])
        trees = self.crf.distribution(arcs, labels, lengths=lengths)
        if pins is None:
            return trees
        partial = torch.full((*arcs.shape[:2], 2), -100)[:, 1:]
        for row, known in enumerate(pins):
            for i, (head, label) in known.items():
                known_label = -100 if label is None else self.labels.index(label)
                partial[row, i] = torch.tensor([-100 if head is None else head, known_label])
        return trees.constrain(partial)

    def _answers(self, batch: Sequence[Sentence], pins: Any, top_k: int, confidence: bool) -> list[Answer]:
        trees = self._trees(batch, pins)
        best, log_probs = trees.argmax, trees.log_prob(trees.argmax)
        marginals = trees.marginals if confidence else None
        values, scores = trees.top_k(top_k) if top_k else (None, None)
        found = []
        for i, sentence in enumerate(batch):
            arcs = self._arcs(best[i], len(sentence))
            parts = [] if marginals is None else _parts(arcs, marginals[i], self.labels)
            others = [
                Alternative(self._arcs(values[j, i], len(sentence)), float(trees.log_prob(values[j])[i].exp()))
                for j in range(top_k)
                if scores is not None and values is not None and scores[j, i] > -float("inf")
            ]
            columns = arc_columns(arcs) | (
                {"UPOS": [self.upos.get(word, "X") for word in sentence.words]} if self.upos else {}
            )
            found.append(
                Answer(
                    arcs, float(log_probs[i].exp()), sentence.words, parts, alternatives=others,
                    offsets=sentence.offsets, columns=columns,
                )
            )  # fmt: skip
        return found

    def _arcs(self, value: Tensor, n: int) -> list[tuple[int, str]]:
        return [(head, self.labels[label]) for head, label in value[:n].tolist()]

    def explain(self, sentences: Sequence[Sentence]) -> list[ArcExplanation]:
        with self.evaluating():
            return [self._explained(each) for each in self.sentences_of(sentences)]

    def _explained(self, sentence: Sentence) -> ArcExplanation:
        trees = self._trees([sentence], None)
        arcs = self._arcs(trees.argmax[0], len(sentence))
        return ArcExplanation.of(sentence.words, arcs, trees.marginals[0], self.labels.to_list())

    def evaluate(self, gold: Sequence[Sentence]) -> dict[str, Any]:
        found = [answer.value for answer in self.predict(gold, top_k=0, confidence=False)]
        scores = attachment([arcs_of(each) for each in gold], found)
        return {"metric": "las", "score": scores.las, **scores.to_dict()}

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        found = self.predict(gold, top_k=0)
        sure = [[part.probability for part in answer.parts] for answer in found]
        return report_of(gold, [arcs_of(each) for each in gold], [answer.value for answer in found], sure, {})

    # What it is

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def describe(self, top: int = 20) -> Description:
        return Description(
            "a parser by pairs of words", {"labels": self.known_labels}, {"labels": self.known_labels}, {}
        )

    @property
    def known_labels(self) -> list[str]:
        return self.labels.to_list()

    def stored_config(self) -> dict[str, Any]:
        parts = {"words": self.words.to_list(), "labels": self.known_labels, "upos": self.upos}
        return {"settings": {}, **parts, "n_columns": self._n_columns}

    @classmethod
    def from_stored(cls, config: Mapping[str, Any]) -> Self:
        return cls(Vocabulary(config["words"]), Vocabulary(config["labels"]), config["upos"], config["n_columns"])


def _read(tree: Sentence) -> list[str]:
    """What the table has weights for: words, with the columns beside them."""
    return ["/".join(each) for each in zip(tree.words, *tree.features, strict=True)]


def _padded(rows: Sequence[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def _parts(arcs: Sequence[tuple[int, str]], marginals: Tensor, labels: Vocabulary) -> list[PartProbability]:
    found = []
    for i, (head, label) in enumerate(arcs):
        of_head = marginals[head, i + 1]
        both = float(of_head[labels.index(label)])
        found.append(PartProbability(i, i + 1, label, both, head, float(of_head.sum())))
    return found


@dataclass(frozen=True)
class TableConfig(Settings):
    """It has no settings."""


class TableRecipe(Recipe):
    """`trelliswork train` with such a parser."""

    def __init__(self, options: Options) -> None:
        self.training = TrainingConfig(epochs=options["epochs"] or 20, lr=options["lr"] or 0.3, seed=options["seed"])

    def settings(self) -> dict[str, Any]:
        return self.training.to_dict()

    def search_values(self) -> dict[str, Any]:
        return self.settings()

    def read_files(self) -> None:
        """There are none."""

    def begin(self, material: Material, note: Note) -> None:
        self.material = material

    def learn(self, run: RunOptions) -> tuple[TableParser, TrainingResult]:
        model = TableParser.from_data(self.material.train)
        self.material.annotate(model)
        prepared = Run(model, self.material.train, self.material.dev, self.training, run.folder)
        return model, carry_out(prepared, run.progress)
