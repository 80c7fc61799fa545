"""Sentences in a temporary file instead of memory: a sequence that is read a block at a time."""

from __future__ import annotations

import mmap
import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from trelliswork.data.sentence import Sentence
from trelliswork.runtime.scratch import Scratch

Content = mmap.mmap | bytes
BLOCK = 256  # sentences


class SpilledSentences(Sequence[Sentence]):
    """Sentences that were written to the scratch directory; slices are views of the same file.

    The file has no name and only this process reads it, so its blocks are plain pickles.

    Args:
        content: The file, mapped into memory.
        places: Where each block begins, and where the last one ends.
        chosen: The numbers of the sentences of this view.
    """

    def __init__(self, content: Content, places: list[int], chosen: range) -> None:
        self._content, self._places, self._chosen = content, places, chosen
        self._block: tuple[int, list[Sentence]] = (-1, [])

    @classmethod
    def of(cls, sentences: Iterable[Sentence], scratch: Scratch) -> SpilledSentences:
        """Write sentences as they come."""
        places, n, stream = [0], 0, iter(sentences)
        with scratch.file() as file:
            while block := list(islice(stream, BLOCK)):
                with scratch.explained():
                    pickle.dump(block, file, pickle.HIGHEST_PROTOCOL)
                    file.flush()
                places.append(file.tell())
                n += len(block)
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if n else b""
        return cls(content, places, range(n))

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, i: int) -> Sentence: ...
    @overload
    def __getitem__(self, i: slice) -> SpilledSentences: ...
    def __getitem__(self, i: int | slice) -> Sentence | SpilledSentences:
        if isinstance(i, slice):
            return SpilledSentences(self._content, self._places, self._chosen[i])
        block, place = divmod(self._chosen[i], BLOCK)
        return self._read(block)[place]

    def __iter__(self) -> Iterator[Sentence]:
        return (self[i] for i in range(len(self)))

    def _read(self, number: int) -> list[Sentence]:
        """Return a block; the last one is remembered."""
        if self._block[0] != number:
            self._block = number, pickle.loads(self._content[self._places[number] : self._places[number + 1]])
        return self._block[1]


def keep_sentences(sentences: Iterable[Sentence], scratch: Scratch) -> Sequence[Sentence]:
    """Return sentences in memory, or in the files of a scratch directory."""
    return SpilledSentences.of(sentences, scratch) if scratch.on_disk else list(sentences)
