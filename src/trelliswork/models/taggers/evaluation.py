"""Scores of predicted tags against gold tags, the one that counts named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trelliswork.data import Sentence
from trelliswork.metrics import Calibration, Confusion, SpanReport, calibration, confusion, span_scores, token_accuracy
from trelliswork.models.base import Scores
from trelliswork.models.examined import Examined, Example, Part
from trelliswork.models.taggers.posterior import Confidences
from trelliswork.tags.schemes import spans_of


def evaluate_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: str) -> Scores:
    """Return span precision, recall and F1 (as conlleval counts) and accuracy; accuracy alone for plain tags.

    `score` is the number that early stopping watches and `metric` its name.

    Args:
        gold: the right tags of each sentence.
        predicted: those of the model.
        scheme: how both spell spans; plain if they do not.

    Returns:
        Scores by name.

    >>> evaluate_tags([["B-X", "O"]], [["B-X", "B-X"]], "IOB2")["precision"]
    0.5
    """
    accuracy = token_accuracy(gold, predicted)
    if scheme == "plain":
        return {"metric": "accuracy", "score": accuracy, "accuracy": accuracy}
    spans = span_scores(gold, predicted, scheme, "conlleval").overall
    return {
        "metric": "f1",
        "score": spans.f1,
        "precision": spans.precision,
        "recall": spans.recall,
        "f1": spans.f1,
        "accuracy": accuracy,
    }


# Everything that is said about the quality of a tagger: computed once, shown as text or JSON.


@dataclass(frozen=True)
class TaggerScores:
    """Scores of predicted against gold tags; the span reports are None for plain tags."""

    n_sentences: int
    n_tokens: int
    accuracy: float
    spans: SpanReport | None
    strict: SpanReport | None
    confusion: Confusion
    calibration: Calibration | None

    def to_dict(self) -> Scores:
        """Return plain values, fit for JSON."""
        values: Scores = {"sentences": self.n_sentences, "tokens": self.n_tokens, "accuracy": self.accuracy}
        if self.spans is not None and self.strict is not None:
            values |= {"conlleval": self.spans.to_dict(), "strict": self.strict.to_dict()}
        if self.calibration is not None:
            values["calibration"] = {
                "of": "spans" if self.spans is not None else "tokens",
                "expected_error": self.calibration.expected_error,
                "max_error": self.calibration.max_error,
            }
        values["worst_confusions"] = [list(each) for each in self.confusion.worst()]
        return values


def score(answers: Sequence[Confidences], sentences: Sequence[Sentence], scheme: str) -> TaggerScores:
    """Compare answers with gold sentences, whose tags must be in the scheme of the model.

    Args:
        answers: the answer to each sentence.
        sentences: the same sentences with their right tags.
        scheme: how both spell spans; plain if they do not.

    Returns:
        The scores.
    """
    gold = [sentence.tags or () for sentence in sentences]
    return compare(gold, [answer.tags for answer in answers], scheme, _outcomes(gold, answers, scheme))


def compare(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
    outcomes: Sequence[tuple[float, bool]] | None = None,
) -> TaggerScores:
    """Return scores of tag sequences; `outcomes` are (confidence, right) pairs, if there are confidences.

    Args:
        gold: the right tags of each sentence.
        predicted: those of the model.
        scheme: how both spell spans; plain if they do not.
        outcomes: (confidence, right) of each predicted part; None without confidences.

    Returns:
        The scores.
    """
    has_spans = scheme != "plain"
    return TaggerScores(
        len(gold),
        sum(map(len, gold)),
        token_accuracy(gold, predicted),
        span_scores(gold, predicted, scheme, "conlleval") if has_spans else None,
        span_scores(gold, predicted, scheme, "strict") if has_spans else None,
        confusion(gold, predicted),
        calibration(outcomes) if outcomes is not None else None,
    )


def _outcomes(gold: Sequence[Sequence[str]], answers: Sequence[Confidences], scheme: str) -> list[tuple[float, bool]]:
    """Return the confidence in each predicted span (or tag, for plain tags), and whether it was right."""
    pairs: list[tuple[float, bool]] = []
    for tags, answer in zip(gold, answers, strict=True):
        if scheme == "plain":
            right = [a == b for a, b in zip(tags, answer.tags, strict=True)]
            pairs += zip(answer.tokens, right, strict=True)
        else:
            true = set(spans_of(tags, scheme))
            pairs += [(span.probability, (span.start, span.end, span.label) in true) for span in answer.spans]
    return pairs


def examined(
    answers: Sequence[Confidences], sentences: Sequence[Sentence], scheme: str, confused: Confusion
) -> Examined:
    """Return spans, or the tags of tokens if they are plain, sentence by sentence.

    Args:
        answers: the answer to each sentence.
        sentences: the same sentences with their right tags.
        scheme: how both spell spans; plain if they do not.
        confused: which tags were taken for which.

    Returns:
        Right and wrong parts, sentence by sentence.
    """
    examples = [_example(answer, sentence, scheme) for answer, sentence in zip(answers, sentences, strict=True)]
    if scheme == "plain":
        return Examined("token accuracy", "tags", examples, confused)
    return Examined("F1 of spans", "spans", examples, confused)


def _example(answer: Confidences, sentence: Sentence, scheme: str) -> Example:
    if scheme == "plain":
        predicted, gold = _tags_as_parts(answer.tags), _tags_as_parts(sentence.tags or ())
        return Example(sentence.words, predicted, gold, answer.tokens)
    spans = [(span.start, span.end, span.label) for span in answer.spans]
    return Example(
        sentence.words, spans, spans_of(sentence.tags or (), scheme), [each.probability for each in answer.spans]
    )


def _tags_as_parts(tags: Sequence[str]) -> list[Part]:
    return [(i, i + 1, tag) for i, tag in enumerate(tags)]


def score_text(scores: TaggerScores) -> str:
    """Return the scores for people."""
    lines = []
    if scores.spans is not None and scores.strict is not None:
        lines += [scores.spans.table(), "", f"F1 of spans, strict     {100 * scores.strict.f1:6.2f}"]
    lines.append(f"token accuracy          {100 * scores.accuracy:6.2f}")
    if scores.calibration is not None:
        what = "span" if scores.spans is not None else "tag"
        error = 100 * scores.calibration.expected_error
        lines.append(f"calibration error       {error:6.2f}   (how far {what} confidences are off, on average)")
    return "\n".join(lines)
