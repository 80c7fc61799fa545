"""Parsers by name: which class, and the settings that differ from the defaults. docs/results/parsing.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

_RECURRENT = dict(
    encoder="lstm", word_dim=100, characters="cnn", character_hidden=64, hidden=300, layers=2, dropout=0.33,
    hidden_dropout=0.33, unknown_dropout=0.2, prefix_lengths=(), suffix_lengths=(3,), affix_dim=32,
)  # fmt: skip
_SPANS = {
    **_RECURRENT, "characters": "lstm", "character_dim": 32, "character_hidden": 100, "min_count": 2, "hidden": 250,
    "hidden_dropout": 0.4, "span_dropout": 0.4, "tag_weight": 0.5, "decoding": "expected",
}  # fmt: skip

PRESETS: dict[str, Preset] = {
    "biaffine": Preset(
        "graph-based dependency parser with biaffine scorers and exact tree likelihood",
        kind="BiaffineParser",
        network=_RECURRENT,
        learning=dict(epochs=25, patience=10),
    ),
}

TRANSITION_PRESETS: dict[str, Preset] = {
    "transition": Preset(
        "transition-based dependency parser, the fastest one",
        kind="TransitionParser",
        network={**_RECURRENT, "hidden": 150, "state_dim": 128},
        learning=dict(epochs=20, patience=10),
    ),
}

CONSTITUENCY: dict[str, Preset] = {
    "span-cky": Preset(
        "span-based constituency parser with exact CKY",
        kind="SpanParser",
        network=_SPANS,
        learning=dict(epochs=30, patience=10, batch_tokens=350, average="ema", ema_decay=0.998),
    ),
}
