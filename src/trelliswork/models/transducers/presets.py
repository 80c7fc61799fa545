"""Networks from strings to strings by name. docs/results/transduction.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

_LEARNING = {"epochs": 60, "patience": 10, "batch_tokens": 2000, "clip": 1.0}

ATTENTION: dict[str, Preset] = {
    "seq2seq": Preset(
        "recurrent encoder-decoder with attention",
        kind="AttentionNetwork",
        learning={**_LEARNING, "lr": 2e-3},
    ),
    "transformer": Preset(
        "transformer encoder-decoder",
        kind="AttentionNetwork",
        network={"encoder": "transformer", "decoder": "transformer", "layers": 3},
        learning={**_LEARNING, "lr": 7e-4, "warmup": 0.1},
    ),
}
PRESETS: dict[str, Preset] = {**ATTENTION}
