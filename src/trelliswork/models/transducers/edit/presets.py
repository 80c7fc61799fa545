"""Edit transducers by name. docs/results/transduction.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

EDIT: dict[str, Preset] = {
    "edit": Preset(
        "neural edit transducer, likelihood summed over all alignments",
        kind="EditTransducer",
        learning=dict(epochs=30, patience=10, batch_tokens=1000, lr=3e-3, average="ema", ema_decay=0.995),
    ),
}
