"""Models of events by name: which class, and the settings that differ from the defaults."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

_NETWORK = dict(encoder="lstm", hidden=60, word_dim=40, dropout=0.3, hidden_dropout=0.2)
_LEARNING = dict(epochs=12, lr=3e-3, batch_tokens=300)

PRESETS: dict[str, Preset] = {
    "joint-events": Preset(
        "entities, triggers and arguments, with memories of those before",
        kind="MemoryEvents",
        network=_NETWORK,
        learning=_LEARNING,
    ),
    "event-factors": Preset(
        "the same, judged all together by AD3",
        kind="FactorEvents",
        network=_NETWORK,
        learning=_LEARNING,
    ),
}

FRAME_PRESETS: dict[str, Preset] = {
    "sling": Preset(
        "entities and events as a graph of frames, built action by action",
        kind="FrameParser",
        network=_NETWORK,
        learning=_LEARNING | dict(batch_tokens=600),
    ),
}
