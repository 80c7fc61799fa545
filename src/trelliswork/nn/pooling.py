"""Dynamic multi-pooling: max pooling over the three parts into which two tokens divide a sentence."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int


def dynamic_multi_pooling(
    tokens: Float[Tensor, "m n d"],
    first: Int[Tensor, " m"],
    last: Int[Tensor, " m"],
    mask: Bool[Tensor, "m n"] | None = None,
) -> Float[Tensor, "m 3d"]:
    """Pool each dimension by its maximum over three parts of a sentence: before `first`, up to `last`, and the rest.

    Args:
        tokens: Vectors of the tokens of m sentences.
        first: Position where the second part of each sentence begins.
        last: Position where the third part begins.
        mask: True at tokens, False at padding.

    Returns:
        The maxima of the three parts side by side; a part without tokens gives zeros.

    >>> dynamic_multi_pooling(torch.tensor([[[1.], [5.], [2.], [4.]]]), torch.tensor([1]), torch.tensor([2]))
    tensor([[1., 5., 4.]])

    Chen et al. (2015), Event extraction via dynamic multi-pooling convolutional neural networks.
    """
    # [S4.239-242]
    place = torch.arange(tokens.shape[1], device=tokens.device)
    part = (place >= first[:, None]).long() + (place >= last[:, None]).long()  # (m, n): 0, 1 or 2
    if mask is not None:
        part = part.masked_fill(~mask, 3)
    maxima = []
    for i in range(3):
        inside = (part == i).unsqueeze(-1)
        highest = tokens.masked_fill(~inside, -torch.inf).amax(1)
        maxima.append(highest.masked_fill(~inside.any(1), 0.0))
    return torch.cat(maxima, -1)
