"""Word vectors learned from text: nearest words, similarities, and vectors of words that were never seen.

>>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 30
>>> model = WordVectorModel.fit(text, VectorConfig(dim=8, epochs=2), least_count=1)
>>> model.vectors(["cat", "cats"]).shape
(2, 8)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from trelliswork.data import Sentence, read_vectors
from trelliswork.errors import DataError, ModelError, OutputError, TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Answer, Description, Model, Readable, Report, Scores
from trelliswork.models.export_folder import model_card
from trelliswork.models.language.config import WORD_PAIRS, VectorConfig
from trelliswork.models.language.corpus import Corpus, TextReading, corpus_of
from trelliswork.models.language.vector_learning import Text, WordRows, buckets_of, learn_skip_gram, learn_sppmi
from trelliswork.models.loading import with_kept
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.reading import name_of, numbered_lines
from trelliswork.runtime.arrays import Array
from trelliswork.training.progress import Progress
from trelliswork.writing import write_packed

ARRAYS = ("matrix", "buckets", "counts")
COMPARED_AT_A_TIME = 256  # words with all words


class WordVectorModel(Model):
    """A vector for each word; unseen words have the mean of the vectors of their character n-grams.

    Args:
        config: The settings.
        format: How text is cut into words.
        names: Words with a vector of their own, by number.
        counts: Occurrences of each in training, int64 [words].
        rows: Vectors of the words and of buckets of n-grams, float32 [words + buckets, dim].
    """

    KIND, learns_from, next_options = "WordVectorModel", WORD_PAIRS, "--top-k 10"
    format: TextReading

    def __init__(self, config: VectorConfig, format: TextReading, names: list[str], counts: Array, rows: WordRows):
        self.config, self.format, self.names, self.counts, self.rows = config, format, names, counts, rows
        self.tokeniser = format.tokeniser
        self.metrics = {}

    @classmethod
    def fit(
        cls,
        text: Corpus | Iterable[str],
        config: VectorConfig | None = None,
        *,
        least_count: int = 5,
        seed: int = 0,
        threads: int = 1,
        progress: Progress | None = None,
        format: TextReading | None = None,
    ) -> Self:
        """Learn from a corpus of words that are spelt by `spelt`, or from sentences with white space between words.

        Args:
            text: What is learned from.
            config: The settings.
            least_count: Words of plain sentences that are rarer have no vector.
            seed: The same seed gives the same vectors, on one thread.
            threads: Number of threads of skip-gram.
            progress: Receives a report of each epoch.
            format: How text is read.
        """
        config, format = config or VectorConfig(), format or TextReading(pretokenised=True)
        shown = progress or Progress()
        if isinstance(text, Corpus):
            corpus = text
        else:
            lines: Iterable[str] = text
            corpus = corpus_of([[spelt(word, config) for word in line.split()] for line in lines], least_count)
        sentences, names = Text.of(corpus), corpus.names[:-1]
        if config.method == "sppmi":
            rows = learn_sppmi(sentences, config, progress=shown)
        else:
            rows = learn_skip_gram(sentences, names, config, seed=seed, threads=threads, progress=shown)
        return cls(config, format, names, sentences.counts, rows)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read vectors of other programs from a text file, such as those of GloVe; unseen words have none."""
        read = read_vectors(path)
        rows = WordRows(read.matrix, np.empty(0, np.int64))
        config = VectorConfig(method="sppmi", dim=read.dim)
        counts = np.ones(len(read.words), np.int64)  # which a file does not say
        return cls(config, TextReading(pretokenised=True), list(read.words), counts, rows)

    # Answers

    def vectors(self, words: Sequence[str]) -> Array:
        """Return the vector of each word, float32 [words, dim]; zeros for a word of which nothing is known."""
        spellings = [spelt(word, self.config) for word in words]
        numbers = np.array([self._numbers.get(word, -1) for word in spellings], np.int64)
        result = np.zeros((len(words), self.rows.matrix.shape[1]), np.float32)
        result[numbers >= 0] = self.matrix[numbers[numbers >= 0]]
        if len(self.rows.buckets):
            unseen = np.flatnonzero(numbers < 0)
            result[unseen] = self._composed([spellings[i] for i in unseen.tolist()])
        return result

    def nearest(self, words: Sequence[str], k: int = 10) -> list[list[tuple[str, float]]]:
        """Return for each word the k other words with the largest cosine; nothing for a word without a vector."""
        answers, spellings = [], [spelt(word, self.config) for word in words]
        for first in range(0, len(words), COMPARED_AT_A_TIME):
            group = spellings[first : first + COMPARED_AT_A_TIME]
            vectors = _unit(self.vectors(group))
            for word, vector, cosines in zip(group, vectors, vectors @ self._directions.T, strict=True):
                if word in self._numbers:
                    cosines[self._numbers[word]] = -np.inf
                best = np.argsort(-cosines, kind="stable")[: k if vector.any() else 0].tolist()
                answers.append([(self.names[i], float(cosines[i])) for i in best if cosines[i] > -np.inf])
        return answers

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> Array:
        """Return the cosine of each pair of words; NaN where one of them has no vector."""
        first, second = (_unit(self.vectors(side)) for side in ([a for a, _ in pairs], [b for _, b in pairs]))
        cosines = (first * second).sum(1)
        return np.where(first.any(1) & second.any(1), cosines, np.nan)

    def predict(
        self, inputs: Readable, *, top_k: int = 1, pins: object = None, confidence: bool = True
    ) -> list[Answer]:
        """Return for each sentence the nearest `top_k` words of each of its words, with their cosines."""
        if pins is not None:
            raise TrellisworkError("word vectors answer with nearest words, and have nothing to pin; leave pins out")
        return [Answer(self.nearest(each.words, max(top_k, 1)), None, each.words) for each in self.sentences_of(inputs)]

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Return the rank correlation of cosines with human similarities, for each file of word pairs.

        `covered` are the pairs of two words of the vocabulary, `answered` those of two words that have a vector, unseen
        ones with known n-grams included. `score` is the mean over files of the correlation for answered pairs.
        """
        if not gold:
            raise TrellisworkError("expected word pairs with similarities, got none")
        files: dict[str, list[Sentence]] = {}
        for pair in gold:
            files.setdefault(pair.file, []).append(pair)
        every = {name or "pairs": self._correlation(pairs) for name, pairs in files.items()}
        means = [each["spearman"] for each in every.values()]
        return {"metric": "Spearman's rank correlation", "score": float(np.mean(means)), "by_file": every}

    def _correlation(self, pairs: Sequence[Sentence]) -> dict[str, float | int]:
        human = np.array([similarity_of(pair) for pair in pairs])
        cosines = self.similarities([(pair.words[0], pair.words[1]) for pair in pairs])
        known = np.array([all(self.knows(word) for word in pair.words) for pair in pairs])
        answered = ~np.isnan(cosines)
        return {
            "pairs": len(pairs), "covered": int(known.sum()), "answered": int(answered.sum()),
            "spearman": spearman(cosines[answered], human[answered]),
            "spearman_of_covered": spearman(cosines[known & answered], human[known & answered]),
        }  # fmt: skip

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return the correlations, for people."""
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and word vectors have none; leave it out")
        scores = self.evaluate(gold)
        lines = [f"{'file':<28}{'pairs':>8}{'covered':>9}{'Spearman':>10}{'answered':>10}{'Spearman':>10}"]
        for name, each in scores["by_file"].items():
            numbers = f"{each['pairs']:>8,}{each['covered']:>9,}{each['spearman_of_covered']:>10.3f}"
            lines.append(f"{Path(name).name:<28}{numbers}{each['answered']:>10,}{each['spearman']:>10.3f}")
        return Report("\n".join(lines), dict(scores))

    def knows(self, word: str) -> bool:
        return spelt(word, self.config) in self._numbers

    # Vectors

    @cached_property
    def matrix(self) -> Array:
        """Return the vectors of the known words, float32 [words, dim]."""
        if not len(self.rows.buckets):
            return self.rows.matrix
        own = self.rows.matrix[: len(self.names)]
        return self._composed(self.names, own)

    def _composed(self, words: Sequence[str], own: Array | None = None) -> Array:
        """Return the mean of the vectors of n-grams, and of the words' own where they have one."""  # [S4.463-464]
        indptr, buckets = buckets_of(words, self.config)
        place = np.minimum(np.searchsorted(self.rows.buckets, buckets), len(self.rows.buckets) - 1)
        there = self.rows.buckets[place] == buckets
        word = np.repeat(np.arange(len(words)), np.diff(indptr))[there]
        n = np.bincount(word, minlength=len(words)) + (own is not None)
        totals = np.zeros((len(words), self.rows.matrix.shape[1]), np.float32) if own is None else own.copy()
        bounds = np.searchsorted(word, np.arange(0, len(words) + COMPARED_AT_A_TIME, COMPARED_AT_A_TIME))
        rows = place[there] + len(self.names)
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            np.add.at(totals, word[low:high], self.rows.matrix[rows[low:high]])
        return totals / np.maximum(n, 1).astype(np.float32)[:, None]

    @cached_property
    def _directions(self) -> Array:
        return _unit(self.matrix)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    # What it is

    @property
    def n_parameters(self) -> int:
        return int(self.rows.matrix.size)

    @property
    def size(self) -> str:
        ngrams = f" and {count(len(self.rows.buckets), 'n-gram')}" if len(self.rows.buckets) else ""
        return f"vectors of {count(len(self.names), 'word')}{ngrams}, {self.rows.matrix.shape[1]} numbers each"

    def describe(self, top: int = 20) -> Description:
        frequent = dict(zip(self.names[:top], (f"{n:,}" for n in self.counts[:top].tolist()), strict=False))
        sections = [("most frequent words", frequent)] if top else []
        return Description("word vectors", {"words": f"{len(self.names):,}"}, {"words": len(self.names)},
                           self.config.to_dict(), sections)  # fmt: skip

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        config = {"config": self.config.to_dict(), "pretokenised": self.format.pretokenised, "names": self.names}
        weights = dict(zip(ARRAYS, (*self.rows, np.asarray(self.counts, np.int64)), strict=True))
        texts, kept = dict(extra or {}), self.kept_models()
        write_model(directory, StoredModel(self.KIND, config, weights, self.metrics, model_card(self), texts, kept))

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; what is missing or does not fit is a `ModelError`."""
        stored = read_model(directory, cls.KIND)
        try:
            names, (matrix, buckets, counts) = stored.config["names"], (stored.weights[each] for each in ARRAYS)
            if not all(isinstance(name, str) for name in names) or not names or len(counts) != len(names):
                raise ValueError("words that are not texts with a count each")
            if matrix.ndim != 2 or len(matrix) != len(names) + len(buckets) or (np.diff(buckets) <= 0).any():
                raise ValueError(f"{matrix.shape} numbers for {len(names)} words and {len(buckets)} n-grams")
            config = VectorConfig.from_dict(stored.config["config"])
            format = TextReading(pretokenised=bool(stored.config["pretokenised"]))
            model = cls(config, format, names, counts, WordRows(matrix, buckets))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, TrellisworkError) as error:
            raise ModelError(f"{directory}: {error}: what is in it does not fit together; copy it again") from error
        model.metrics = dict(stored.metrics)
        model = with_kept(model, directory)
        model.format = TextReading(pretokenised=format.pretokenised, tokeniser=model.tokeniser)
        return model


def spelt(word: str, config: VectorConfig) -> str:
    """Return a word as vectors are learned for it: composed (NFC), and in lower case if that is set."""
    word = unicodedata.normalize("NFC", word)
    return word.lower() if config.lower else word


def spearman(first: Array, second: Array) -> float:
    """Return the correlation of ranks, equal values having the mean of theirs; 0 where there is none.

    >>> spearman(np.array([1.0, 2.0, 2.0, 9.0]), np.array([10.0, 20.0, 30.0, 40.0]))
    0.948...
    """
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    ranks = []
    for values in (first, second):
        _, place, n = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(n) - (n - 1) / 2)[place])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _unit(vectors: Array) -> Array:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)


# Files


def vector_lines(words: Sequence[str], matrix: Array) -> Iterator[str]:
    """Yield a word and its numbers for each line of a file of vectors."""
    for word, vector in zip(words, matrix, strict=True):
        yield f"{word} {' '.join(f'{each:.5g}' for each in vector.tolist())}\n"


def export_vectors(model: Model, path: str | Path, *, force: bool = False) -> None:
    """Write the vectors of all words as word2vec and fastText do; packed, if the name ends with .gz.

    Args:
        model: Word vectors; another model is an error.
        path: The file to write.
        force: Whether a file that is there already is replaced.
    """
    if not isinstance(model, WordVectorModel):
        raise ModelError(f"expected word vectors to write as a text file, got a {type(model).__name__}")
    if Path(path).exists() and not force:
        raise OutputError(f"{path}: there is a file already; name another, or replace it with --force")
    with write_packed(path) as file:
        file.write(f"{len(model.names)} {model.matrix.shape[1]}\n")
        file.writelines(vector_lines(model.names, model.matrix))


def read_word_pairs(path: str) -> Iterator[Sentence]:
    """Yield pairs of words with a similarity as `target`: two words and a number on each line, tabs or blanks between.

    A first line whose third field is no number names the columns.
    """
    file = name_of(path)
    for number, line in numbered_lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (number == 1 and len(fields) >= 3 and not _is_similarity(fields[2])):
            continue
        if len(fields) < 3 or not _is_similarity(fields[2]):
            raise DataError(file, f"expected two words and their similarity, got {line[:40]!r}; put tabs between them",
                            line=number)  # fmt: skip
        words = (fields[0].strip(), fields[1].strip())
        yield Sentence(words, line=number, lines=(number, number), file=file, target=(fields[2].strip(),))


def similarity_of(pair: Sentence) -> float:
    """Return the similarity that people see in a pair of words."""
    return float((pair.target or ("nan",))[0])


def _is_similarity(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
