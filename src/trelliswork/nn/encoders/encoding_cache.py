"""Vectors of a frozen encoder, computed once for each sentence and mapped into memory.

A cache belongs to one state of one encoder: its key is a digest of weights, tokenizer and the way in which words are
read. With a directory, vectors stay there for later runs, in a folder named by the key:

NAME.vectors    float32 [tokens, layers, dim], one sentence after the other
NAME.json       the first row and the number of rows of each sentence, by a digest of its words

Files appear whole or not at all and are never changed, so that several runs may share a directory. Without one, vectors
are in a temporary file that is gone with the run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import OutputError
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch
from trelliswork.writing import atomic_write

if TYPE_CHECKING:
    from trelliswork.nn.encoders.pretrained import PretrainedWords

BATCH_TOKENS = 1500  # of sentences that are read together
LARGEST_SHARE = 0.5  # of the free space of a disk
FORMAT = "1"


class Place(NamedTuple):
    """The rows of a sentence."""

    vectors: Array
    first: int
    n: int


class EncodingCache:
    """Vectors of sentences of one encoder.

    Args:
        key: Digest of the encoder, see `encoder_key`.
        shape: Number of layers and dimensions of the vector of a word.
        directory: A folder that keeps vectors for later runs; None for a temporary file.
    """

    def __init__(self, key: str, shape: tuple[int, int], directory: Path | None = None) -> None:
        self.key, self.shape = key, shape
        self.folder = None if directory is None else directory / key
        self._places: dict[str, Place] = {}
        if self.folder is not None:
            for index in sorted(self.folder.glob("*.json")):
                self._open(index)

    def __len__(self) -> int:
        """Number of different sentences."""
        return len(self._places)

    def look_up(self, sentences: Sequence[Sequence[str]]) -> list[Tensor] | None:
        """Return the vectors of each sentence, [n, layers, dim]; None if those of any sentence are missing."""
        found = [self._places.get(digest_of(words)) for words in sentences]
        if not all(found):
            return None
        return [torch.from_numpy(np.array(vectors[first : first + n])) for vectors, first, n in filter(None, found)]

    def fill(self, encoder: PretrainedWords, sentences: Sequence[Sequence[str]]) -> int:
        """Compute the vectors of the sentences that are missing, shortest first; return how many there were.

        The order depends on nothing but the sentences, and so do the vectors, to the last bit.
        """
        by_digest = {digest_of(words): words for words in sentences}
        missing = [digest for digest in by_digest if digest not in self._places]
        missing.sort(key=lambda digest: (len(by_digest[digest]), digest))
        if not missing:
            return 0
        counts = [len(by_digest[digest]) for digest in missing]
        firsts = np.concatenate([[0], np.cumsum(counts)])
        parts = _encoded(encoder, [by_digest[digest] for digest in missing])
        if self.folder is None:
            vectors = self._in_temporary_file(int(firsts[-1]), parts)
            places = zip(missing, firsts[:-1].tolist(), counts, strict=True)
            self._places |= {digest: Place(vectors, first, n) for digest, first, n in places}
        else:
            rows = dict(zip(missing, zip(firsts[:-1].tolist(), counts, strict=True), strict=True))
            self._write(self.folder, rows, parts)
        return len(missing)

    def room_for(self, n_tokens: int) -> bool:
        """Return whether the disk has room for the vectors of `n_tokens` tokens, and for as much again."""
        nearest = Path(tempfile.gettempdir())
        if self.folder is not None:
            nearest = next(path for path in self.folder.absolute().parents if path.exists())
        n_bytes = n_tokens * self.shape[0] * self.shape[1] * np.dtype(np.float32).itemsize
        return n_bytes <= LARGEST_SHARE * shutil.disk_usage(nearest).free

    def _in_temporary_file(self, n_rows: int, parts: Iterator[Array]) -> Array:
        scratch = Scratch(Path(tempfile.gettempdir()))
        vectors = scratch.array(n_rows * self.shape[0] * self.shape[1], np.float32).reshape(n_rows, *self.shape)
        row = 0
        for part in parts:
            vectors[row : row + len(part)] = part
            row += len(part)
        return vectors

    def _write(self, folder: Path, rows: dict[str, tuple[int, int]], parts: Iterator[Array]) -> None:
        name = uuid4().hex
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"expected a directory for encodings, got {error.strerror or error}"
            raise OutputError(f"{folder.parent}: {problem}; choose another --pretrained-cache") from error
        with atomic_write(folder / f"{name}.vectors", "wb") as file:
            for part in parts:
                file.write(np.ascontiguousarray(part, np.float32).tobytes())
        index = folder / f"{name}.json"
        with atomic_write(index) as file:
            json.dump(rows, file)
        self._open(index)

    def _open(self, index: Path) -> None:
        """Map the vectors that an index tells of; files that do not fit are as good as missing."""
        try:
            rows = {str(digest): (int(first), int(n)) for digest, (first, n) in json.loads(index.read_text()).items()}
            vectors = np.memmap(index.with_suffix(".vectors"), np.float32, "r").reshape(-1, *self.shape)
        except (OSError, ValueError, TypeError, AttributeError):
            return
        plain = vectors.view(np.ndarray)
        fits = {digest: (first, n) for digest, (first, n) in rows.items() if 0 <= first <= first + n <= len(plain)}
        self._places |= {digest: Place(plain, first, n) for digest, (first, n) in fits.items()}


def cache_for(encoder: PretrainedWords, directory: Path | None = None) -> EncodingCache:
    """Return an empty cache for an encoder as it is now, or what a directory keeps of it."""
    return EncodingCache(encoder_key(encoder), (encoder.n_layers, encoder.dim), directory)


def encoder_key(encoder: PretrainedWords) -> str:
    """Return a digest of everything that vectors of words depend on: weights, tokenizer, windows, the choice of
    sub-words and layers."""
    digest = hashlib.sha256()
    settings = {**encoder.to_dict(), "format": FORMAT}
    if isinstance(of_model := settings.get("model"), dict):
        settings["model"] = {name: value for name, value in of_model.items() if name not in _OF_FILES}
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, weights in sorted(encoder.model.state_dict().items()):
        digest.update(f"{name}\0{tuple(weights.shape)}\0".encode())
        digest.update(weights.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]


_OF_FILES = ("_name_or_path", "transformers_version")  # where a model came from does not matter


def digest_of(words: Sequence[str]) -> str:
    """Return a digest of the words of a sentence.

    >>> digest_of(["a", "b"]) == digest_of(("a", "b")), digest_of(["a", "b"]) == digest_of(["a b"])
    (True, False)
    """
    return hashlib.blake2b(json.dumps(list(words)).encode(), digest_size=16).hexdigest()


def _encoded(encoder: PretrainedWords, sentences: Sequence[Sequence[str]]) -> Iterator[Array]:
    """Yield the vectors of sentences in order, a few sentences at a time."""
    for first, last in _batches([len(words) for words in sentences]):
        with torch.no_grad():
            for vectors in encoder.vectors_of(sentences[first:last]):
                yield vectors.cpu().numpy()


def _batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of sentences, sorted by length, that have at most `BATCH_TOKENS` tokens with padding."""
    first = 0
    for i, length in enumerate(lengths):
        if i > first and (i - first + 1) * length > BATCH_TOKENS:
            yield first, i
            first = i
    if first < len(lengths):
        yield first, len(lengths)


def cached_encodings(
    encoder: PretrainedWords,
    sentences: Sequence[Sequence[str]],
    directory: Path | None,
    note: Callable[[str], None],
) -> EncodingCache | None:
    """Return a cache that has the vectors of sentences, or None where the disk has no room for them.

    Args:
        encoder: A frozen encoder.
        sentences: Their words.
        directory: As for `EncodingCache`.
        note: Is given a line about what is done.
    """
    cache, n_tokens = cache_for(encoder, directory), sum(map(len, sentences))
    if not cache.room_for(n_tokens):
        note(f"note: no room to keep the vectors of {n_tokens:,} tokens; the encoder reads them again in each epoch")
        return None
    n_known = len(cache)
    n_new = cache.fill(encoder, sentences)
    known = f", {n_known:,} were there" if n_known else ""
    note(f"frozen encoder: vectors of {n_new:,} sentences computed once{known}")
    return cache
