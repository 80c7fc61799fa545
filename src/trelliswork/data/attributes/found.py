"""Attributes of sentences, from templates and from a function, with a way back to their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trelliswork.data.attributes.function import FeatureFunction, merged
from trelliswork.data.sentence import Sentence

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Found:
    """Keys of all attributes token by token, how many each token has, their values (None: all 1)."""

    counts: Array  # [tokens] int64
    keys: Array  # [entries] uint64
    values: Array | None
    names_of: Callable[[Array], list[str]]  # the names of some entries
    looks_at_pairs: Array | None = None  # [entries] whether it scores neighbouring labels; None: none does

    def and_by(self, function: FeatureFunction | None, sentences: Sequence[Sentence]) -> Found:
        """With what a function says of the sentences, after what is there."""
        if function is None:
            return self
        more_counts, more_keys, more_values, names = function.attributes(sentences)
        counts, keys, values, order = merged(self.counts, self.keys, more_counts, more_keys, more_values)
        n_before = len(self.keys)

        def names_of(entries: Array) -> list[str]:
            places = order[entries]
            own = places >= n_before
            found = np.empty(len(places), object)
            found[~own] = self.names_of(places[~own])
            found[own] = names.of(places[own] - n_before)
            return list(found)

        pairs = self.looks_at_pairs
        if pairs is not None:
            pairs = np.concatenate([pairs, np.zeros(len(more_keys), np.bool_)])[order]
        return Found(counts, keys, values, names_of, pairs)
