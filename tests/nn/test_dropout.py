"""Dropout drops each entry by itself, as often as it says, and keeps the mean."""

from __future__ import annotations

import pytest
import torch

from trelliswork.nn.dropout import BITS, STEPS, Dropout

PER_DRAW = 64 // BITS


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_as_many_are_dropped_as_it_says(share: float) -> None:
    """In each of the places that share a random number, and independently in any two of them."""
    torch.manual_seed(0)
    n = 200_000
    kept = (Dropout(share)(torch.ones(n, PER_DRAW)) > 0).double()
    spread = (share * (1 - share) / n) ** 0.5
    assert (kept.mean(0) - (1 - share)).abs().max() < 4.5 * spread
    pairs = torch.corrcoef(kept.T) - torch.eye(PER_DRAW)
    assert pairs.abs().max() < 4.5 * n**-0.5
    following = torch.corrcoef(torch.stack([kept[:-1, -1], kept[1:, 0]]))[0, 1]
    assert abs(following) < 4.5 * n**-0.5


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 7), (2, 0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    dropped = Dropout(0.3)(torch.full(shape, 2.0, dtype=dtype))
    n_kept = round(STEPS * 0.7)
    assert dropped.shape == shape and dropped.dtype == dtype
    allowed = torch.tensor([0.0, 2 * STEPS / n_kept], dtype=torch.float64)
    assert (
        torch.isclose(dropped.double().reshape(-1, 1), allowed, rtol=1e-2 if dtype == torch.bfloat16 else 1e-6)
        .any(1)
        .all()
    )


def test_gradients_pass_where_entries_are_kept() -> None:
    given = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)

    def dropped(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return Dropout(0.4)(x)

    assert torch.autograd.gradcheck(dropped, given)
    assert torch.equal(dropped(given), dropped(given)) and (dropped(given) == 0).any()


def test_nothing_is_dropped_where_nothing_should_be() -> None:
    given = torch.randn(50)
    assert torch.equal(Dropout(0.0)(given), given) and torch.equal(Dropout(0.5).eval()(given), given)
    assert torch.equal(Dropout(1.0)(given), torch.zeros(50))
