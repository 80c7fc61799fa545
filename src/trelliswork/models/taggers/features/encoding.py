"""From sentences to numbered attributes, block by block: each process its share, all with the same numbers.

Attributes have the numbers that a single process gives them, in the order in which they are first met. With a scratch
directory, what grows with the data is in mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from typing import NamedTuple

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, FeatureFunction, HashedIndex, KeyIndex, Templates
from trelliswork.data.attributes.key_index import new_index
from trelliswork.data.attributes.rows import ENTRIES_AT_A_TIME, first_entries_of, offsets_of
from trelliswork.data.attributes.templates import AttributeEntries, Column, expand
from trelliswork.errors import DataError
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Growing
from trelliswork.training.together import ALONE, OneProcess, Where

TOKENS_AT_A_TIME = 1 << 17
IN_SENTENCE = 28  # bits that number the entries of a sentence, and those of a block


def columns_of(sentences: Sequence[Sentence], n_columns: int | None = None) -> tuple[Array, list[Column]]:
    """Return lengths, and the words and columns of all tokens; `n_columns`, or as many as the first sentence has."""
    if n_columns is None:
        n_columns = len(sentences[0].features) if sentences else 0
    for sentence in sentences:
        if len(sentence.features) != n_columns:
            got = f"expected {n_columns} columns in addition to the words, got {len(sentence.features)}"
            raise DataError(sentence.file or "sentence", got, line=sentence.line)
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    words = Column.of(chained.from_iterable(sentence.words for sentence in sentences))
    others = [Column.of(chained.from_iterable(each.features[c] for each in sentences)) for c in range(n_columns)]
    return lengths, [words, *others]


def attributes_of(templates: Templates, lengths: Array, columns: Sequence[Column]) -> AttributeEntries:
    """Return the attributes that templates make.

    Args:
        templates: make attributes of the columns.
        lengths: tokens of each sentence, [sentences].
        columns: the words and then the other columns, token after token.

    Returns:
        The attributes by key.
    """
    every = templates.templates
    wanted = [row for row, template in enumerate(every) if template.references or not template.pairs]
    keys, counts, places = expand(templates, wanted, lengths, columns)
    on_pairs = None
    if any(template.pairs and template.references for template in every):
        on_pairs = np.array([template.pairs for template in every])[places.templates]

    def names_of(entries: Array) -> list[str]:
        return templates.names(places[entries], lengths, columns)

    return AttributeEntries(counts, keys, None, names_of, on_pairs)


class Source(NamedTuple):
    """The maker of attributes of sentences that have `n_columns` columns next to the words."""

    templates: Templates
    function: FeatureFunction | None
    n_columns: int

    def found(self, sentences: Sequence[Sentence]) -> tuple[Array, AttributeEntries]:
        """Return the lengths of sentences, and their attributes."""
        lengths, columns = columns_of(sentences, self.n_columns)
        return lengths, attributes_of(self.templates, lengths, columns).with_function(self.function, sentences)


def blocks_of(sentences: Sequence[Sentence], n_tokens: int = TOKENS_AT_A_TIME) -> Iterator[list[Sentence]]:
    """Yield neighbouring sentences, grouped into about `n_tokens` tokens; one empty block if there are none."""
    block, n = list[Sentence](), 0
    for sentence in sentences:
        if n >= n_tokens:
            yield block
            block, n = [], 0
        block.append(sentence)
        n += len(sentence)
    yield block


@dataclass
class Encoded:
    """Numbered attributes of the share of this process, and how to name them.

    places[a] is block · 2^28 + entry where attribute a is met first; -1 if that is in another process.
    """

    rows: AttributeRows
    index: KeyIndex | HashedIndex
    on_pairs: Array | None
    places: Array
    _names_in: list[Callable[[Array], list[str]]]  # of entries of each block
    _together: OneProcess

    @classmethod
    def of(cls, sentences: Sequence[Sentence], source: Source, hash_bits: int | None, where: Where = ALONE) -> Encoded:
        """Encode the share of this process of all `sentences`, every n-th.

        Args:
            sentences: all sentences, of which every n-th is encoded here.
            source: makes the attributes.
            hash_bits: bits of hashed attributes; None keeps names.
            where: the processes, and the place of large arrays.

        Returns:
            The encoded share.
        """
        together = where.together
        work = _Encoding(source, new_index(hash_bits), where)
        together.gathered(lambda: work.add_all(sentences[together.rank :: together.size]))
        rows, on_pairs = work.rows(), work.on_pairs()
        encoded = cls(rows, work.index, on_pairs, work.places.whole(), work.names_in, together)
        if not together.alone:
            encoded._renumber(work.order.whole())
        return encoded

    def _renumber(self, order: Array) -> None:
        """Give attributes the numbers of all processes: order[a] is where this process meets its attribute a."""
        if isinstance(self.index, KeyIndex):
            own_keys, together = self.index.keys(), self._together
            keys, orders = together.each(own_keys), together.each(order)
            by_order = np.argsort(np.concatenate(orders))
            self.index = KeyIndex()
            ids = self.index.add(np.concatenate(keys)[by_order])
            owners = np.repeat(np.arange(len(keys)), [len(each) for each in keys])[by_order]
            owner = owners[first_entries_of(ids, len(self.index))]
            numbers = self.index.find(own_keys)
            for first in range(0, len(self.rows.ids), ENTRIES_AT_A_TIME):
                some = slice(first, first + ENTRIES_AT_A_TIME)
                self.rows.ids[some] = numbers[self.rows.ids[some]]
            own = owner[numbers] == together.rank
            places, self.places = self.places, np.full(len(self.index), -1)
            self.places[numbers[own]] = places[own]
            self.on_pairs = _flags_of_all(self.on_pairs, numbers, len(self.index), together)

    def names(self, chosen: Array) -> list[str]:
        """Return the names of some attributes; nothing in processes other than the first."""
        own = np.flatnonzero(self.places[chosen] >= 0)
        blocks, entries = np.divmod(self.places[chosen[own]], 1 << IN_SENTENCE)
        by_chosen = np.empty(len(own), object)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            by_chosen[here] = self._names_in[block](entries[here])
        named = np.empty(len(chosen), object)
        parts = self._together.to_first((own, by_chosen))
        for places, names in parts:
            named[places] = names
        return list(named) if parts else []


class _Encoding:
    """Rows that grow block by block."""

    def __init__(self, source: Source, index: KeyIndex | HashedIndex, where: Where) -> None:
        self.source, self.index, self._where = source, index, where
        self.names_in: list[Callable[[Array], list[str]]] = []
        self.places, self.order = Growing(where.scratch, np.int64), Growing(where.scratch, np.int64)
        self._lengths, self._offsets = list[Array](), where.scratch.growing(np.int64)
        self._offsets.add(np.zeros(1, np.int64))
        self._ids, self._values = where.scratch.growing(np.int32), where.scratch.growing(np.float64)
        self._valued, self._n_sentences, self._flags = False, 0, list[Array]()

    def add_all(self, sentences: Sequence[Sentence]) -> None:
        for block in blocks_of(sentences):
            self._add(block, sentences)

    def _add(self, block: list[Sentence], sentences: Sequence[Sentence]) -> None:
        lengths, attributes = self.source.found(block)
        known, offsets = len(self.index), offsets_of(attributes.counts)
        ids = self.index.add(attributes.keys)
        if isinstance(self.index, KeyIndex):
            self._remember(first_entries_of(ids, len(self.index))[known:], offsets[offsets_of(lengths)])
        self._add_values(attributes.values, len(ids))
        if attributes.looks_at_pairs is not None:
            self._flags.append(np.unique(ids[attributes.looks_at_pairs]))
        first, self._n_sentences = self._n_sentences, self._n_sentences + len(block)
        self._lengths.append(lengths)
        self._offsets.add(offsets[1:] + len(self._ids))
        self._ids.add(ids)
        self.names_in.append(self._again(sentences, first) if self._where.scratch.on_disk else attributes.names_of)

    def _remember(self, new: Array, starts: Array) -> None:
        """Remember where new attributes are met first: in this block, and in all sentences of all processes."""
        together, sentence = self._where.together, np.searchsorted(starts, new, side="right") - 1
        self.places.add((len(self.names_in) << IN_SENTENCE) + new)
        if not together.alone:
            number = (self._n_sentences + sentence) * together.size + together.rank
            self.order.add((number << IN_SENTENCE) + new - starts[sentence])

    def _add_values(self, values: Array | None, n: int) -> None:
        if values is not None and not self._valued:
            self._values.add(np.ones(len(self._ids)))
            self._valued = True
        if self._valued:
            self._values.add(np.ones(n) if values is None else values)

    def _again(self, sentences: Sequence[Sentence], first: int) -> Callable[[Array], list[str]]:
        """Return names from encoding the block again: what it takes to keep them is as large as the rows."""
        last = self._n_sentences
        return lambda entries: self.source.found(sentences[first:last])[1].names_of(entries)

    def rows(self) -> AttributeRows:
        lengths, values = np.concatenate(self._lengths), self._values.whole() if self._valued else None
        return AttributeRows(lengths, self._offsets.whole(), self._ids.whole(), values)

    def on_pairs(self) -> Array | None:
        """Return True for the attributes that score neighbouring labels; None if no template does."""
        if not any(each.pairs and each.references for each in self.source.templates.templates):
            return None
        on_pairs = np.zeros(len(self.index), np.bool_)
        on_pairs[np.concatenate([np.empty(0, np.int32), *self._flags])] = True
        return on_pairs


def _flags_of_all(own: Array | None, numbers: Array, n_attributes: int, together: OneProcess) -> Array | None:
    """Return flags of attributes by the numbers of all processes."""
    if own is None:
        return None
    flags = np.zeros(n_attributes, np.int64)
    flags[numbers[own]] = 1
    return together.sums(flags) > 0
