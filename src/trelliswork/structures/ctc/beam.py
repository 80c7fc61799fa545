"""Prefix beam search with language models: label strings that score high in the frames and in the model together.

    log p(ℓ | x) + weight · log p_model(ℓ) + bonus · |ℓ|

A hypothesis is a label string; its paths are summed, not chosen. With a lexicon only its words may be spelt.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.structures.automata.ngram_arrays import NgramArrays, states_of
from trelliswork.structures.ctc import beam_kernels as kernels
from trelliswork.structures.frontier import path_to

# Words and their spellings, as a tree: which labels may come next, and which word has been spelt.


@dataclass
class Node:
    """The labels spelt since a word began; `word` if they are one."""

    children: dict[int, Node] = field(default_factory=dict)
    word: str | None = None


class Lexicon:
    """Label strings are words, with `separator` between them; without a separator a string is one word.

    >>> lexicon = Lexicon({"at": [1, 2], "a": [1]}, separator=3)
    >>> lexicon.words_of([1, 3, 1, 2])
    ['a', 'at']
    """

    def __init__(self, spellings: Mapping[str, Sequence[int]], separator: int | None = None):
        if not spellings:
            raise ScoreError("a lexicon needs at least one word; got none; give {word: its labels}")
        self.root, self.separator = Node(), separator
        self.labels = {int(label) for labels in spellings.values() for label in labels}
        if separator is not None:
            self.labels.add(separator)
        for word, labels in spellings.items():
            if not labels or separator in labels:
                raise ScoreError(
                    f"a word needs labels, and none may be the separator; got {list(labels)} for {word!r}; "
                    "spell it with other labels or choose another separator"
                )
            node = self.root
            for label in labels:
                node = node.children.setdefault(int(label), Node())
            if node.word is not None:
                raise ScoreError(
                    f"words must differ in their labels; got {node.word!r} and {word!r} with {list(labels)}"
                )
            node.word = word

    def labels_after(self, node: Node) -> Iterator[int]:
        """Yield the labels that may come next."""
        yield from node.children
        if node.word is not None and self.separator is not None:
            yield self.separator

    def words_of(self, labels: Sequence[int]) -> list[str | None]:
        """Return the words of a label string; None for one that is not in the lexicon."""
        words, node = [], self.root if labels else None
        for label in labels:
            if label == self.separator:
                words.append(None if node is None else node.word)
                node = self.root
            else:
                node = None if node is None else node.children.get(label)
        return [*words, None if node is None else node.word] if labels else []


KNOWN = -1  # in place of a label: the string is there already


class Scorer(Protocol):
    """A language model that reads symbols from left to right: labels, or the words of a lexicon."""

    def start(self) -> Any:
        """The state before the first symbol."""

    def score(self, state: Any, symbol: Any) -> tuple[float, Any]:
        """log p(symbol | state), and the state after it."""

    def final(self, state: Any) -> float:
        """log p(end | state)."""


class NgramScorer:
    """n-grams of labels as a model of labels; a beam with no other model runs in a kernel.

    Args:
        arrays: The n-grams, of words with numbers of their own.
        numbers: The number of each label, -1 for one that the n-grams do not have.
    """  # [S4, CTC beam search]

    def __init__(self, arrays: NgramArrays, numbers: Sequence[int]) -> None:
        word, first, suffix, states = (
            np.ascontiguousarray(each, np.int32)
            for each in (arrays.word, arrays.first, arrays.suffix, states_of(arrays))
        )
        log_prob, log_backoff = (np.ascontiguousarray(each, np.float64) for each in arrays[3:5])
        self.n_labels, self.begin = len(numbers), int(states[arrays.begin])
        self.ngrams = kernels.LabelNgrams(
            word, first, suffix, log_prob, log_backoff, states, np.array([*numbers, arrays.end], np.int32)
        )

    def start(self) -> int:
        return self.begin

    def score(self, state: int, symbol: int) -> tuple[float, int]:
        log_p, after = kernels.ngram_step(self.ngrams, state, symbol)
        return log_p, after

    def final(self, state: int) -> float:
        return self.score(state, self.n_labels)[0]


_NUMBERS, _LOGS = np.zeros(0, np.int32), np.zeros(0)
_SILENT = kernels.LabelNgrams(_NUMBERS, _NUMBERS, _NUMBERS, _LOGS, _LOGS, _NUMBERS, _NUMBERS)


@dataclass(frozen=True)
class Models:
    """Additions to the frames' own scores: models that read label by label, or the lexicon's words."""

    scorer: Scorer | None = None
    scorer_weight: float = 1.0
    word_scorer: Scorer | None = None
    word_weight: float = 1.0
    lexicon: Lexicon | None = None
    label_bonus: float = 0.0  # for each label, against the models' liking for short strings

    @property
    def silent(self) -> bool:
        """Return whether the frames decide alone."""
        return self.scorer is None and self.word_scorer is None and self.lexicon is None

    @property
    def in_kernel(self) -> bool:
        """Return whether a kernel has the search: n-grams at most, which take away from scores."""
        if self.word_scorer is not None or self.lexicon is not None:
            return False
        return self.scorer is None or (isinstance(self.scorer, NgramScorer) and self.scorer_weight >= 0)


class ModelOptions(TypedDict, total=False):
    """The fields of `Models`, for those who take them by name."""

    scorer: Scorer | None
    scorer_weight: float
    word_scorer: Scorer | None
    word_weight: float
    lexicon: Lexicon | None
    label_bonus: float


class Size(NamedTuple):
    """Size of the beam at a frame: the `width` best strings, but none that scores `threshold` less than the best."""

    width: int
    threshold: float = math.inf


@dataclass(frozen=True)
class Standing:
    """State of the models after a label string: their scores together, and where each of them is."""

    extra: float
    label_state: Any
    word_state: Any
    node: Node | None


@dataclass(eq=False)
class Hypothesis:
    """A label string: log weights of its paths by their last symbol. One object a string, whether it is kept or not."""

    labels: tuple[int, ...]
    standing: Standing
    in_blank: float = NEG_INF
    in_label: float = NEG_INF
    next_blank: float = NEG_INF
    next_label: float = NEG_INF
    longer: dict[int, Hypothesis] = field(default_factory=dict)  # strings with one more label that were kept once
    offers: dict[int, Standing] = field(default_factory=dict)  # what the models say of one more label

    @property
    def acoustic(self) -> float:
        return log_add(self.in_blank, self.in_label)

    @property
    def score(self) -> float:
        return self.acoustic + self.standing.extra

    def advance(self) -> None:
        """The weights of this frame take the place of those of the frame before."""
        self.in_blank, self.in_label = self.next_blank, self.next_label
        self.next_blank = self.next_label = NEG_INF


Fresh = tuple[float, Hypothesis, int, float]  # score, the string it continues, the label, the weight of its paths


def log_add(x: float, y: float) -> float:
    if x < y:
        x, y = y, x
    return x if y == NEG_INF else x + math.log1p(math.exp(y - x))


def likely_symbols(scores: Array, threshold: float) -> Array:
    """Scores [t, c], -inf for symbols whose log probability in their frame is below the threshold; the best stays."""
    if threshold == NEG_INF:
        return scores
    top = scores.max(1, keepdims=True)
    log_total = top + np.log(np.exp(scores - top).sum(1, keepdims=True))
    likely: Array = np.where((scores >= threshold + log_total) | (scores == top), scores, NEG_INF)
    return likely


def beam_search(scores: Array, blank: int, size: Size, k: int, models: Models) -> list[tuple[list[int], float]]:
    """Return the k best of the label strings kept at each frame, with scores, best first.

    Args:
        scores: scores of the symbols of each frame [t, c].
        blank: number of the blank.
        size: width of the beam, and its thresholds.
        k: how many strings to return.
        models: language models, their weights and the lexicon.

    Returns:
        At most k pairs (labels, score).
    """  # [S4, CTC beam search]
    beam = [Hypothesis((), _at_the_start(models), in_blank=0.0)]
    for frame in scores.tolist():
        labels = [x for x, score in enumerate(frame) if x != blank and score > NEG_INF]
        seen = dict.fromkeys(beam)
        fresh: list[Fresh] = []
        for hypothesis in beam:
            _stay(hypothesis, frame, blank)
            _extend(hypothesis, frame, labels, models, seen, fresh)
        beam = _best(list(seen), fresh, size)
    ended = [(list(each.labels), each.acoustic + _ending(each, models)) for each in beam]
    return _k_best(ended, k)


def fast_beam_search(scores: Array, blank: int, size: Size, k: int, models: Models) -> list[tuple[list[int], float]]:
    """Do what `beam_search` does by kernel, for models that are n-grams of labels at most.

    Args:
        scores: scores of the symbols of each frame [t, c].
        blank: number of the blank.
        size: width of the beam, and its thresholds.
        k: how many strings to return.
        models: n-grams of labels with their weight, and a bonus for each label.

    Returns:
        At most k pairs (labels, score).
    """
    ngrams, start, weight = _SILENT, 0, 0.0
    if isinstance(models.scorer, NgramScorer):
        ngrams, start, weight = models.scorer.ngrams, models.scorer.begin, float(models.scorer_weight)
    tree, nodes, weights = kernels.beam_strings(
        scores, blank, size.width, float(size.threshold), float(models.label_bonus), ngrams, start, weight
    )
    scored = (weights[:, kernels.ANY] + weights[:, kernels.EXTRA]).tolist()
    worst = heapq.nlargest(k, scored)[-1] if scored else NEG_INF  # worse strings need not be spelt
    kept = [(node, score) for node, score in zip(nodes.tolist(), scored, strict=True) if score >= worst]
    parents, labels = (tree[: nodes.max(initial=0) + 1, i].tolist() for i in (kernels.PARENT, kernels.LABEL))
    return _k_best([([labels[each] for each in path_to(node, parents)], score) for node, score in kept], k)


def _k_best(strings: list[tuple[list[int], float]], k: int) -> list[tuple[list[int], float]]:
    possible = [each for each in strings if each[1] > NEG_INF]
    return sorted(possible, key=lambda each: (-each[1], each[0]))[:k]


def _stay(hypothesis: Hypothesis, frame: list[float], blank: int) -> None:
    """The string stays as it is: a blank, or its last label again."""
    hypothesis.next_blank = log_add(hypothesis.next_blank, hypothesis.acoustic + frame[blank])
    if hypothesis.labels:
        repeated = hypothesis.in_label + frame[hypothesis.labels[-1]]
        hypothesis.next_label = log_add(hypothesis.next_label, repeated)


def _extend(
    hypothesis: Hypothesis,
    frame: list[float],
    labels: list[int],
    models: Models,
    seen: dict[Hypothesis, None],
    fresh: list[Fresh],
) -> None:
    """One more label begins at this frame: known strings gain the weight, others are offered."""
    last = hypothesis.labels[-1] if hypothesis.labels else None
    in_blank, anywhere, node = hypothesis.in_blank, hypothesis.acoustic, hypothesis.standing.node
    for label in labels if node is None or models.lexicon is None else models.lexicon.labels_after(node):
        weight = (in_blank if label == last else anywhere) + frame[label]
        if weight == NEG_INF:
            continue
        known = hypothesis.longer.get(label)
        if known is not None:
            known.next_label = log_add(known.next_label, weight)
            seen[known] = None
            continue
        offer = hypothesis.offers.get(label)
        if offer is None:
            offer = hypothesis.offers[label] = _after(hypothesis.standing, label, models)
        fresh.append((weight + offer.extra, hypothesis, label, weight))


def _best(seen: list[Hypothesis], fresh: list[Fresh], size: Size) -> list[Hypothesis]:
    """Return the best strings; only those that are kept become objects, the others lose their paths."""
    for hypothesis in seen:
        hypothesis.advance()
    old: list[Fresh] = [(each.score, each, KNOWN, 0.0) for each in seen]
    ranked = heapq.nlargest(size.width, [*old, *fresh], key=lambda each: each[0])
    kept = []
    for score, hypothesis, label, weight in ranked:
        if score == NEG_INF or score < ranked[0][0] - size.threshold:
            break
        if label != KNOWN:
            labels, standing = (*hypothesis.labels, label), hypothesis.offers[label]
            hypothesis.longer[label] = hypothesis = Hypothesis(labels, standing, in_label=weight)
        kept.append(hypothesis)
    for dropped in set(seen).difference(kept):
        dropped.in_blank = dropped.in_label = NEG_INF
    return kept


# --- what the models say -------------------------------------------------------------------------------------


def _at_the_start(models: Models) -> Standing:
    label_state = None if models.scorer is None else models.scorer.start()
    word_state = None if models.word_scorer is None else models.word_scorer.start()
    return Standing(0.0, label_state, word_state, None if models.lexicon is None else models.lexicon.root)


def _after(standing: Standing, label: int, models: Models) -> Standing:
    """Return what the models say of one more label; -inf if one forbids it."""
    extra, label_state, word_state = standing.extra + models.label_bonus, standing.label_state, standing.word_state
    node = None
    if models.scorer is not None:
        log_p, label_state = models.scorer.score(label_state, label)
        extra += models.scorer_weight * log_p
    if models.lexicon is not None and standing.node is not None:
        if label == models.lexicon.separator:
            log_p, word_state = _word_ends(standing, models)
            extra, node = extra + log_p, models.lexicon.root
        else:
            node = standing.node.children[label]
    return Standing(extra, label_state, word_state, node)


def _word_ends(standing: Standing, models: Models) -> tuple[float, Any]:
    """Return the word model's score of the word that is spelt out, and its state behind it."""
    if models.word_scorer is None or standing.node is None:
        return 0.0, standing.word_state
    log_p, state = models.word_scorer.score(standing.word_state, standing.node.word)
    return models.word_weight * log_p, state


def _ending(hypothesis: Hypothesis, models: Models) -> float:
    """Return what the models say of the whole string; -inf if it stops within a word."""
    standing = hypothesis.standing
    extra, word_state = standing.extra, standing.word_state
    if standing.node is not None and hypothesis.labels:
        if standing.node.word is None:
            return NEG_INF
        log_p, word_state = _word_ends(standing, models)
        extra += log_p
    if models.word_scorer is not None:
        extra += models.word_weight * models.word_scorer.final(word_state)
    if models.scorer is not None:
        extra += models.scorer_weight * models.scorer.final(standing.label_state)
    return extra
