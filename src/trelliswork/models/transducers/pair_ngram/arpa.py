"""The n-grams of chunk pairs as an ARPA file, for kenlm, SRILM, OpenGrm and others.

A chunk pair is one word: source symbols, `}`, target symbols, with `|` between symbols and `_` for no target, such as
`p|h}F`, `x}K|S` and `e}_`. Within a symbol these characters, `%`, `<`, `>` and blanks are written as in web
addresses: `%` and the two hexadecimal digits of each byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from trelliswork.errors import ModelError, OutputError
from trelliswork.fst.arpa import NEVER, START, STOP
from trelliswork.models.transducers.pair_ngram.alignment import ChunkPair
from trelliswork.models.transducers.pair_ngram.chunk_model import level_starts
from trelliswork.models.transducers.pair_ngram.model import PairNgram
from trelliswork.structures.automata.ngram_arrays import NgramArrays
from trelliswork.writing import atomic_write

NOTHING, BETWEEN, WITHIN = "_", "}", "|"
_RESERVED = frozenset("_}|%<>")


def word_of(pair: ChunkPair) -> str:
    """A chunk pair as a word.

    >>> word_of((("p", "h"), ("F",))), word_of(((" ",), ()))
    ('p|h}F', '%20}_')
    """
    source, target = (WITHIN.join(map(_escaped, side)) for side in pair)
    return f"{source}{BETWEEN}{target or NOTHING}"


def _escaped(symbol: str) -> str:
    return "".join(
        "".join(f"%{byte:02X}" for byte in c.encode()) if c in _RESERVED or c.isspace() or not c.isprintable() else c
        for c in symbol
    )


def export_arpa(model: PairNgram, path: str | Path, *, force: bool = False) -> None:
    """Write the joint n-gram model of a pair n-gram: p(source, target, alignment) of a sequence of chunk pairs."""
    if not isinstance(model, PairNgram):
        raise ModelError(f"expected a pair n-gram to write as an ARPA file, got a {type(model).__name__}")
    if Path(path).exists() and not force:
        raise OutputError(f"{path}: there is a file already; name another, or replace it with --force")
    ngrams = model.model.ngrams
    names = [*map(word_of, model.model.chunks), STOP, START]
    starts = level_starts(ngrams).tolist()
    with atomic_write(path) as file:
        sizes = [high - low for low, high in pairwise(starts[1:])]
        file.write("\\data\\\n" + "".join(f"ngram {n}={size}\n" for n, size in enumerate(sizes, 1)))
        for n, lines in enumerate(_sections(ngrams, names, starts), 1):
            file.write(f"\n\\{n}-grams:\n")
            file.writelines(lines)
        file.write("\n\\end\\\n")


def _sections(ngrams: NgramArrays, names: list[str], starts: list[int]) -> Iterator[list[str]]:
    """The lines of each order."""
    parents = np.repeat(np.arange(len(ngrams.word)), np.diff(ngrams.first))  # of the nodes from 1 on
    with np.errstate(divide="ignore"):
        log_probs = np.maximum(np.log10(ngrams.prob), NEVER)
        backoffs = np.maximum(np.log10(ngrams.backoff), NEVER)
    before: list[str] = [""]
    for low, high in pairwise(starts[1:]):
        owners = (parents[low - 1 : high - 1] - (low - len(before))).tolist()
        words = [names[word] for word in ngrams.word[low:high].tolist()]
        grams = [
            f"{before[owner]} {word}" if before[owner] else word for owner, word in zip(owners, words, strict=True)
        ]
        seen = (ngrams.first[low + 1 : high + 1] > ngrams.first[low:high]).tolist()
        yield [
            f"{p:.9g}\t{gram}\t{b:.9g}\n" if follows else f"{p:.9g}\t{gram}\n"
            for p, gram, b, follows in zip(
                log_probs[low:high].tolist(), grams, backoffs[low:high].tolist(), seen, strict=True
            )
        ]
        before = grams
