"""What every tagger answers, whatever its scores come from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np

from trelliswork.data import Sentence, token_budget_batches
from trelliswork.errors import DataError, ModelError, TrellisworkError, is_out_of_memory
from trelliswork.models.base import Alternative, Answer, Model, PartProbability
from trelliswork.models.loading import load
from trelliswork.models.taggers.evaluation import evaluate_tags
from trelliswork.models.taggers.explanation import (
    Analysis,
    Confidences,
    SpanConfidence,
    analyses_of,
    confidences_of,
    tags_of_best,
    token_confidences,
)
from trelliswork.models.taggers.labels import Labels, tags_of_gold
from trelliswork.models.taggers.span_choice import check_threshold, choose_spans, likely_spans
from trelliswork.tags.schemes import tags_of

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor

    from trelliswork.data.attributes.function import Function
    from trelliswork.distributions.grouped_chain import TagDistribution

TAGGING_BUDGET = 4096  # tokens, padding included, that are tagged at a time

Pins = Mapping[int, str]  # token, counted from 0 -> its tag
Result = TypeVar("Result")


class SentenceTagger(Model):
    """Tags, alternatives and confidences of sentences; a subclass answers for a batch of them."""

    labels: Labels
    metrics: dict[str, Any]

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many columns beside the words it reads."""

    def evaluating(self) -> AbstractContextManager[Any]:
        """Inside, answers are given and nothing is learned."""
        return nullcontext()

    @abstractmethod
    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        """The tags of the most probable analysis of each sentence."""

    @abstractmethod
    def _analyses(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int) -> list[list[Analysis]]: ...

    @abstractmethod
    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]: ...

    @abstractmethod
    def _likely_spans(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float
    ) -> list[list[SpanConfidence]]:
        """All spans with a probability of `threshold` or more; they may overlap."""

    @abstractmethod
    def _token_confidences(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, tags: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """The probability of each of some tags."""

    @classmethod
    def from_pretrained(cls, directory: str | Path, *, features: Function | str | None = None) -> SentenceTagger:
        """The tagger of sentences in a model folder, whichever kind it is; `load_tagger` loads all others too.

        >>> Tagger.from_pretrained("chunker").tag("Ann sings .")     # doctest: +SKIP
        ['B-NP', 'B-VP', 'O']
        """
        found = load(directory, features=features)
        if not isinstance(found, SentenceTagger):
            kind = type(found).__name__
            problem = f"expected a tagger that gives each word one tag, got a {kind}"
            raise ModelError(f"{directory}: {problem}; use {kind}.load or load_tagger")
        return found

    @overload
    def tag(
        self,
        sentences: str | Sequence[str] | Sentence,
        pins: Sequence[Pins] | None = None,
        *,
        threshold: float | None = None,
    ) -> list[str]: ...

    @overload
    def tag(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None, *, threshold: float | None = None
    ) -> list[list[str]]: ...

    def tag(
        self,
        sentences: str | Sentence | Sequence[str] | Sequence[Sentence],
        pins: Sequence[Pins] | None = None,
        *,
        threshold: float | None = None,
    ) -> list[str] | list[list[str]]:
        """The best tags of each sentence, in the scheme of the training data; `pins` as in `distribution`.

        One sentence, as text with white space between its tokens or as a list of words, gives one list of tags. With a
        `threshold`, the tags are those of the spans that are as likely (see `span_choice`), however unlikely the whole.

        >>> tagger.tag([Sentence(("Ann", "sings"))]), tagger.tag("Ann sings")       # doctest: +SKIP
        ([['B-NP', 'B-VP']], ['B-NP', 'B-VP'])
        """
        alone = one_sentence(sentences)
        if alone is not None:
            return self.tag([alone], pins, threshold=threshold)[0]
        given = cast("Sequence[Sentence]", sentences)
        if threshold is None:
            return self._tag_all(given, pins)
        return [
            self._spelled(spans, len(sentence))
            for sentence, spans in zip(given, self.spans(given, threshold, pins), strict=True)
        ]

    def _tag_all(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        return self._in_batches(sentences, pins, self._best_tags, empty=list)

    def predict(
        self,
        inputs: str | Sentence | Sequence[str] | Sequence[Sentence],
        *,
        top_k: int = 1,
        pins: Sequence[Pins] | None = None,
        threshold: float | None = None,
    ) -> list[Answer]:
        """The best tags of each sentence with exact probabilities, and the `top_k` best; the rest as for `tag`."""
        alone = one_sentence(inputs)
        sentences = cast("Sequence[Sentence]", inputs) if alone is None else [alone]
        found = self.confidences(sentences, pins, threshold=threshold)
        best = self.analyses(sentences, top_k, pins)
        return [_answer(*each) for each in zip(sentences, found, best, strict=True)]

    def analyses(
        self, sentences: Sequence[Sentence], top_k: int = 3, pins: Sequence[Pins] | None = None
    ) -> list[list[Analysis]]:
        """The `top_k` most probable tag sequences of each sentence, best first, with exact probabilities."""
        if top_k < 1:
            raise TrellisworkError(f"top_k must be at least 1; got {top_k}")
        return self._in_batches(
            sentences,
            pins,
            lambda batch, pins: self._analyses(batch, pins, top_k),
            empty=lambda: [Analysis([], 1.0)],
        )

    def confidences(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None, *, threshold: float | None = None
    ) -> list[Confidences]:
        """The best tags with the exact probability of each token's tag and of each predicted span.

        With a `threshold`, the tags are those that `tag` gives for it.
        """
        if threshold is None:
            return self._in_batches(sentences, pins, self._confidences, empty=lambda: Confidences([], [], []))
        check_threshold(threshold, self.labels)
        return self._in_batches(
            sentences,
            pins,
            lambda batch, pins: self._confidences_above(batch, pins, threshold),
            empty=lambda: Confidences([], [], []),
        )

    def _confidences_above(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float
    ) -> list[Confidences]:
        likely = self._likely_spans(batch, pins, threshold)
        chosen = [choose_spans(row, len(each), threshold) for row, each in zip(likely, batch, strict=True)]
        tags = [self._spelled(spans, len(each)) for spans, each in zip(chosen, batch, strict=True)]
        tokens = self._token_confidences(batch, pins, tags)
        return [Confidences(*each) for each in zip(tags, tokens, chosen, strict=True)]

    def _spelled(self, spans: Sequence[SpanConfidence], n: int) -> list[str]:
        return tags_of([(span.start, span.end, span.label) for span in spans], n, self.labels.data_scheme)

    def spans(
        self, sentences: Sequence[Sentence], threshold: float = 0.2, pins: Sequence[Pins] | None = None
    ) -> list[list[SpanConfidence]]:
        """The spans of each sentence that are as likely as `threshold`, none overlapping, with exact probabilities."""
        found = self.likely_spans(sentences, threshold, pins)
        return [choose_spans(row, len(each), threshold) for row, each in zip(found, sentences, strict=True)]

    def likely_spans(
        self, sentences: Sequence[Sentence], threshold: float = 0.2, pins: Sequence[Pins] | None = None
    ) -> list[list[SpanConfidence]]:
        """All spans with a probability of `threshold` or more; they may overlap."""
        check_threshold(threshold, self.labels)
        return self._in_batches(
            sentences, pins, lambda batch, pins: self._likely_spans(batch, pins, threshold), empty=list
        )

    def evaluate(self, sentences: Sequence[Sentence], *, threshold: float | None = None) -> dict[str, Any]:
        """Scores on gold data (see `evaluate_tags`); tags never seen in training count as mistakes."""
        gold = [tags_of_gold(sentence) for sentence in sentences]
        found = self.tag(sentences) if threshold is None else self.tag(sentences, threshold=threshold)
        return evaluate_tags(gold, found, self.labels.data_scheme)

    def _in_batches(
        self,
        sentences: Sequence[Sentence],
        pins: Sequence[Pins] | None,
        answer: Callable[[Sequence[Sentence], Sequence[Pins] | None], list[Result]],
        *,
        empty: Callable[[], Result],
    ) -> list[Result]:
        """Apply `answer` to batches of like length; results in the order given, `empty()` for no words."""
        if pins is not None and len(pins) != len(sentences):
            raise TrellisworkError(f"expected pins for {len(sentences)} sentences; got {len(pins)}; use {{}} for none")
        results = [empty() for _ in sentences]
        filled = [i for i, sentence in enumerate(sentences) if len(sentence)]
        lengths = [len(sentences[i]) for i in filled]
        with self.evaluating():
            for batch in token_budget_batches(lengths, TAGGING_BUDGET, shuffle=False):
                chosen = [filled[i] for i in batch]
                pinned = None if pins is None else [pins[i] for i in chosen]
                for i, result in zip(chosen, _sparing(answer, [sentences[i] for i in chosen], pinned), strict=True):
                    results[i] = result
        return results


def _sparing(
    answer: Callable[[Sequence[Sentence], Sequence[Pins] | None], list[Result]],
    batch: Sequence[Sentence],
    pins: Sequence[Pins] | None,
) -> list[Result]:
    """The answers of a batch; one that does not fit into memory is answered by halves, down to one sentence."""
    try:
        return answer(batch, pins)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            problem = f"expected a sentence that fits into memory, got one of {len(batch[0])} tokens"
            fix = "split it, or allow more memory"
            raise DataError(batch[0].file or "sentence", f"{problem}; {fix}", line=batch[0].line) from error
    half = len(batch) // 2
    first, second = (None, None) if pins is None else (pins[:half], pins[half:])
    return _sparing(answer, batch[:half], first) + _sparing(answer, batch[half:], second)


def _answer(sentence: Sentence, found: Confidences, best: Sequence[Analysis]) -> Answer:
    known = {tuple(analysis.tags): analysis.probability for analysis in reversed(best)}
    tokens = enumerate(zip(found.tags, found.tokens, strict=True))
    return Answer(
        found.tags,
        known.get(tuple(found.tags)),
        sentence.words,
        parts=[PartProbability(i, i + 1, tag, probability) for i, (tag, probability) in tokens],
        spans=[PartProbability(span.start, span.end, span.label, span.probability) for span in found.spans],
        alternatives=[Alternative(analysis.tags, analysis.probability) for analysis in best],
    )


def one_sentence(given: str | Sentence | Sequence[str] | Sequence[Sentence]) -> Sentence | None:
    """What is given as one sentence of words; None for a list of sentences."""
    if isinstance(given, Sentence):
        return given
    if isinstance(given, str):
        return Sentence(tuple(given.split()))
    words = tuple(each for each in given if isinstance(each, str))
    if words and len(words) < len(given):
        raise TrellisworkError("expected words or sentences, got a mixture; give a list of one kind")
    return Sentence(words) if words else None


class ChainTagger(SentenceTagger):
    """A tagger whose subclass brings the scores of a batch as a `chain`."""

    @abstractmethod
    def chain(self, sentences: Sequence[Sentence]) -> TagDistribution:
        """p(labels | words) of a batch of sentences; values are indices into `labels.vocabulary`."""

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> TagDistribution:
        """p(labels | words, pins) of a batch of sentences.

        `pins` holds, for each sentence, tags that are known: `{0: "B-NP"}` says that the first token begins an NP.
        """
        with self.evaluating():
            chain = self.chain(sentences)
            return chain if pins is None or not any(pins) else chain.constrain(self._allowed(sentences, pins, chain))

    def _decode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        """The best labels of a batch."""
        best = self.chain(sentences).argmax.tolist()
        return [row[: len(sentence)] for row, sentence in zip(best, sentences, strict=True)]

    def _allowed(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins], chain: TagDistribution
    ) -> Bool[Tensor, "batch n c"]:
        """True for each label that the pins leave."""
        shape = (*chain.batch_shape, *chain.event_shape, len(self.labels.vocabulary))
        allowed = np.ones(shape, bool)
        for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
            for i, tag in known.items():
                if not 0 <= i < len(sentence):
                    raise TrellisworkError(f"a pin must be on token 0..{len(sentence) - 1}; got {i} ({tag!r})")
                allowed[row, i] = False
                allowed[row, i, self.labels.meaning(tag)] = True
        return chain.log_partition.new_tensor(allowed).bool()

    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        if pins is not None:
            return tags_of_best(self.distribution(batch, pins), self.labels, batch)
        return [self.labels.tags(labels) for labels in self._decode(batch)]

    def _analyses(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int) -> list[list[Analysis]]:
        return analyses_of(self.distribution(batch, pins), self.labels, batch, top_k)

    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]:
        return confidences_of(self.distribution(batch, pins), self.labels, batch)

    def _likely_spans(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float
    ) -> list[list[SpanConfidence]]:
        return likely_spans([self.distribution(batch, pins)], self.labels, list(map(len, batch)), threshold)

    def _token_confidences(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, tags: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        return token_confidences(self.distribution(batch, pins).marginals, self.labels, tags)
