"""The classical models over the same attributes: what is normalised, and whether labels depend on their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trelliswork.errors import ScoreError

Kind = Literal["crf", "memm", "logistic", "hmm", "naive-bayes"]
Normalised = Literal["globally", "locally", "jointly"]


@dataclass(frozen=True)
class ModelKind:
    """A phrase for people, what sums to one, and whether there are weights for neighbouring labels.

    globally: p(y | x) over all label sequences; locally: p(label | label before, x); jointly: p(y, x), from counts.
    """

    phrase: str
    normalised: Normalised
    transitions: bool = True

    @property
    def counted(self) -> bool:
        """True if weights are logs of relative frequencies: nothing is minimised."""
        return self.normalised == "jointly"


KINDS: dict[str, ModelKind] = {
    "crf": ModelKind("a linear-chain CRF", "globally"),
    "memm": ModelKind("a maximum-entropy Markov model", "locally"),
    "logistic": ModelKind("logistic regression, token by token,", "globally", transitions=False),
    "hmm": ModelKind("a hidden Markov model", "jointly"),
    "naive-bayes": ModelKind("naive Bayes, token by token,", "jointly", transitions=False),
}


def kind_of(name: str) -> ModelKind:
    """Return the kind by name; `ScoreError` if there is no such model."""
    if name not in KINDS:
        raise ScoreError(f"model must be one of {', '.join(KINDS)}; got {name!r}")
    return KINDS[name]
