"""A handful of tagged sentences and a tagger small enough to train in a second."""

from __future__ import annotations

import pytest

from trelliswork.data import Sentence
from trelliswork.models import TaggerConfig


def _sentence(text: str) -> Sentence:
    words, columns, tags = zip(*(token.split("/") for token in text.split()), strict=True)
    return Sentence(words, tags, (columns,))


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return [
        _sentence("Ann/N/B-NP sings/V/B-VP ./P/O"),
        _sentence("The/D/B-NP old/A/I-NP man/N/I-NP has/V/B-VP left/V/I-VP ./P/O"),
        _sentence("Bob/N/B-NP gave/V/B-VP Ann/N/B-NP the/D/B-NP 12/A/I-NP books/N/I-NP"),
        _sentence("Stop/V/B-VP"),
        _sentence("The/D/B-NP books/N/I-NP have/V/B-VP been/V/I-VP sold/V/I-VP in/I/O Rome/N/B-NP ./P/O"),
        _sentence("old/A/B-NP books/N/I-NP left/V/B-VP Rome/N/B-NP"),
    ]


@pytest.fixture(scope="module")
def config() -> TaggerConfig:
    return TaggerConfig(word_dim=12, affix_dim=4, column_dim=6, hidden=24, window=3, dropout=0.1, affix_min_count=1)
