"""Scores of tokenisation: F1 of tokens, words and sentences, as the CoNLL 2018 shared task counts them.

Zeman et al. (2018), "CoNLL 2018 Shared Task: Multilingual Parsing from Raw Text to Universal Dependencies". A token or
a sentence is right if it covers the same characters, white space aside. A word is right if its token is and the
token's words are the same; words of tokens that are cut in the same place count one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate

import numpy as np

from trelliswork.metrics.spans import Score
from trelliswork.text.documents import Document
from trelliswork.text.rules import Token, Tokeniser

Sentences = Sequence[Sequence[Token]]


def tokenisation_scores(tokeniser: Tokeniser, gold: Iterable[Document]) -> dict[str, float]:
    """Return F1 in percent of `tokens`, `words` and `sentences` on texts whose tokens are known."""
    counts = {name: np.zeros(3, np.int64) for name in _PARTS}
    for document in gold:
        predicted, known = tokeniser.tokenise(document.text), document.sentences
        for name, parts in _PARTS.items():
            ours, theirs = Counter(parts(document.text, predicted)), Counter(parts(document.text, known))
            counts[name] += [(ours & theirs).total(), ours.total(), theirs.total()]
    return {name: 100 * Score(*three.tolist()).f1 for name, three in counts.items()}


def visible_before(text: str) -> list[int]:
    """Return the number of visible characters before each place."""
    return [0, *accumulate(int(not each.isspace()) for each in text)]


def _tokens(text: str, sentences: Sentences) -> list[tuple[int, int]]:
    before = visible_before(text)
    return [(before[token.start], before[token.end]) for sentence in sentences for token in sentence]


def _words(text: str, sentences: Sentences) -> list[tuple[int, int, int, str]]:
    """Return words by the place of their token, the number within it, and their letters unless they are all of it."""
    before = visible_before(text)
    return [
        (before[token.start], before[token.end], at, word.lower() if len(token.words) > 1 else "")
        for sentence in sentences
        for token in sentence
        for at, word in enumerate(token.words)
    ]


def _sentences(text: str, sentences: Sentences) -> list[tuple[int, int]]:
    before = visible_before(text)
    return [(before[sentence[0].start], before[sentence[-1].end]) for sentence in sentences if sentence]


_PARTS: dict[str, Callable[[str, Sentences], Sequence[Hashable]]] = {
    "tokens": _tokens, "words": _words, "sentences": _sentences,
}  # fmt: skip
