"""Sentences and documents of the built-in corpus with entities, events and dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trelliswork.data.corpus.documents.generate import AnnotatedDocument
from trelliswork.data.corpus.generate import AnnotatedSentence
from trelliswork.data.corpus.trees import dependencies
from trelliswork.data.events import COREFERENCE, EVENTS, HEADS, LINKS, RELATIONS, SENTENCES
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


def document_records(part: Sequence[AnnotatedDocument]) -> list[Sentence]:
    """Documents as records: one for each, with its sentences, what is mentioned again, and links between events."""
    return [_document(document, number) for number, document in enumerate(part, 1)]


def _document(document: AnnotatedDocument, number: int) -> Sentence:
    heads, relations, bounds, start = list[int](), list[str](), list[list[int]](), 0
    for tree in dependencies(document.sentences):
        heads += [head + start if head else 0 for head in tree.heads or ()]
        relations += tree.tags or ()
        bounds.append([start, start + len(tree)])
        start += len(tree)
    events, links, same = document.layers
    extra = {
        SENTENCES: bounds,
        EVENTS: [event.record() for event in events],
        COREFERENCE: [[list(span) for span in spans] for spans in same],
        LINKS: [list(link) for link in links],
        HEADS: heads,
        RELATIONS: relations,
    }
    tags = tuple(tag for sentence in document.sentences for tag in sentence.entities)
    return Sentence(document.words, tags, line=number, file="built-in documents", extra=extra)


def write_events(corpus: Mapping[str, Sequence[AnnotatedSentence]], folder: str | Path) -> list[Path]:
    """Write `train.jsonl`, `dev.jsonl` and `test.jsonl` as models of events read them."""
    return _write({part: event_sentences(annotated) for part, annotated in corpus.items()}, folder)


def write_documents(corpus: Mapping[str, Sequence[AnnotatedDocument]], folder: str | Path) -> list[Path]:
    """The same for documents, one on each line."""
    return _write({part: document_records(annotated) for part, annotated in corpus.items()}, folder)


def _write(records: Mapping[str, Sequence[Sentence]], folder: str | Path) -> list[Path]:
    paths = []
    for part, sentences in records.items():
        path = Path(folder) / f"{part}.jsonl"
        with atomic_write(path) as file:
            file.writelines(json_text(sentence).rstrip("\n") + "\n" for sentence in sentences)
        paths.append(path)
    return paths
