"""Networks from questions to meanings by name. docs/results/transduction.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

# Few pairs, many of one length and one form: sorted by length, all pairs of a batch would be alike.
_LEARNING = {"epochs": 40, "patience": 20, "batch_tokens": 400, "bucket": 100, "lr": 3e-3}

TREES: dict[str, Preset] = {
    "seq2tree": Preset(
        "logical forms from a hierarchical tree decoder (Seq2Tree)",
        kind="Seq2Tree",
        learning=_LEARNING,
    ),
}
QUERIES: dict[str, Preset] = {
    "seq2sql": Preset(
        "SQL that always parses, decoded with the help of the database",
        kind="Seq2SQL",
        learning=_LEARNING,
    ),
}
