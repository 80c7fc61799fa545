"""Discrete features of a token: word, capitals, prefixes, suffixes, and the extra columns of the data.

>>> capitals("iPhone"), prefix_of("walking", 3), suffix_of("walking", 3), normalize("Route66")
('mixed', 'wal', 'ing', 'route00')
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.data import Sentence, Vocabulary
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.config import TaggerConfig

if TYPE_CHECKING:
    from jaxtyping import Int

PADDING_ITEM = ""  # no token is empty, so none is taken for padding
UNKNOWN_ITEM = "<unknown>"
CACHE_LIMIT = 200_000

_DIGIT = re.compile(r"\d")


def normalize(word: str, *, lowercase: bool = True, digits_to_zero: bool = True) -> str:
    """The form under which a word is looked up."""
    if lowercase:
        word = word.lower()
    return _DIGIT.sub("0", word) if digits_to_zero else word


def capitals(word: str) -> str:
    """How a word is written: all capitals, initial, mixed, lower, with digits, or neither letter nor digit."""
    if word.isupper() and len(word) > 1:
        return "all"
    if word[:1].isupper():
        return "initial"
    if any(letter.isupper() for letter in word):
        return "mixed"
    if word.isalpha():
        return "lower"
    return "digits" if any(letter.isdigit() for letter in word) else "other"


def prefix_of(word: str, length: int) -> str:
    """The first `length` letters; a shorter word whole."""
    return word[:length]


def suffix_of(word: str, length: int) -> str:
    """The last `length` letters; a shorter word whole."""
    return word[-length:]


class TokenFeatures:
    """Turns sentences into indices for lookup tables; one vocabulary per feature, word first.

    Index 0 is padding and 1 unknown in every vocabulary, as `trelliswork.nn.encoders.LookupTables` has it.

        >>> features = TokenFeatures.from_sentences([Sentence(("Ann", "sings"))], TaggerConfig())
        >>> features.names[:3], features.encode(Sentence(("Bob", "sings"))).shape
        (['word', 'capitals', 'prefix2'], torch.Size([2, 8]))
    """

    def __init__(self, config: TaggerConfig, vocabularies: Mapping[str, Vocabulary]):
        self.vocabularies = dict(vocabularies)
        self.names = list(self.vocabularies)
        self.n_columns = sum(name.startswith("column") for name in self.names)
        self._parts = word_parts(config)
        self._cache: dict[str, list[int]] = {}
        self.dims = [_width(name, config) for name in self.names]

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence], config: TaggerConfig) -> TokenFeatures:
        """Count the values of each feature and keep the frequent ones."""
        words = Counter(word for sentence in sentences for word in sentence.words)
        vocabularies = {}
        for name, part in word_parts(config).items():
            counts: Counter[str] = Counter()
            for word, n in words.items():
                counts[part(word)] += n
            vocabularies[name] = _vocabulary(counts, _min_count(name, config))
        for i in range(len(sentences[0].features)):
            values = Counter(value for sentence in sentences for value in _column(sentence, i))
            vocabularies[f"column{i + 1}"] = _vocabulary(values, 1)
        return cls(config, vocabularies)

    @property
    def sizes(self) -> list[int]:
        """Rows of each lookup table."""
        return [len(vocabulary) for vocabulary in self.vocabularies.values()]

    def encode(self, sentence: Sentence) -> Int[Tensor, "n f"]:
        """The indices of one sentence."""
        if len(sentence.features) != self.n_columns:
            raise DataError(
                sentence.file or "sentence",
                f"expected {self.n_columns} feature columns beside the word, as in training, "
                f"got {len(sentence.features)}; add or drop columns",
                line=sentence.line,
            )
        rows = [self._word_indices(word) for word in sentence.words]
        if self.n_columns:
            extra = [self.vocabularies[f"column{i + 1}"].indices(_column(sentence, i)) for i in range(self.n_columns)]
            rows = [[*row, *values] for row, values in zip(rows, zip(*extra, strict=True), strict=True)]
        return torch.tensor(rows, dtype=torch.long).reshape(len(rows), len(self.names))

    def _word_indices(self, word: str) -> list[int]:
        """Indices of everything that depends on the word alone; most words come more than once."""
        found = self._cache.get(word)
        if found is None:
            if len(self._cache) >= CACHE_LIMIT:
                self._cache.clear()
            found = [self.vocabularies[name].index(part(word)) for name, part in self._parts.items()]
            self._cache[word] = found
        return found


def word_parts(config: TaggerConfig) -> dict[str, Callable[[str], str]]:
    """The features that a word alone determines, by name, in the order of the tables."""

    def form(word: str) -> str:
        return normalize(word, lowercase=config.lowercase, digits_to_zero=config.digits_to_zero)

    parts: dict[str, Callable[[str], str]] = {"word": form, "capitals": capitals}
    for length in config.prefix_lengths:
        parts[f"prefix{length}"] = lambda word, length=length: prefix_of(form(word), length)  # type: ignore[misc]
    for length in config.suffix_lengths:
        parts[f"suffix{length}"] = lambda word, length=length: suffix_of(form(word), length)  # type: ignore[misc]
    return parts


def _vocabulary(counts: Counter[str], min_count: int) -> Vocabulary:
    kept = Vocabulary.from_counts(counts, min_count=min_count)
    values = (item for item in kept if item not in (PADDING_ITEM, UNKNOWN_ITEM))
    return restore_vocabulary([PADDING_ITEM, UNKNOWN_ITEM, *values])


def restore_vocabulary(items: Sequence[str]) -> Vocabulary:
    """A feature vocabulary from its list: padding at 0, unknown at 1."""
    if list(items[:2]) != [PADDING_ITEM, UNKNOWN_ITEM]:
        raise TrellisworkError(f"a vocabulary must begin with padding and unknown; got {list(items[:2])}")
    return Vocabulary.from_list(items, unknown=UNKNOWN_ITEM)


def _column(sentence: Sentence, i: int) -> tuple[str, ...]:
    if i >= len(sentence.features):
        problem = f"expected at least {i + 1} feature columns as in the first sentence, got {len(sentence.features)}"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    if len(sentence.features[i]) != len(sentence):
        problem = f"expected {len(sentence)} values in feature column {i + 1}, got {len(sentence.features[i])}"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return sentence.features[i]


def _min_count(name: str, config: TaggerConfig) -> int:
    if name == "word":
        return config.min_count
    return config.affix_min_count if name.startswith(("prefix", "suffix")) else 1


def _width(name: str, config: TaggerConfig) -> int:
    if name == "word":
        return config.word_dim
    if name == "capitals":
        return config.capitals_dim
    return config.column_dim if name.startswith("column") else config.affix_dim
