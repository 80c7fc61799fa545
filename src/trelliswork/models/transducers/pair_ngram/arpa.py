"""The n-grams of chunk pairs as an ARPA file, for kenlm, SRILM, OpenGrm and others.

A chunk pair is one word: source symbols, `}`, target symbols, with `|` between symbols and `_` for no target, such as
`p|h}F`, `x}K|S` and `e}_`. Within a symbol these characters, `%`, `<`, `>` and blanks are written as in web
addresses: `%` and the two hexadecimal digits of each byte.
"""

from __future__ import annotations

from pathlib import Path

from trelliswork.errors import ModelError, OutputError
from trelliswork.fst.arpa import write_arpa, write_arrays
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.transducers.pair_ngram.alignment import ChunkPair
from trelliswork.models.transducers.pair_ngram.model import PairNgram

NOTHING, BETWEEN, WITHIN = "_", "}", "|"
_RESERVED = frozenset("_}|%<>")


def word_of(pair: ChunkPair) -> str:
    """Return a chunk pair as a word.

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


def export_arpa(model: PairNgram | NgramLanguageModel, path: str | Path, *, force: bool = False) -> None:
    """Write a language model, or the joint model of a pair n-gram: p(source, target, alignment) of chunk pairs.

    Args:
        model: A language model or a pair n-gram.
        path: The file to write.
        force: Whether a file that is there is replaced.
    """
    if not isinstance(model, PairNgram | NgramLanguageModel):
        raise ModelError(f"expected an n-gram model to write as an ARPA file, got a {type(model).__name__}")
    if Path(path).exists() and not force:
        raise OutputError(f"{path}: there is a file already; name another, or replace it with --force")
    if isinstance(model, NgramLanguageModel):
        write_arpa(model.machine, path)
    else:
        write_arrays(model.model.ngrams, [*map(word_of, model.model.chunks)], path)
