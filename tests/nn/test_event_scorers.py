"""Scorers of events: roles, memories and margins are their equations; padding changes nothing; gradients."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.scorers import MemoryScorer, RoleScorer
from trelliswork.nn.scorers.memory import given_before
from trelliswork.nn.scorers.roles import words_in_context
from trelliswork.nn.scorers.tensor import contrastive_margin


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def candidates(*rows: tuple[int, int, int, int]) -> dict[str, Tensor]:
    return dict(zip(("row", "trigger", "entity", "event"), torch.tensor(rows).unbind(1), strict=True))


def test_contexts_end_before_the_word() -> None:
    torch.manual_seed(0)
    ahead, back = nn.LSTM(3, 2, batch_first=True).double(), nn.LSTM(3, 2, batch_first=True).double()
    words = draw(1, 4, 3)
    states = torch.cat([ahead(words)[0], back(words.flip(1))[0].flip(1)], -1)
    found = words_in_context(words, states)[0]
    nothing = torch.zeros(2, dtype=torch.float64)
    for i in range(4):
        left = ahead(words[:, :i])[0][0, -1] if i else nothing
        right = back(words[:, i + 1 :].flip(1))[0][0, -1] if i < 3 else nothing
        torch.testing.assert_close(found[i], torch.cat([left, words[0, i], right]))


def test_roles_are_the_equations() -> None:
    torch.manual_seed(0)
    scorer, tokens = RoleScorer(3, n_types=2, n_roles=4, hidden=5, max_distance=2).double().eval(), draw(2, 6, 3)
    found = scorer(tokens, None, **candidates((0, 1, 4, 1), (1, 5, 0, 0)))
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
        torch.testing.assert_close(found[m], scorer.output.weight @ pooled + scorer.output.bias)


def test_roles_do_not_see_padding_and_have_gradients() -> None:
    torch.manual_seed(0)
    scorer, tokens = RoleScorer(3, n_types=2, n_roles=4, hidden=5).double().eval(), draw(2, 4, 3)
    where = candidates((0, 1, 3, 1), (1, 2, 0, 0))
    wide = torch.cat([tokens, 1e3 * draw(2, 2, 3, seed=1)], 1)
    mask = (torch.arange(6) < 4).expand(2, 6)
    torch.testing.assert_close(scorer(wide, mask, **where), scorer(tokens, None, **where))
    assert torch.autograd.gradcheck(lambda x: scorer(x, None, **where), tokens.requires_grad_())


def test_scores_with_a_memory_are_the_equation() -> None:
    torch.manual_seed(0)
    scorer, states, local = MemoryScorer(3, 2, num_labels=4).double(), draw(1, 5, 3), draw(1, 5, 2, seed=1)
    labels = torch.tensor([[2, -1, 2, 0, 1]])
    found = scorer(states, local, labels)
    for i in range(5):
        memory = torch.tensor([float(label in labels[0, :i].tolist()) for label in range(4)], dtype=torch.float64)
        r = torch.cat([states[0, i], local[0, i], memory])
        torch.testing.assert_close(found[0, i], (scorer.linear.weight @ r + scorer.linear.bias).log_softmax(0))
    assert given_before(labels, 4)[0, 4].tolist() == [1, 0, 1, 0]
    assert torch.autograd.gradcheck(lambda x: scorer(x, local, labels), states.requires_grad_())


def test_greedy_decoding_remembers_its_own_labels() -> None:
    torch.manual_seed(0)
    scorer, states, local = MemoryScorer(3, 2, num_labels=4).double(), draw(2, 6, 3), draw(2, 6, 2, seed=1)
    with torch.no_grad():
        scorer.linear.weight[:, 5:] = -20 * torch.eye(4)  # what has been given is not given again, while there is more
    found = scorer.decode(states, local)
    assert sorted(found[0, :4].tolist()) == [0, 1, 2, 3]
    assert torch.equal(scorer(states, local, found).argmax(-1), found)
    mask = torch.tensor([[True] * 6, [True, True, False, False, False, False]])
    masked = scorer.decode(states, local, mask)
    assert torch.equal(masked[0], found[0]) and torch.equal(masked[1, :2], found[1, :2])
    assert (masked[1, 2:] == -1).all()


def test_the_contrastive_margin_is_the_equation() -> None:
    scores, corrupted = draw(3).requires_grad_(), draw(3, 4, seed=1).requires_grad_()
    expected = sum(max(0.0, 1 - g + c) for g, row in zip(scores.tolist(), corrupted.tolist(), strict=True) for c in row)
    assert abs(contrastive_margin(scores, corrupted).item() - expected) < 1e-12
    assert torch.autograd.gradcheck(contrastive_margin, (scores, corrupted))
