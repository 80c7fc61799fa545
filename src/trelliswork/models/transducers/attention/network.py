"""Attention models: an encoder, a decoder that attends to it, and an output layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import PairFormat, Sentence, Vocabulary
from trelliswork.data.pairs import WORD_UNITS
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.building import make_pretrained
from trelliswork.models.storage import StoredConfig
from trelliswork.models.transducers.attention.answering import BEYOND, LONGEST, AttentionSearch, Pieces, ReadSources
from trelliswork.models.transducers.attention.learning import LOSSES
from trelliswork.models.transducers.config import AttentionConfig
from trelliswork.models.transducers.network import BEGIN, END, UNKNOWN, EncodedPair
from trelliswork.models.transducers.transducer import Symbols
from trelliswork.nn.decoders import BahdanauDecoder, Decoder, LuongDecoder, TransformerDecoder
from trelliswork.nn.decoders.base import Unrolled
from trelliswork.nn.decoders.pointer import JointCopy, PointerMixture, coverage_loss
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders import RecurrentEncoder, TokenEncoder, TransformerEncoder
from trelliswork.nn.output_layers import (
    AdaptiveSoftmaxLayer,
    HierarchicalSoftmaxLayer,
    NCELayer,
    OutputLayer,
    SampledSoftmaxLayer,
    SoftmaxLayer,
)
from trelliswork.nn.output_layers.sampled import Method, SamplingLayer
from trelliswork.runtime.arrays import Bool, Float, Int

UNKNOWN_PLACE, BEGIN_PLACE, END_PLACE = range(3)  # of target vocabularies


class AttentionNetwork(AttentionSearch):
    """p(target | source) as a product over target symbols, each given those before it and attention to the source.

    >>> model = AttentionNetwork.from_data(pairs, AttentionConfig(hidden=128))           # doctest: +SKIP
    >>> train(model, pairs, dev)                                                         # doctest: +SKIP

    Args:
        config: settings.
        format: How texts are cut into symbols.
        source: Symbols of sources by number.
        target: Symbols of targets by number.
        pieces: How symbols are cut into pieces; None for not at all.
    """

    CONFIG = AttentionConfig
    STRUCTURE = "attention from target symbols to source symbols, searched with a beam"
    search = "beam"
    config: AttentionConfig

    def __init__(
        self, config: AttentionConfig, format: PairFormat, source: Vocabulary, target: Vocabulary,
        pieces: Pieces | None = None, pretrained: StoredConfig | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, format, source, target)
        self.pieces = pieces or Pieces()
        self.target_vectors = _vectors(len(target), config.dim)
        self.source_vectors = self.target_vectors if config.shared else _vectors(len(source), config.dim)
        self.pretrained = make_pretrained(config, pretrained)  # read next to the vectors of source symbols
        self.encoder = make_encoder(config, config.dim + (0 if self.pretrained is None else self.pretrained.dim))
        self.decoder = make_decoder(config, self.encoder.dim)
        self.output = make_output(config, len(target), self.target_vectors.weight)
        self.pointer = make_pointer(config, self.encoder.dim)
        self.dropout = Dropout(config.dropout)
        self.own_share = 0.0  # of symbols that the decoder reads from itself, in scheduled sampling

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: AttentionConfig | None = None,
        *,
        format: PairFormat | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new model of the symbols of some pairs, or of their subwords.

        Args:
            train: Pairs.
            config: Settings.
            format: Way to cut texts into symbols.
            seed: Seed of the first weights.

        Returns:
            The model, not trained.
        """
        config = config or cls.CONFIG()
        format = format or PairFormat("characters", "characters", "none")
        if config.subwords and not {format.source, format.target} & set(WORD_UNITS):
            raise TrellisworkError("subwords are parts of words, and the symbols are characters; leave subwords out")
        if config.pretrained and format.source not in WORD_UNITS:
            problem = f"a pretrained encoder reads words, and the units of sources are {format.source}"
            raise TrellisworkError(f"{problem}; add --source-units words or leave --pretrained out")
        pieces = Pieces.learned(train, config.subwords)
        cut = [(pieces.cut(pair.words), pieces.cut(pair.target or ())) for pair in train]
        config = config if config.longest else replace(config, longest=_longest(cut))
        if not config.max_target:
            config = replace(config, max_target=2 * max((len(target) for _, target in cut), default=0) + BEYOND)
        first, least = (BEGIN, END), config.min_count
        sides = [(s for source, _ in cut for s in source), (s for _, target in cut for s in target)]
        if config.shared:
            both = Vocabulary.from_items(
                (s for pair in cut for side in pair for s in side), min_count=least, unknown=UNKNOWN, first=first
            )
            vocabularies = both, both
        else:
            source, target = (Vocabulary.from_items(s, min_count=least, unknown=UNKNOWN, first=first) for s in sides)
            vocabularies = source, target
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, format, *vocabularies, pieces)
        if isinstance(model.output, SamplingLayer):
            model.output.draw_by_counts(target_counts((target for _, target in cut), model.target))
        return model

    @property
    def judged_by(self) -> str:
        return self.config.judge

    @property
    def copies_unknown(self) -> bool:
        return self.pointer is not None

    def knows(self, word: str) -> bool:
        return all(piece in self.source for piece in self.pieces.cut((word,)))

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        notes = super().notes(train, [replace(pair, words=self.pieces.cut(pair.words)) for pair in dev])
        if self.config.smoothing and (self.config.copy or self.config.output != "softmax"):
            without = "copy" if self.config.copy else f"output {self.config.output}"
            notes.append(f"note: label smoothing is not used with {without}")
        return notes

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        return super().cost(n, top_k=top_k, choices=choices, explain=explain) + self.encoder_cost(n, explain=explain)

    # Reading and writing

    def encode(self, pairs: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedPair]:
        cut = [replace(pair, words=self.pieces.cut(pair.words), target=pair.target) for pair in pairs]
        if with_tags:
            cut = [replace(pair, target=self.pieces.cut(pair.target or ())) for pair in cut]
        encoded = list(super().encode(cut, with_tags=with_tags))
        if self.pointer is None or not with_tags:
            return encoded
        return [replace(each, target=self._copied(pair)) for each, pair in zip(encoded, cut, strict=True)]

    def _copied(self, pair: Sentence) -> Int[Tensor, " m"]:
        """Return the target, whose unknown symbols are places of the source if they are there."""
        unknown = {s: len(self.target) + i for i, s in reversed(list(enumerate(pair.words))) if s not in self.target}
        return torch.tensor([unknown.get(s, self.target.index(s)) for s in pair.target or ()], dtype=torch.long)

    def read(self, pairs: Sequence[EncodedPair]) -> ReadSources:
        """Encode sources, and compute what is the same for all steps of the decoder."""
        source = pad_sequence([pair.source for pair in pairs], batch_first=True).to(self.device)
        lengths = torch.tensor([len(pair.source) for pair in pairs], device=self.device)
        mask = torch.arange(source.shape[1], device=self.device) < lengths[:, None]
        vectors = self._scaled(self.source_vectors(source), self.config.encoder)
        symbols = [pair.symbols for pair in pairs]
        if self.pretrained is not None:
            vectors = torch.cat([vectors, self.pretrained(symbols)], -1)
        encoded = self.dropout(self.encoder(self.dropout(vectors), mask))  # [S4.17-19]
        places = self._places(symbols) if self.pointer is not None else None
        keys = self.pointer.keys(encoded) if isinstance(self.pointer, JointCopy) else None
        return ReadSources(self.decoder.remember(encoded, mask), mask, places, symbols, keys)

    def _places(self, sources: Sequence[Symbols]) -> Int[Tensor, "batch n"]:
        """Return the numbers of source symbols among the outputs."""
        v, rows = len(self.target), []
        for source in sources:
            first = {s: i for i, s in reversed(list(enumerate(source)))}
            rows.append(torch.tensor([self.target.index(s) if s in self.target else v + first[s] for s in source]))
        return pad_sequence(rows, batch_first=True).to(self.device)

    def embed(self, symbols: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t e"]:
        """Return the vectors of target symbols; those that were copied are unknown."""
        if self.pointer is not None:
            symbols = symbols.where(symbols < len(self.target), UNKNOWN_PLACE)
        return self.dropout(self._scaled(self.target_vectors(symbols), self.config.decoder))

    def _scaled(self, vectors: Float[Tensor, "batch t e"], reader: str) -> Float[Tensor, "batch t e"]:
        """Multiply by √dim for a transformer, whose positions would drown the vectors otherwise."""  # [S4, embeddings]
        return vectors * self.config.dim**0.5 if reader == "transformer" else vectors

    def symbol_log_probs(self, read: ReadSources, unrolled: Unrolled) -> Float[Tensor, "batch t v"]:
        """Return ln p of every symbol after each step; unknown symbols and the begin are never written."""
        log_probs = self._log_probs(read, unrolled)
        log_probs[..., [UNKNOWN_PLACE, BEGIN_PLACE]] = -torch.inf
        return log_probs

    def _log_probs(self, read: ReadSources, unrolled: Unrolled) -> Float[Tensor, "batch t v"]:
        if self.pointer is None or read.places is None:
            return self.output.log_probs(unrolled.hidden)
        if isinstance(self.pointer, PointerMixture):
            return self.pointer(self.output.log_probs(unrolled.hidden), unrolled.hidden, unrolled.weights, read.places)
        assert isinstance(self.output, SoftmaxLayer)
        scores = self.output.scores(unrolled.hidden)
        return self.pointer(scores, unrolled.hidden, read.copy_keys, read.mask, read.places)

    # Learning

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedPair]) -> Float[Tensor, ""]:
        """Return the loss that the setting `learn_by` names; by default it is -log p(target | source), summed."""
        pairs = self.encoded(batch)
        return LOSSES[self.config.learn_by](self, pairs)

    def given(self, pairs: Sequence[EncodedPair]) -> tuple[Tensor, Tensor, Bool[Tensor, "batch t"]]:
        """Return what the decoder reads and should write, [batch, t], and a mask that is False for padding."""
        targets = [pair.target for pair in pairs if pair.target is not None]
        if len(targets) != len(pairs):
            raise TrellisworkError("expected pairs with targets, got a source alone; encode(..., with_tags=True)")
        ends = torch.tensor([BEGIN_PLACE]), torch.tensor([END_PLACE])
        inputs = pad_sequence([torch.cat([ends[0], each]) for each in targets], batch_first=True).to(self.device)
        outputs = pad_sequence([torch.cat([each, ends[1]]) for each in targets], batch_first=True).to(self.device)
        lengths = torch.tensor([len(each) + 1 for each in targets], device=self.device)
        return inputs, outputs, torch.arange(inputs.shape[1], device=self.device) < lengths[:, None]

    def target_loss(
        self, read: ReadSources, unrolled: Unrolled, outputs: Int[Tensor, "batch t"], mask: Bool[Tensor, "batch t"]
    ) -> Float[Tensor, ""]:
        """Return the loss of the output layer, summed over all targets.

        Args:
            read: Sources as the encoder has read them.
            unrolled: The decoder over the targets.
            outputs: Symbols of the targets.
            mask: True at symbols that are no padding.

        Returns:
            A scalar.
        """
        hidden = unrolled.hidden[mask]
        if self.pointer is None or read.places is None:
            loss = self.output.total_loss(hidden, outputs[mask])
        else:
            loss = -(self.target_log_probs(read, unrolled, outputs) * mask).sum()
        if self.config.coverage_loss:
            loss = loss + self.config.coverage_loss * (coverage_loss(unrolled.weights) * mask).sum()
        return loss

    def target_log_probs(
        self, read: ReadSources, unrolled: Unrolled, outputs: Int[Tensor, "batch t"]
    ) -> Float[Tensor, "batch t"]:
        """Return ln p of each symbol of given targets.

        Args:
            read: Sources as the encoder has read them.
            unrolled: The decoder over the targets.
            outputs: Symbols of the targets.

        Returns:
            One log probability for each symbol.
        """
        if isinstance(self.pointer, JointCopy):
            return self._log_probs(read, unrolled).gather(2, outputs[:, :, None]).squeeze(2)
        v = len(self.target)
        known = outputs.clamp(max=v - 1)
        log_probs = self.output.log_probs(unrolled.hidden).gather(2, known[:, :, None]).squeeze(2)
        if self.pointer is None or read.places is None:
            return log_probs
        log_probs = log_probs.masked_fill(outputs >= v, -torch.inf)
        return self.pointer.target_log_probs(log_probs, unrolled.hidden, unrolled.weights, read.places, outputs)

    def begin_epoch(self, epoch: int, n_epochs: int) -> None:
        """Let scheduled sampling grow from epoch to epoch, and freeze a pretrained encoder as the settings want it."""
        super().begin_epoch(epoch, n_epochs)
        self.own_share = self.config.own_symbols * (epoch - 1) / max(1, n_epochs - 1)

    # Disk

    def stored_config(self) -> dict[str, object]:
        config = {**super().stored_config(), "merges": self.pieces.stored()}
        return config if self.pretrained is None else {**config, "pretrained": self.pretrained.to_dict()}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        source, target = (Vocabulary.from_list(config[side], unknown=UNKNOWN) for side in ("source", "target"))
        settings, format = cls.CONFIG.from_dict(config["settings"]), PairFormat(**config["format"])
        return cls(settings, format, source, target, Pieces.from_stored(config["merges"]), config.get("pretrained"))

    def stored_weights(self) -> dict[str, Tensor]:
        """Return the weights, with tables that are shared only once."""
        weights = self.state_dict()
        twice = (["source_vectors.weight"] if self.config.shared else []) + (
            ["output.weight"] if self.config.tied else []
        )
        return {name: tensor for name, tensor in weights.items() if name not in twice}

    def restore_weights(self, weights: Mapping[str, Tensor]) -> None:
        table = weights["target_vectors.weight"]
        shared = {"source_vectors.weight": table} if self.config.shared else {}
        tied = {"output.weight": table} if self.config.tied else {}
        self.load_state_dict({**weights, **shared, **tied})


def target_counts(targets: Iterable[Symbols], vocabulary: Vocabulary) -> Int[Tensor, " v"]:
    """Return how often each symbol is to be written, the end of each target included."""
    written = Counter(symbol for target in targets for symbol in (*target, END))
    counts = torch.zeros(len(vocabulary), dtype=torch.long)
    for symbol, count in written.items():
        counts[vocabulary.index(symbol)] += count
    return counts


def _longest(pairs: Sequence[tuple[Symbols, Symbols]]) -> float:
    """Return the ratio that has room for nearly all targets of training, and half as much again."""
    ratios = sorted((len(target) + 1) / (len(source) + BEYOND) for source, target in pairs)
    return round(1.5 * ratios[int(0.999 * (len(ratios) - 1))], 3) if ratios else LONGEST


def _vectors(n: int, dim: int) -> nn.Embedding:
    table = nn.Embedding(n, dim)
    nn.init.normal_(table.weight, std=dim**-0.5)
    return table


# The parts of an attention model, from its settings.


def make_encoder(config: AttentionConfig, dim: int) -> TokenEncoder:
    """Make the encoder of sources, `hidden` wide, over vectors of `dim` numbers."""
    if config.encoder == "transformer":
        return TransformerEncoder(
            dim, hidden=config.hidden, layers=config.layers, heads=config.heads, dropout=config.dropout,
            norm=config.norm, feedforward=config.feedforward, attention_dropout=config.attention_dropout,
            position_dropout=config.position_dropout, project=config.project,
        )  # fmt: skip
    half = config.hidden // 2
    return RecurrentEncoder(dim, hidden=half, layers=config.layers, cell=config.encoder, dropout=config.dropout)


def make_decoder(config: AttentionConfig, source_dim: int) -> Decoder:
    """Make the decoder of targets."""
    sizes, hidden, dropout = (config.dim, source_dim), config.hidden, config.dropout
    if config.decoder == "bahdanau":
        return BahdanauDecoder(*sizes, hidden=hidden, dropout=dropout, coverage=config.coverage)
    if config.decoder == "luong":
        return LuongDecoder(
            *sizes, hidden=hidden, layers=config.layers, cell="lstm" if config.encoder == "lstm" else "gru",
            score=config.attention, window=config.window, reach=config.reach, feeding=config.feeding,
            coverage=config.coverage, dropout=dropout,
        )  # fmt: skip
    return TransformerDecoder(
        *sizes, hidden=hidden, layers=config.layers, heads=config.heads, feedforward=config.feedforward,
        dropout=dropout, norm=config.norm, attention_dropout=config.attention_dropout,
    )  # fmt: skip


def make_pointer(config: AttentionConfig, source_dim: int) -> PointerMixture | JointCopy | None:
    """Make the layer that copies symbols of the source, None without copying."""
    if not config.copy:
        return None
    return JointCopy(config.hidden, source_dim) if config.copying == "joint" else PointerMixture(config.hidden)


def make_output(config: AttentionConfig, n_symbols: int, vectors: Tensor) -> OutputLayer:
    """Make the distribution over the next symbol; `vectors` are those of the target symbols.

    Args:
        config: Settings, which say which output layer it is.
        n_symbols: Number of target symbols.
        vectors: Vectors of the target symbols, which an output layer may share.

    Returns:
        The layer.
    """
    hidden, drawn = config.hidden, config.n_samples
    if config.output == "softmax":
        return SoftmaxLayer(hidden, n_symbols, smoothing=config.smoothing, tied=vectors if config.tied else None)
    if config.output == "nce":
        return NCELayer(hidden, n_symbols, n_samples=drawn)
    if config.output == "hierarchical":
        return HierarchicalSoftmaxLayer(hidden, n_symbols)
    if config.output == "adaptive":
        return AdaptiveSoftmaxLayer(hidden, n_symbols, cutoffs=config.cutoffs or None)
    method: Method = "importance" if config.output == "importance" else "candidates"
    return SampledSoftmaxLayer(hidden, n_symbols, n_samples=drawn, method=method)
