"""The settings of a tokeniser, and the files that it is learned from in addition to the tokens."""

from __future__ import annotations

from dataclasses import dataclass

from trelliswork.data.settings import Numbers, OneOf, Settings, setting
from trelliswork.models.taggers.features.learners.config import LearningConfig


@dataclass(frozen=True)
class TokeniserConfig(Settings):
    """Settings of a learned tokeniser; those that models over features have too have other defaults here."""

    PANEL = "Tokenisers (tokeniser)"

    c1: float = setting(
        0.1, "L1 regularisation coefficient c1 of c1 |w|.", at_least=0, option=True, search=Numbers(0.0, 1.0)
    )
    c2: float = setting(
        0.01,
        "L2 regularisation coefficient c2 of c2 w^2 (no factor 1/2).",
        at_least=0,
        option=True,
        search=Numbers(0.001, 1.0, log=True),
    )
    cutoff: int = setting(
        3,
        "Attributes seen at fewer characters than this are dropped.",
        at_least=0,
        option=True,
        search=OneOf((1, 2, 3, 5)),
    )
    max_iterations: int | None = setting(60, "Maximum number of iterations.", at_least=1, option=True)

    def learning(self, seed: int = 0) -> LearningConfig:
        """Return these settings for the learner."""
        return LearningConfig(**self.to_dict(), seed=seed)


@dataclass(frozen=True)
class RawFiles(Settings):
    """The texts of files that say nothing of white space."""

    PANEL = TokeniserConfig.PANEL

    raw: str | None = setting(
        None, "Raw text that the tokens of TRAIN come from. Not needed for CoNLL-U with SpaceAfter=No.", option=True,
        metavar="FILE",
    )  # fmt: skip
    raw_dev: str | None = setting(None, "Raw text that the tokens of --dev come from.", option=True, metavar="FILE")
