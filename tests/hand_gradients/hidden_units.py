"""The gradients of a hidden-unit CRF written out by hand: plain torch arithmetic, no autograd.

The kernels compute the same for sparse inputs; the tests compare both, autograd and finite differences.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from trelliswork.distributions import LinearChain
from trelliswork.runtime.arrays import Float, Int


class HiddenUnitParameters(NamedTuple):
    """W, V, b, c, A, π and τ of [S4.142], or the gradients by them."""

    w: Float[Tensor, "h d"]
    v: Float[Tensor, "h c"]
    b: Float[Tensor, " h"]
    c: Float[Tensor, " c"]
    transitions: Float[Tensor, "c c"]
    start: Float[Tensor, " c"]
    end: Float[Tensor, " c"]


def hidden_unit_loss_gradient(
    x: Float[Tensor, "n d"], model: HiddenUnitParameters, tags: Int[Tensor, " n"]
) -> HiddenUnitParameters:
    """∂(-log p(tags | x)) by every parameter; each is minus a sum of observed less expected, below.

    -log p = -Σ_t log Σ_z ψ_t + log Z [S4.150-152, 156-158, 193-195], with A in ψ_t from the second position on (erratum
    24). The derivative of log Σ_z ψ_t is a sum over units [S4.159-163], that of log Z its mean over all taggings
    [S4.164-168, 175-177, 196-202]; at the ends that leaves π and τ [S4.179-180].
    o_hy = b_h + w_h·x_t + V_hy without c_y [S4.154] (erratum 25), at the y that is summed over [S4.169-174]
    (erratum 26). Posteriors γ_t(y) and ξ_t(i, j) are those of the chain [S4.145-146].
    """
    o = (x @ model.w.T + model.b)[:, :, None] + model.v  # [n, h, c]
    chain = LinearChain((model.c + F.softplus(o).sum(1))[None], model.transitions, start=model.start, end=model.end)
    gamma, xi = chain.marginals[0], chain.pairwise_marginals[0]
    n_labels = gamma.shape[1]
    gold = F.one_hot(tags, n_labels).to(gamma)
    surplus = gold - gamma  # 1[y_t = y] - γ_t(y)
    active = surplus[:, None, :] * torch.sigmoid(o)  # [S4.153, 181]
    by_unit = active.sum(2)
    arcs = gold[:-1, :, None] * gold[1:, None, :]
    return HiddenUnitParameters(
        w=-by_unit.T @ x,  # [S4.185-187]
        v=-active.sum(0),  # [S4.188]
        b=-by_unit.sum(0),  # [S4.189]
        c=-surplus.sum(0),  # [S4.190], no sum over units (erratum 25)
        transitions=-(arcs - xi).sum(0),  # [S4.203]; [S4.178, 182] hold for c only (erratum 27)
        start=-surplus[0],  # [S4.183]
        end=-surplus[-1],  # [S4.184]
    )
