"""What a network reads: the tokens of some sentences as indices."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int


class TokenBatch(NamedTuple):
    """Sentences side by side; where `mask` is False there is no token.

    A form that comes more than once is spelled out once: token [b, i] is written with the characters of row
    forms[b, i] of `spellings`, which 0 fills up, and has the n-grams of the same row of `ngrams`. `attributes` are
    those of a token, one for each template; 0 is none. `words` are for encoders that split them by themselves.

    `scales` multiply what each token brings, one factor for each part (`TokenInputs.parts`, then attributes): 1 is the
    token as it is, 0 nothing. Gradients with respect to them say which tokens a score is due to.
    """

    features: Int[Tensor, "batch n f"]
    mask: Bool[Tensor, "batch n"]
    forms: Int[Tensor, "batch n"] | None = None
    spellings: Int[Tensor, "u m"] | None = None
    ngrams: Int[Tensor, "u g"] | None = None
    attributes: Int[Tensor, "batch n t"] | None = None
    words: tuple[tuple[str, ...], ...] | None = None
    scales: Float[Tensor, "batch n parts"] | None = None

    def to(self, device: torch.device) -> TokenBatch:
        """The same batch on another device."""
        return TokenBatch(*(each.to(device) if isinstance(each, Tensor) else each for each in self))  # type: ignore[arg-type]
