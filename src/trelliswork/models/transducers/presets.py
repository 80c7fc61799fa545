"""Networks from strings to strings by name. docs/results/transduction.md has figures."""

from __future__ import annotations

from trelliswork.models.networks.preset import Preset

PRESETS: dict[str, Preset] = {}
