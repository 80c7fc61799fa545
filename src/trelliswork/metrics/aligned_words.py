"""Words of two analyses of one text, side by side, as the CoNLL 2018 shared task aligns them.

Zeman et al. (2018), "CoNLL 2018 Shared Task: Multilingual Parsing from Raw Text to Universal Dependencies". Words that
are whole tokens belong together if they cover the same characters. Where either side has tokens of several words, all
words of overlapping ones are compared, and a longest common subsequence of them, whatever their case, belongs together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trelliswork.metrics.attachment import is_content, universal
from trelliswork.metrics.spans import Score

ROOT = -1
Pair = tuple[int, int]  # the number of a gold word, and that of the word found


@dataclass(frozen=True)
class TextWord:
    """A word, and the place [start, end) of its token among the visible characters of a text.

    `head` is the number of its head in the whole text, from 0, or `ROOT`; `columns` are further values, such as UPOS.
    """

    start: int
    end: int
    form: str
    multiword: bool = False
    head: int = ROOT
    label: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


def aligned_words(gold: Sequence[TextWord], found: Sequence[TextWord]) -> list[Pair]:
    """Return the words that belong together, in the order of the text.

    >>> gold = [TextWord(0, 5, "do", True), TextWord(0, 5, "n't", True), TextWord(5, 6, "!")]
    >>> aligned_words(gold, [TextWord(0, 2, "do"), TextWord(2, 5, "n't"), TextWord(5, 6, "!")])
    [(0, 0), (1, 1), (2, 2)]
    """
    regions = _regions([*gold, *found])
    of_gold, of_found = _by_region(gold, regions), _by_region(found, regions)
    pairs: list[Pair] = []
    for region in range(len(regions)):
        pairs += _common(of_gold.get(region, []), of_found.get(region, []), gold, found)
    places = {(gold[i].start, gold[i].end): i for i in of_gold.get(None, [])}
    alone = ((places.get((found[j].start, found[j].end)), j) for j in of_found.get(None, []))
    return sorted([*pairs, *((i, j) for i, j in alone if i is not None)])


def _regions(words: Sequence[TextWord]) -> list[tuple[int, int]]:
    """Return where tokens of several words are, those that overlap together."""
    regions: list[tuple[int, int]] = []
    for start, end in sorted({(word.start, word.end) for word in words if word.multiword}):
        if regions and start < regions[-1][1]:
            regions[-1] = (regions[-1][0], max(regions[-1][1], end))
        else:
            regions.append((start, end))
    return regions


def _by_region(words: Sequence[TextWord], regions: Sequence[tuple[int, int]]) -> dict[int | None, list[int]]:
    """Return the numbers of the words inside of each region, and under None of those outside."""
    starts, words_by_region = [start for start, _ in regions], dict[int | None, list[int]]()
    for i, word in enumerate(words):
        region = bisect_right(starts, word.start) - 1
        inside = region >= 0 and word.end <= regions[region][1]
        words_by_region.setdefault(region if inside else None, []).append(i)
    return words_by_region


def _common(
    mine: Sequence[int], theirs: Sequence[int], gold: Sequence[TextWord], found: Sequence[TextWord]
) -> list[Pair]:
    """Return a longest common subsequence of the words of a region."""
    a, b = [gold[i].form.lower() for i in mine], [found[j].form.lower() for j in theirs]
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            best[i][j] = 1 + best[i + 1][j + 1] if a[i] == b[j] else max(best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((mine[i], theirs[j]))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def word_scores(gold: Sequence[TextWord], found: Sequence[TextWord], columns: Sequence[str]) -> dict[str, Score]:
    """Count words, those with the right columns, and their arcs: UAS, LAS, the same without subtypes, CLAS.

    A head is right if it belongs together with the gold one.
    """
    pairs = aligned_words(gold, found)
    partner = {j: i for i, j in pairs} | {ROOT: ROOT}

    def right(wanted: Callable[[TextWord, TextWord], bool]) -> int:
        return sum(wanted(gold[i], found[j]) for i, j in pairs)

    def counted(wanted: Callable[[TextWord, TextWord], bool]) -> Score:
        return Score(right(wanted), len(found), len(gold))

    def head(a: TextWord, b: TextWord) -> bool:
        return partner.get(b.head) == a.head

    def attached(a: TextWord, b: TextWord) -> bool:
        return head(a, b) and universal(a.label) == universal(b.label)

    n_content = (sum(is_content(word.label) for word in words) for words in (found, gold))
    return {
        "words": counted(lambda a, b: True),
        **{name: counted(lambda a, b, name=name: a.columns[name] == b.columns[name]) for name in columns},  # type: ignore[misc]
        "UAS": counted(head),
        "LAS": counted(lambda a, b: head(a, b) and a.label == b.label),
        "LAS, no subtypes": counted(attached),
        "CLAS": Score(right(lambda a, b: attached(a, b) and is_content(a.label)), *n_content),
    }
