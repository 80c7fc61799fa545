"""Binary hidden units between a token's vector and its tags, summed out: the emissions of a hidden-unit CRF."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.nn.scorers.softplus_kernels import LANES, softplus_gradients, softplus_sums
from trelliswork.runtime.autograd import fused
from trelliswork.runtime.bridge import as_array, out_of_reach
from trelliswork.runtime.shapes import Bool, Float


class HiddenUnitScorer(nn.Module):
    """f_y = c_y + Σ_h ln(1 + exp(b_h + w_h · x + V_hy)): H binary units summed out.

    The rest of the model is a chain: A are its transitions, π its start and τ its end scores. A has no share in the
    first token, while c has, and the recursions begin with α_1 = e^π ψ_1 and β_T = e^τ (erratum 24).

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
        nn.init.normal_(self.by_tag, std=n_hidden**-0.5)  # units that treat all tags alike would stay alike

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Scores per token; every scorer takes a `mask`, this one has no use for it."""
        return self.bias + softplus_sum(self.linear(encoded), self.by_tag)


def softplus_sum(inputs: Float[Tensor, "*any h"], by_tag: Float[Tensor, "h c"]) -> Float[Tensor, "*any c"]:
    """Σ_h ln(1 + exp(a_h + V_hy)); on the CPU by kernels that never hold all [tokens, h, c] terms."""
    recorded = torch.compiler.is_compiling() or torch.jit.is_tracing() or out_of_reach()
    kinds = {(each.device.type, each.dtype) for each in (inputs, by_tag)}
    if recorded or kinds not in ({("cpu", torch.float32)}, {("cpu", torch.float64)}):
        return plain_softplus_sum(inputs, by_tag)
    return fused(SoftplusSum(), inputs.flatten(0, -2), by_tag).unflatten(0, inputs.shape[:-1])


def plain_softplus_sum(inputs: Float[Tensor, "*any h"], by_tag: Float[Tensor, "h c"]) -> Float[Tensor, "*any c"]:
    """The same in operations of torch."""
    return F.softplus(inputs.unsqueeze(-1) + by_tag, threshold=40).sum(-2)  # its 20 is good for float32 only


class SoftplusSum:
    """`softplus_sum` of tokens [t, h]; its gradient makes each σ(z) anew rather than keep it."""

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
        inputs, by_tag = tensors
        wide, wide_grad = _in_lanes(by_tag), _in_lanes(grads[0])
        to_inputs, to_by_tag = torch.empty_like(inputs, memory_format=torch.contiguous_format), torch.zeros_like(wide)
        arrays = (wide.numpy(), wide_grad.numpy(), to_inputs.numpy(), to_by_tag.numpy())
        softplus_gradients(as_array(inputs), *arrays)
        return to_inputs, to_by_tag[:, : by_tag.shape[1]]

    def reference(self, inputs: Tensor, by_tag: Tensor) -> Tensor:
        return plain_softplus_sum(inputs, by_tag)


def _in_lanes(rows: Float[Tensor, "r c"]) -> Float[Tensor, "r lanes"]:
    """Rows with zeros behind them up to a multiple of LANES."""
    found = rows.detach().new_zeros(len(rows), -(-rows.shape[1] // LANES) * LANES)
    found[:, : rows.shape[1]] = rows.detach()
    return found
