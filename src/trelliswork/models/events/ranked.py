"""The best of several ways to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from trelliswork.models.events.extracted import Extracted

Way = TypeVar("Way")


def best_products(parts: Sequence[Sequence[tuple[Way, float]]], k: int) -> list[tuple[list[Way], float]]:
    """The k best choices of one way for each part, by the sum of their ln p; ways are given best first.

    >>> best_products([[("a", -1.0), ("b", -2.0)], [("c", -1.0), ("d", -1.5)]], 3)
    [(['a', 'c'], -2.0), (['a', 'd'], -2.5), (['b', 'c'], -3.0)]
    """
    found: list[tuple[list[Way], float]] = [([], 0.0)]
    for ways in parts:
        longer = [([*chosen, way], before + p) for chosen, before in found for way, p in ways]
        found = sorted(longer, key=lambda each: -each[1])[:k]
    return found


def best_first(found: Sequence[Extracted], k: int, search: str) -> Extracted:
    """The most probable of several values, with the k best."""
    ranked = sorted(found, key=lambda each: -(each.probability or 0.0))[:k]
    ranked = [replace(each, search=search) for each in ranked]
    return replace(ranked[0], others=ranked)
