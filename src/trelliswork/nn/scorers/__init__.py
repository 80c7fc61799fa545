"""Scorers: from one vector per token to scores of tags, `[batch, n, c]`."""

from __future__ import annotations

from trelliswork.nn.scorers.context import ContextScorer
from trelliswork.nn.scorers.hidden_units import HiddenUnitScorer
from trelliswork.nn.scorers.linear import LinearScorer

__all__ = ["ContextScorer", "HiddenUnitScorer", "LinearScorer"]
