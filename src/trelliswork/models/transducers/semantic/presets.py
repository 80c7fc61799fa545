"""Networks from questions to meanings by name. docs/results/transduction.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

TREES: dict[str, Preset] = {
    "seq2tree": Preset(
        "logical forms from a hierarchical tree decoder (Seq2Tree)",
        kind="Seq2Tree",
        learning={"epochs": 40, "patience": 20, "batch_tokens": 400, "lr": 3e-3},
    ),
}
QUERIES: dict[str, Preset] = {
    "seq2sql": Preset(
        "SQL that always parses, decoded with the help of the database",
        kind="Seq2SQL",
        learning={"epochs": 40, "patience": 20, "batch_tokens": 400, "lr": 3e-3},
    ),
}
