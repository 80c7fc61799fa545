"""The features of a token that a network reads: word, capitals, affixes, the extra columns, characters.

>>> capitals("iPhone"), prefix_of("walking", 3), suffix_of("walking", 3), normalize("Route66")
('mixed', 'wal', 'ing', 'route00')
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, Vocabulary
from trelliswork.data.choices import WORDS_ALONE
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.networks.config import NetworkConfig
from trelliswork.models.networks.sparse_features import TemplateFeatures, WordNgrams, parse_templates
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.inputs import UNKNOWN, TokenBatch
from trelliswork.runtime.arrays import Array, Int

PADDING_ITEM = ""  # no token is empty, so none is taken for padding
UNKNOWN_ITEM = "<unknown>"
VECTOR, CHARACTERS, TEMPLATES = "vector", "characters", "templates"  # not counted as the other features are
LONGEST_SPELLING = 40  # characters of a word that are read

_DIGIT = re.compile(r"\d")


def normalize(word: str, *, lowercase: bool = True, digits_to_zero: bool = True) -> str:
    """Return the form under which a word is looked up.

    Args:
        word: the word as it is written.
        lowercase: whether to put it in small letters.
        digits_to_zero: whether to write every digit as 0.

    Returns:
        The entry that stands for it in the vocabulary.
    """
    if lowercase:
        word = word.lower()
    return _DIGIT.sub("0", word) if digits_to_zero else word


def capitals(word: str) -> str:
    """Return the spelling of a word: all capitals, initial, mixed, lower, with digits, or neither letter nor digit."""
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
    """Return the first `length` letters; a shorter word whole."""
    return word[:length]


def suffix_of(word: str, length: int) -> str:
    """Return the last `length` letters; a shorter word whole."""
    return word[-length:]


class TokenFeatures:
    """Turns sentences into indices for lookup tables, one vocabulary per feature, and into characters.

    Index 0 is padding and 1 unknown in every vocabulary, as `trelliswork.nn.inputs.LookupTables` has it.

        >>> features = TokenFeatures.from_sentences([Sentence(("Ann", "sings"))], NetworkConfig())
        >>> features.names[:3], features.encode(Sentence(("Bob", "sings"))).shape
        (['word', 'capitals', 'prefix2'], torch.Size([2, 8]))

    Args:
        config: Settings, which say what is read of a word.
        vocabularies: One for each feature.
        pretrained: What is stored of a pretrained encoder; None if there is none.
    """

    def __init__(
        self,
        config: NetworkConfig,
        vocabularies: Mapping[str, Vocabulary],
        pretrained: StoredConfig | None = None,
    ):
        self.pretrained, self._keep_words = pretrained, bool(config.pretrained)
        self.vocabularies = dict(vocabularies)
        self.names = [name for name in self.vocabularies if name not in (CHARACTERS, TEMPLATES)]
        self.n_columns = sum(name.startswith("column") for name in self.names)
        self._parts = word_parts(config)
        if VECTOR in self.vocabularies:
            self._parts[VECTOR] = partial(form_with_vector, vocabulary=self.vocabularies[VECTOR])
        self._indices, self._spellings = Remembered(self._word_indices), Remembered(self._spelling)
        self._ngrams = WordNgrams(config.ngrams, config.ngram_buckets) if config.ngrams else None
        self._templates = None
        if TEMPLATES in self.vocabularies:
            templates = parse_templates(config.templates, 1 + self.n_columns)
            self._templates = TemplateFeatures(
                templates, self.vocabularies[TEMPLATES].to_list()[TemplateFeatures.FIRST :]
            )
        self.dims = [_width(name, config) for name in self.names]

    @classmethod
    def from_stored(cls, config: NetworkConfig, stored: StoredConfig) -> TokenFeatures:
        """Return the features of a config.json, with `stored_vocabularies` and all of an encoder but its weights."""
        vocabularies = {name: restore_vocabulary(items) for name, items in stored["vocabularies"].items()}
        _check_order(list(vocabularies), config)
        return cls(config, vocabularies, stored.get("pretrained"))

    def stored_vocabularies(self) -> dict[str, list[str]]:
        """Return the entries of each vocabulary, in order."""
        return {name: vocabulary.to_list() for name, vocabulary in self.vocabularies.items()}

    @classmethod
    def from_sentences(
        cls, sentences: Sequence[Sentence], config: NetworkConfig, words_with_vectors: Sequence[str] = ()
    ) -> TokenFeatures:
        """Count the values of each feature and keep the frequent ones.

        Args:
            sentences: the training data.
            config: the settings, which say which features there are.
            words_with_vectors: the words of pretrained vectors, in the order of their rows.

        Returns:
            The features with their vocabularies.
        """
        words = Counter(word for sentence in sentences for word in sentence.words)
        vocabularies = {}
        for name, part in word_parts(config).items():
            counts: Counter[str] = Counter()
            for word, n in words.items():
                counts[part(word)] += n
            vocabularies[name] = _vocabulary(counts, _min_count(name, config))
        if words_with_vectors:
            vocabularies[VECTOR] = Vocabulary([PADDING_ITEM, UNKNOWN_ITEM, *words_with_vectors], unknown=UNKNOWN_ITEM)
        for i in range(len(sentences[0].features)):
            values = Counter(value for sentence in sentences for value in _column(sentence, i))
            vocabularies[f"column{i + 1}"] = _vocabulary(values, 1)
        if config.characters != "none":
            letters: Counter[str] = Counter()
            for word, n in words.items():
                letters.update(dict.fromkeys(word, n))
            vocabularies[CHARACTERS] = _vocabulary(letters, config.affix_min_count)
        if config.templates:
            kept = TemplateFeatures.from_sentences(sentences, config.templates, config.template_min_count)
            vocabularies[TEMPLATES] = restore_vocabulary([PADDING_ITEM, UNKNOWN_ITEM, *kept.names])
        return cls(config, vocabularies)

    @property
    def n_attributes(self) -> int:
        """Rows of the table of attributes; 0 if there are no templates."""
        return len(self.vocabularies[TEMPLATES]) if self._templates is not None else 0

    @property
    def sizes(self) -> list[int]:
        """Rows of each lookup table."""
        return [len(self.vocabularies[name]) for name in self.names]

    def coverage(self, sentences: Sequence[Sentence]) -> float:
        """Return the share of the tokens that have a pretrained vector."""
        numbers = self._of_words(sentences)[:, self.names.index(VECTOR)]
        return float((numbers != UNKNOWN).sum()) / max(len(numbers), 1)

    def knows(self, word: str) -> bool:
        """Return whether a word has a row of its own in the table of words."""
        return self._parts["word"](word) in self.vocabularies["word"]

    def encode(self, sentence: Sentence) -> Int[Tensor, "n f"]:
        """Return the indices of one sentence; attributes of templates stand behind the others."""
        return self.encode_all([sentence])[0]

    def encode_all(self, sentences: Sequence[Sentence]) -> list[Int[Tensor, "n f"]]:
        """Return the indices of some sentences."""
        for sentence in sentences:
            self._check_columns(sentence)
        columns = [self._of_words(sentences)]
        for i in range(self.n_columns):
            values = chain.from_iterable(_column(sentence, i) for sentence in sentences)
            columns.append(np.array(self.vocabularies[f"column{i + 1}"].indices(values), np.int64)[:, None])
        indices = list(torch.from_numpy(np.concatenate(columns, 1)).split([len(each) for each in sentences]))
        if self._templates is None or not sentences:
            return indices
        return [torch.cat(both, 1) for both in zip(indices, self._templates.encode(sentences), strict=True)]

    def _check_columns(self, sentence: Sentence) -> None:
        if len(sentence.features) != self.n_columns:
            raise DataError(
                sentence.file or "sentence",
                f"expected {self.n_columns} feature columns in addition to the word, as in training, "
                f"got {len(sentence.features)}; add or drop columns, {WORDS_ALONE}",
                line=sentence.line,
            )

    def batch(self, features: Sequence[Int[Tensor, "n f"]], words: Sequence[Sequence[str]]) -> TokenBatch:
        """Return sentences, as `encode` gives them, side by side."""
        lengths = torch.tensor([len(each) for each in features])
        padded = pad_sequence(list(features), batch_first=True)
        mask = torch.arange(padded.shape[1]) < lengths[:, None]
        n_own = len(self.names)
        attributes = None if self._templates is None else padded[..., n_own:]
        kept = tuple(map(tuple, words)) if self._keep_words else None
        rows: dict[str, int] = {}
        if CHARACTERS not in self.vocabularies and self._ngrams is None:
            return TokenBatch(padded[..., :n_own], mask, attributes=attributes, words=kept)
        forms = _side_by_side([[rows.setdefault(word, len(rows)) for word in each] for each in words])
        spelled = CHARACTERS in self.vocabularies
        spellings = _side_by_side([self._spellings[word] for word in rows]) if spelled else None
        ngrams = None if self._ngrams is None else self._ngrams.batch(rows)
        return TokenBatch(padded[..., :n_own], mask, forms, spellings, ngrams, attributes, kept)

    def _of_words(self, sentences: Sequence[Sentence]) -> Array:
        """Return indices of everything that depends on words alone, [tokens, parts]."""
        words = chain.from_iterable(sentence.words for sentence in sentences)
        numbers = np.fromiter(chain.from_iterable(map(self._indices.__getitem__, words)), np.int64)
        return numbers.reshape(-1, len(self._parts))

    def _word_indices(self, word: str) -> list[int]:
        return [self.vocabularies[name].index(part(word)) for name, part in self._parts.items()]

    def _spelling(self, word: str) -> list[int]:
        return self.vocabularies[CHARACTERS].indices(word[:LONGEST_SPELLING])


def _side_by_side(rows: Sequence[Sequence[int]]) -> Int[Tensor, "rows longest"]:
    """Pad rows of numbers with 0; many short rows take less than half the time that `pad_sequence` takes."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.zeros((len(rows), lengths.max()), np.int64)
    numbers = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = numbers
    return torch.from_numpy(padded)


def form_with_vector(word: str, vocabulary: Vocabulary) -> str:
    """Return the first spelling of a word that has a vector: as it is, in small letters, with digits as 0 or #."""
    small = word.lower()
    for form in (word, small, _DIGIT.sub("0", small), _DIGIT.sub("#", small)):
        if form in vocabulary:
            return form
    return UNKNOWN_ITEM


def word_parts(config: NetworkConfig) -> dict[str, Callable[[str], str]]:
    """Return the features that a word alone determines, by name, in the order of the tables."""
    form = partial(normalize, lowercase=config.lowercase, digits_to_zero=config.digits_to_zero)
    parts: dict[str, Callable[[str], str]] = {"word": form, "capitals": capitals}
    for length in config.prefix_lengths:
        parts[f"prefix{length}"] = partial(_affix, form=form, cut=prefix_of, length=length)
    for length in config.suffix_lengths:
        parts[f"suffix{length}"] = partial(_affix, form=form, cut=suffix_of, length=length)
    return parts


def _affix(word: str, form: Callable[[str], str], cut: Callable[[str, int], str], length: int) -> str:
    return cut(form(word), length)


def _vocabulary(counts: Counter[str], min_count: int) -> Vocabulary:
    kept = Vocabulary.from_counts(counts, min_count=min_count)
    values = (item for item in kept if item not in (PADDING_ITEM, UNKNOWN_ITEM))
    return restore_vocabulary([PADDING_ITEM, UNKNOWN_ITEM, *values])


def restore_vocabulary(items: Sequence[str]) -> Vocabulary:
    """Return a feature vocabulary from its list: padding at 0, unknown at 1."""
    if list(items[:2]) != [PADDING_ITEM, UNKNOWN_ITEM]:
        raise TrellisworkError(f"a vocabulary must begin with padding and unknown; got {list(items[:2])}")
    return Vocabulary.from_list(items, unknown=UNKNOWN_ITEM)


def _check_order(names: list[str], config: NetworkConfig) -> None:
    """Refuse stored vocabularies that are not those of the settings, in the order in which the tables are read."""
    n_columns = sum(name.startswith("column") for name in names)
    expected = list(word_parts(config))
    expected += [VECTOR] if config.vector_dim else []
    expected += [f"column{i + 1}" for i in range(n_columns)]
    expected += [CHARACTERS] if config.characters != "none" else []
    expected += [TEMPLATES] if config.templates else []
    if names != expected:
        raise TrellisworkError(f"expected the vocabularies {', '.join(expected)}, got {', '.join(names)}")


def _column(sentence: Sentence, i: int) -> tuple[str, ...]:
    if i >= len(sentence.features):
        problem = f"expected at least {i + 1} feature columns as in the first sentence, got {len(sentence.features)}"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    if len(sentence.features[i]) != len(sentence):
        problem = f"expected {len(sentence)} values in feature column {i + 1}, got {len(sentence.features[i])}"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return sentence.features[i]


def _min_count(name: str, config: NetworkConfig) -> int:
    if name == "word":
        return config.min_count
    return config.affix_min_count if name.startswith(("prefix", "suffix")) else 1


def _width(name: str, config: NetworkConfig) -> int:
    if name == "word":
        return config.word_dim
    if name == VECTOR:
        return config.vector_dim
    if name == "capitals":
        return config.capitals_dim
    return config.column_dim if name.startswith("column") else config.affix_dim


# What depends on a word alone, worked out once for each.

LIMIT = 200_000  # words


class Remembered(dict[str, list[int]]):
    """Numbers of each word, made when it is first asked for; most words come more than once.

    >>> numbers = Remembered(lambda word: [len(word), word.count("e")])
    >>> numbers["sees"], len(numbers)
    ([4, 2], 1)
    """

    def __init__(self, make: Callable[[str], list[int]], limit: int = LIMIT) -> None:
        super().__init__()
        self._make, self._limit = make, limit

    def __reduce__(self) -> tuple[type[Remembered], tuple[Callable[[str], list[int]], int]]:
        return Remembered, (self._make, self._limit)  # a copy works its numbers out again

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= self._limit:
            self.clear()
        indices = self[word] = self._make(word)
        return indices
