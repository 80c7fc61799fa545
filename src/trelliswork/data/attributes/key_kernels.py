"""Kernels over keys: a key is the 64-bit FNV-1a hash of an attribute's name in UTF-8."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

SEED = np.uint64(0xCBF29CE484222325)
PRIME = np.uint64(0x100000001B3)
EMPTY = np.uint64(0)


@kernel(EXACT)
def extend_by_text(keys, text):
    """Every key as if its name went on with `text`."""
    for t in range(keys.shape[0]):
        key = keys[t]
        for i in range(text.shape[0]):
            key = (key ^ np.uint64(text[i])) * PRIME
        keys[t] = key


@kernel(EXACT)
def extend_by_column(keys, present, lengths, codes, texts, offsets, shift, outside, outside_offsets):
    """Every key as if its name went on with the value `shift` tokens further on.

    Outside the sentence that is outside[k] for the k-th token before (even k) or after it (odd k); with no such
    texts the attribute is not `present`.
    """
    first = 0
    for s in range(lengths.shape[0]):
        n = lengths[s]
        for i in range(n):
            t, at = first + i, i + shift
            if 0 <= at < n:
                code = codes[first + at]
                keys[t] = _extended(keys[t], texts, offsets[code], offsets[code + 1])
            elif outside_offsets.shape[0] > 1:
                k = 2 * (-at - 1) if at < 0 else 2 * (at - n) + 1
                keys[t] = _extended(keys[t], outside, outside_offsets[k], outside_offsets[k + 1])
            else:
                present[t] = False
        first += n


@kernel(EXACT)
def _extended(key, texts, begin, end):
    for i in range(begin, end):
        key = (key ^ np.uint64(texts[i])) * PRIME
    return key


@kernel(EXACT)
def hash_texts(texts, offsets, keys):
    for i in range(keys.shape[0]):
        keys[i] = _extended(SEED, texts, offsets[i], offsets[i + 1])


@kernel(EXACT)
def hash_joined(text, keys):
    """keys[i] = the key of name i of a text that has a zero between two names; returns how many names there are.

    No key is written beyond the last one; no names at all and one empty name are the same text.
    """
    n, key = 0, SEED
    for i in range(text.shape[0]):
        if text[i] == 0:
            if n < keys.shape[0]:
                keys[n] = key
            n, key = n + 1, SEED
        else:
            key = (key ^ np.uint64(text[i])) * PRIME
    if n < keys.shape[0]:
        keys[n] = key
    return min(n + 1, keys.shape[0]) if text.shape[0] == 0 else n + 1


@kernel(EXACT)
def _slot(table, key):
    """Where a key is, or would go, in an open-addressing table of a power of two of slots."""
    mask = np.uint64(table.shape[0] - 1)
    slot = (key ^ (key >> np.uint64(29))) & mask
    while table[slot] != EMPTY and table[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel(EXACT)
def add_keys(table, numbers, n_known, keys, first, ids):
    """ids[i] = the number of keys[i], a new one for a new key; stops early when the table is half full.

    Returns (how many keys were done, how many are known).
    """
    for i in range(first, keys.shape[0]):
        slot = _slot(table, keys[i])
        if table[slot] == EMPTY:
            if 2 * n_known >= table.shape[0]:
                return i, n_known
            table[slot], numbers[slot] = keys[i], n_known
            n_known += 1
        ids[i] = numbers[slot]
    return keys.shape[0], n_known


@kernel(EXACT)
def find_keys(table, numbers, keys, ids):
    """ids[i] = the number of keys[i], -1 for a stranger."""
    for i in range(keys.shape[0]):
        slot = _slot(table, keys[i])
        ids[i] = numbers[slot] if table[slot] != EMPTY else -1


@kernel(EXACT)
def by_token(keys, present, numbers, out, rows, counts):
    """The present ones of keys [rows, tokens], token by token, with the numbers of their rows; counts[t] are token t's.

    Returns how many there are.
    """
    n = 0
    for t in range(keys.shape[1]):
        before = n
        for row in range(keys.shape[0]):
            if present[row, t]:
                out[n], rows[n] = keys[row, t], numbers[row]
                n += 1
        counts[t] = n - before
    return n
