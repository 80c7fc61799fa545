"""The emissions of a hidden-unit CRF: binary hidden units between a token's vector and its tag, summed out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.nn.scorers.softplus_kernels import LANES, softplus_gradients, softplus_sums
from trelliswork.runtime.arrays import Bool, Float
from trelliswork.runtime.autograd import fused
from trelliswork.runtime.bridge import as_array, out_of_reach


class HiddenUnitScorer(nn.Module):
    """Scores f_y = c_y + Σ_h ln(1 + exp(b_h + w_h · x + V_hy)), with H binary units summed out.

    The rest of the model is a linear chain with transitions A, start scores π and end scores τ. The first token has c
    but not A, and the recursions begin with α_1 = e^π ψ_1 and β_T = e^τ (erratum 24).

    Args:
        dim: Width of the vectors x of tokens.
        num_tags: Number of tags.
        n_hidden: H, the number of hidden units.
        initialization: See `initialize_fan_in`.

    >>> HiddenUnitScorer(300, num_tags=9, n_hidden=50)(torch.zeros(2, 7, 300)).shape
    torch.Size([2, 7, 9])

    van der Maaten, Welling and Saul (2011), Hidden-unit conditional random fields.
    """

    # [S4.141-144, 155, 192; S4.148-149]

    def __init__(self, dim: int, num_tags: int, n_hidden: int, *, initialization: FanInScheme = "uniform"):
        super().__init__()
        self.linear = nn.Linear(dim, n_hidden)  # W and b
        self.by_tag = nn.Parameter(torch.empty(n_hidden, num_tags))  # V
        self.bias = nn.Parameter(torch.zeros(num_tags))  # c
        initialize_fan_in(self.linear, initialization)
        nn.init.normal_(self.by_tag, std=n_hidden**-0.5)  # with equal values for all tags, W would get no gradient

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Return the scores of tags at each token; `mask` is ignored."""
        return self.bias + softplus_sum(self.linear(encoded), self.by_tag)


def softplus_sum(inputs: Float[Tensor, "*any h"], by_tag: Float[Tensor, "h c"]) -> Float[Tensor, "*any c"]:
    """Return Σ_h ln(1 + exp(a_h + V_hy)); on the CPU kernels compute it without an array of all [tokens, h, c] terms.

    >>> softplus_sum(torch.zeros(1, 2), torch.zeros(2, 3))  # 2 ln 2
    tensor([[1.3863, 1.3863, 1.3863]])
    """
    is_recorded = torch.compiler.is_compiling() or torch.jit.is_tracing() or out_of_reach()
    kinds = {(tensor.device.type, tensor.dtype) for tensor in (inputs, by_tag)}
    if is_recorded or kinds not in ({("cpu", torch.float32)}, {("cpu", torch.float64)}):
        return plain_softplus_sum(inputs, by_tag)
    return fused(SoftplusSum(), inputs.flatten(0, -2), by_tag).unflatten(0, inputs.shape[:-1])


def plain_softplus_sum(inputs: Float[Tensor, "*any h"], by_tag: Float[Tensor, "h c"]) -> Float[Tensor, "*any c"]:
    """Compute `softplus_sum` with plain torch operations."""
    # The default threshold, 20, is precise enough for float32 only.
    return F.softplus(inputs.unsqueeze(-1) + by_tag, threshold=40).sum(-2)


class SoftplusSum:
    """`softplus_sum` of tokens [t, h] as one step of autograd; the gradient recomputes each σ(z)."""

    def forward(
        self, inputs: Float[Tensor, "t h"], by_tag: Float[Tensor, "h c"]
    ) -> tuple[Float[Tensor, "t c"], tuple[Tensor, ...]]:
        wide = _in_lanes(by_tag)
        result = wide.new_empty(len(inputs), wide.shape[1])
        softplus_sums(as_array(inputs), wide.numpy(), result.numpy())
        return result[:, : by_tag.shape[1]].clone(), ()

    def backward(
        self, tensors: tuple[Tensor, Tensor], kept: tuple[()], grads: tuple[Float[Tensor, "t c"]]
    ) -> tuple[Tensor, Tensor]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Inputs, by_tag, as `forward` was given them.
            kept: nothing.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        inputs, by_tag = tensors
        wide, wide_grad = _in_lanes(by_tag), _in_lanes(grads[0])
        to_inputs, to_by_tag = torch.empty_like(inputs, memory_format=torch.contiguous_format), torch.zeros_like(wide)
        arrays = (wide.numpy(), wide_grad.numpy(), to_inputs.numpy(), to_by_tag.numpy())
        softplus_gradients(as_array(inputs), *arrays)
        return to_inputs, to_by_tag[:, : by_tag.shape[1]]

    def reference(self, inputs: Tensor, by_tag: Tensor) -> Tensor:
        return plain_softplus_sum(inputs, by_tag)


def _in_lanes(rows: Float[Tensor, "r c"]) -> Float[Tensor, "r lanes"]:
    """Pad rows with zeros to a multiple of LANES."""
    padded = rows.detach().new_zeros(len(rows), -(-rows.shape[1] // LANES) * LANES)
    padded[:, : rows.shape[1]] = rows.detach()
    return padded
