"""The built-in corpus: generated English with parts of speech, chunks and named entities from one derivation."""

from __future__ import annotations

from trelliswork.data.corpus.documents import AnnotatedDocument, builtin_documents
from trelliswork.data.corpus.generate import (
    AnnotatedSentence,
    annotate,
    as_sentences,
    builtin_corpus,
    event_mentions,
    sentences,
    write_corpus,
)
from trelliswork.data.corpus.grammar import Derivation, chunk_spans, entity_spans
from trelliswork.data.corpus.trees import document_records, event_sentences, write_documents, write_events
from trelliswork.data.events import Event

__all__ = [
    "AnnotatedDocument",
    "AnnotatedSentence",
    "Derivation",
    "Event",
    "annotate",
    "as_sentences",
    "builtin_corpus",
    "builtin_documents",
    "chunk_spans",
    "document_records",
    "entity_spans",
    "event_mentions",
    "event_sentences",
    "sentences",
    "write_corpus",
    "write_documents",
    "write_events",
]
