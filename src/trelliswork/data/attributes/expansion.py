"""The attributes of all tokens, a block of sentences at a time, so that little more is held than the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trelliswork.data.attributes import key_kernels
from trelliswork.data.attributes.dicts import FeatureFunction, merged
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.data.attributes.templates import Column, Templates
from trelliswork.data.sentence import Sentence
from trelliswork.runtime.arrays import Array


@dataclass(frozen=True)
class Found:
    """Keys of all attributes token by token, how many each token has, their values (None: all 1)."""

    counts: Array  # [tokens] int64
    keys: Array  # [entries] uint64
    values: Array | None
    names_of: Callable[[Array], list[str]]  # the names of some entries
    looks_at_pairs: Array | None = None  # [entries] whether it scores neighbouring labels; None: none does

    def and_by(self, function: FeatureFunction | None, sentences: Sequence[Sentence]) -> Found:
        """Add the attributes that a function gives, after those that are there."""
        if function is None:
            return self
        more_counts, more_keys, more_values, names = function.attributes(sentences)
        counts, keys, values, order = merged(self.counts, self.keys, more_counts, more_keys, more_values)
        n_before = len(self.keys)

        def names_of(entries: Array) -> list[str]:
            places = order[entries]
            own = places >= n_before
            listed = np.empty(len(places), object)
            listed[~own] = self.names_of(places[~own])
            listed[own] = names.of(places[own] - n_before)
            return list(listed)

        pairs = self.looks_at_pairs
        if pairs is not None:
            pairs = np.concatenate([pairs, np.zeros(len(more_keys), np.bool_)])[order]
        return Found(counts, keys, values, names_of, pairs)


TOKENS_AT_A_TIME = 8192


@dataclass(frozen=True)
class Places:
    """The (token, template) of attributes that are listed token by token."""

    offsets: Array  # [tokens + 1] first attribute of each token
    templates: Array  # [attributes] uint16

    def __getitem__(self, entries: Array) -> Array:
        """[entries, 2] int32"""
        tokens = np.searchsorted(self.offsets, entries, side="right") - 1
        return np.stack([tokens.astype(np.int32), self.templates[entries].astype(np.int32)], 1)


def expand(
    templates: Templates, wanted: Sequence[int], lengths: Array, columns: Sequence[Column]
) -> tuple[Array, Array, Places]:
    """Return keys of the attributes that the wanted templates make, token by token; how many each token has; their
    places.
    """
    n_tokens = int(lengths.sum())
    room = n_tokens * len(wanted)  # of which only what is written to takes memory
    keys, rows = np.empty(room, np.uint64), np.empty(room, np.uint16)
    counts, n = np.empty(n_tokens, np.int64), 0
    views, numbers = templates.views(columns), np.array(wanted, np.uint16)
    for sentences, first, last in _blocks(lengths):
        keys_and_presence = templates.keys_of(lengths[sentences], first, wanted, views)
        n += key_kernels.by_token(*keys_and_presence, numbers, keys[n:], rows[n:], counts[first:last])
    return keys[:n], counts, Places(offsets_of(counts), rows[:n])


def _blocks(lengths: Array) -> Iterator[tuple[slice, int, int]]:
    """Yield sentences, their first token and their end, about `TOKENS_AT_A_TIME` tokens together."""
    ends = np.cumsum(lengths)
    first, begin = 0, 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(ends, begin + TOKENS_AT_A_TIME, side="right")))
        yield slice(first, last), begin, int(ends[last - 1])
        first, begin = last, int(ends[last - 1])
