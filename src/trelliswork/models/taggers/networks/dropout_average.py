"""Predictions averaged over dropout masks: a CRF whose weights are not known for sure.

>>> unsure = DropoutAverage(tagger, n_masks=20)                             # doctest: +SKIP
>>> unsure.confidences([Sentence(("Ann", "sings"))])[0].tokens             # doctest: +SKIP
[0.97, 0.88]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.metrics import Calibration, calibration
from trelliswork.models.base import Description
from trelliswork.models.taggers.averaged_tagger import AveragedTagger
from trelliswork.models.taggers.labels import Pins, tags_of_gold
from trelliswork.models.taggers.networks.tagger import Tagger
from trelliswork.models.taggers.posterior import constrained
from trelliswork.models.taggers.sentence_tagger import SentenceTagger
from trelliswork.nn.inputs import VariationalDropout

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


class DropoutAverage(AveragedTagger):
    """p(y | x) = the mean over K dropout masks of the tagger's p(y | x): a Bayesian CRF.

    Each mask is a draw of the weights from the posterior that training with dropout fits. The masks depend on `seed`
    and on how sentences fall into batches. A tagger without dropout gives its own answers back.

    Gal and Ghahramani (2016), Dropout as a Bayesian approximation: representing model uncertainty in deep learning.

    Args:
        tagger: a trained tagger with dropout.
        n_masks: number of masks to average over.
        seed: what the masks depend on.
    """

    # [S4.140, 775-776]

    def __init__(self, tagger: Tagger, n_masks: int = 20, *, seed: int = 0) -> None:
        if n_masks < 1:
            raise TrellisworkError(f"n_masks must be at least 1; got {n_masks}")
        self.tagger, self.n_masks, self.seed = tagger, n_masks, seed
        self.labels, self.metrics = tagger.labels, tagger.metrics

    @property
    def n_columns(self) -> int:
        return self.tagger.n_columns

    @property
    def n_parameters(self) -> int:
        return self.tagger.n_parameters

    def describe(self, top: int = 20) -> Description:
        described = self.tagger.describe(top)
        return replace(described, kind=f"{described.kind}, averaged over {self.n_masks} dropout masks")

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        raise TrellisworkError("a DropoutAverage has no folder of its own; save its tagger, and average it again")

    def members(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> list[LinearChain]:
        """Return the distribution under each mask."""
        with torch.random.fork_rng(devices=[]), self.tagger.evaluating(), _dropping(self.tagger):
            torch.manual_seed(self.seed)
            chains = [self.tagger.chain(sentences) for _ in range(self.n_masks)]
        return [constrained(chain, self.labels, sentences, pins) for chain in chains]


def token_calibration(tagger: SentenceTagger, sentences: Sequence[Sentence], n_bins: int = 10) -> Calibration:
    """Return whether the tags of tokens are right as often as the tagger says.

    Args:
        tagger: the tagger to judge.
        sentences: gold data.
        n_bins: number of bins of confidences.

    Returns:
        Shares of right tags by confidence.
    """
    pairs = [
        (confidence, tag == gold)
        for sentence, confidences in zip(sentences, tagger.confidences(sentences), strict=True)
        for confidence, tag, gold in zip(confidences.tokens, confidences.tags, tags_of_gold(sentence), strict=True)
    ]
    return calibration(pairs, n_bins)


@contextmanager
def _dropping(tagger: Tagger) -> Iterator[None]:
    """Enter a context in which dropout drops as in training, and nothing else does."""
    layers = [layer for layer in tagger.modules() if isinstance(layer, nn.Dropout | VariationalDropout)]
    for layer in layers:
        layer.train()
    try:
        yield
    finally:
        for layer in layers:
            layer.eval()
