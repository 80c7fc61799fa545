"""Kernels over keys: a key is the 64-bit FNV-1a hash of an attribute's name in UTF-8."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

SEED = np.uint64(0xCBF29CE484222325)
PRIME = np.uint64(0x100000001B3)
EMPTY = np.uint64(0)


@kernel(EXACT)
def extend_by_text(keys, text):
    """Continue every key as if its name went on with a text.

    Args:
        keys: Uint64 [tokens], changed in place.
        text: Bytes of the text in UTF-8, uint8.
    """
    for t in range(keys.shape[0]):
        key = keys[t]
        for i in range(text.shape[0]):
            key = (key ^ np.uint64(text[i])) * PRIME
        keys[t] = key


@kernel(EXACT)
def extend_by_column(keys, present, lengths, codes, texts, offsets, shift, outside, outside_offsets):
    """Continue every key as if its name went on with the value `shift` tokens further on.

    Outside the sentence that is outside[k] for the k-th token before (even k) or after it (odd k); with no such
    texts the attribute is not `present`.

    Args:
        keys: Uint64 [tokens], changed in place.
        present: Whether a token has the attribute, bool [tokens]; set to False where it has not.
        lengths: Tokens of each sentence, int64 [sentences].
        codes: Number of each token's value, int32 [tokens].
        texts: Bytes of all values, uint8.
        offsets: Where each value begins in them, int64 [values + 1].
        shift: How many tokens further on the value is.
        outside: Bytes of the texts for places outside of the sentence, uint8.
        outside_offsets: Where each of them begins, int64; with one entry there are none.
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
    """Compute the key of each text.

    Args:
        texts: Bytes of all texts, uint8.
        offsets: Where each begins, int64 [texts + 1].
        keys: Uint64 [texts], filled in.
    """
    for i in range(keys.shape[0]):
        keys[i] = _extended(SEED, texts, offsets[i], offsets[i + 1])


@kernel(EXACT)
def hash_joined(text, keys):
    """Compute the keys of names that are joined by zeros; return how many names there are.

    No key is written beyond the last one; no names at all and one empty name are the same text.

    Args:
        text: Bytes of the names, uint8.
        keys: Uint64 [room], of which as many as there are names are filled in.
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
    """Number keys, a new number for each new key; stop early when the table is half full.

    Args:
        table: Keys by open addressing, uint64 [2^k], extended in place.
        numbers: Number of each key in the table, int32 [2^k], extended in place.
        n_known: How many keys the table has.
        keys: Uint64 [keys].
        first: The first of them to look up.
        ids: Number of each key, int32 [keys], filled in.

    Returns:
        How many keys were done, and how many are known now.
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
    """Look up the numbers of keys.

    Args:
        table: Keys by open addressing, uint64 [2^k].
        numbers: Number of each key in the table, int32 [2^k].
        keys: Uint64 [keys].
        ids: Number of each key, -1 if it is unknown, int32 [keys], filled in.
    """
    for i in range(keys.shape[0]):
        slot = _slot(table, keys[i])
        ids[i] = numbers[slot] if table[slot] != EMPTY else -1


@kernel(EXACT)
def by_token(keys, present, numbers, out, rows, counts):
    """List the keys that are present, token by token; return how many there are.

    Args:
        keys: Uint64 [rows, tokens].
        present: Whether a token has the attribute, bool [rows, tokens].
        numbers: Number of each row, uint16 [rows].
        out: Keys, uint64 [entries], filled in.
        rows: Number of each key's row, uint16 [entries], filled in.
        counts: How many keys each token has, int64 [tokens], filled in.
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
