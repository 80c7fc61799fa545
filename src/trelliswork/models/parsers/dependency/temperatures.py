"""Temperatures of arcs and labels that make held-out trees most probable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, token_budget_batches
from trelliswork.models.batched import BUDGET
from trelliswork.models.parsers.dependency.parser import heads_of, labels_of

if TYPE_CHECKING:
    from trelliswork.models.parsers.dependency.biaffine import BiaffineParser

WIDEST = math.log(8)  # temperatures are sought in 1/8 .. 8


def fitted_temperatures(parser: BiaffineParser, sentences: Sequence[Sentence]) -> tuple[float, float]:
    """The temperature of arcs and that of labels; labels that the parser does not know do not count."""
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
    """Scores of all arcs, gold heads and the mask; scores of the labels of gold arcs, and which are right."""
    tokens = parser.token_batch(parser.encode(batch))
    rows = [torch.tensor([heads_of(each), parser.labels.indices(labels_of(each))]).T for each in batch]
    gold = pad_sequence(rows, batch_first=True).to(tokens.mask.device)
    nodes = parser.scorer.nodes(parser.encode_tokens(tokens))
    labels = parser.scorer.labels_at(nodes, gold[..., 0])[tokens.mask]
    return parser.scorer.arcs(nodes), gold[..., 0], tokens.mask, labels, gold[..., 1][tokens.mask]


def _best(loss: Callable[[float], float]) -> float:
    """Where a loss that has one valley is lowest, on a scale of logarithms."""
    found = minimize_scalar(
        lambda log: loss(math.exp(log)), bounds=(-WIDEST, WIDEST), method="bounded", options={"xatol": 1e-3}
    )
    return math.exp(found.x)
