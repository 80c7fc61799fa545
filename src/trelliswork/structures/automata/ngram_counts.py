"""Counts of all n-grams of a text, level by level; those of texts larger than memory in sorted runs on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch

BLOCK = 1 << 24  # tokens that are sorted at a time where counts are on disk
MOST_NGRAMS = 2**31 - 2  # nodes of a trie are int32


class NgramLevel(NamedTuple):
    """The n-grams of one length, sorted by history and word, so that the children of a node are neighbours."""

    word: Array
    history: Array  # the node of all words but the last
    suffix: Array  # the node of all words but the first
    seen: Array  # how often


class _Run(NamedTuple):
    """Different n-grams in the order of their keys, history times vocabulary plus word."""

    keys: Array
    seen: Array
    suffix: Array


def padded(sequences: Sequence[Array], n_words: int) -> Array:
    """Return sequences one after the other, each between BEGIN and END."""
    begin, end = [n_words + 1], [n_words]
    parts = [part for each in sequences for part in (begin, each, end)]
    return np.concatenate(parts).astype(np.int32)


def count_levels(
    tokens: Array, n_words: int, order: int, scratch: Scratch | None = None, block: int | None = None
) -> list[NgramLevel]:
    """Count the n-grams of up to `order` tokens of a text, whose sentences are between BEGIN and END.

    Words are 0..n_words - 1, then END, then BEGIN. Node 0 is the empty history and the node of a word is its number
    plus 1; the n-grams of each length follow those of the length before.

    Args:
        tokens: word numbers of the text [tokens].
        n_words: size of the vocabulary.
        order: length of the longest n-grams.
        scratch: where sorted runs are kept; None to keep everything in memory.
        block: how many tokens to count at once; None for a default.

    Returns:
        The n-grams of each length, with their counts.
    """
    scratch, size = scratch or Scratch(), n_words + 2
    block = block or (BLOCK if scratch.on_disk else max(len(tokens), 1))
    zeros = np.zeros(size, np.int32)
    levels = [NgramLevel(np.arange(size, dtype=np.int32), zeros, zeros, np.bincount(tokens, minlength=size))]
    node, offset = scratch.array(len(tokens), np.int32), size + 1
    np.add(tokens, 1, out=node)
    for _ in range(order - 1):
        level = _longer(tokens, node, size, offset, scratch, block)
        if not len(level.word):
            break
        levels.append(level)
        offset += len(level.word)
        if offset > MOST_NGRAMS:
            raise ScoreError(f"expected at most {MOST_NGRAMS:,} n-grams, got more; lower the order")
    return levels


def _longer(tokens: Array, node: Array, size: int, offset: int, scratch: Scratch, block: int) -> NgramLevel:
    """Return the next level. `node` has the n-gram that ends at each token, or -1, and gets the longer one."""
    runs, before, starts = list[_Run](), -1, range(0, len(tokens), block)
    for start in starts:
        words, here = tokens[start : start + block], node[start : start + block].copy()
        history = np.concatenate([[before], here[:-1]])
        before = here[-1]
        at = np.flatnonzero((history >= 0) & (words != size - 1))  # nothing precedes BEGIN
        run, place = _sorted_run(history[at] * size + words[at], here[at])
        node[start : start + block] = -1
        node[start + at] = place
        runs.append(run if len(starts) == 1 else _Run(*(_spill(each, scratch) for each in run)))
    merged = runs[0] if len(runs) == 1 else _merge(runs, scratch, block)
    for start, run in zip(starts, runs, strict=True):
        here = node[start : start + block]
        places = np.arange(len(run.keys)) if run is merged else np.searchsorted(merged.keys, run.keys)
        seen = np.flatnonzero(here >= 0)
        here[seen] = places[here[seen]] + offset
    word, history = (scratch.array(len(merged.keys), np.int32) for _ in range(2))
    np.floor_divide(merged.keys, size, out=history, casting="unsafe")
    np.remainder(merged.keys, size, out=word, casting="unsafe")
    return NgramLevel(word, history, merged.suffix, merged.seen)


def _sorted_run(keys: Array, suffix: Array) -> tuple[_Run, Array]:
    """Return the different keys with their counts, and the place of each given one among them."""
    if not len(keys):
        return _Run(keys, keys, suffix), keys
    order = np.argsort(keys)
    keys = keys[order]
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    place = np.empty(len(keys), np.int32)
    place[order] = np.cumsum(first, dtype=np.int32) - 1
    starts = np.flatnonzero(first)
    return _Run(keys[starts], np.diff(starts, append=len(keys)), suffix[order[starts]]), place


def _merge(runs: Sequence[_Run], scratch: Scratch, block: int) -> _Run:
    """Merge runs of different keys into one, a part of each at a time."""
    kinds = (np.int64, np.int64, np.int32)
    whole, read, step = [scratch.growing(kind) for kind in kinds], [0] * len(runs), max(1, block // len(runs))
    while heads := [run.keys[at : at + step] for run, at in zip(runs, read, strict=True) if at < len(run.keys)]:
        bound = min(head[-1] for head in heads)
        ends = [
            at + int(np.searchsorted(run.keys[at : at + step], bound, "right"))
            for run, at in zip(runs, read, strict=True)
        ]
        parts = [
            np.concatenate([each[a:b] for each, a, b in zip(column, read, ends, strict=True)])
            for column in zip(*runs, strict=True)
        ]
        order = np.argsort(parts[0])
        keys = parts[0][order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        merged = keys[starts], np.add.reduceat(parts[1][order], starts), parts[2][order[starts]]
        for growing, each in zip(whole, merged, strict=True):
            growing.add(each)
        read = ends
    return _Run(*(growing.whole() for growing in whole))


def _spill(numbers: Array, scratch: Scratch) -> Array:
    room = scratch.array(len(numbers), numbers.dtype)
    room[:] = numbers
    return room
