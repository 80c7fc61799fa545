"""Attachment scores of dependency trees, also over words that a tokeniser has found: right heads, right labels."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trelliswork.draw.notebook import Rich
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.spans import Score

Arc = tuple[int, str]  # head, counted from 1 with 0 for the root, and label


@dataclass(frozen=True)
class Attachment(Rich):
    """Counts of words, all of them and those whose head, label, or both are right, and of whole trees."""

    n_words: int
    n_heads: int
    n_labels: int
    n_both: int
    n_trees: int
    n_exact: int

    @property
    def uas(self) -> float:
        """Unlabelled attachment score."""
        return self.n_heads / max(self.n_words, 1)

    @property
    def las(self) -> float:
        """Labelled attachment score."""
        return self.n_both / max(self.n_words, 1)

    @property
    def label_accuracy(self) -> float:
        """The share of words whose label is right, whatever their head."""
        return self.n_labels / max(self.n_words, 1)

    @property
    def exact(self) -> float:
        """The share of trees without a mistake."""
        return self.n_exact / max(self.n_trees, 1)

    def to_dict(self) -> dict[str, object]:
        """Plain values, fit for JSON."""
        return {
            "trees": self.n_trees, "words": self.n_words, "uas": self.uas, "las": self.las,
            "label_accuracy": self.label_accuracy, "exact": self.exact,
        }  # fmt: skip


def attachment(gold: Sequence[Sequence[Arc]], found: Sequence[Sequence[Arc]]) -> Attachment:
    """Compare trees word by word; every word counts, punctuation included.

    >>> attachment([[(2, "nsubj"), (0, "root")]], [[(2, "obj"), (0, "root")]]).uas
    1.0
    """
    if len(gold) != len(found):
        raise TrellisworkError(f"expected {len(gold)} trees, as many as gold has; got {len(found)}")
    heads = labels = both = words = exact = 0
    for i, (right, given) in enumerate(zip(gold, found, strict=True)):
        if len(right) != len(given):
            raise TrellisworkError(f"expected arcs for the {len(right)} words of tree {i}; got {len(given)}")
        n_both = sum(a == b for a, b in zip(right, given, strict=True))
        heads += sum(a[0] == b[0] for a, b in zip(right, given, strict=True))
        labels += sum(a[1] == b[1] for a, b in zip(right, given, strict=True))
        both, words, exact = both + n_both, words + len(right), exact + (n_both == len(right))
    return Attachment(words, heads, labels, both, len(gold), exact)


# Where the mistakes of a dependency parser are: by label, by the length of arcs, in some of the trees.

# Function words and punctuation, which content-word scores leave out: Zeman et al. (2018), "CoNLL 2018 Shared Task:
# Multilingual Parsing from Raw Text to Universal Dependencies".
FUNCTIONS = frozenset(("aux", "case", "cc", "clf", "cop", "det", "mark", "punct"))
DISTANCES = ("root", "1", "2", "3-6", "7 and more")

Trees = Sequence[Sequence[Arc]]


def universal(label: str) -> str:
    """Return a label without its subtype.

    >>> universal("nsubj:pass")
    'nsubj'
    """
    return label.partition(":")[0]


def is_content(label: str) -> bool:
    """Return whether words with this label are neither function words nor punctuation."""
    return universal(label) not in FUNCTIONS


def arcs_by_label(gold: Trees, found: Trees) -> dict[str, Score]:
    """Return counts of arcs with head and label right, found and gold, of each label; the most frequent first.

    >>> arcs_by_label([[(2, "nsubj"), (0, "root")]], [[(0, "root"), (1, "nsubj")]])["nsubj"]
    Score(correct=0, predicted=1, gold=1)
    """
    n_gold, n_found, n_right = (Counter[str]() for _ in range(3))
    for right, given in zip(gold, found, strict=True):
        n_gold.update(label for _, label in right)
        n_found.update(label for _, label in given)
        n_right.update(a[1] for a, b in zip(right, given, strict=True) if a == b)
    labels = sorted(n_gold | n_found, key=lambda label: (-n_gold[label], label))
    return {label: Score(n_right[label], n_found[label], n_gold[label]) for label in labels}


def content_score(gold: Trees, found: Trees) -> Score:
    """Return counts of the arcs of content words (CLAS), with universal labels: subtypes do not count."""
    pairs = [pair for right, given in zip(gold, found, strict=True) for pair in zip(right, given, strict=True)]
    right = sum(a[0] == b[0] and universal(a[1]) == universal(b[1]) and is_content(a[1]) for a, b in pairs)
    return Score(right, sum(is_content(b[1]) for _, b in pairs), sum(is_content(a[1]) for a, _ in pairs))


def heads_by_distance(gold: Trees, found: Trees) -> dict[str, Score]:
    """Return counts of the words whose head is right, by the distance of the head: precision and recall differ."""
    n_gold, n_found, n_right = (Counter[str]() for _ in range(3))
    for right, given in zip(gold, found, strict=True):
        for m, (a, b) in enumerate(zip(right, given, strict=True), 1):
            n_gold[distance(a[0], m)] += 1
            n_found[distance(b[0], m)] += 1
            n_right[distance(a[0], m)] += a[0] == b[0]
    names = [name for name in DISTANCES if n_gold[name] + n_found[name]]
    return {name: Score(n_right[name], n_found[name], n_gold[name]) for name in names}


def distance(head: int, word: int) -> str:
    """Return the distance of a head from its word, in a few classes."""
    if head == 0:
        return DISTANCES[0]
    n = abs(head - word)
    return str(n) if n < 3 else DISTANCES[3] if n < 7 else DISTANCES[4]


def attachment_where(gold: Trees, found: Trees, wanted: Callable[[Sequence[int]], bool]) -> Attachment:
    """Return the scores of some trees: those whose gold heads are as wanted.

    Args:
        gold: Gold (head, label) of each word of each tree.
        found: Predicted ones, for the same words.
        wanted: A function from the gold heads of a tree to whether it counts.

    Returns:
        The scores of these trees.
    """
    chosen = [(right, given) for right, given in zip(gold, found, strict=True) if wanted([head for head, _ in right])]
    return attachment([right for right, _ in chosen], [given for _, given in chosen])


# Words of a text that was tokenised, aligned with the gold ones: scores of CoNLL 2018.

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

    Args:
        gold: Gold words, with their places in the text.
        found: Predicted words.
        columns: Names of further columns to compare.

    Returns:
        A score for each measure, by name.
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
