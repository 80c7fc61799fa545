"""Scorers of events: roles and margins are their equations; padding changes nothing; gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.nn.scorers import RoleScorer
from trelliswork.nn.scorers.tensor import contrastive_margin


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def candidates(*rows: tuple[int, int, int, int]) -> dict[str, Tensor]:
    return dict(zip(("row", "trigger", "entity", "event"), torch.tensor(rows).unbind(1), strict=True))


def test_roles_are_the_equations() -> None:
    torch.manual_seed(0)
    scorer, tokens = RoleScorer(3, n_types=2, n_roles=4, hidden=5, max_distance=2).double().eval(), draw(2, 6, 3)
    scores = scorer(tokens, None, **candidates((0, 1, 4, 1), (1, 5, 0, 0)))
    for m, (row, trigger, entity, event) in enumerate([(0, 1, 4, 1), (1, 5, 0, 0)]):
        x = [
            torch.cat([
                tokens[row, i],
                scorer.distances.weight[max(-2, min(2, i - trigger)) + 2], tokens[row, trigger],
                scorer.distances.weight[max(-2, min(2, i - entity)) + 2], tokens[row, entity],
                scorer.types.weight[event],
            ]) for i in range(6)
        ]  # fmt: skip
        y = scorer.mix(torch.stack(x)).tanh()
        cuts = sorted([trigger, entity])
        parts = [y[: cuts[0]], y[cuts[0] : cuts[1]], y[cuts[1] :]]
        pooled = torch.cat([part.amax(0) if len(part) else torch.zeros(5).double() for part in parts])
        torch.testing.assert_close(scores[m], scorer.output.weight @ pooled + scorer.output.bias)


def test_roles_do_not_see_padding_and_have_gradients() -> None:
    torch.manual_seed(0)
    scorer, tokens = RoleScorer(3, n_types=2, n_roles=4, hidden=5).double().eval(), draw(2, 4, 3)
    where = candidates((0, 1, 3, 1), (1, 2, 0, 0))
    wide = torch.cat([tokens, 1e3 * draw(2, 2, 3, seed=1)], 1)
    mask = (torch.arange(6) < 4).expand(2, 6)
    torch.testing.assert_close(scorer(wide, mask, **where), scorer(tokens, None, **where))
    assert torch.autograd.gradcheck(lambda x: scorer(x, None, **where), tokens.requires_grad_())


def test_the_contrastive_margin_is_the_equation() -> None:
    scores, corrupted = draw(3).requires_grad_(), draw(3, 4, seed=1).requires_grad_()
    expected = sum(max(0.0, 1 - g + c) for g, row in zip(scores.tolist(), corrupted.tolist(), strict=True) for c in row)
    assert abs(contrastive_margin(scores, corrupted).item() - expected) < 1e-12
    assert torch.autograd.gradcheck(contrastive_margin, (scores, corrupted))
