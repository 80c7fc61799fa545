"""The common part of all learners of a feature CRF: the corpus, the progress that they report, their one method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.records import Legal
from trelliswork.runtime.arrays import Array
from trelliswork.training.together import ALONE, Where

SPREAD = 0.1  # of the first weights of latent states


@dataclass(frozen=True)
class Corpus:
    """The data to learn from; `gold` with `sets`, and `sentence_weights`, are as for `Likelihood`.

    Attributes that are True in `on_pairs` look at neighbouring labels; `legal` is what the tag scheme allows.
    Of several processes, each has its share: every n-th sentence.
    """

    rows: AttributeRows
    gold: Array
    sentence_weights: Array | None = None
    sets: Array | None = None
    on_pairs: Array | None = None
    legal: Legal | None = None
    where: Where = ALONE


@dataclass(frozen=True)
class Progress:
    """The weights after an iteration (or epoch), the loss, and the gradient's norm where there is one.

    `measures` are further figures by name; `samples` [members, weights] are there if the settings ask for them.
    """

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    samples: Array | None = None

    def line(self) -> str:
        """Return the iteration with its numbers.

        >>> Progress(3, np.zeros(1), 12.5, 0.25).line()
        'iteration 3: loss 12.5, gradient 0.25'
        """
        parts = [f"loss {self.loss:.6g}"]
        if self.gradient_norm is not None:
            parts.append(f"gradient {self.gradient_norm:.3g}")
        parts += [f"{name} {value:.3g}" for name, value in self.measures.items()]
        return f"iteration {self.iteration}: {', '.join(parts)}"


class Learner(Protocol):
    """Anything that finds weights."""

    def learn(self, corpus: Corpus, parameters: Any) -> Iterator[Progress]:
        """Yield one `Progress` an iteration; the last has the weights that were learned."""
        ...


def first_weights(parameters: Parameters, seed: int) -> Array:
    """Return weights of 0; small random ones where the states of a label would stay alike for ever."""
    if parameters.latent == 1:
        return np.zeros(len(parameters))
    return SPREAD * np.random.default_rng(seed).normal(size=len(parameters))
