"""Tagging a stream of sentences, batch by batch, with as much explanation as is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trelliswork.cli.pins import Pin, pins_for, require_used
from trelliswork.cli.tasks import bare
from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, DataError, ScoreError, TrellisworkError
from trelliswork.models import Analysis, Confidences, SentenceTagger

BATCH = 2048  # sentences in memory at a time
MOST_TOKENS = 100_000  # of one sentence, whose scores are in memory together


@dataclass(frozen=True)
class Answer:
    """A sentence, the tags found for it, and what was asked for beside."""

    sentence: Sentence
    tags: list[str]
    confidences: Confidences | None
    analyses: list[Analysis] | None


@dataclass(frozen=True)
class Question:
    """What to find out about each sentence."""

    confidence: bool = False
    top_k: int = 0
    pins: Sequence[Pin] = ()
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and self.top_k:
            raise TrellisworkError(
                "--top-k lists whole analyses and --threshold chooses spans one by one; got both; leave one out"
            )


def answers(
    tagger: SentenceTagger, sentences: Iterable[Sentence], question: Question, *, batch: int = BATCH
) -> Iterator[Answer]:
    """The answers in the order of the sentences; memory is that of one batch."""
    stream, number, file = iter(sentences), 0, ""
    while group := list(itertools.islice(stream, batch)):
        file = group[0].file
        _require_sentences(group)
        pins = [pins_for(question.pins, number + i, sentence) for i, sentence in enumerate(group, 1)]
        number += len(group)
        yield from _answer_group(tagger, group, question, pins)
    require_used(question.pins, number, file)


def answers_of_tasks(
    heads: Mapping[str, SentenceTagger], sentences: Iterable[Sentence], question: Question, *, batch: int = BATCH
) -> Iterator[tuple[Answer, ...]]:
    """The answers of every task about each sentence; a model of several tasks reads the words alone."""
    if any(heads):  # tasks have names, a tagger that stands alone has none
        sentences = map(bare, sentences)
    streams = itertools.tee(sentences, len(heads))
    asked = [answers(head, stream, question, batch=batch) for head, stream in zip(heads.values(), streams, strict=True)]
    return zip(*asked, strict=True)


def _require_sentences(group: Sequence[Sentence]) -> None:
    for sentence in group:
        if len(sentence) > MOST_TOKENS:
            problem = f"expected sentences of at most {MOST_TOKENS:,} tokens, got one of {len(sentence):,}"
            raise DataError(sentence.file, f"{problem}; break the text up into sentences", line=sentence.line)


def _answer_group(
    tagger: SentenceTagger, group: list[Sentence], question: Question, pins: list[dict[int, str]]
) -> Iterator[Answer]:
    try:
        found = _ask(tagger, group, question, pins)
    except (ConstraintError, ScoreError) as error:
        if len(group) == 1 and not pins[0]:
            problem = "the model gives no tag sequence of this sentence a finite score: its weights are broken"
            raise DataError(group[0].file, f"{problem}; train it again", line=group[0].line) from error
        if len(group) == 1:
            told = ", ".join(f"{i + 1}={tag}" for i, tag in sorted(pins[0].items()))
            problem = f"no tag sequence agrees with the pins {told}; drop one of them or pin neighbours that fit"
            raise DataError(group[0].file, problem, line=group[0].line) from error
        for sentence, known in zip(group, pins, strict=True):  # one by one, to name the sentence
            yield from _answer_group(tagger, [sentence], question, [known])
        return
    yield from found


def _ask(tagger: SentenceTagger, group: list[Sentence], question: Question, pins: list[dict[int, str]]) -> list[Answer]:
    pinned = pins if any(pins) else None
    above = question.threshold
    confidences = tagger.confidences(group, pinned, threshold=above) if question.confidence else None
    analyses = tagger.analyses(group, question.top_k, pinned) if question.top_k else None
    if confidences is not None:
        tags = [each.tags for each in confidences]
    elif analyses is not None:
        tags = [each[0].tags for each in analyses]
    else:
        tags = tagger.tag(group, pinned, threshold=above)
    return [
        Answer(
            sentence,
            tags[i],
            confidences[i] if confidences is not None else None,
            analyses[i] if analyses is not None else None,
        )
        for i, sentence in enumerate(group)
    ]
