"""n-gram language models as acceptors with back-off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.acceptor import Acceptor
from trelliswork.errors import ScoreError
from trelliswork.runtime.bridge import Array
from trelliswork.structures.automata import ngrams
from trelliswork.structures.automata.build import only
from trelliswork.structures.automata.ngrams import BEGIN, END, METHODS, History, Tables
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.automata.symbols import EPSILON, EPSILON_NAMES, Symbols

INF = float("inf")
MOST_ARCS = 20_000_000
Sentence = str | Sequence[str]


class NGramModel:
    """p(sentence) = Π p(word | history) p(end | history), with histories of up to order - 1 words.

    >>> model = NGramModel.train(["abab", "ab"], order=2)
    >>> round(model.score("ab"), 3)
    -1.087
    """  # [S2, n-gram]

    def __init__(self, tables: Tables, symbols: Symbols, order: int, unknown: str | None = None):
        self.tables, self.symbols, self.order, self.unknown = tables, symbols, order, unknown
        self.histories: list[History] = sorted(tables.log_probs, key=lambda history: (len(history), history))
        self._number = {history: number for number, history in enumerate(self.histories)}

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
    ) -> NGramModel:
        """From text: sentences are lists of words, or strings of characters.

        `method` is "witten-bell", "absolute" or "kneser-ney" (the last two with one `discount`, or an estimated one for
        each length). `symbols` is the vocabulary, else the words seen; `unknown` stands for all others.
        """
        if method not in METHODS or not isinstance(order, int) or order < 1:
            raise ScoreError(f"method must be one of {METHODS} and order at least 1; got {method!r} and {order}")
        corpus = [list(sentence) for sentence in sentences]
        if not corpus:
            raise ScoreError("an n-gram model needs at least one sentence; got none")
        names = symbols if symbols is not None else (word for sentence in corpus for word in sentence)
        table = Symbols([*names, *([unknown] if unknown is not None else [])])
        numbers = [[_number_of(word, table, unknown) for word in sentence] for sentence in corpus]
        if any(EPSILON in sentence for sentence in numbers):
            raise ScoreError(f"a word must not be one of {EPSILON_NAMES}, the names of the empty symbol; rename it")
        counts = ngrams.count_ngrams(numbers, order)
        tables = ngrams.smoothed(counts, range(1, len(table)), order, method, discount)
        return cls(tables, table, order, unknown)

    # --- exact scores ----------------------------------------------------------------------------------------

    def log_prob(self, word: str | None, history: Sequence[str] = (), *, at_start: bool = False) -> float:
        """log p(word | history); None is the end of the sentence. `at_start`: the history begins the sentence."""
        words = [_number_of(each, self.symbols, self.unknown) for each in history]
        context = self._context((BEGIN, *words) if at_start else tuple(words))
        return ngrams.log_prob(self.tables, context, END if word is None else self._number_of_word(word))

    def score(self, sentence: Sentence) -> float:
        """log p(sentence), its end included; back-off is taken only where an n-gram is missing."""
        state, total = self.start, 0.0
        for word in sentence:
            total += ngrams.log_prob(self.tables, self.histories[state], number := self._number_of_word(word))
            state = self.next_state(state, number)
        return total + ngrams.log_prob(self.tables, self.histories[state], END)

    def perplexity(self, sentences: Iterable[Sentence]) -> float:
        """exp of minus the mean log probability of a word or sentence end."""
        found = [(self.score(each), len(each) + 1) for each in sentences]
        if not found:
            raise ScoreError("perplexity needs at least one sentence; got none")
        scores, sizes = zip(*found, strict=True)
        return math.exp(-sum(scores) / sum(sizes))

    def __repr__(self) -> str:
        return f"NGramModel(order={self.order}, words={len(self.symbols) - 1}, histories={len(self.histories)})"

    @property
    def start(self) -> int:
        """The number of the history at the beginning of a sentence."""
        return self._number[self._context((BEGIN,))]

    def next_state(self, state: int, word: int) -> int:
        """The longest history that is left after one more word."""
        return self._number[self._context((*self.histories[state], word))]

    def _context(self, words: History) -> History:
        words = words[max(0, len(words) - self.order + 1) :]
        while words not in self._number:
            words = words[1:]
        return words

    def _number_of_word(self, word: str) -> int:
        return _number_of(word, self.symbols, self.unknown)

    # --- as acceptors ----------------------------------------------------------------------------------------

    def to_acceptor(self) -> Acceptor:
        """Exact: a state for each history and an arc for each word, |histories| · |words| of them."""  # [S2, n-gram]
        n_words = len(self.symbols) - 1
        if len(self.histories) * n_words > MOST_ARCS:
            raise ScoreError(
                f"{len(self.histories)} histories of {n_words} words need more than {MOST_ARCS} arcs; intersect() with "
                "a machine instead, or take to_epsilon_acceptor() and its approximation"
            )
        arcs = [(q, self.next_state(q, w), w) for q in range(len(self.histories)) for w in range(1, n_words + 1)]
        return self._acceptor(arcs, [self._log_prob(q, w) for q, _, w in arcs], lambda q: self._log_prob(q, END))

    def to_epsilon_acceptor(self) -> Acceptor:
        """An approximation: back-off as epsilon arcs, free to be taken even where the n-gram is there.

        Strings then get the weight of their backed-off paths as well, so sums are too high, and so is a best path where
        backing off happens to be better. The size is that of the tables. `to_acceptor` and `intersect` are exact.
        """
        arcs, weights = [], []
        for q, history in enumerate(self.histories):
            for word, log_prob in self.tables.log_probs[history].items():
                if word != END:
                    arcs.append((q, self.next_state(q, word), word))
                    weights.append(log_prob)
            if history:
                arcs.append((q, self._number[self._context(history[1:])], 0))
                weights.append(self.tables.log_backoff.get(history, 0.0))
        ends = self.tables.log_probs
        return self._acceptor(arcs, weights, lambda q: ends[self.histories[q]].get(END, -INF))

    def _acceptor(
        self, arcs: list[tuple[int, int, int]], weights: list[float], end: Callable[[int], float]
    ) -> Acceptor:
        source, target, label = np.array(arcs, np.int64).reshape(-1, 3).T.copy()
        n = len(self.histories)
        final = torch.tensor([end(q) for q in range(n)], dtype=torch.float64)
        scores = torch.tensor(weights, dtype=torch.float64)
        machine = Machine(source, target, label, label, scores, only(n, self.start, torch.float64), final)
        return Acceptor.from_machine(machine, self.symbols)

    def intersect(self, acceptor: Acceptor) -> Acceptor:
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
                silent = word == 0
                pair = (int(machine.target[arc]), context if silent else self.next_state(context, word))
                if pair not in pairs:
                    pairs[pair] = len(queue)
                    queue.append(pair)
                arcs.append((place, pairs[pair], arc))
                weights.append(0.0 if silent else self._log_prob(context, word))
        source, target, by = np.array(arcs, np.int64).reshape(-1, 3).T.copy()
        states = torch.tensor([q for q, _ in queue], dtype=torch.long)
        at_start = torch.arange(len(queue)) < len(starts)
        ends = torch.tensor([self._log_prob(context, END) for _, context in queue], dtype=torch.float64)
        made = Machine(
            source, target, machine.input[by], machine.output[by],
            _plus(machine.weights[torch.from_numpy(by)], torch.tensor(weights, dtype=torch.float64)),
            torch.where(at_start, machine.initial[states], -INF), _plus(machine.final[states], ends),
        )  # fmt: skip
        return Acceptor.from_machine(made, acceptor.symbols, acceptor.backend).connect()

    def _known(self, acceptor: Acceptor) -> Array:
        """The model's number of each of the acceptor's symbols."""
        if acceptor.symbols is None:
            raise ScoreError("a language model needs an acceptor with symbols; give it a symbol table")
        return np.array([_number_of(name, self.symbols, self.unknown) for name in acceptor.symbols], np.int64)

    def _log_prob(self, state: int, word: int) -> float:
        return ngrams.log_prob(self.tables, self.histories[state], word)


def _plus(weights: Tensor, more: Tensor) -> Tensor:
    return (weights.double() + more).to(weights.dtype)


def _number_of(word: str, symbols: Symbols, unknown: str | None) -> int:
    return symbols.number(word if word in symbols or unknown is None else unknown)
