"""The character n-grams of words, as rows of a table that their hashes share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data.attributes.key_index import keys_of
from trelliswork.runtime.shapes import Int

CACHE_LIMIT = 200_000
LONGEST = 40  # characters of a word that are read


def ngrams_of(word: str, lengths: Sequence[int]) -> list[str]:
    """All n-grams of a word between < and >, and the word whole.

    Bojanowski et al. (2017), Enriching word vectors with subword information.

    >>> ngrams_of("where", [3])
    ['<wh', 'whe', 'her', 'ere', 're>', '<where>']
    """
    marked = f"<{word[:LONGEST]}>"  # [S4.463]
    parts = [marked[i : i + n] for n in lengths for i in range(len(marked) - n + 1)]
    return list(dict.fromkeys([*parts, marked]))


class WordNgrams:
    """From words to rows 1..n_buckets; 0 fills up. The same word has the same rows everywhere and always."""

    def __init__(self, lengths: Sequence[int], n_buckets: int) -> None:
        self.lengths, self.n_buckets = tuple(lengths), n_buckets
        self._rows: dict[str, Int[Tensor, " g"]] = {}

    def batch(self, words: Iterable[str]) -> Int[Tensor, "u g"]:
        """The rows of some words, side by side."""
        return pad_sequence([self.rows(word) for word in words], batch_first=True)

    def rows(self, word: str) -> Int[Tensor, " g"]:
        found = self._rows.get(word)
        if found is None:
            keys = keys_of(ngrams_of(word, self.lengths)) % np.uint64(self.n_buckets)
            found = torch.from_numpy(keys.astype(np.int64) + 1)
            if len(self._rows) >= CACHE_LIMIT:
                self._rows.clear()
            self._rows[word] = found
        return found
