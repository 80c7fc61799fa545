"""Requests to a language model."""

from __future__ import annotations

from dataclasses import dataclass

from trelliswork.data.settings import WIDEST, Settings, setting
from trelliswork.models.language.config import TextFiles


@dataclass(frozen=True)
class GenerationSettings(Settings):
    """Request to a language model, and the way it answers."""

    PANEL = TextFiles.PANEL

    score: bool = setting(
        False, "Write the log probability (natural) of each token and sentence. This is the default.", option=True
    )
    sample: int = setting(
        0, "Sample this many continuations of each line of FILE; - on a terminal begins new sentences.", at_least=0,
        option=True, metavar="N",
    )  # fmt: skip
    beam: int = setting(
        0, "Write the most probable continuation of each line of FILE, found by a beam search of this width; 1 is "
        "greedy.", at_least=0, below=WIDEST, option=True, metavar="N",
    )  # fmt: skip
    nucleus: float = setting(
        1.0, "Sample from the smallest set of tokens whose probabilities sum to at least P; --top-k samples from the K "
        "most probable ones.", above=0, option=True, metavar="P",
    )  # fmt: skip
    temperature: float = setting(1.0, "Divide log probabilities by this before sampling.", above=0, option=True)
    seed: int = setting(0, "Seed of samples.", at_least=0, option=True)
    longest: int = setting(200, "Maximum number of tokens of a continuation.", at_least=1, option=True)
    constraint: str | None = setting(
        None, "Write only sentences that match this regular expression over tokens, such as 'the (cat|dog) .*', or "
        "the acceptor in this file (.fst, text format of OpenFst). FILE must be - and is not read.", option=True,
        metavar="FILE|REGEX",
    )  # fmt: skip
