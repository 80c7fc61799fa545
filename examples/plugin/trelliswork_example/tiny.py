"""An entry of the catalogue of models: a network over windows of words that trains in seconds, as --model tiny."""

from __future__ import annotations

from dataclasses import replace

from trelliswork.models.catalogue import ENTRIES

ENTRY = replace(
    ENTRIES["window"],
    name="tiny",
    phrase="small network over a window of words, trained in seconds",
    values={"word_dim": 16, "affix_dim": 8, "hidden": 32},
    learning={"epochs": 3},
)
