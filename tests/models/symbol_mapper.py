"""A transducer in one file: each symbol of the source becomes the symbol that it mostly stands for.

It shows what a network of pairs must answer, and the entry of the catalogue that `trelliswork train` finds it by.
Nothing in training, storage or the commands knows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trelliswork.data import PairFormat, Sentence, Vocabulary
from trelliswork.data.settings import Settings
from trelliswork.models.base import PartProbability
from trelliswork.models.catalogue import PAIRS, Entry
from trelliswork.models.transducers.network import EncodedPair, PairNetwork
from trelliswork.models.transducers.transducer import Symbols, Transduced

ENTRY = Entry(
    "symbol-mapper", "each symbol becomes what it mostly stands for", "Transducers", f"{__name__}:SymbolMapper",
    f"{__name__}:MapperConfig", "pairs", data=(PAIRS,), learning={"epochs": 40, "lr": 0.2},
)  # fmt: skip


@dataclass(frozen=True)
class MapperConfig(Settings):
    """It has no settings."""


class SymbolMapper(PairNetwork):
    """p(target | source) = Π p(target symbol | source symbol), for targets as long as the source."""

    CONFIG, STRUCTURE = MapperConfig, "a table of symbols"

    def __init__(self, config: Any, format: PairFormat, source: Vocabulary, target: Vocabulary) -> None:
        super().__init__(config, format, source, target)
        self.table = nn.Parameter(torch.zeros(len(source), len(target)))

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Tensor:
        pairs = self.encoded(batch)
        log_probs = self.table[torch.cat([pair.source for pair in pairs])].log_softmax(-1)
        gold = torch.cat([pair.target for pair in pairs if pair.target is not None])
        return -log_probs.gather(1, gold[:, None]).sum()

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        return [self._one(source) for source in batch]

    def _one(self, source: Symbols) -> Transduced:
        best = self.table[self.source.indices(source)].log_softmax(-1).max(-1)
        symbols = tuple(self.target[i] for i in best.indices.tolist())
        shares = zip(range(len(source)), symbols, best.values.exp().tolist(), strict=True)
        parts = [PartProbability(i, i + 1, symbol, p) for i, symbol, p in shares]
        return Transduced([(symbols, float(best.values.sum()))], parts)
