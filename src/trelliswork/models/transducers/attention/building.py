"""The parts of an attention model, from its settings."""

from __future__ import annotations

from torch import Tensor

from trelliswork.models.transducers.attention.config import AttentionConfig
from trelliswork.nn.decoders import BahdanauDecoder, Decoder, LuongDecoder, TransformerDecoder
from trelliswork.nn.decoders.copynet import JointCopy
from trelliswork.nn.decoders.pointer import PointerMixture
from trelliswork.nn.encoders import RecurrentEncoder, TokenEncoder, TransformerEncoder
from trelliswork.nn.output_layers import (
    AdaptiveSoftmaxLayer,
    HierarchicalSoftmaxLayer,
    NCELayer,
    OutputLayer,
    SampledSoftmaxLayer,
    SoftmaxLayer,
)
from trelliswork.nn.output_layers.sampled import Method


def make_encoder(config: AttentionConfig) -> TokenEncoder:
    """What reads a source, `hidden` wide."""
    if config.encoder == "transformer":
        return TransformerEncoder(
            config.dim, hidden=config.hidden, layers=config.layers, heads=config.heads, dropout=config.dropout,
            norm=config.norm, feedforward=config.feedforward,
        )  # fmt: skip
    half = config.hidden // 2
    return RecurrentEncoder(config.dim, hidden=half, layers=config.layers, cell=config.encoder, dropout=config.dropout)


def make_decoder(config: AttentionConfig, source_dim: int) -> Decoder:
    """What writes a target."""
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
        dropout=dropout, norm=config.norm,
    )  # fmt: skip


def make_pointer(config: AttentionConfig, source_dim: int) -> PointerMixture | JointCopy | None:
    """What copies symbols of the source."""
    if not config.copy:
        return None
    return JointCopy(config.hidden, source_dim) if config.copying == "joint" else PointerMixture(config.hidden)


def make_output(config: AttentionConfig, n_symbols: int, vectors: Tensor) -> OutputLayer:
    """The distribution over the next symbol; `vectors` are those of the target symbols."""
    hidden, drawn = config.hidden, config.n_samples
    if config.output == "softmax":
        return SoftmaxLayer(hidden, n_symbols, smoothing=config.smoothing, tied=vectors if config.tied else None)
    if config.output == "nce":
        return NCELayer(hidden, n_symbols, n_samples=drawn)
    if config.output == "hierarchical":
        return HierarchicalSoftmaxLayer(hidden, n_symbols)
    if config.output == "adaptive":
        return AdaptiveSoftmaxLayer(hidden, n_symbols)
    method: Method = "importance" if config.output == "importance" else "candidates"
    return SampledSoftmaxLayer(hidden, n_symbols, n_samples=drawn, method=method)
