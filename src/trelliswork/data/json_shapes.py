"""The shapes of JSON records: words with tags, text with spans (Prodigy, doccano, spaCy), Label Studio.

A shape makes sentences of a record, and puts answers into the line that it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.data.json_texts import StudioTexts, Texts
from trelliswork.data.json_words import Piece, Place, Reading, Record, Shape, Words

__all__ = ["Piece", "Place", "Reading", "Record", "Shape", "StudioTexts", "Texts", "Words", "shape_of"]


def shape_of(record: Record, place: Place, reading: Reading) -> Shape:
    """The shape of a record, by its members."""
    tokens = record.get(reading.fields.tokens or "tokens")
    if isinstance(record.get(reading.fields.text or "text"), str) and not _is_words(tokens):
        return Texts(reading, place)
    if isinstance(record.get("data"), Mapping) and tokens is None:
        return StudioTexts(reading, place)
    return Words(reading, place)


def _is_words(tokens: Any) -> bool:
    return isinstance(tokens, list) and not any(isinstance(each, Mapping) for each in tokens)
