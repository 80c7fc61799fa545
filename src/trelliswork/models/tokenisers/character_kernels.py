"""The attributes of a character: its neighbours, their kinds, and the written words around it, each as a 64-bit key."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes.key_kernels import find_keys
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel

AROUND = 5  # characters that attributes look at, on either side
N_ATTRIBUTES = 36
NEWLINE = 10
SEED = np.uint64(0x9E3779B97F4A7C15)
PRIME = np.uint64(0x100000001B3)


class Characters(NamedTuple):
    """Paragraphs with `AROUND` zeros before, between and behind them.

    White space inside a paragraph is one 0, whatever it is in the text.
    """

    codes: Array  # int32
    lower: Array  # int32, of the same characters in lower case
    kinds: Array  # int8, see `characters.kind_of`
    begins: Array  # int64: where each paragraph begins, and where a further one would

    @classmethod
    def empty(cls, n_visible: int, n_paragraphs: int) -> Characters:
        """Return room for `n_visible` characters, each with a space behind it."""
        n = 2 * n_visible + AROUND * (n_paragraphs + 1)
        begins = np.empty(n_paragraphs + 1, np.int64)
        return cls(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int8), begins)


class Weights(NamedTuple):
    """A table of attribute keys, and the weights that each attribute has for labels."""

    table: Array  # uint64
    numbers: Array  # int32
    offsets: Array  # int64
    labels: Array  # int32
    values: Array  # float64


@kernel(EXACT)
def count_visible(codes, kinds):
    """Count visible characters and paragraphs.

    Args:
        codes: Code point of each character, int32 [characters].
        kinds: Kind of each character, 0 for white space, int8 [characters].

    Returns:
        Two whole numbers.
    """
    visible, paragraphs, newlines = 0, 0, 2
    for i in range(codes.shape[0]):
        if kinds[i] == 0:
            newlines += codes[i] == NEWLINE
            continue
        visible += 1
        paragraphs += newlines >= 2
        newlines = 0
    return visible, paragraphs


@kernel(EXACT)
def lay_out(codes, kinds, lower, characters, places, before_space, lengths):
    """Lay out the visible characters, paragraph by paragraph, with the place of each in the text.

    Args:
        codes: Code point of each character, int32 [characters].
        kinds: Kind of each character, 0 for white space, int8 [characters].
        lower: The lower case of each code point.
        characters: The layout, filled in.
        places: Place of each visible character in the text, [m], filled in.
        before_space: Whether a visible character is the last of a written word, bool [m], filled in.
        lengths: Visible characters of each paragraph, [paragraphs], filled in.
    """
    at, m, paragraph, newlines, spaces = 0, 0, -1, 2, 0
    for i in range(codes.shape[0]):
        if kinds[i] == 0:
            newlines += codes[i] == NEWLINE
            spaces += 1
            continue
        if newlines >= 2:
            paragraph, at = paragraph + 1, at + AROUND
            characters.begins[paragraph], lengths[paragraph] = at, 0
        elif spaces:
            at += 1
        if m and (newlines >= 2 or spaces):
            before_space[m - 1] = True
        characters.codes[at], characters.lower[at], characters.kinds[at] = codes[i], lower[codes[i]], kinds[i]
        places[m], before_space[m] = i, False
        lengths[paragraph] += 1
        at, m, newlines, spaces = at + 1, m + 1, 0, 0
    characters.begins[paragraph + 1] = at + AROUND
    if m:
        before_space[m - 1] = True


@kernel(EXACT, inline=True)
def _mixed(key, value):
    key = (key ^ np.uint64(value)) * PRIME
    return key ^ (key >> np.uint64(32))


@kernel(EXACT, inline=True)
def _window(number, values, first, last):
    """Return the key of attribute `number`: values[first], ..., values[last]."""
    key = _mixed(SEED, number)
    for i in range(first, last + 1):
        key = _mixed(key, values[i])
    return key


@kernel(EXACT)
def _left_words(codes, keys):
    """Fill in keys[i]: the written word up to and with i."""
    key = SEED
    for i in range(codes.shape[0]):
        key = SEED if codes[i] == 0 else _mixed(key, codes[i])
        keys[i] = key


@kernel(EXACT)
def _right_words(codes, keys):
    """Fill in keys[i]: the rest of the written word after i."""
    key = SEED
    for i in range(codes.shape[0] - 1, -1, -1):
        keys[i] = key
        key = SEED if codes[i] == 0 else _mixed(key, codes[i])


@kernel(EXACT)
def _last_letters(lower, kinds, keys):
    """Fill in keys[i]: the last run of letters or digits of the written word up to i."""
    key = SEED
    for i in range(lower.shape[0]):
        if 1 <= kinds[i] <= 5:
            inside = i > 0 and 1 <= kinds[i - 1] <= 5
            key = _mixed(key if inside else SEED, lower[i])
        elif kinds[i] == 0:
            key = SEED
        keys[i] = key


@kernel(EXACT)
def _next_words(lower, kinds, words, shapes):
    """Fill in words[i], shapes[i]: the next written word, and the kinds of its first three characters."""
    word, shape = SEED, SEED  # of the word after that of i
    end = lower.shape[0]
    while end > 0:
        first = end - 1
        while first > 0 and lower[first] != 0 and lower[first - 1] != 0:
            first -= 1
        this, kind = SEED, SEED
        for i in range(first, end):
            words[i], shapes[i] = word, shape
            if lower[i] != 0:
                this = _mixed(this, lower[i])
                kind = _mixed(kind, kinds[i]) if i < first + 3 else kind
        if lower[first] != 0:
            word, shape = this, kind
        end = first


class WrittenWords(NamedTuple):
    """The written words around each character, as keys."""

    left: Array
    right: Array
    letters: Array
    following: Array
    shapes: Array


@kernel(EXACT)
def _words_of(codes, lower, kinds):
    n = codes.shape[0]
    words = WrittenWords(
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64),
        np.empty(n, np.uint64),
    )  # fmt: skip
    _left_words(codes, words.left)
    _right_words(codes, words.right)
    _last_letters(lower, kinds, words.letters)
    _next_words(lower, kinds, words.following, words.shapes)
    return words


@kernel(EXACT)
def _keys_at(i, codes, lower, kinds, words, row):
    """Fill in row[N_ATTRIBUTES]: the attributes of character i."""
    row[0] = _mixed(SEED, 0)
    a = 1
    for shift in range(-4, 5):
        row[a] = _window(a, lower, i + shift, i + shift)
        a += 1
    for first, last in ((-2, -1), (-1, 0), (0, 1), (1, 2), (2, 3), (-2, 0), (-1, 1), (0, 2), (1, 3)):
        row[a] = _window(a, codes, i + first, i + last)
        a += 1
    for first, last in ((-3, 0), (-2, 1), (-1, 2), (0, 3), (1, 4)):
        row[a] = _window(a, lower, i + first, i + last)
        a += 1
    for first, last in ((-1, 1), (-2, 2), (-3, 3), (0, 5)):
        row[a] = _window(a, kinds, i + first, i + last)
        a += 1
    code = np.uint64(codes[i])
    with_letters, with_shape = _mixed(words.letters[i], code), _mixed(words.shapes[i], code)
    row[a] = _mixed(_mixed(words.left[i], words.right[i]), a)
    row[a + 1] = _mixed(words.left[i], a + 1)
    row[a + 2] = _mixed(_mixed(words.right[i], code), a + 2)
    row[a + 3] = _mixed(with_letters, a + 3)
    row[a + 4] = _mixed(_mixed(with_letters, words.shapes[i]), a + 4)
    row[a + 5] = _mixed(_mixed(_mixed(words.following[i], code), words.right[i]), a + 5)
    row[a + 6] = _mixed(_mixed(with_shape, _window(0, kinds, i - 2, i + 1)), a + 6)
    row[a + 7] = _mixed(_mixed(words.left[i], words.shapes[i]), a + 7)


@kernel(EXACT)
def attribute_keys(characters, lengths, keys):
    """Compute the keys of the attributes of each visible character.

    Args:
        characters: The layout.
        lengths: Visible characters of each paragraph.
        keys: Uint64 [m, N_ATTRIBUTES], filled in.
    """
    m = 0
    for p in range(lengths.shape[0]):
        first, last = characters.begins[p] - AROUND, characters.begins[p + 1]
        codes, lower, kinds = characters.codes[first:last], characters.lower[first:last], characters.kinds[first:last]
        words = _words_of(codes, lower, kinds)
        for i in range(AROUND, codes.shape[0] - AROUND):
            if codes[i] != 0:
                _keys_at(i, codes, lower, kinds, words, keys[m])
                m += 1


@kernel(EXACT)
def score_characters(characters, lengths, weights, scores):
    """Compute the scores of labels of each visible character, its attributes looked up and summed on the way.

    Args:
        characters: The layout.
        lengths: Visible characters of each paragraph.
        weights: Weights of the attributes by their keys.
        scores: Float64 [m, labels], filled in.
    """
    row, ids, m = np.empty(N_ATTRIBUTES, np.uint64), np.empty(N_ATTRIBUTES, np.int32), 0
    for p in range(lengths.shape[0]):
        first, last = characters.begins[p] - AROUND, characters.begins[p + 1]
        codes, lower, kinds = characters.codes[first:last], characters.lower[first:last], characters.kinds[first:last]
        words = _words_of(codes, lower, kinds)
        for i in range(AROUND, codes.shape[0] - AROUND):
            if codes[i] == 0:
                continue
            _keys_at(i, codes, lower, kinds, words, row)
            find_keys(weights.table, weights.numbers, row, ids)
            scores[m] = 0.0
            for a in range(N_ATTRIBUTES):
                if ids[a] >= 0:
                    for e in range(weights.offsets[ids[a]], weights.offsets[ids[a] + 1]):
                        scores[m, weights.labels[e]] += weights.values[e]
            m += 1
