"""n-gram counts and their smoothing: p(word | history) with back-off weights.

A history is a tuple of word numbers, oldest first; BEGIN stands before the first word and END is predicted after the
last. Every method interpolates with the shorter history, so that over all words each history sums to exactly 1:

    p(w | h) = discounted(h w) + backoff(h) p(w | h'),   h' = h without its oldest word
"""  # [S2, n-gram]

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trelliswork.errors import ScoreError

END, BEGIN = 0, -1
History = tuple[int, ...]
Counts = dict[History, Counter[int]]
METHODS = ("witten-bell", "absolute", "kneser-ney")


class Tables(NamedTuple):
    """Log probabilities of the n-grams that were seen (all single words were), and log back-off weights."""

    log_probs: dict[History, dict[int, float]]
    log_backoff: dict[History, float]


def count_ngrams(sentences: Iterable[Sequence[int]], order: int) -> Counts:
    """How often each word (or END) follows each history of up to order - 1 words."""
    counts: Counts = defaultdict(Counter)
    for sentence in sentences:
        padded = (BEGIN, *sentence, END)
        for place in range(1, len(padded)):
            for length in range(min(order - 1, place) + 1):
                counts[padded[place - length : place]][padded[place]] += 1
    return counts


def continuations(counts: Counts, order: int) -> Counts:
    """Kneser-Ney's counts: for histories that can be longer, how many different words precede them.

    Nothing stands before BEGIN, and the longest histories have none longer: those keep their own counts.
    """
    found: Counts = defaultdict(Counter)
    for history, words in counts.items():
        if len(history) == order - 1 or history[:1] == (BEGIN,):
            found[history] = words
        if history:
            found[history[1:]].update(words.keys())
    return found


def smoothed(counts: Counts, vocabulary: Sequence[int], order: int, method: str, discount: float | None) -> Tables:
    """Tables over the vocabulary and END, from the shortest histories to the longest."""  # [S2, n-gram]
    if method == "kneser-ney":
        counts = continuations(counts, order)
    log_probs: dict[History, dict[int, float]] = {}
    log_backoff: dict[History, float] = {}
    tables = Tables(log_probs, log_backoff)
    words = [END, *vocabulary]
    discounts = _discounts(counts, discount)
    for history in sorted(counts, key=len):
        seen = counts[history]
        total, kinds = seen.total(), len(seen)
        taken = kinds if method == "witten-bell" else 0.0
        off = 0.0 if method == "witten-bell" else discounts[len(history)]
        left_over = taken / (total + taken) + off * kinds / total
        given = words if not history else seen
        log_probs[history] = {}
        for word in given:
            shorter = math.exp(log_prob(tables, history[1:], word)) if history else 1.0 / len(words)
            own = max(seen[word] - off, 0.0) / (total + taken)
            log_probs[history][word] = math.log(own + left_over * shorter)
        if history:
            log_backoff[history] = math.log(left_over)
    return tables


def _discounts(counts: Counts, given: float | None) -> dict[int, float]:
    """For each length of history n1 / (n1 + 2 n2), of n-grams seen once and twice; 1/2 where either is missing."""
    if given is not None and not 0 < given < 1:
        raise ScoreError(f"discount must lie between 0 and 1; got {given}; leave it out to estimate it")
    once, twice = Counter[int](), Counter[int]()
    for history, words in counts.items():
        once[len(history)] += sum(count == 1 for count in words.values())
        twice[len(history)] += sum(count == 2 for count in words.values())
    lengths = {len(history) for history in counts}
    if given is not None:
        return dict.fromkeys(lengths, given)
    return {n: once[n] / (once[n] + 2 * twice[n]) if once[n] and twice[n] else 0.5 for n in lengths}


def log_prob(tables: Tables, history: History, word: int) -> float:
    """log p(word | history): back-off is taken only where the n-gram is missing."""
    backed_off = 0.0
    while word not in tables.log_probs.get(history, ()):
        if not history:
            return -math.inf
        backed_off += tables.log_backoff.get(history, 0.0)
        history = history[1:]
    return backed_off + tables.log_probs[history][word]
