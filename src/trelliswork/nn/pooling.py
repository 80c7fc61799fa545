"""Max pooling over the three parts into which two tokens divide a sentence."""

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
    """The maximum of each dimension before `first`, from there to before `last`, and from `last` on.

    A part without tokens gives zeros.

    >>> dynamic_multi_pooling(torch.tensor([[[1.], [5.], [2.], [4.]]]), torch.tensor([1]), torch.tensor([2]))
    tensor([[1., 5., 4.]])

    Chen et al. (2015), Event extraction via dynamic multi-pooling convolutional neural networks.
    """
    # [S4.239-242]
    place = torch.arange(tokens.shape[1], device=tokens.device)
    part = (place >= first[:, None]).long() + (place >= last[:, None]).long()  # (m, n): 0, 1 or 2
    if mask is not None:
        part = part.masked_fill(~mask, 3)
    found = []
    for i in range(3):
        inside = (part == i).unsqueeze(-1)
        most = tokens.masked_fill(~inside, -torch.inf).amax(1)
        found.append(most.masked_fill(~inside.any(1), 0.0))
    return torch.cat(found, -1)
