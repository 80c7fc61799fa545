"""`EditAlignment` against the enumeration of all edit scripts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract.base import BACKENDS, INF, Instance, PartialKnowledge, Plain, StructureContract, close
from trelliswork.distributions import EditAlignment, edit_distance, kl_divergence
from trelliswork.errors import ScoreError
from trelliswork.semirings import Tropical
from trelliswork.structures.edit import structure

READS_WRITES = ((1, 1), (1, 0), (0, 1))


def sizes(instance: Instance) -> list[tuple[int, int]]:
    *batch, n, m, _ = instance.scores["scores"].shape
    rows = torch.Size(batch).numel()
    found = []
    for name, most in (("lengths", n - 1), ("target_lengths", m - 1)):
        given = instance.options.get(name)
        found.append([most] * rows if given is None else given.reshape(-1).tolist())
    return list(zip(*found, strict=True))


def ways(n: int, m: int) -> Iterator[tuple[int, ...]]:
    """All words over the operations that read n and write m: by brute force over words."""
    for size in range(n + m + 1):
        for word in itertools.product(range(3), repeat=size):
            if sum(READS_WRITES[k][0] for k in word) == n and sum(READS_WRITES[k][1] for k in word) == m:
                yield word


@lru_cache(maxsize=64)
def every_way(n: int, m: int) -> list[tuple[int, ...]]:
    return list(ways(n, m))


def cells(word: tuple[int, ...]) -> list[tuple[int, int, int]]:
    i = j = 0
    found = []
    for k in word:
        i, j = i + READS_WRITES[k][0], j + READS_WRITES[k][1]
        found.append((i, j, k))
    return found


def lattice(
    seed: int,
    batch: tuple[int, ...] = (3,),
    n: int = 2,
    m: int = 3,
    *,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    forbidden: tuple[tuple[int, ...], ...] = (),
    **options: Tensor,
) -> Instance:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn((*batch, n + 1, m + 1, 3), generator=generator, dtype=torch.float64)
    for place in forbidden:
        scores[place] = -INF
    return Instance({"scores": scores.to(dtype)}, options)


RAGGED = {"lengths": torch.tensor([2, 0, 1]), "target_lengths": torch.tensor([3, 1, 0])}
SOME = ((0, 1, 1, 0), (0, 2, 3, 1), (2, 0, 1, 2))


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every script of a row with a score above -inf, and that score."""
    scores = instance.scores["scores"].double()
    own = scores.reshape(-1, *scores.shape[-3:])[row].tolist()
    found = {word: sum(own[i][j][k] for i, j, k in cells(word)) for word in every_way(*sizes(instance)[row])}
    return {word: score for word, score in found.items() if score > -INF}


class TestEditAlignment(StructureContract):
    gradient_of = "scores"

    def instances(self) -> dict[str, Instance]:
        return {
            "plain": lattice(0),
            "ragged": lattice(1, **RAGGED),
            "float32": lattice(2, dtype=torch.float32, **RAGGED),
            "forbidden": lattice(3, forbidden=SOME),
            "ties": lattice(4, **RAGGED).mapped(torch.zeros_like),
            "wide": lattice(5, scale=300.0),
            "no batch": lattice(6, (), 3, 1),
            "two axes": lattice(7, (2, 2), 1, 2),
        }

    def small_instances(self) -> dict[str, Instance]:
        options = {"lengths": torch.tensor([1, 1]), "target_lengths": torch.tensor([1, 2])}
        return {"ragged": lattice(20, (2,), 1, 2, forbidden=((0, 1, 1, 0), (1, 0, 2, 2)), **options)}

    def impossible(self) -> tuple[Instance, int]:
        return lattice(21, forbidden=((1, 2, 3, 0), (1, 2, 3, 1), (1, 2, 3, 2))), 1

    def build(self, instance: Instance, backend: str) -> EditAlignment:
        return EditAlignment(**instance.scores, **instance.options, backend=backend)

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return instance.scores["scores"].shape[:-3].numel()

    def to_plain(self, instance: Instance, value: Tensor) -> list[Plain]:
        rows = value.reshape(self.n_rows(instance), -1).tolist()
        return [tuple(step for step in row if step >= 0) for row in rows]

    def to_value(self, instance: Instance, plain: list[Any]) -> Tensor:
        *batch, n, m, _ = instance.scores["scores"].shape
        padded = [[*word, *[-1] * (n + m - 2 - len(word))] for word in plain]
        return torch.tensor(padded, dtype=torch.long).reshape(*batch, n + m - 2)

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["scores"].shape[-3:], dtype=torch.float64)
        for place in cells(plain):
            marks[place] = 1.0
        return marks

    def enumerated_marginals(self, instance: Instance) -> Tensor:
        return super().enumerated_marginals(instance).reshape(instance.scores["scores"].shape)

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        shape = instance.scores["scores"].shape
        allowed = torch.ones(shape, dtype=torch.bool)
        allowed[..., 1, 0, 1] = False  # the first step is no deletion
        partners = torch.full((*shape[:-3], shape[-3] - 1), -100)
        partners[..., 0] = 0  # where there are a first symbol and a partner
        gone = torch.full_like(partners, -100)
        gone[..., 0] = -1

        def pairs(row: int, word: Any) -> bool:
            return sizes(instance)[row][0] == 0 or (1, 1, 0) in cells(word)

        def drops(row: int, word: Any) -> bool:
            return sizes(instance)[row][0] == 0 or any((i, k) == (1, 1) for i, _, k in cells(word))

        return [
            PartialKnowledge(allowed, lambda row, word: not word or word[0] != 1),
            PartialKnowledge(partners, pairs),
            PartialKnowledge(gone, drops),
        ]

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        """Each symbol read or written adds `by`."""
        weights = torch.tensor([2.0, 1.0, 1.0])
        return instance.mapped(lambda part: part + by * weights), [by * (n + m) for n, m in sizes(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        scores, (n, m) = instance.scores["scores"], sizes(instance)[row]
        return Instance({"scores": scores.reshape(-1, *scores.shape[-3:])[row, : n + 1, : m + 1][None]}, {})

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        scores = instance.scores["scores"]
        read = torch.zeros(self.n_rows(instance), *scores.shape[-3:], dtype=torch.bool)
        for row, (n, m) in enumerate(sizes(instance)):
            read[row, 1 : n + 1, 1 : m + 1, 0] = True
            read[row, 1 : n + 1, : m + 1, 1] = True
            read[row, : n + 1, 1 : m + 1, 2] = True
        return instance.with_scores(scores=torch.where(read.reshape(scores.shape), scores, garbage))

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        scores = instance.scores["scores"].clone()
        scores.reshape(-1, *scores.shape[-3:])[row][cells(plain)[-1]] = -INF
        return instance.with_scores(scores=scores)

    # --- edit scripts only -----------------------------------------------------------------------------------

    def test_pair_probability(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        wanted = [
            math.fsum(p for word, p in self.probabilities(instance, row).items() if (1, 1, 0) in cells(word))
            for row in range(self.n_rows(instance))
        ]
        close(dist.pair_probability(0, 0), wanted)


def delannoy(n: int, m: int) -> int:
    return sum(math.comb(m, k) * math.comb(n, k) * 2**k for k in range(min(n, m) + 1))


def test_counts_are_delannoy_numbers() -> None:
    for n, m in itertools.product(range(5), range(5)):
        assert EditAlignment(torch.zeros(1, n + 1, m + 1, 3)).count.tolist() == [delannoy(n, m)]


def levenshtein(x: list[int], y: list[int]) -> int:
    """By definition: the least number of edits, recursively."""
    if not x or not y:
        return len(x) + len(y)
    return min(
        levenshtein(x[1:], y[1:]) + (x[0] != y[0]), levenshtein(x[1:], y) + 1, levenshtein(x, y[1:]) + 1
    )  # fmt: skip


def test_edit_distance_is_the_tropical_total() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(3, (12, size), generator=generator) for size in (5, 4))
    lengths, sizes = torch.randint(6, (12,), generator=generator), torch.randint(5, (12,), generator=generator)
    wanted = [
        levenshtein(a[:n], b[:m])
        for a, b, n, m in zip(*(part.tolist() for part in (x, y, lengths, sizes)), strict=True)
    ]
    assert edit_distance(x, y, lengths=lengths, target_lengths=sizes).tolist() == wanted
    differ = (x[:, :, None] != y[:, None, :]).double()
    ones = torch.ones(12, 5).double(), torch.ones(12, 4).double()
    dist = EditAlignment.from_operations(-differ, -ones[0], -ones[1], lengths=lengths, target_lengths=sizes)
    assert structure.total(dist._parts, Tropical()).tolist() == wanted
    assert edit_distance(x[0], y[0], substitute=5.0).item() == edit_distance(x[:1], y[:1], substitute=2.0).item()


@pytest.mark.parametrize("backend", BACKENDS)
def test_scripts_in_words(backend: str) -> None:
    """kitten -> sitting."""
    x, y = ([ord(letter) - ord("a") for letter in word] for word in ("kitten", "sitting"))
    same = torch.eye(26) - 1
    dist = EditAlignment.from_symbols(
        torch.tensor([x]), torch.tensor([y]), same, torch.full((26,), -1.0), torch.full((26,), -1.0), backend=backend
    )
    (script,) = dist.script(dist.argmax)
    assert [step for step in script if step.source is None or x[step.source] != y[step.target]] == [
        ("substitute", 0, 0), ("substitute", 4, 4), ("insert", None, 6),
    ]  # fmt: skip
    assert dist.score(dist.argmax).tolist() == [-3.0]
    assert edit_distance(torch.tensor(x), torch.tensor(y)).item() == 3


def test_scores_by_operation_and_place() -> None:
    generator = torch.Generator().manual_seed(1)
    pairs = torch.randn(2, 3, 2, generator=generator)
    removed, added = torch.randn(2, 3, generator=generator), torch.randn(2, 2, generator=generator)
    plain = EditAlignment.from_operations(pairs, removed, added)
    placed = EditAlignment.from_operations(
        pairs, removed[..., None].expand(2, 3, 3).clone(), added[:, None].expand(2, 4, 2).clone()
    )
    close(plain.log_partition, placed.log_partition)
    with pytest.raises(ScoreError, match=r"delete must be \(2, 3\) or \(2, 3, 3\)"):
        EditAlignment.from_operations(pairs, added, added)
    with pytest.raises(ScoreError, match=r"x must hold symbols in 0..1"):
        EditAlignment.from_symbols(torch.tensor([2]), torch.tensor([0]), torch.eye(2), torch.ones(2), torch.ones(2))


def test_half_precision_in_and_out() -> None:
    scores = lattice(30).scores["scores"].half().requires_grad_()
    dist = EditAlignment(scores)
    assert dist.log_partition.dtype == dist.marginals.dtype == torch.float16
    torch.testing.assert_close(
        dist.log_partition.double(), EditAlignment(scores.double()).log_partition, rtol=1e-2, atol=0
    )
    dist.log_partition.sum().backward()
    assert scores.grad is not None
    assert scores.grad.dtype == torch.float16


def test_expand_keeps_the_distribution() -> None:
    instance = lattice(31, **RAGGED)
    dist = EditAlignment(**instance.scores, **instance.options)
    assert torch.equal(dist.expand((2, 3)).log_partition, dist.log_partition.expand(2, 3))


DIST = EditAlignment(torch.zeros(1, 3, 2, 3))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: EditAlignment(torch.zeros(3, 2)), r"\[batch, n\+1, m\+1, 3\]"),
        (lambda: EditAlignment(torch.zeros(1, 3, 2, 3).long()), "floating point"),
        (lambda: EditAlignment(torch.full((1, 2, 2, 3), math.nan)), r"got nan at row 0, cell \(0, 1\), insert"),
        (lambda: EditAlignment(torch.zeros(1, 3, 2, 3), lengths=[3]), r"lengths must lie in 0..2; got 3 at row 0"),
        (lambda: DIST.log_prob(torch.zeros(1, 3)), "whole numbers"),
        (lambda: DIST.log_prob(torch.zeros(1, 2).long()), r"steps must be \[..., 1, 3\]; got \(1, 2\)"),
        (lambda: DIST.log_prob(torch.tensor([[0, 3, -1]])), r"-1 behind the last; got 3"),
        (lambda: DIST.log_prob(torch.tensor([[0, -1, -1]])), r"read 2 and write 1 .* got \[0\], which reads 1"),
        (lambda: DIST.pair_probability(2, 0), r"0..1 and 0..0; got 2 and 0"),
        (lambda: DIST.constrain(torch.zeros(1, 3).long()), "partner of each symbol"),
        (lambda: DIST.constrain(torch.ones(1, 2).long()), r"0..0, or be -1 or -100; got 1"),
        (lambda: DIST.expected(torch.zeros(1)), "like the scores"),
        (lambda: kl_divergence(DIST, EditAlignment(torch.zeros(1, 3, 2, 3), lengths=[1])), "same shape"),
    ],
)  # fmt: skip
def test_questions_without_an_answer_are_explained(ask: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_nothing_becomes_nothing_by_the_empty_script(backend: Any, batch: tuple[int, ...]) -> None:
    pairs = EditAlignment(torch.zeros(*batch, 1, 1, 3), backend=backend)
    assert pairs.log_partition.tolist() == pairs.entropy().tolist() == torch.zeros(batch).tolist()
    assert bool((pairs.marginals == 0).all()) and bool((pairs.count == 1).all())
    best, (top, scores), drawn = pairs.argmax, pairs.top_k(2), pairs.sample((4,))
    assert best.shape == (*batch, 0) and top.shape == (2, *batch, 0) and drawn.shape == (4, *batch, 0)
    assert bool((scores[0] == 0).all()) and bool((scores[1] == -INF).all())
    assert pairs.log_prob(drawn).shape == (4, *batch) and bool((pairs.log_prob(best) == 0).all())
    assert pairs.script(best) == ([[]] * 3 if batch else [])
    assert float(edit_distance(torch.tensor([]), torch.tensor([]))) == 0


def test_what_cannot_be_aligned_is_named() -> None:
    table, row = torch.zeros(2, 2), torch.zeros(2)
    with pytest.raises(ScoreError, match=r"substitute must be \(2, 2\)"):
        EditAlignment.from_symbols(torch.tensor([1]), torch.tensor([0]), torch.zeros(1, 1), row, row)
    with pytest.raises(ScoreError, match="x must be whole numbers"):
        EditAlignment.from_symbols(torch.tensor([1.0]), torch.tensor([0]), table, row, row)
    with pytest.raises(ScoreError, match="x must be a tensor; got str"):
        edit_distance("abc", "abd")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="x and y must have the same rows"):
        edit_distance(torch.zeros(2, 3).long(), torch.zeros(3, 3).long())
    pairs = EditAlignment(torch.zeros(3, 3, 3))
    with pytest.raises(ScoreError, match="script takes one path for each row; got 2 samples"):
        pairs.script(pairs.sample((2,)))
