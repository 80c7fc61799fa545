"""Sparse features of words: hashed character n-grams, and attributes by templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence
from trelliswork.data.attributes import KeyIndex, Templates
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.templates import default_templates
from trelliswork.errors import TrellisworkError
from trelliswork.models.taggers.features.encoding import columns_of
from trelliswork.runtime.arrays import Int

# The character n-grams of words, as rows of a table that their hashes share.

CACHE_LIMIT = 200_000
LONGEST = 40  # characters of a word that are read


def ngrams_of(word: str, lengths: Sequence[int]) -> list[str]:
    """Return all n-grams of a word between < and >, and the word whole.

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
        """Return the rows of some words, side by side."""
        return pad_sequence([self.rows(word) for word in words], batch_first=True)

    def rows(self, word: str) -> Int[Tensor, " g"]:
        numbers = self._rows.get(word)
        if numbers is None:
            keys = keys_of(ngrams_of(word, self.lengths)) % np.uint64(self.n_buckets)
            numbers = torch.from_numpy(keys.astype(np.int64) + 1)
            if len(self._rows) >= CACHE_LIMIT:
                self._rows.clear()
            self._rows[word] = numbers
        return numbers


# The attributes of tokens that templates make, as numbers for direct connections to the labels.

DEFAULT = "default"


def parse_templates(lines: Sequence[str], n_columns: int) -> Templates:
    """Return templates of single tags; ("default",) stands for those that the columns suggest."""
    parsed = default_templates(n_columns) if tuple(lines) == (DEFAULT,) else Templates.parse(lines)
    parsed.check(n_columns)
    single = tuple(template for template in parsed.templates if not template.pairs)
    if not single:
        raise TrellisworkError("expected templates that begin with U, such as U00:%x[0,0], got none; add one")
    return Templates(single)


class TemplateFeatures:
    """Sentences as attribute numbers, one for each template; 0 where an attribute was not kept.

    >>> words = TemplateFeatures.from_sentences([Sentence(("a", "b", "a"))], ("U:%x[0,0]",), min_count=2)
    >>> words.names, words.encode([Sentence(("b", "a"))])[0].tolist()
    (['U:a'], [[0], [2]])
    """

    FIRST = 2  # padding and unknown come before, as in the vocabulary that the names are stored in

    def __init__(self, templates: Templates, names: Sequence[str]) -> None:
        self.templates, self.names = templates, list(names)
        self._index = KeyIndex.of(keys_of(self.names))
        if len(self._index) != len(self.names):
            raise TrellisworkError("expected names of attributes that differ, got some twice; copy the model again")

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence], lines: Sequence[str], min_count: int) -> TemplateFeatures:
        """Keep the attributes that come at least `min_count` times.

        Args:
            sentences: the training data.
            lines: the templates as text.
            min_count: occurrences below which an attribute has no weight.

        Returns:
            The features with their vocabulary.
        """
        lengths, columns = columns_of(sentences)
        templates = parse_templates(lines, len(columns))
        keys, _ = templates.keys(lengths, columns)
        index = KeyIndex()
        numbers = index.add(np.ascontiguousarray(keys).ravel())
        kept = np.bincount(numbers, minlength=len(index)) >= min_count
        first = np.full(len(index), numbers.size)
        np.minimum.at(first, numbers, np.arange(numbers.size))
        places = np.stack(np.divmod(first[kept], len(templates.templates)), 1)
        return cls(templates, templates.names(places, lengths, columns))

    @property
    def n_templates(self) -> int:
        return len(self.templates.templates)

    def encode(self, sentences: Sequence[Sentence]) -> list[Int[Tensor, "n t"]]:
        """Return the attributes of some sentences; many at once are much faster."""
        lengths, columns = columns_of(sentences)
        keys, _ = self.templates.keys(lengths, columns)
        places = self._index.find(np.ascontiguousarray(keys).ravel()).astype(np.int64)
        numbers = np.where(places < 0, 0, places + self.FIRST).reshape(-1, self.n_templates)
        return list(torch.from_numpy(numbers).split(lengths.tolist()))
