"""Networks by name: which class, and the settings that differ from the defaults.

>>> PRESETS["bilstm-crf"].network["encoder"], PRESETS["grsemicrf"].kind
('lstm', 'Segmenter')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Preset:
    """A class of `trelliswork.models` with settings for its `TaggerConfig` and `TrainingConfig`."""

    phrase: str
    kind: Literal["Tagger", "Segmenter"] = "Tagger"
    network: Mapping[str, Any] = field(default_factory=dict)
    learning: Mapping[str, Any] = field(default_factory=dict)


_RECURRENT = dict(  # those of docs/results/accuracy.md
    word_dim=100, characters="cnn", character_hidden=50, hidden=200, dropout=0.5, hidden_dropout=0.4, min_count=1
)
_LONGER = dict(epochs=20, patience=5)

PRESETS: dict[str, Preset] = {
    "window": Preset("a network over a window of words"),
    "bilstm-crf": Preset(
        "LSTMs from both ends and characters under a CRF", network={"encoder": "lstm", **_RECURRENT}, learning=_LONGER
    ),
    "bigru-crf": Preset("the same with GRUs", network={"encoder": "gru", **_RECURRENT}, learning=_LONGER),
    "bilstm-memm": Preset(
        "the same network, each tag given the one before",
        network={"encoder": "lstm", "normalization": "local", **_RECURRENT},
        learning=_LONGER,
    ),
    "grsemicrf": Preset(
        "whole segments, through a gated recursive pyramid",
        kind="Segmenter",
        network={"encoder": "lstm", "segments": "pyramid", **_RECURRENT, "dropout": 0.4},
        learning=_LONGER,
    ),
    "bilstm-semicrf": Preset(
        "whole segments, by the LSTM states at their ends",
        kind="Segmenter",
        network={"encoder": "lstm", "segments": "endpoints", **_RECURRENT},
        learning=_LONGER,
    ),
}
