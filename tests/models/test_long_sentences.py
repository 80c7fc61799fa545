"""Long sentences: the best analyses where probabilities underflow, and bounded memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trelliswork.data import Sentence
from trelliswork.models import Ensemble, Segmenter, SentenceTagger, Tagger, TaggerConfig


def made(kind: str, sentences: list[Sentence], config: TaggerConfig) -> SentenceTagger:
    """Untrained: every tag is about as likely as any other, so that no sequence is."""
    if kind == "segmenter":
        return Segmenter.from_data(sentences, replace(config, segment_dim=8, max_length=3), seed=1)
    if kind == "tagger":
        return Tagger.from_data(sentences, config, seed=1)
    return Ensemble([Tagger.from_data(sentences, config, seed=seed) for seed in range(2)])


@pytest.mark.parametrize("n", [80, 600])
@pytest.mark.parametrize("kind", ["tagger", "segmenter", "ensemble"])
def test_every_analysis_asked_for_is_there(kind: str, n: int, sentences: list[Sentence], config: TaggerConfig) -> None:
    words = ("Ann", "sings", "the", "old", "books") * (n // 5)
    (found,) = made(kind, sentences, config).analyses([Sentence(words, None, (("N",) * n,))], top_k=3)
    assert len({tuple(each.tags) for each in found}) == 3
    shares = [each.probability for each in found]
    assert shares == sorted(shares, reverse=True)
    assert n > 80 or shares[-1] > 0.0
