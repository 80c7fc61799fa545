"""What a name of a network stands for. Taggers and parsers each have a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Preset:
    """A class of `trelliswork.models`, with the settings of the network and of its training that differ from defaults.

    `kind` is a name in `models.loading.KINDS`.
    """

    phrase: str
    kind: str = "Tagger"
    network: Mapping[str, Any] = field(default_factory=dict)
    learning: Mapping[str, Any] = field(default_factory=dict)
