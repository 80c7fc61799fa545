"""What is called to compile kernels, and needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from trelliswork.data import Sentence
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.nn import CRF


def compile_kernels() -> None:
    """Call every kernel of chains once on a small one."""
    tags = ["O", "B-X", "I-X"]
    crf = CRF.from_tags(tags, scheme="IOB2", batch_first=True)
    emissions = torch.zeros(2, 3, len(tags), requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    gold, pairs = torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 2, len(tags), len(tags), requires_grad=True)
    crf(emissions, gold, mask).backward()
    crf.distribution(emissions, mask, pair_scores=pairs).log_prob(gold).sum().backward()
    with torch.no_grad():
        crf.decode(emissions, mask)
        chain = crf.distribution(emissions, mask)
        chain.constrain(torch.full((2, 3), -100)).argmax  # noqa: B018, the query is what compiles
        chain.marginals  # noqa: B018
        chain.span_probabilities([[(0, 1, "X")], []], tags=tags, scheme="IOB2")
        chain.top_k(2)


def small_networks() -> Iterator[Segmenter | Tagger]:
    """Networks that together call the kernels of every network."""
    sentences = [Sentence(("Ann", "Lee"), ("B-X", "I-X"))]
    sizes: dict[str, Any] = dict(word_dim=2, hidden=16, segment_dim=4)
    yield Segmenter.from_data(sentences, TaggerConfig(segments="pyramid", max_length=2, **sizes))
    yield Tagger.from_data(sentences, TaggerConfig(encoder="lstm", scorer="hidden-units", hidden_units=4, **sizes))
