"""An n-gram language model: counted, smoothed, and scored in bulk.

>>> model = NgramLanguageModel.fit(["the cat sat", "the dog sat"], NgramConfig(order=2))
>>> round(model.predict("the cat sat")[0].value, 3)
-2.309
"""  # [S2, n-gram]

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.base import Description
from trelliswork.models.export_folder import model_card
from trelliswork.models.language.base import LanguageModel
from trelliswork.models.language.config import NgramConfig
from trelliswork.models.language.corpus import UNKNOWN, Corpus, TextReading, corpus_of
from trelliswork.models.language.ngram_kernels import Backoff, interleaved, least_nodes, score_tokens
from trelliswork.models.loading import with_kept
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch
from trelliswork.structures.automata.ngram_arrays import NgramArrays, check_smoothing, estimate
from trelliswork.structures.automata.ngram_counts import count_levels
from trelliswork.structures.automata.ngram_pruning import pruned

if TYPE_CHECKING:
    from trelliswork.fst import NGramModel, Symbols

IMPOSSIBLE = -1e6  # how a probability of 0 is stored
ARRAYS = ("word", "first", "suffix", "log_prob", "log_backoff")


class NgramLanguageModel(LanguageModel):
    """A back-off model over words, characters or subwords.

    Args:
        config: settings.
        format: How text is cut into symbols.
        names: Symbols by number.
        counts: How often each occurs in training.
        arrays: N-grams with their log probabilities and back-off weights.
    """

    KIND = "NgramLanguageModel"
    is_automaton = True

    def __init__(self, config: NgramConfig, format: TextReading, names: list[str], counts: Array, arrays: NgramArrays):
        self.config, self.format, self.names, self.counts, self.arrays = config, format, names, counts, arrays
        self.tokeniser = format.tokeniser
        self.metrics = {}

    @classmethod
    def fit(
        cls, text: Corpus | Iterable[str], config: NgramConfig | None = None, *, format: TextReading | None = None
    ) -> Self:
        """Learn from a corpus, or from sentences whose words have white space between them.

        Args:
            text: A corpus, or sentences whose words have white space between them.
            config: Settings; None for their defaults.
            format: How text is cut into symbols; None for words.

        Returns:
            The model.
        """
        config, format = config or NgramConfig(), format or TextReading(pretokenised=True)
        corpus = text if isinstance(text, Corpus) else corpus_of([line.split() for line in text])
        check_smoothing(config.smoothing, config.order, None, config.least_counts)
        n = len(corpus.names)
        levels = count_levels(corpus.tokens, n, config.order, Scratch.at(config.counts_on_disk))
        arrays = estimate((), n, config.order, smoothing=config.smoothing, cutoffs=config.least_counts, levels=levels)
        arrays = pruned(arrays, config.prune) if config.prune else arrays
        return cls(config, format, corpus.names, corpus.counts, arrays.stored())

    @classmethod
    def from_arpa(cls, path: str | Path) -> Self:
        """Read a model from an ARPA file, such as those of KenLM, SRILM and MITLM."""
        model = named("trelliswork.fst:read_arpa")(path)
        names = list(model.symbols)[1:]
        counts = np.ones(len(names), np.int64)  # which a file does not say
        config = NgramConfig(order=min(model.order, 7))
        return cls(config, TextReading(pretokenised=True), names, counts, model.arrays.stored())

    # Answers

    def log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        words: list[str | None] = []
        for sentence in sentences:
            words += sentence
            words.append(None)
        ends = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)])
        try:
            numbers = itemgetter(*words, None)(self._numbers)  # a tuple, as there are two or more
        except KeyError:
            unknown = self._numbers.get(UNKNOWN, -1)
            numbers = [self._numbers.get(word, unknown) for word in (*words, None)]
        flat = self.score(np.array(numbers[:-1], np.int32), ends)
        return [flat[low:high] for low, high in pairwise(ends.tolist())]

    def score(self, words: Array, offsets: Array) -> Array:
        """Return the log probability of each of the numbered words of sentences [offsets[i], offsets[i + 1])."""
        log_probs = np.empty(len(words), np.float32)
        score_tokens(self._backoff, self._least, self.arrays.begin, words, offsets, log_probs)
        return log_probs

    def next_log_probs(self, prefix: Sequence[str]) -> Array:
        model = self.machine
        node = model.start
        for unit in prefix:
            number = self._numbers.get(unit, self._numbers.get(UNKNOWN, -1))
            node = model.step(node, number + 1)[1] if number >= 0 else 0
        return self._after(node)

    def _after(self, node: int) -> Array:
        """Return the log probabilities of all words and of the end after a history."""
        arrays = self.arrays
        if node == 0:
            return arrays.log_prob[1 : arrays.n_words + 2].astype(np.float64)
        shorter = self._after(int(arrays.suffix[node]))
        if node < len(arrays.log_backoff):
            low, high = arrays.first[node : node + 2]
            shorter += arrays.log_backoff[node]
            shorter[arrays.word[low:high]] = arrays.log_prob[low:high]
        return shorter

    @cached_property
    def machine(self) -> NGramModel:
        """Return the same as an `fst.NGramModel`, for acceptors."""
        unknown = UNKNOWN if UNKNOWN in self._numbers else None
        return named("trelliswork.fst:NGramModel")(self.arrays, self.symbols, unknown)

    @cached_property
    def symbols(self) -> Symbols:
        """Return the units as a symbol table."""
        symbols = named("trelliswork.fst:Symbols")(self.names)
        if len(symbols) != len(self.names) + 1:
            problem = "expected units other than <eps> and ε, the names of the empty symbol of automata"
            raise TrellisworkError(f"{problem}; rename them in the text")
        return symbols

    @cached_property
    def _numbers(self) -> dict[str | None, int]:
        """Return the number of each unit; None is the end of a sentence."""
        return {**{name: i for i, name in enumerate(self.names)}, None: self.arrays.end}

    @cached_property
    def _backoff(self) -> Backoff:
        backoff, self.arrays = interleaved(self.arrays)
        return backoff

    @cached_property
    def _least(self) -> Array:
        return least_nodes(self.arrays)

    # What it is

    @property
    def n_parameters(self) -> int:
        return len(self.arrays.log_prob) + len(self.arrays.log_backoff)

    @property
    def size(self) -> str:
        shown = self.format.units.removesuffix("s")
        return f"{count(len(self.arrays.word) - 2, 'n-gram')} of {count(len(self.names), shown)}"

    def describe(self, top: int = 20) -> Description:
        starts, arrays = self.arrays.starts, self.arrays
        sizes = {f"{n}-grams": f"{size:,}" for n, size in enumerate(np.diff(starts)[1:].tolist(), 1)}
        common = {self.names[i]: f"{np.exp(arrays.log_prob[i + 1]):.4f}" for i in range(min(top, len(self.names)))}
        sections = [("n-grams", sizes), *([(f"most frequent {self.format.units}", common)] if top else [])]
        kind = f"n-gram language model over {self.format.units}"
        return Description(kind, {self.format.units: f"{len(self.names):,}"}, {"ngrams": sizes}, asdict(self.config),
                           sections)  # fmt: skip

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        stored = self.arrays._replace(log_prob=np.maximum(self.arrays.log_prob, IMPOSSIBLE))
        config = {"config": self.config.to_dict(), "reading": self.format.stored(), "names": self.names}
        weights = {name: getattr(stored, name) for name in ARRAYS} | {"counts": self.counts.astype(np.int64)}
        texts, kept = dict(extra or {}), self.kept_models()
        write_model(directory, StoredModel(self.KIND, config, weights, self.metrics, model_card(self), texts, kept))

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; what is missing or does not fit is a `ModelError`."""
        stored = read_model(directory, cls.KIND)
        try:
            names = stored.config["names"]
            arrays = _checked(NgramArrays(**{name: stored.weights[name] for name in ARRAYS}, n_words=len(names)))
            if not all(isinstance(name, str) for name in names) or len(stored.weights["counts"]) != len(names):
                raise ValueError("units that are not texts with a count each")
            format = TextReading.from_stored(stored.config["reading"])
            config = NgramConfig.from_dict(stored.config["config"])
            model = cls(config, format, names, stored.weights["counts"], arrays)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, TrellisworkError) as error:
            raise ModelError(f"{directory}: {error}: what is in it does not fit together; copy it again") from error
        model.metrics = dict(stored.metrics)
        model = with_kept(model, directory)
        model.format = replace(format, tokeniser=model.tokeniser)
        return model


def _checked(arrays: NgramArrays) -> NgramArrays:
    """Refuse arrays that scores would be read from outside of, or forever."""
    word, first, suffix, log_prob, log_backoff, n_words = arrays
    n, inner = len(word), len(log_backoff)
    if not len(suffix) == len(log_prob) == n or not inner == len(first) - 1 <= n or n < n_words + 3:
        raise ValueError(f"n-gram arrays of {n}, {len(suffix)}, {len(first)} and {inner} numbers for {n_words} words")
    if (np.diff(first) < 0).any() or first[0] != 1 or first[1] != n_words + 3 or first[-1] != n:
        raise ValueError("children of n-grams that do not follow them")
    if (first[:-1] <= np.arange(inner)).any() or suffix.min() < 0 or (suffix[1:] >= np.arange(1, n)).any():
        raise ValueError("n-grams that are not in the order of their lengths")
    if (word[1 : n_words + 3] != np.arange(n_words + 2)).any() or word[1:].min() < 0 or word.max() > n_words + 1:
        raise ValueError("n-grams of words that are not there")
    if log_prob.max() > 1e-4:
        raise ValueError("probabilities above 1")
    return arrays._replace(log_prob=np.where(log_prob <= IMPOSSIBLE, -np.inf, log_prob).astype(np.float32))
