"""n-gram language models as acceptors with back-off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.acceptor import Acceptor
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Array
from trelliswork.structures.automata.build import only
from trelliswork.structures.automata.ngram_arrays import (
    ROOT,
    NgramArrays,
    check_smoothing,
    estimate,
    histories,
    states_of,
)
from trelliswork.structures.automata.ngram_pruning import pruned
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.automata.symbols import EPSILON, EPSILON_NAMES, Symbols

MOST_ARCS = 20_000_000
Sentence = str | Sequence[str]


class NGramModel:
    """p(sentence) = Π p(word | history) p(end | history), with histories of up to order - 1 words.

    `arrays` number the words from 0, `symbols` from 1.

    >>> model = NGramModel.train(["abab", "ab"], order=2)
    >>> round(model.score("ab"), 3)
    -1.087

    Args:
        arrays: the n-grams with their log probabilities and back-off weights.
        symbols: the words by number, epsilon first.
        unknown: the word that stands for all others; None if there are no others.
    """  # [S2, n-gram]

    def __init__(self, arrays: NgramArrays, symbols: Symbols, unknown: str | None = None):
        self.arrays, self.symbols, self.unknown = arrays, symbols, unknown

    @classmethod
    def train(
        cls,
        sentences: Iterable[Sentence],
        order: int = 3,
        *,
        method: str = "witten-bell",
        discount: float | None = None,
        symbols: Symbols | Iterable[str] | None = None,
        unknown: str | None = None,
        cutoffs: Sequence[int] = (),
    ) -> NGramModel:
        """Train it from text: sentences are lists of words, or strings of characters.

        Args:
            sentences: lists of words, or strings of characters.
            order: the length of the longest n-grams.
            method: "witten-bell", "kneser-ney" (modified, with three discounts for each length), "absolute" (one for
                each length) or "stupid".
            discount: what is taken off each count, in place of the estimates of "kneser-ney" and "absolute".
            symbols: the vocabulary; None for the words seen.
            unknown: the word that stands for all others; None if there are no others.
            cutoffs: n-grams of length n seen fewer than cutoffs[n - 1] times are left out.

        Returns:
            The trained model.
        """
        check_smoothing(method, order, discount, cutoffs)
        corpus = [list(sentence) for sentence in sentences]
        if not corpus:
            raise ScoreError("an n-gram model needs at least one sentence; got none")
        names = symbols if symbols is not None else (word for sentence in corpus for word in sentence)
        table = Symbols([*names, *([unknown] if unknown is not None else [])])
        numbers = [[_number_of(word, table, unknown) for word in sentence] for sentence in corpus]
        if any(EPSILON in sentence for sentence in numbers):
            raise ScoreError(f"a word must not be one of {EPSILON_NAMES}, the names of the empty symbol; rename it")
        sequences = [np.array(sentence, np.int64) - 1 for sentence in numbers]
        arrays = estimate(sequences, len(table) - 1, order, smoothing=method, discount=discount, cutoffs=cutoffs)
        return cls(arrays, table, unknown)

    def pruned(self, threshold: float) -> NGramModel:
        """Return the model without the n-grams whose loss raises perplexity by a share below `threshold`.

        Stolcke (1998), "Entropy-based pruning of backoff language models".
        """
        return NGramModel(pruned(self.arrays, threshold), self.symbols, self.unknown)

    # --- exact scores ----------------------------------------------------------------------------------------

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.arrays.starts) - 2

    def log_prob(self, word: str | None, history: Sequence[str] = (), *, at_start: bool = False) -> float:
        """Return log p(word | history).

        None is the end of the sentence. `at_start`: the history begins the sentence.

        Args:
            word: the word, or None for the end of the sentence.
            history: the words before it; only the last order - 1 count.
            at_start: whether the history begins the sentence.
        """
        state = self.start if at_start else ROOT
        for each in history:
            state = self.step(state, self._number_of_word(each))[1]
        return self.step(state, EPSILON if word is None else self._number_of_word(word))[0]

    def score(self, sentence: Sentence) -> float:
        """Return log p(sentence), its end included; back-off is taken only where an n-gram is missing."""
        state, total = self.start, 0.0
        for word in sentence:
            log_prob, state = self.step(state, self._number_of_word(word))
            total += log_prob
        return total + self.step(state, EPSILON)[0]

    def perplexity(self, sentences: Iterable[Sentence]) -> float:
        """Return exp of minus the mean log probability of a word or sentence end."""
        pairs = [(self.score(each), len(each) + 1) for each in sentences]
        if not pairs:
            raise ScoreError("perplexity needs at least one sentence; got none")
        scores, sizes = zip(*pairs, strict=True)
        return math.exp(-sum(scores) / sum(sizes))

    def __repr__(self) -> str:
        return f"NGramModel(order={self.order}, words={len(self.symbols) - 1}, histories={len(self._histories)})"

    @property
    def start(self) -> int:
        """The state at the beginning of a sentence. States are nodes of the arrays."""
        return int(self._states[self.arrays.begin])

    def step(self, state: int, word: int) -> tuple[float, int]:
        """Return log p(word | state) and the state after the word, the longest history that is left.

        Words are numbered as in `symbols`; 0 is the end of the sentence.
        """
        number, total = word - 1 if word else self.arrays.end, 0.0
        while (child := self._child(state, number)) is None:
            total += self._backoff(state)
            state = int(self.arrays.suffix[state])
        return total + float(self.arrays.log_prob[child]), int(self._states[child])

    def _child(self, node: int, word: int) -> int | None:
        if node == ROOT:
            return word + 1
        if node >= len(self.arrays.log_backoff):
            return None
        low, high = self.arrays.first[node : node + 2].tolist()
        at = low + int(self.arrays.word[low:high].searchsorted(word))
        return at if at < high and self.arrays.word[at] == word else None

    def _backoff(self, node: int) -> float:
        return float(self.arrays.log_backoff[node]) if node < len(self.arrays.log_backoff) else 0.0

    @cached_property
    def _states(self) -> Array:
        return states_of(self.arrays)

    @cached_property
    def _histories(self) -> Array:
        """The nodes on which the next word depends."""
        return np.flatnonzero(histories(self.arrays))

    def _number_of_word(self, word: str) -> int:
        return _number_of(word, self.symbols, self.unknown)

    # --- as acceptors ----------------------------------------------------------------------------------------

    def to_acceptor(self) -> Acceptor:
        """Return an exact acceptor.

        A state for each history and an arc for each word, |histories| · |words| of them.
        """  # [S2, n-gram]
        n_words, n = len(self.symbols) - 1, len(self._histories)
        if n * n_words > MOST_ARCS:
            raise ScoreError(
                f"{n} histories of {n_words} words need more than {MOST_ARCS} arcs; intersect() with "
                "a machine instead, or take to_epsilon_acceptor() and its approximation"
            )
        scores, targets = np.empty((n, n_words + 1)), np.empty((n, n_words + 1), np.int64)
        for row, node in enumerate(self._histories.tolist()):  # suffixes come first
            if node != ROOT:
                shorter = self._row(self.arrays.suffix[node])
                scores[row] = scores[shorter] + self._backoff(node)
                targets[row] = targets[shorter]
            low, high = self._children(node)
            words = self.arrays.word[low:high]
            children = np.arange(low, high)[words <= n_words]  # BEGIN is not a word
            words = words[words <= n_words]
            scores[row, words], targets[row, words] = self.arrays.log_prob[children], self._row(children)
        source, word = np.divmod(np.arange(n * n_words), max(n_words, 1))
        return self._acceptor(
            source, targets[:, :n_words].ravel(), word + 1, scores[:, :n_words].ravel(), scores[:, n_words]
        )

    def to_epsilon_acceptor(self) -> Acceptor:
        """Return an approximation: back-off as epsilon arcs, free to be taken even where the n-gram is there.

        Strings then get the weight of their backed-off paths as well, so sums are too high, and so is a best path where
        backing off happens to be better. The size is that of the tables. `to_acceptor` and `intersect` are exact.
        """
        arrays, longer = self.arrays, self._histories[1:]
        nodes = np.arange(1, len(arrays.word))
        words, parents = arrays.word[1:], arrays.parent[1:]
        ends = np.full(len(self._histories), -INF)
        at_end = words == arrays.end
        ends[self._row(parents[at_end])] = arrays.log_prob[nodes[at_end]]
        inside = words < arrays.end
        nodes, source = nodes[inside], self._row(parents[inside])
        shorter, back = self._row(arrays.suffix[longer]), np.array([self._backoff(node) for node in longer.tolist()])
        return self._acceptor(
            np.concatenate([source, np.arange(1, len(longer) + 1)]), np.concatenate([self._row(nodes), shorter]),
            np.concatenate([arrays.word[nodes] + 1, np.zeros(len(longer), np.int64)]),
            np.concatenate([arrays.log_prob[nodes], back]), ends,
        )  # fmt: skip

    def _children(self, node: int) -> tuple[int, int]:
        low, high = self.arrays.first[node : node + 2].tolist() if node < len(self.arrays.log_backoff) else (0, 0)
        return low, high

    def _row(self, nodes: Array) -> Array:
        """Return the number of the history that each node leaves."""
        return np.searchsorted(self._histories, self._states[nodes])

    def _acceptor(self, source: Array, target: Array, label: Array, weights: Array, ends: Array) -> Acceptor:
        n = len(self._histories)
        start = int(self._row(np.array(self.arrays.begin)))
        source, target, label = (each.astype(np.int64) for each in (source, target, label))
        scores, final = (torch.from_numpy(each.astype(np.float64)) for each in (weights, ends))
        machine = Machine(source, target, label, label, scores, only(n, start, torch.float64), final)
        return Acceptor.from_machine(machine, self.symbols)

    def intersect(self, acceptor: Acceptor, *, limit: int = MOST_ARCS) -> Acceptor:
        """The strings of an acceptor, weighted by the model as well: exact, back-off only where an n-gram is missing.

        Only the histories that are met are built. The acceptor's weights keep their gradients.
        """
        machine, known = acceptor.machine, self._known(acceptor)
        starts = np.flatnonzero(machine.arrays[1] > -INF).tolist()
        pairs = {(q, self.start): number for number, q in enumerate(starts)}
        queue, arcs, weights = list(pairs), list[tuple[int, int, int]](), list[float]()
        offsets, order = machine.out
        for place, (q, context) in enumerate(queue):  # the queue grows while it is read
            for arc in order[offsets[q] : offsets[q + 1]].tolist():
                word = int(known[machine.input[arc]])
                log_prob, after = (0.0, context) if word == EPSILON else self.step(context, word)
                pair = (int(machine.target[arc]), after)
                if pair not in pairs:
                    pairs[pair] = len(queue)
                    queue.append(pair)
                arcs.append((place, pairs[pair], arc))
                weights.append(log_prob)
            if len(arcs) > limit:
                raise ScoreError(f"the intersection needs more than {limit} arcs; take a smaller machine or model")
        source, target, by = np.array(arcs, np.int64).reshape(-1, 3).T.copy()
        states = torch.tensor([q for q, _ in queue], dtype=torch.long)
        at_start = torch.arange(len(queue)) < len(starts)
        ends = torch.tensor([self.step(context, EPSILON)[0] for _, context in queue], dtype=torch.float64)
        made = Machine(
            source, target, machine.input[by], machine.output[by],
            _plus(machine.weights[torch.from_numpy(by)], torch.tensor(weights, dtype=torch.float64)),
            torch.where(at_start, machine.initial[states], -INF), _plus(machine.final[states], ends),
        )  # fmt: skip
        return Acceptor.from_machine(made, acceptor.symbols, acceptor.backend).connect()

    def _known(self, acceptor: Acceptor) -> Array:
        """Return the model's number of each of the acceptor's symbols."""
        if acceptor.symbols is None:
            raise ScoreError("a language model needs an acceptor with symbols; give it a symbol table")
        return np.array([_number_of(name, self.symbols, self.unknown) for name in acceptor.symbols], np.int64)


def _plus(weights: Tensor, more: Tensor) -> Tensor:
    return (weights.double() + more).to(weights.dtype)


def _number_of(word: str, symbols: Symbols, unknown: str | None) -> int:
    return symbols.number(word if word in symbols or unknown is None else unknown)
