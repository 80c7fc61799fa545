"""Base of all networks from strings to strings: vocabularies of both sides, examples, storage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from trelliswork.data import PairFormat, Sentence, Vocabulary
from trelliswork.data.settings import Settings
from trelliswork.errors import TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Description
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.models.transducers.transducer import Symbols, Transducer
from trelliswork.runtime.arrays import Float, Int

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """A pair as indices; the target, if it is known, without a begin or an end."""

    source: Int[Tensor, " n"]
    target: Int[Tensor, " m"] | None
    symbols: Symbols

    def __len__(self) -> int:
        return len(self.source) + (0 if self.target is None else len(self.target))


class PairNetwork(Transducer, StoredNetwork):
    """A network with symbols of sources and of targets. Trains with `trelliswork.training.train`.

    Both vocabularies have an unknown symbol, that of targets also a begin and an end.

    Args:
        config: settings.
        format: How texts are cut into symbols.
        source: Symbols of sources by number.
        target: Symbols of targets by number.
    """

    CONFIG: ClassVar[type[Settings]]
    STRUCTURE: ClassVar[str]  # what it is, in a few words

    def __init__(self, config: Settings, format: PairFormat, source: Vocabulary, target: Vocabulary) -> None:
        super().__init__()
        self.config, self.format, self.source, self.target = config, format, source, target

    @classmethod
    def from_data(
        cls, train: Sequence[Sentence], config: Any = None, *, format: PairFormat | None = None, seed: int = 0
    ) -> Self:
        """Return a new model of the symbols of some pairs; symbols rarer than the setting `min_count` are unknown.

        Args:
            train: Pairs.
            config: Settings, by default those of the class.
            format: Way to cut texts into symbols.
            seed: Seed of the first weights.

        Returns:
            The model, not trained.
        """
        config, least = config or cls.CONFIG(), getattr(config, "min_count", 1)
        source = Vocabulary.from_items((s for pair in train for s in pair.words), min_count=least, unknown=UNKNOWN)
        target = Vocabulary.from_items(
            (s for pair in train for s in pair.target or ()), min_count=least, unknown=UNKNOWN, first=(BEGIN, END)
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(config, format or PairFormat("characters", "characters", "none"), source, target)

    @classmethod
    def from_material(cls, material: Material, config: Any, options: Options, seed: int) -> Self:
        """Return a new model, as the command line asks for it.

        Args:
            material: Pairs to learn from.
            config: Settings of the network.
            options: What the command line says in addition.
            seed: What the first weights depend on.

        Returns:
            The model, not trained.
        """
        return cls.from_data(material.train, config, format=material.choices.pairs, seed=seed)

    # Learning

    @abstractmethod
    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """Return -log p(target | source), summed over the batch."""

    def encode(self, pairs: Sequence[Sentence], *, with_tags: bool = False) -> Sequence[EncodedPair]:
        """Return pairs as indices, to be reused from epoch to epoch."""
        return [
            EncodedPair(
                torch.tensor(self.source.indices(pair.words), dtype=torch.long),
                torch.tensor(self.target.indices(_known(pair)), dtype=torch.long) if with_tags else None,
                pair.words,
            )
            for pair in pairs
        ]

    def encoded(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Sequence[EncodedPair]:
        """Return a batch as indices, whose targets must be known."""
        return [each if isinstance(each, EncodedPair) else self.encode([each], with_tags=True)[0] for each in batch]

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    # What it is

    def knows(self, word: str) -> bool:
        return word in self.source

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        strange = sorted({symbol for pair in dev for symbol in pair.words if symbol not in self.source})
        if not strange:
            return []
        return [f"note: {count(len(strange), 'symbol')} of the dev sources never seen: {self.unknown_text(strange)}"]

    def describe(self, top: int = 20) -> Description:
        labels = {
            "symbols of sources": _shown(self.source.to_list()[1:]),
            "symbols of targets": _shown(self.target.to_list()[3:]),
        }
        settings = self.config.to_dict()
        record = {"source": self.source.to_list()[1:], "target": self.target.to_list()[3:]}
        return Description(self.STRUCTURE, labels, record, settings, [("network", settings)])

    # Disk

    def stored_config(self) -> dict[str, object]:
        return {
            "settings": self.config.to_dict(),
            "format": asdict(self.format),
            "source": self.source.to_list(),
            "target": self.target.to_list(),
        }

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        vocabularies = (Vocabulary.from_list(config[side], unknown=UNKNOWN) for side in ("source", "target"))
        return cls(cls.CONFIG.from_dict(config["settings"]), PairFormat(**config["format"]), *vocabularies)


def _known(pair: Sentence) -> Symbols:
    if pair.target is None:
        raise TrellisworkError("expected pairs with targets to learn from, got a source alone; give its target")
    return pair.target


SHOWN = 40


def _shown(symbols: Sequence[str]) -> str:
    more = f" and {len(symbols) - SHOWN:,} more" if len(symbols) > SHOWN else ""
    return f"{len(symbols):,}: {' '.join(symbols[:SHOWN])}{more}"
