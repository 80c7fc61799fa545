"""The settings of a span-based constituency parser, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import setting
from trelliswork.models.networks.config import NetworkConfig
from trelliswork.training.search_space import Around, Numbers

Answered = Literal["best", "expected"]


@dataclass(frozen=True)
class SpanConfig(NetworkConfig):
    """What a span-based parser is made of: inputs and encoder as in `NetworkConfig`, and scores of labelled spans.

    `decoding="expected"` answers with the tree whose expected F1 of brackets is largest, instead of the most probable
    one.
    """

    span_dim: int = setting(250, "Hidden units of the span scorer.", at_least=1, option=True, search=Around(2))
    span_dropout: float = setting(
        0.2, "Dropout on these vectors.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.6, step=0.05)
    )
    tag_weight: float = setting(0.2, "Weight of the part-of-speech loss.", above=0)
    decoding: Answered = setting(
        "best",
        "Decoding: the most probable tree, or the tree with the highest expected F1",
        choices=get_args(Answered),
        option=True,
    )
