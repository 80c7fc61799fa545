"""`SemiMarkov.factored` answers every query as the same scores written out as [n, k, c] do; gradients; memory."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.contract import segmentations as semis
from tests.contract.base import BACKENDS, INF, Instance, chi_square_fits, close, finite_parts, log_sum
from tests.docs.documents import ROOT
from trelliswork.distributions import SemiMarkov, kl_divergence
from trelliswork.errors import ScoreError

FACTORS = ("tokens", "durations", "starts", "ends")
RAGGED = torch.tensor([4, 1, 3])


def factors(
    seed: int, *names: str, n: int = 4, k: int = 3, c: int = 2, dtype: torch.dtype = torch.float64, **options: Tensor
) -> Instance:
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "tokens": (3, n, c), "durations": (k, c), "starts": (3, n, c), "ends": (3, n, c), "transitions": (c, c),
        "start": (c,), "end": (c,),
    }  # fmt: skip
    kept = {name: shape for name, shape in shapes.items() if name in ("tokens", "durations", *names)}
    drawn = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in kept.items()}
    return Instance({name: part.to(dtype) for name, part in drawn.items()}, options)


def forbidden(instance: Instance, **places: tuple[int, ...]) -> Instance:
    scores = {name: part.clone() for name, part in instance.scores.items()}
    for name, place in places.items():
        scores[name][place] = -INF
    return Instance(scores, instance.options)


INSTANCES = {
    "all": factors(0, "starts", "ends", "transitions", "start", "end", lengths=RAGGED),
    "tokens and durations": factors(1, lengths=RAGGED),
    "0th order with starts": factors(2, "starts", "end", c=3),
    "k beyond n": factors(3, "ends", "transitions", n=2, k=4, lengths=torch.tensor([2, 1, 2])),
    "forbidden": forbidden(
        factors(4, "starts", "transitions", "end", lengths=RAGGED),
        tokens=(0, 1, 0), durations=(2, 1), starts=(2, 1, 1), transitions=(0, 0),
    ),
    "limits": factors(5, "transitions", lengths=RAGGED, max_lengths=torch.tensor([3, 1])),
    "wide": factors(6, "ends", "transitions", lengths=RAGGED).mapped(lambda part: 300 * part),
    "float32": factors(7, "starts", "ends", "transitions", lengths=RAGGED, dtype=torch.float32),
}  # fmt: skip
every = pytest.mark.parametrize("instance", INSTANCES.values(), ids=INSTANCES)
both = pytest.mark.parametrize("backend", BACKENDS)


def written_out(instance: Instance) -> Instance:
    """The same scores for each segment, by plain loops."""
    given = {name: part.double() for name, part in instance.scores.items()}
    (batch, n, c), k = given["tokens"].shape, len(given["durations"])
    segments = torch.zeros(batch, n, k, c, dtype=torch.float64)
    for b in range(batch):
        for i in range(n):
            for d in range(1, min(k, n - i) + 1):
                score = given["tokens"][b, i : i + d].sum(0) + given["durations"][d - 1]
                score = score + (given["starts"][b, i] if "starts" in given else 0)
                segments[b, i, d - 1] = score + (given["ends"][b, i + d - 1] if "ends" in given else 0)
    others = {name: part for name, part in given.items() if name not in FACTORS}
    return Instance({"segments": segments, **others}, instance.options)


def build(instance: Instance, backend: str = "auto") -> SemiMarkov:
    return SemiMarkov.factored(**instance.scores, **instance.options, backend=backend)  # type: ignore[arg-type]


@every
@both
def test_every_query_is_that_of_the_scores_written_out(instance: Instance, backend: str) -> None:
    dist, whole = build(instance, backend), written_out(instance)
    plain = SemiMarkov(**whole.scores, **whole.options, backend="torch")  # type: ignore[arg-type]
    supports = [semis.support(whole, row) for row in range(3)]
    size = max(abs(log_sum(list(each.values()))) for each in supports)
    assert dist.log_partition.dtype == instance.dtype
    close(dist.log_partition, [log_sum(list(each.values())) for each in supports])
    assert dist.count.tolist() == [len(each) for each in supports]
    close(dist.marginals, plain.marginals, instance.dtype)
    close(dist.entropy(), plain.entropy(), instance.dtype, magnitude=size)
    assert dist.argmax == plain.argmax
    values, scores = dist.top_k(3)
    for row, support in enumerate(supports):
        wanted = sorted(support.values(), reverse=True)[:3]
        close(scores[:, row], [*wanted, *[-INF] * (3 - len(wanted))])
        assert [support[tuple(values[r][row])] for r in range(len(wanted))] == pytest.approx(wanted, rel=1e-5)
    best = plain.argmax
    close(dist.score(best), plain.score(best), instance.dtype)
    close(dist.log_prob(best), plain.log_prob(best), instance.dtype, magnitude=size)
    close(kl_divergence(dist, plain.expand((3,))), torch.zeros(3), instance.dtype, magnitude=10 * size)
    labels = torch.full(instance.scores["tokens"].shape[:2], -100)
    labels[:, 0] = torch.tensor([row[0][2] for row in best])
    for partial in (labels, [row[:1] for row in best]):
        kept, wanted_kept = dist.constrain(partial), plain.constrain(partial)
        assert type(kept) is SemiMarkov
        close(kept.log_partition, wanted_kept.log_partition, instance.dtype)
        close(dist.log_prob_of_set(partial), plain.log_prob_of_set(partial), instance.dtype, magnitude=size)


@every
@both
def test_gradients_are_those_of_the_scores_written_out(instance: Instance, backend: str) -> None:
    dist = build(leaves := instance.leaves(), backend)
    (dist.log_partition * torch.tensor([1.0, -2.0, 0.5])).sum().backward()
    whole = instance.mapped(lambda part: part.double()).leaves()
    plain = SemiMarkov(**written_out(whole).scores, **whole.options, backend="torch")  # type: ignore[arg-type]
    (plain.log_partition * torch.tensor([1.0, -2.0, 0.5])).sum().backward()
    for name, part in leaves.scores.items():
        wanted = whole.scores[name].grad
        assert part.grad is not None and wanted is not None
        close(part.grad, wanted)
        assert not part.grad[part == -INF].any()


@every
def test_samples_have_the_right_frequencies(instance: Instance) -> None:
    samples = build(instance, "kernel").sample((2000,), generator=torch.Generator().manual_seed(3))
    for row in range(3):
        support = semis.support(written_out(instance), row)
        log_z = log_sum(list(support.values()))
        probabilities = {value: math.exp(score - log_z) for value, score in support.items()}
        counts = Counter(tuple(sample[row]) for sample in samples)
        assert counts.keys() <= probabilities.keys()
        assert chi_square_fits(counts, probabilities)


@pytest.mark.parametrize("query", ["log_partition", "log_prob", "entropy"])
def test_first_and_second_derivatives(query: str) -> None:
    small = forbidden(
        factors(8, "starts", "ends", "transitions", "end", n=3, k=2, lengths=torch.tensor([3, 2, 1])),
        tokens=(0, 1, 0), durations=(1, 1),
    )  # fmt: skip
    free, rebuild = finite_parts(small.scores)
    value = build(small).argmax

    def result(*entries: Tensor) -> Tensor:
        dist = build(small.with_scores(**rebuild(*entries)), "kernel")
        return {"log_partition": lambda: dist.log_partition, "entropy": dist.entropy}.get(
            query, lambda: dist.log_prob(value)
        )()

    assert gradcheck(result, free)
    assert gradgradcheck(result, free, fast_mode=True)


def test_half_precision_comes_back_as_such() -> None:
    dist = build(INSTANCES["all"].mapped(lambda part: part.bfloat16()))
    assert dist.log_partition.dtype == dist.marginals.dtype == torch.bfloat16


@both
def test_what_lies_behind_a_row_is_not_read(backend: str) -> None:
    instance = INSTANCES["all"]
    behind = torch.arange(4)[None, :, None] >= RAGGED[:, None, None]
    filled = instance.with_scores(
        **{name: torch.where(behind, 1e30, instance.scores[name]) for name in ("tokens", "starts", "ends")}
    )
    assert torch.equal(build(filled, backend).log_partition, build(instance, backend).log_partition)
    assert build(filled, backend).argmax == build(instance, backend).argmax


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(tokens=torch.zeros(3)), r"tokens must be \[batch, n, c\]"),
        (dict(durations=torch.zeros(2, 3)), r"durations must be \[k, 2\].*got \(2, 3\)"),
        (dict(starts=torch.zeros(1, 4, 2)), r"starts must be \(1, 5, 2\) like tokens"),
        (dict(transitions=torch.zeros(3, 3)), r"transitions must be \(2, 2\)"),
        (dict(tokens=torch.full((1, 5, 2), math.nan)), r"tokens must be finite .* got nan at \[0, 0, 0\]"),
        (dict(durations=torch.tensor([[0.0, INF]])), r"durations must be finite .* got inf at \[0, 1\]"),
        (dict(max_lengths=[1, 4]), r"max_lengths must lie in 1..3; got 4 for label 1"),
    ],
)
def test_factors_that_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    given = {"tokens": torch.zeros(1, 5, 2), "durations": torch.zeros(3, 2), **arguments}
    with pytest.raises(ScoreError, match=message):
        SemiMarkov.factored(**given)


def test_a_gold_segment_that_is_too_long_is_named() -> None:
    dist = SemiMarkov.factored(torch.zeros(1, 5, 2), torch.zeros(3, 2), max_lengths=[3, 2])
    with pytest.raises(ScoreError, match=r"labelled 1 may cover at most 2 positions; got \(0, 3, 1\) at row 0"):
        dist.log_prob([[(0, 3, 1), (3, 5, 0)]])


LONG = """
import torch
from tests.memory import peak_megabytes
from trelliswork.distributions import SemiMarkov
before = peak_megabytes()
tokens = torch.randn(1, 10_000, 16).requires_grad_()
durations, transitions = torch.randn(16, 16).requires_grad_(), torch.randn(16, 16).requires_grad_()
dist = SemiMarkov.factored(tokens, durations, transitions=transitions)
dist.log_partition.sum().backward()
len(dist.argmax[0])
after = peak_megabytes()
print(after / 1e3, (after - before) / 1e3)
"""


@pytest.mark.thorough
def test_a_long_text_needs_little_memory() -> None:
    """n = 10,000, k = 16, c = 16 with gradients: under 1 GB, torch itself included."""
    for _ in range(2):  # the first may have to compile, which takes memory of its own
        out = subprocess.run([sys.executable, "-c", LONG], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    whole, own = map(float, out.split())
    assert whole < 1.0
    assert own < 0.3
