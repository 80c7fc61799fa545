"""The decoder of events with memories: its memories, features and likelihood are those of plain loops."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from trelliswork.nn.scorers.event_memory import OTHER, EventHistory, EventInputs, EventMemory
from trelliswork.nn.scorers.roles import best_events

N_TYPES, N_ROLES, N_KINDS, N_RELATIONS, D, W = 3, 4, 3, 2, 5, 2


def decoder(**settings: bool) -> EventMemory:
    torch.manual_seed(0)
    sizes = dict(n_types=N_TYPES, n_roles=N_ROLES, n_kinds=N_KINDS, n_relations=N_RELATIONS)
    model = EventMemory(D, W, **sizes, hidden=6, context=1, max_distance=2, **settings)  # type: ignore[arg-type]
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model.double().eval()


def reading(seed: int = 0, *, document: bool = False) -> EventInputs:
    """Two sentences, of five and three tokens, with three entities and one.

    The first may be a document of two sentences, three tokens and two, whose last entity is the first one again.
    """
    source = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(shape, generator=source, dtype=torch.float64)  # noqa: E731
    arcs = torch.zeros(2, 5, 5, dtype=torch.long)
    arcs[0, 1, 0], arcs[0, 1, 3], arcs[1, 0, 2] = 1, 2, 2
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None]
    entity, kind = torch.tensor([[0, 3, 4], [2, 0, 0]]), torch.tensor([[1, 2, 1], [2, 0, 0]])
    sentence, same = torch.zeros(2, 5, dtype=torch.long), torch.eye(3, dtype=torch.bool).repeat(2, 1, 1)
    if document:
        sentence[0, 3:] = 1
        same[0, 0, 2] = same[0, 2, 0] = True
    return EventInputs(draw(2, 5, D), draw(2, 5, W), mask, entity, kind, kind > 0, arcs, sentence, same)


TYPES = torch.tensor([[0, 1, 0, 2, 1], [2, 0, 2, 0, 0]])
ROLES = torch.zeros(2, 5, 3, dtype=torch.long)
ROLES[0, 1], ROLES[0, 3], ROLES[0, 4], ROLES[1, 0, 0] = (
    torch.tensor([1, 0, 2]), torch.tensor([3, 1, 0]), torch.tensor([0, 1, 1]), 2,
)  # fmt: skip


class PlainLoop:
    """One sentence, token by token, with sets as memories and features put together one at a time."""

    def __init__(self, model: EventMemory, read: EventInputs, row: int):
        self.model, self.read, self.row = model, read, row
        self.types: set[int] = set()
        self.roles: list[set[int]] = [set() for _ in range(read.entity.shape[1])]
        self.role_types: list[set[int]] = [set() for _ in range(read.entity.shape[1])]

    def begin(self, i: int) -> None:
        """Forget all if a sentence begins and nothing goes across."""
        if not self.model.across and i and self.sentence(i) != self.sentence(i - 1):
            self.types.clear()
            for each in (*self.roles, *self.role_types):
                each.clear()

    def sentence(self, i: int) -> int:
        return int(self.read.sentence[self.row, i])

    def near(self, i: int) -> list[int]:
        """The entities of the sentence of a token."""
        known = range(int(self.read.present[self.row].sum()))
        return [j for j in known if self.sentence(int(self.read.entity[self.row, j])) == self.sentence(i)]

    def local(self, i: int) -> Tensor:
        words = self.read.words[self.row][self.read.mask[self.row]]
        here = [j for j in range(len(words)) if self.sentence(j) == self.sentence(i)]
        return torch.cat([words[j] if j in here else torch.zeros(W).double() for j in (i - 1, i, i + 1)])

    def type_scores(self, i: int) -> Tensor:
        """R_trg = [h_i; L_i; G_trg]."""
        return self.model.type_scores(
            torch.cat([self.read.hidden[self.row, i], self.local(i), hot(self.types, N_TYPES)])
        )

    def role_scores(self, i: int, type_: int, j: int) -> Tensor:
        """R_arg = [h_i; L_i; h_j; L_j; B_ij; G_arg[j]; G_arg/trg[j]]."""
        at = int(self.read.entity[self.row, j])
        distance = max(-2, min(2, at - i)) + 2
        down, up = int(self.read.arcs[self.row, i, at]), int(self.read.arcs[self.row, at, i])
        binary = [
            hot({distance}, 5), hot({type_}, N_TYPES), hot({int(self.read.kind[self.row, j])}, N_KINDS),
            hot({down}, N_RELATIONS + 1), hot({up}, N_RELATIONS + 1),
        ]  # fmt: skip
        b = torch.tanh(self.model.binary(torch.cat(binary)))
        hidden = self.read.hidden[self.row]
        memory = [hot(self.roles[j], N_ROLES), hot(self.role_types[j], N_TYPES)]
        return self.model.role_scores(torch.cat([hidden[i], self.local(i), hidden[at], self.local(at), b, *memory]))

    def take(self, type_: int, roles: list[int]) -> None:
        if type_ != OTHER:
            self.types.add(type_)
        for j, role in enumerate(roles):
            for other in range(len(roles)) if role != OTHER else ():
                if self.read.same[self.row, j, other]:
                    self.roles[other].add(role)
                    self.role_types[other].add(type_)


def hot(values: set[int], n: int) -> Tensor:
    return torch.tensor([float(i in values) for i in range(n)], dtype=torch.float64)


def plain_log_prob(model: EventMemory, read: EventInputs, row: int, types: Tensor, roles: Tensor) -> Tensor:
    """ln p of decisions about one row."""
    loop, total = PlainLoop(model, read, row), torch.zeros(()).double()
    for i in range(int(read.mask[row].sum())):
        loop.begin(i)
        type_, of_roles = int(types[i]), roles[i].tolist()
        total = total + loop.type_scores(i).log_softmax(-1)[type_]
        for j in loop.near(i) if type_ != OTHER else ():
            total = total + loop.role_scores(i, type_, j).log_softmax(-1)[of_roles[j]]
        loop.take(type_, of_roles)
    return total


@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("document", [False, True])
def test_the_loss_is_that_of_a_loop_with_sets(document: bool, across: bool) -> None:
    model, read = decoder(across=across), reading(document=document)
    expected = -sum(plain_log_prob(model, read, row, TYPES[row], ROLES[row]) for row in range(2))
    torch.testing.assert_close(model.loss(read, TYPES, ROLES), expected)


@pytest.mark.parametrize("document", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_decoding_is_that_of_a_loop_with_sets(seed: int, document: bool) -> None:
    model, read = decoder(), reading(seed, document=document)
    (types, roles), n_triggers, n_roles = model.decode(read), 0, 0
    of_types, of_roles = model.log_probs(read, types, roles)
    for row in range(2):
        loop = PlainLoop(model, read, row)
        for i in range(int(read.mask[row].sum())):
            shares = loop.type_scores(i).log_softmax(-1)
            type_ = int(shares.argmax())
            scores = {j: loop.role_scores(i, type_, j).log_softmax(-1) for j in loop.near(i)} if type_ else {}
            expected = [int(scores[j].argmax()) if j in scores else OTHER for j in range(3)]
            assert int(types[row, i]) == type_ and roles[row, i].tolist() == expected
            torch.testing.assert_close(of_types[row, i], shares.max())
            for j, each in scores.items():
                torch.testing.assert_close(of_roles[row, i, j], each.max())
            loop.take(type_, expected)
            n_triggers, n_roles = n_triggers + (type_ > 0), n_roles + sum(role > 0 for role in expected)
    assert n_triggers > 1 and n_roles > 1
    assert bool((types[~read.mask] == OTHER).all())


def test_a_beam_of_one_is_greedy_and_one_of_all_is_every_sequence_of_decisions() -> None:
    model, read = decoder(), reading()
    types, roles = model.decode(read)
    for row in range(2):
        beam = best_events(model, read, row, 1)
        n = int(read.mask[row].sum())
        assert beam.types[0].tolist() == types[row, :n].tolist() and beam.roles[0].tolist() == roles[row, :n].tolist()
    every = best_events(model, read, 1, 10_000)  # three tokens, one entity: (1 + 2 * 4) ** 3
    assert len(every.types) == (1 + (N_TYPES - 1) * N_ROLES) ** 3
    torch.testing.assert_close(every.log_probs.exp().sum(), torch.ones(()).double())
    assert every.log_probs.tolist() == sorted(every.log_probs.tolist(), reverse=True)
    for h in range(0, len(every.types), 60):
        expected = plain_log_prob(model, read, 1, every.types[h], every.roles[h])
        torch.testing.assert_close(every.log_probs[h], expected)
    few = best_events(model, read, 1, 5)
    assert few.log_probs[0] >= best_events(model, read, 1, 1).log_probs[0] - 1e-12


def test_memories_matter_and_can_be_left_out() -> None:
    model, forgetful, read = decoder(), decoder(remember=False), reading()
    before = model.before(read, TYPES, ROLES)
    assert before.types[0].tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 1]]
    assert before.roles[0, 4].tolist() == [[0, 1, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert before.role_types[0, 4].tolist() == [[0, 1, 1], [0, 0, 1], [0, 1, 0]]
    assert all(not each.any() for each in forgetful.before(read, TYPES, ROLES))
    assert isinstance(before, EventHistory)
    assert not torch.isclose(model.loss(read, TYPES, ROLES), forgetful.loss(read, TYPES, ROLES))


def test_padding_changes_nothing_and_gradients_are_right() -> None:
    model, read = decoder(), reading()
    wide = read._replace(
        hidden=F.pad(read.hidden, (0, 0, 0, 2), value=9.0), words=F.pad(read.words, (0, 0, 0, 2), value=9.0),
        mask=F.pad(read.mask, (0, 2)), arcs=F.pad(read.arcs, (0, 2, 0, 2)),
        entity=F.pad(read.entity, (0, 1)), kind=F.pad(read.kind, (0, 1)), present=F.pad(read.present, (0, 1)),
        sentence=F.pad(read.sentence, (0, 2), value=-1), same=F.pad(read.same, (0, 1, 0, 1)),
    )  # fmt: skip
    types, roles = F.pad(TYPES, (0, 2)), F.pad(ROLES, (0, 1, 0, 2))
    torch.testing.assert_close(model.loss(wide, types, roles), model.loss(read, TYPES, ROLES))
    hidden = read.hidden.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda h: model.loss(read._replace(hidden=h), TYPES, ROLES), hidden, fast_mode=True)
    nobody = read._replace(
        entity=read.entity[:, :0], kind=read.kind[:, :0], present=read.present[:, :0], same=read.same[:, :0, :0]
    )  # fmt: skip
    assert model.loss(nobody, TYPES, ROLES[..., :0]) > 0 and model.decode(nobody)[1].shape == (2, 5, 0)
