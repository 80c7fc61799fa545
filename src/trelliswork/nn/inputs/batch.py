"""The input of a network: the tokens of some sentences as indices."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int


class TokenBatch(NamedTuple):
    """A batch of sentences.

    Each distinct form is spelled once: token [b, i] has the characters and n-grams in row forms[b, i] of `spellings`
    and `ngrams`.

    Attributes:
        features: Index of each of f discrete features of a token.
        mask: True at tokens, False at padding.
        forms: Row of the form of each token.
        spellings: Characters of each of u forms, padded with 0.
        ngrams: Character n-grams of each form, padded with 0.
        attributes: Attributes of each token, one for each of t templates; 0 for none.
        words: The words themselves, for encoders that split them.
        scales: Factors of the inputs of each token, one for each part of `TokenInputs.widths` and one for attributes;
            1 leaves a token unchanged, 0 removes it. Their gradients attribute a score to tokens.
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
        """Move the batch to a device."""
        return TokenBatch(*(field.to(device) if isinstance(field, Tensor) else field for field in self))  # type: ignore[arg-type]
