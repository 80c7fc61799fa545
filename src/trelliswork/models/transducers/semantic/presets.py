"""Networks from questions to meanings by name. docs/results/transduction.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

TREES: dict[str, Preset] = {
    "seq2tree": Preset(
        "meanings in brackets by a hierarchical decoder",
        kind="Seq2Tree",
        learning={"epochs": 60, "patience": 30, "batch_tokens": 800, "lr": 2e-3},
    ),
}
