"""Sentences of the built-in corpus with entities, events and dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trelliswork.data.corpus.generate import AnnotatedSentence
from trelliswork.data.corpus.trees import dependencies
from trelliswork.data.events import EVENTS, HEADS, RELATIONS
from trelliswork.data.jsonl import json_text
from trelliswork.data.sentence import Sentence
from trelliswork.writing import atomic_write


def event_sentences(part: Sequence[AnnotatedSentence]) -> list[Sentence]:
    """A part of the corpus with entities as tags, and events and dependencies as `trelliswork.data.events` has them."""
    found = []
    for number, (sentence, tree) in enumerate(zip(part, dependencies(part), strict=True), 1):
        events = [event.record() for event in sentence.events]
        extra = {EVENTS: events, HEADS: list(tree.heads or ()), RELATIONS: list(tree.tags or ())}
        found.append(Sentence(sentence.words, sentence.entities, line=number, file="built-in corpus", extra=extra))
    return found


def write_events(corpus: Mapping[str, Sequence[AnnotatedSentence]], folder: str | Path) -> list[Path]:
    """Write `train.jsonl`, `dev.jsonl` and `test.jsonl` as models of events read them."""
    paths = []
    for part, annotated in corpus.items():
        path = Path(folder) / f"{part}.jsonl"
        with atomic_write(path) as file:
            file.writelines(json_text(sentence).rstrip("\n") + "\n" for sentence in event_sentences(annotated))
        paths.append(path)
    return paths
