"""The counts of a treebank grammar as arrays, as its folder keeps them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trelliswork.models.parsers.constituency.config import GrammarConfig
from trelliswork.models.parsers.constituency.treebank_rules import RuleCounts, label_of, word_of
from trelliswork.models.storage import StoredModel
from trelliswork.runtime.bridge import Array


def stored_counts(counts: RuleCounts, place: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, Array]]:
    """What goes into config.json, and the arrays; `place` numbers the symbols."""
    words = sorted({word for _, word in counts.words})
    column = {word: i for i, word in enumerate(words)}
    arrays = {
        "roots": np.array([[place[each], n] for each, n in counts.roots.items()], np.int64),
        "words": np.array([[place[a], column[w], n] for (a, w), n in counts.words.items()], np.int64),
    }
    for name, width, rules in (("binary", 3, counts.binary), ("unary", 2, counts.unary)):
        symbols = [[place[each] for each in rule] for rule in rules]
        arrays[name] = np.array(symbols, np.int64).reshape(-1, width)
        arrays[f"{name}_counts"] = np.array(list(rules.values()), np.float64)
    return {
        "settings": counts.config.to_dict(),
        "symbols": sorted(place, key=place.__getitem__),
        "words": words,
    }, arrays


def counts_from(stored: StoredModel) -> RuleCounts:
    """The counts of a folder."""
    counts = RuleCounts(GrammarConfig.from_dict(stored.config["settings"]))
    symbols, words, arrays = stored.config["symbols"], stored.config["words"], stored.weights
    if not all(isinstance(name, str) and name for name in (*symbols, *words)):
        raise ValueError("expected texts as symbols and words")
    for (a, b, c), n in zip(arrays["binary"].tolist(), arrays["binary_counts"].tolist(), strict=True):
        counts.binary[symbols[a], symbols[b], symbols[c]] = n
    for (a, b), n in zip(arrays["unary"].tolist(), arrays["unary_counts"].tolist(), strict=True):
        counts.unary[symbols[a], symbols[b]] = n
    for a, n in arrays["roots"].tolist():
        counts.roots[symbols[a]] = n
    for a, w, n in arrays["words"].tolist():
        counts.words[symbols[a], words[w]] = n
    if not all(n > 0 for each in (counts.binary, counts.unary, counts.roots, counts.words) for n in each.values()):
        raise ValueError("expected counts above 0")
    if not counts.words or not counts.roots:
        raise ValueError("expected words and roots of trees, got none")
    if any((arrays[name] < 0).any() for name in ("binary", "unary", "roots", "words")):
        raise ValueError("expected numbers of symbols and words from 0")
    counts.frequent = {(label_of(tag) or tag, word) for tag, _ in counts.words if (word := word_of(tag))}
    counts.contexts.known = {symbol for symbol in symbols if label_of(symbol) is None}
    return counts
