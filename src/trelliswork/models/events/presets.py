"""Models of events by name: which class, and the settings that differ from the defaults."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

_NETWORK = dict(encoder="lstm", hidden=60, word_dim=40, dropout=0.3, hidden_dropout=0.2)
_LEARNING = dict(epochs=12, lr=3e-3, batch_tokens=300)

PRESETS: dict[str, Preset] = {
    "joint-events": Preset(
        "entities, triggers and arguments, decoded left to right with memories",
        kind="MemoryEvents",
        network=_NETWORK,
        learning=_LEARNING,
    ),
    "event-factors": Preset(
        "entities, triggers and arguments, decoded jointly in a factor graph (AD3)",
        kind="FactorEvents",
        network=_NETWORK,
        learning=_LEARNING,
    ),
}

FRAME_PRESETS: dict[str, Preset] = {
    "sling": Preset(
        "transition-based semantic frame parser (SLING)",
        kind="FrameParser",
        network=_NETWORK,
        learning=_LEARNING | dict(batch_tokens=600),
    ),
}
