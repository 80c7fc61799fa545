"""The answers of every tagger, whatever its scores come from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, overload

from trelliswork.data import Sentence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Alternative, Answer, Model, PartProbability, Readable, Report, Scores
from trelliswork.models.batched import in_batches
from trelliswork.models.expected_counts import Counting
from trelliswork.models.lemmatiser import lemma_scores
from trelliswork.models.loading import load
from trelliswork.models.part_choices import PartChoices, token_choices
from trelliswork.models.taggers.evaluation import evaluate_tags, examined, score, score_text
from trelliswork.models.taggers.gold import broken_note, in_scheme_of, require_known, unknown_note
from trelliswork.models.taggers.labels import Labels, Pins, tags_of_gold
from trelliswork.models.taggers.posterior import Analysis, Confidences, SpanConfidence, TagPosterior
from trelliswork.models.taggers.span_choice import check_threshold, choose_spans
from trelliswork.tags.schemes import tags_of
from trelliswork.training.shares import answered

if TYPE_CHECKING:
    from trelliswork.data.attributes.dicts import Function

Result = TypeVar("Result")


class SentenceTagger(Model):
    """Tags, alternatives and confidences of sentences; a subclass answers for a batch of them."""

    supports_pins = counts_parts = True
    labels: Labels
    metrics: Scores

    @property
    def scheme(self) -> str:
        return self.labels.data_scheme

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return a chain takes time in proportion to the words and to the pairs of tags."""
        pairs = len(self.labels.tag_groups) ** 2
        word = 5e-5 + 3e-9 * pairs + top_k * (2e-6 + 8e-9 * pairs) + 4e-5 * choices + 5e-4 * explain
        return 3e-4 + word * n

    @abstractmethod
    def _posterior(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> TagPosterior:
        """Return p(tags | words, pins) of a batch of sentences that have words."""

    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        """Return the tags of the most probable analysis of each sentence."""
        return self._posterior(batch, pins).best_tags()

    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]:
        return self._posterior(batch, pins).confidences()

    @classmethod
    def from_pretrained(cls, directory: str | Path, *, features: Function | str | None = None) -> Self:
        """Return the tagger in a model folder, which must be one of this class; `trelliswork.load` loads every model.

        >>> Tagger.from_pretrained("chunker").tag("Ann sings .")     # doctest: +SKIP
        ['B-NP', 'B-VP', 'O']
        """
        model = load(directory, features=features)
        if not isinstance(model, cls):
            kind = type(model).__name__
            raise ModelError(
                f"{directory}: expected a {cls.__name__}, got a {kind}; use trelliswork.load or {kind}.load"
            )
        return model

    @overload
    def tag(  # type: ignore[overload-overlap]  # a text is a sequence of texts too
        self,
        sentences: str | Sequence[str] | Sentence,
        pins: Sequence[Pins] | None = None,
        *,
        threshold: float | None = None,
    ) -> list[str]: ...

    @overload
    def tag(
        self,
        sentences: Sequence[Sentence | Sequence[str]],
        pins: Sequence[Pins] | None = None,
        *,
        threshold: float | None = None,
    ) -> list[list[str]]: ...

    def tag(
        self,
        sentences: str | Sentence | Sequence[str] | Sequence[Sentence | Sequence[str]],
        pins: Sequence[Pins] | None = None,
        *,
        threshold: float | None = None,
    ) -> list[str] | list[list[str]]:
        """Return the best tags of each sentence, in the scheme of the training data; `pins` as in `distribution`.

        Raw text is tokenised (see `tokeniser`) and gives one list with the tags of all its tokens; `predict` says which
        they are. One sentence, also as a list of words, gives one list too. With a `threshold`, the tags are those of
        the spans that are as likely (see `span_choice`), however unlikely the whole.

        Args:
            sentences: raw text, one sentence (also as a list of words), or several.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.
            threshold: the least probability of a span, in 0.001..1; None takes the most probable tags.

        Returns:
            The tags of one sentence or text, or those of each sentence.

        >>> tagger.tag([["Ann", "sings"], ["Stop"]]), tagger.tag("Ann sings.")       # doctest: +SKIP
        ([['B-NP', 'B-VP'], ['B-VP']], ['B-NP', 'B-VP', 'O'])
        """
        tags = self._tags_above(self.sentences_of(sentences), pins, threshold)
        return list(chain.from_iterable(tags)) if is_one(sentences) else tags

    def _tags_above(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float | None
    ) -> list[list[str]]:
        """Return the best tags, or those of the spans that are as likely as a threshold."""
        if threshold is None:
            return self._tag_all(sentences, pins)
        chosen = self._chosen_spans(sentences, threshold, pins)
        return [self._spelled(spans, len(sentence)) for sentence, spans in zip(sentences, chosen, strict=True)]

    def _tag_all(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        return self._in_batches(sentences, pins, self._best_tags, empty=list)

    def predict(
        self,
        inputs: str | Sentence | Sequence[str] | Sequence[Sentence | Sequence[str]],
        *,
        top_k: int = 1,
        pins: Sequence[Pins] | None = None,
        confidence: bool = True,
        threshold: float | None = None,
    ) -> list[Answer]:
        """Return the best tags of each sentence with exact probabilities, and the `top_k` best; the rest as for `tag`.

        Of raw text there is an answer for each of its sentences, with the `offsets` of the words.

        Args:
            inputs: raw text, one sentence (also as a list of words), or several.
            top_k: how many tag sequences to return, the best first; 0 for none.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.
            confidence: whether tokens and spans have their probabilities.
            threshold: the least probability of a span, in 0.001..1; None takes the most probable tags.

        Returns:
            An answer for each sentence.
        """
        sentences = self.sentences_of(inputs)
        sure = self._confidences_of(sentences, pins, threshold) if confidence else None
        best = self._analyses_of(sentences, top_k, pins) if top_k else [[] for _ in sentences]
        if sure is not None:
            tags = [each.tags for each in sure]
        elif top_k and threshold is None:
            tags = [each[0].tags for each in best]
        else:
            tags = self._tags_above(sentences, pins, threshold)
        answers = [
            _answer(each, tags[i], None if sure is None else sure[i], best[i]) for i, each in enumerate(sentences)
        ]
        if self.lemmatiser is None:
            return answers
        return [replace(each, lemmas=self.lemmatiser.lemmas(each.inputs, each.value)) for each in answers]

    def analyses(
        self, sentences: Sequence[Sentence], top_k: int = 3, pins: Sequence[Pins] | None = None
    ) -> list[list[Analysis]]:
        """Return the `top_k` most probable tag sequences of each sentence, best first, with exact probabilities.

        Args:
            sentences: the sentences, or what `sentences_of` reads as such.
            top_k: how many tag sequences to return, at least 1.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.

        Returns:
            For each sentence its tag sequences, the best first.
        """
        return self._analyses_of(self.sentences_of(sentences), top_k, pins)

    def _analyses_of(
        self, sentences: Sequence[Sentence], top_k: int, pins: Sequence[Pins] | None
    ) -> list[list[Analysis]]:
        if top_k < 1:
            raise TrellisworkError(f"top_k must be at least 1; got {top_k}")
        return self._in_batches(
            sentences,
            pins,
            lambda batch, pins: self._posterior(batch, pins).analyses(top_k),
            empty=lambda: [Analysis([], 1.0)],
        )

    def confidences(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None, *, threshold: float | None = None
    ) -> list[Confidences]:
        """Return the best tags with the exact probability of each token's tag and of each predicted span.

        With a `threshold`, the tags are those that `tag` gives for it.

        Args:
            sentences: the sentences, or what `sentences_of` reads as such.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.
            threshold: the least probability of a span, in 0.001..1; None takes the most probable tags.

        Returns:
            The confidences of each sentence.
        """
        return self._confidences_of(self.sentences_of(sentences), pins, threshold)

    def _confidences_of(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float | None
    ) -> list[Confidences]:
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
        posterior = self._posterior(batch, pins)
        likely = posterior.likely_spans(threshold)
        chosen = [choose_spans(row, len(each), threshold) for row, each in zip(likely, batch, strict=True)]
        tags = [self._spelled(spans, len(each)) for spans, each in zip(chosen, batch, strict=True)]
        tokens = posterior.token_confidences(tags)
        return [Confidences(*each) for each in zip(tags, tokens, chosen, strict=True)]

    def _spelled(self, spans: Sequence[SpanConfidence], n: int) -> list[str]:
        return tags_of([(span.start, span.end, span.label) for span in spans], n, self.labels.data_scheme)

    def choices(
        self, inputs: Readable, *, pins: Sequence[Pins] | None = None, most: int | None = None
    ) -> list[list[PartChoices]]:
        """Return the `most` probable tags that each token may have, by their exact probability given the pins.

        Args:
            inputs: raw text, one sentence, or several.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.
            most: how many choices to list for each part; None for all.

        Returns:
            For each sentence the choices of its tokens.
        """
        tags = list(self.labels.tag_groups)

        def answer(batch: Sequence[Sentence], known: Sequence[Pins] | None) -> list[list[PartChoices]]:
            return [token_choices(shares, tags, most) for shares in self._posterior(batch, known).tag_shares()]

        return self._in_batches(self.sentences_of(inputs), pins, answer, empty=list)

    def spans(
        self, sentences: Sequence[Sentence], threshold: float = 0.2, pins: Sequence[Pins] | None = None
    ) -> list[list[SpanConfidence]]:
        """Return the spans of each sentence that are as likely as `threshold`, without overlaps, with probabilities.

        Args:
            sentences: the sentences, or what `sentences_of` reads as such.
            threshold: the least probability of a span.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.

        Returns:
            For each sentence its spans, in order.
        """
        return self._chosen_spans(self.sentences_of(sentences), threshold, pins)

    def _chosen_spans(
        self, sentences: Sequence[Sentence], threshold: float, pins: Sequence[Pins] | None
    ) -> list[list[SpanConfidence]]:
        likely = self._spans_above(sentences, threshold, pins)
        return [choose_spans(row, len(sentence), threshold) for row, sentence in zip(likely, sentences, strict=True)]

    def likely_spans(
        self, sentences: Sequence[Sentence], threshold: float = 0.2, pins: Sequence[Pins] | None = None
    ) -> list[list[SpanConfidence]]:
        """Return all spans with a probability of `threshold` or more; they may overlap.

        Args:
            sentences: the sentences, or what `sentences_of` reads as such.
            threshold: the least probability of a span.
            pins: for each sentence what is known: `{0: "B-NP"}` says that its first token begins an NP.

        Returns:
            For each sentence its spans.
        """
        return self._spans_above(self.sentences_of(sentences), threshold, pins)

    def _spans_above(
        self, sentences: Sequence[Sentence], threshold: float, pins: Sequence[Pins] | None
    ) -> list[list[SpanConfidence]]:
        check_threshold(threshold, self.labels)
        return self._in_batches(
            sentences, pins, lambda batch, pins: self._posterior(batch, pins).likely_spans(threshold), empty=list
        )

    def evaluate(self, sentences: Sequence[Sentence], *, threshold: float | None = None) -> Scores:
        """Return scores on gold data (see `evaluate_tags`); tags never seen in training count as mistakes."""
        sentences = self.sentences_of(sentences)
        gold = [tags_of_gold(sentence) for sentence in sentences]
        predicted = answered(self.tag if threshold is None else partial(self.tag, threshold=threshold), sentences)
        return evaluate_tags(gold, predicted, self.labels.data_scheme)

    def pinned(self, text: str, n: int | None = None) -> str:
        known = self.labels.data_tags
        if not all(tag in known for tag in self.labels.one_of(text) or [""]):
            raise TrellisworkError(f"expected one of the tags {', '.join(self.labels.data_tags)}; got {text!r}")
        return text

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return span F1 under both readings, accuracy, and how far the confidences are off."""
        predicted, scheme = self.confidences(gold, threshold=threshold), self.labels.data_scheme
        scores = score(predicted, gold, scheme)
        lemmas = self._lemma_scores(gold, [each.tags for each in predicted])
        lines = [score_text(scores), *(f"{'lemma accuracy':<24}{100 * share:6.2f}" for share in lemmas.values())]
        parts = {"": examined(predicted, gold, scheme, scores.confusion)}
        return Report("\n".join(lines), {**scores.to_dict(), **lemmas}, parts)

    def _lemma_scores(self, gold: Sequence[Sentence], tags: Sequence[Sequence[str]]) -> dict[str, float]:
        if self.lemmatiser is None:
            return {}
        return lemma_scores(gold, [self.lemmatiser.lemmas(a.words, b) for a, b in zip(gold, tags, strict=True)])

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        """Return gold tags in the scheme of the model, which must know them."""
        sentences, own = in_scheme_of(self.labels, self.with_columns(gold), scheme)
        require_known(self.labels, sentences)
        wanted = self.labels.data_scheme
        note = f"tags converted from {own} to {wanted}, as the model has them"
        return sentences, [] if own == wanted else [note]

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        converted = self.labels.scheme != self.labels.data_scheme
        return [*unknown_note(self.labels, dev), *(broken_note(self.labels, train) if converted else ())]

    def counting(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> Counting:
        return self._posterior(batch, pins).counting()

    @property
    def known_labels(self) -> list[str]:
        """The tags that a token can have, in the scheme of the data."""
        return self.labels.data_tags

    @property
    def label_names(self) -> list[str]:
        """The labels that are learned, in the order of their numbers."""
        return self.labels.vocabulary.to_list()

    @property
    def size(self) -> str:
        return f"{len(self.labels.vocabulary)} labels, {self.n_parameters:,} parameters"

    def _in_batches(
        self,
        sentences: Sequence[Sentence],
        pins: Sequence[Pins] | None,
        answer: Callable[[Sequence[Sentence], Sequence[Pins] | None], list[Result]],
        *,
        empty: Callable[[], Result],
    ) -> list[Result]:
        return in_batches(self, sentences, pins, answer, empty=empty)


def _answer(sentence: Sentence, tags: list[str], sure: Confidences | None, best: Sequence[Analysis]) -> Answer:
    known = {tuple(analysis.tags): analysis.probability for analysis in reversed(best)}
    tokens = enumerate(zip(tags, () if sure is None else sure.tokens, strict=sure is not None))
    return Answer(
        tags,
        known.get(tuple(tags)),
        sentence.words,
        parts=[PartProbability(i, i + 1, tag, probability) for i, (tag, probability) in tokens],
        spans=() if sure is None else sure.spans,
        alternatives=[Alternative(analysis.tags, analysis.probability) for analysis in best],
        offsets=sentence.offsets,
    )


def is_one(given: Readable) -> bool:
    """Return whether one sentence or a text was given, not a list of sentences."""
    return isinstance(given, str | Sentence) or any(isinstance(each, str) for each in given)
