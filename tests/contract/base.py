"""The contract of every structured distribution, checked against enumeration.

A structure inherits `StructureContract` and fills in the hooks: instances to try, how to build the distribution,
and a brute-force list of what is possible. Everything else here speaks of values and their scores only, so it is
the same for tag sequences, segmentations and trees. A value of one row appears in its *plain* form: something
hashable, such as a tuple of tags.

Rows are numbered along the flattened batch shape.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trelliswork.distributions import StructuredDistribution, kl_divergence
from trelliswork.errors import ConstraintError, ScoreError

INF = float("inf")
Plain = Hashable
BACKENDS = ("kernel", "torch")
GARBAGE = (1e30, -1e30, 300.0, -INF)
Judge = Callable[[Tensor, Tensor | list[Any], torch.dtype], None]
_JUDGE: ContextVar[Judge | None] = ContextVar("judge", default=None)


@dataclass(frozen=True, eq=False)
class Instance:
    """What a distribution is made from: named score tensors, and options such as lengths."""

    scores: dict[str, Tensor]
    options: dict[str, Tensor]

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.scores.values())).dtype

    def with_scores(self, **scores: Tensor) -> Instance:
        return replace(self, scores={**self.scores, **scores})

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Instance:
        return replace(self, scores={name: change(part) for name, part in self.scores.items()})

    def leaves(self) -> Instance:
        """Copies of the scores to differentiate by."""
        return self.mapped(lambda part: part.detach().clone().requires_grad_())

    @lru_cache(maxsize=1024)  # noqa: B019, what is enumerated once has to live
    def perturbed(self, seed: int = 11) -> Instance:
        """Other finite scores, -inf in the same places."""
        generator = torch.Generator().manual_seed(seed)
        return self.mapped(lambda part: part + torch.randn(part.shape, generator=generator).to(part.dtype))


class Every(dict[str, Instance]):
    """Instances by name; a test that asks for one is run for each of them."""


@dataclass(frozen=True)
class PartialKnowledge:
    """What `constrain` and `log_prob_of_set` are given, and which values agree with it."""

    argument: Any
    agrees: Callable[[int, Any], bool]


def close(
    found: Tensor, expected: Tensor | list[Any], dtype: torch.dtype | None = None, *, magnitude: float = 1.0
) -> None:
    """Equal to 1e-10 in float64, to 1e-5 in float32; NaN equals nothing.

    `magnitude` is the size of the numbers whose difference is looked at: their rounding is what can be asked for.
    """
    if (judge := _JUDGE.get()) is not None:
        judge(found, expected, dtype or found.dtype)
        return
    tolerance = 1e-10 if (dtype or found.dtype) == torch.float64 else 1e-5
    seen, wanted = found.detach().double(), torch.as_tensor(expected, dtype=torch.float64).reshape(found.shape)
    atol = tolerance * max(1.0, magnitude)
    # assert_close says where they differ, and takes ten times as long
    if not torch.allclose(seen, wanted, rtol=tolerance, atol=atol):
        torch.testing.assert_close(seen, wanted, rtol=tolerance, atol=atol)


@contextmanager
def judged_by(judge: Judge) -> Iterator[None]:
    """Inside, `close` hands what it compares to `judge(found, expected, dtype)`, which measures or raises."""
    token = _JUDGE.set(judge)
    try:
        yield
    finally:
        _JUDGE.reset(token)


@contextmanager
def case(**what: Any) -> Iterator[None]:
    """One of several cases of a test: a failure inside says which."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case {what}")
        raise


def log_sum(scores: list[float]) -> float:
    highest = max(scores, default=-INF)
    return highest if highest == -INF else highest + math.log(math.fsum(math.exp(s - highest) for s in scores))


def entropy(log_probabilities: dict[Plain, float]) -> float:
    return -math.fsum(math.exp(log_p) * log_p for log_p in log_probabilities.values())


def divergence(mine: dict[Plain, float], theirs: dict[Plain, float]) -> float:
    return math.fsum(math.exp(log_p) * (log_p - theirs[value]) for value, log_p in mine.items())


def covariance(probabilities: dict[Plain, float], a: dict[Plain, float], b: dict[Plain, float]) -> float:
    means = [math.fsum(p * each[value] for value, p in probabilities.items()) for each in (a, b)]
    return math.fsum(p * (a[value] - means[0]) * (b[value] - means[1]) for value, p in probabilities.items())


def finite_parts(scores: dict[str, Tensor]) -> tuple[list[Tensor], Callable[..., dict[str, Tensor]]]:
    """The entries above -inf as leaves, and the way back to the tensors, where -inf is a constant."""
    masks = {name: part > -INF for name, part in scores.items()}
    free = [scores[name][mask].detach().clone().requires_grad_() for name, mask in masks.items()]

    def rebuild(*entries: Tensor) -> dict[str, Tensor]:
        return {
            name: torch.full_like(scores[name], -INF).masked_scatter(mask, part)
            for (name, mask), part in zip(masks.items(), entries, strict=True)
        }

    return free, rebuild


def chi_square_fits(counts: Counter[Plain], probabilities: dict[Plain, float]) -> bool:
    """Whether counts could come from these probabilities: only one fair sample in a million fails."""
    n = sum(counts.values())
    frequent = {value: p for value, p in probabilities.items() if n * p >= 5}
    observed = [counts[value] for value in frequent]
    expected = [n * p for p in frequent.values()]
    rest = n - sum(expected)
    if rest > 1:
        observed.append(n - sum(observed))
        expected.append(rest)
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return bool(statistic <= stats.chi2.ppf(1 - 1e-6, max(len(expected) - 1, 1)))


class StructureContract:
    """Hooks first, then the tests. A hook that a structure cannot fill means a query that it cannot answer."""

    backends: tuple[str, ...] = BACKENDS
    gradient_of: str  # the score tensor by which the gradient of log Z is `marginals`

    # --- hooks -----------------------------------------------------------------------------------------------

    def instances(self) -> dict[str, Instance]:
        """Named instances in which every row has at least one possible value."""
        raise NotImplementedError

    def small_instances(self) -> dict[str, Instance]:
        """Tiny float64 instances, with -inf among the scores, for numerical derivatives."""
        raise NotImplementedError

    def impossible(self) -> tuple[Instance, int]:
        """An instance, and its only row in which nothing is possible."""
        raise NotImplementedError

    def build(self, instance: Instance, backend: str) -> Any:
        raise NotImplementedError

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        """Every possible value of a row with its score, by brute force; values with a score of -inf left out."""
        raise NotImplementedError

    def n_rows(self, instance: Instance) -> int:
        raise NotImplementedError

    def to_plain(self, instance: Instance, value: Any) -> list[Plain]:
        """A batched value, row by row."""
        raise NotImplementedError

    def to_value(self, instance: Instance, plain: list[Plain]) -> Any:
        """One value a row, as the distribution takes them."""
        raise NotImplementedError

    def indicator(self, instance: Instance, row: int, plain: Plain) -> Tensor:
        """1 at the parts of a value, shaped like that row's `marginals`."""
        raise NotImplementedError

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        raise NotImplementedError

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        """All values of a row moved by the same amount, and that amount for each row."""
        raise NotImplementedError

    def one_row(self, instance: Instance, row: int) -> Instance:
        """The row by itself, without padding."""
        raise NotImplementedError

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        """Other numbers wherever lengths or masks say that nothing is read."""
        raise NotImplementedError

    def forbidding(self, instance: Instance, row: int, plain: Plain) -> Instance:
        """One part of that value made impossible."""
        raise NotImplementedError

    # --- what tests ask for: conftest.py runs them for every instance -----------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "backend" in metafunc.fixturenames:
            metafunc.parametrize("backend", self.backends)

    @pytest.fixture
    def instance(self) -> Every:
        return Every(self._instances())

    @pytest.fixture
    def small(self) -> Every:
        return Every(self._small_instances())

    @classmethod
    @lru_cache
    def _instances(cls) -> dict[str, Instance]:
        return cls().instances()

    @classmethod
    @lru_cache
    def _small_instances(cls) -> dict[str, Instance]:
        return cls().small_instances()

    # --- what the tests share; an instance is enumerated once for all of them ---------------------------------

    @classmethod
    def first_instance(cls) -> Instance:
        """For what does not depend on the scores."""
        return next(iter(cls._instances().values()))

    def supports(self, instance: Instance) -> list[dict[Plain, float]]:
        return [self.support(instance, row) for row in range(self.n_rows(instance))]

    def log_zs(self, instance: Instance) -> list[float]:
        return self._log_zs(instance)

    @classmethod
    @lru_cache(maxsize=4096)
    def _log_zs(cls, instance: Instance) -> list[float]:
        return [log_sum(list(support.values())) for support in cls().supports(instance)]

    def magnitude(self, instance: Instance) -> float:
        """Entropies and divergences are differences of numbers of this size."""
        return max(abs(log_z) for log_z in self.log_zs(instance))

    def log_probabilities(self, instance: Instance, row: int) -> dict[Plain, float]:
        """Exact for values whose probability has lost its digits, or is 0, in float64."""
        log_z = self.log_zs(instance)[row]
        return {value: score - log_z for value, score in self.support(instance, row).items()}

    def probabilities(self, instance: Instance, row: int) -> dict[Plain, float]:
        return self._probabilities(instance, row)

    @classmethod
    @lru_cache(maxsize=1024)
    def _probabilities(cls, instance: Instance, row: int) -> dict[Plain, float]:
        return {value: math.exp(log_p) for value, log_p in cls().log_probabilities(instance, row).items()}

    def values(self, instance: Instance) -> list[tuple[list[Plain], Any]]:
        return self._values(instance)

    @classmethod
    @lru_cache(maxsize=64)
    def _values(cls, instance: Instance) -> list[tuple[list[Plain], Any]]:
        """Every possible value of every row, batched: rows with fewer begin again."""
        self = cls()
        lists = [list(support) for support in self.supports(instance)]
        batches = [[values[i % len(values)] for values in lists] for i in range(max(map(len, lists)))]
        return [(plain, self.to_value(instance, plain)) for plain in batches]

    def enumerated_marginals(self, instance: Instance) -> Tensor:
        return self._enumerated_marginals(instance)

    @classmethod
    @lru_cache(maxsize=256)
    def _enumerated_marginals(cls, instance: Instance) -> Tensor:
        self, rows = cls(), []
        for row in range(self.n_rows(instance)):
            weighted = [
                p * self.indicator(instance, row, value) for value, p in self.probabilities(instance, row).items()
            ]
            rows.append(torch.stack(weighted).sum(0))
        return torch.stack(rows)

    def gradients(self, instance: Instance, backend: str, query: str) -> dict[str, Tensor | None]:
        """By every score tensor, of the sum of the squares of a query's answer."""
        leaves = instance.leaves()
        found = getattr(self.build(leaves, backend), query)
        (found() if callable(found) else found).pow(2).sum().backward()
        return {name: part.grad for name, part in leaves.scores.items()}

    def with_every_garbage(self, instance: Instance) -> dict[float, Instance]:
        """Other numbers where nothing is read; no instances if everything is."""
        filled = {garbage: self.with_garbage(instance, garbage) for garbage in GARBAGE}
        read_all = all(torch.equal(part, filled[300.0].scores[name]) for name, part in instance.scores.items())
        return {} if read_all else filled

    # --- log Z, scores, probabilities ------------------------------------------------------------------------

    def test_log_partition(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        assert dist.log_partition.dtype == instance.dtype
        assert dist.log_partition.shape == dist.batch_shape
        close(dist.log_partition, self.log_zs(instance))

    def test_score_and_log_prob_of_every_value(self, instance: Instance, backend: str) -> None:
        dist, supports, log_zs = self.build(instance, backend), self.supports(instance), self.log_zs(instance)
        for plain, value in self.values(instance):
            scores = [support[each] for support, each in zip(supports, plain, strict=True)]
            close(dist.score(value), scores)
            log_prob = dist.log_prob(value)
            close(log_prob, [score - log_z for score, log_z in zip(scores, log_zs, strict=True)])
            assert (log_prob <= 0).all()

    def test_count(self, instance: Instance, backend: str) -> None:
        count = self.build(instance, backend).count
        assert count.reshape(-1).tolist() == [len(support) for support in self.supports(instance)]

    # --- marginals -------------------------------------------------------------------------------------------

    def test_marginals(self, instance: Instance, backend: str) -> None:
        close(self.build(instance, backend).marginals, self.enumerated_marginals(instance))

    def test_the_gradient_of_log_partition_is_the_marginals(self, instance: Instance, backend: str) -> None:
        leaves = instance.leaves()
        self.build(leaves, backend).log_partition.sum().backward()
        gradient = leaves.scores[self.gradient_of].grad
        assert gradient is not None
        close(gradient, self.enumerated_marginals(instance).reshape(gradient.shape))

    # --- best values -----------------------------------------------------------------------------------------

    def test_argmax_is_a_best_value(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        assert self.to_plain(instance, dist.argmax) == self.to_plain(instance, dist.mode)
        for best, support in zip(self.to_plain(instance, dist.argmax), self.supports(instance), strict=True):
            close(torch.tensor(support[best], dtype=torch.float64), [max(support.values())], instance.dtype)

    def test_top_k_is_the_head_of_the_sorted_enumeration(self, instance: Instance, backend: str) -> None:
        more_than_there_are = min(map(len, self.supports(instance))) + 2
        for k in sorted({1, 3, more_than_there_are}):
            with case(k=k):
                self.check_top_k(instance, backend, k)

    def check_top_k(self, instance: Instance, backend: str, k: int) -> None:
        values, scores = self.build(instance, backend).top_k(k)
        by_rank = [self.to_plain(instance, values[r]) for r in range(k)]
        for row, support in enumerate(self.supports(instance)):
            wanted = sorted(support.values(), reverse=True)[:k]
            found = scores.reshape(k, -1)[:, row]
            close(found, [*wanted, *[-INF] * (k - len(wanted))])
            assert (found[1:] <= found[:-1]).all()
            kept = [by_rank[r][row] for r in range(len(wanted))]
            assert len(set(kept)) == len(kept)
            close(found[: len(kept)], [support[value] for value in kept])

    # --- samples ---------------------------------------------------------------------------------------------

    def test_samples_have_the_right_frequencies(self, instance: Instance, backend: str) -> None:
        dist, n = self.build(instance, backend), 1000 if backend == "kernel" else 150
        samples = dist.sample((n,), generator=torch.Generator().manual_seed(5))
        drawn = [self.to_plain(instance, samples[s]) for s in range(n)]
        for row in range(self.n_rows(instance)):
            counts = Counter(each[row] for each in drawn)
            probabilities = self.probabilities(instance, row)
            assert counts.keys() <= probabilities.keys(), "an impossible value was drawn"
            assert chi_square_fits(counts, probabilities)

    def test_samples_come_in_the_shape_asked_for(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        torch.manual_seed(0)
        assert dist.sample().shape == dist.batch_shape + dist.event_shape
        assert dist.sample((2, 3)).shape == (2, 3, *dist.batch_shape, *dist.event_shape)
        assert dist.sample((0,)).shape == (0, *dist.batch_shape, *dist.event_shape)

    def test_the_same_seed_draws_the_same_samples(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        first, second = (dist.sample((4,), generator=torch.Generator().manual_seed(9)) for _ in range(2))
        for s in range(4):
            assert self.to_plain(instance, first[s]) == self.to_plain(instance, second[s])

    # --- entropy and KL --------------------------------------------------------------------------------------

    def test_entropy(self, instance: Instance, backend: str) -> None:
        wanted = [
            -math.fsum(p * math.log(p) for p in self.probabilities(instance, row).values() if p > 0)
            for row in range(self.n_rows(instance))
        ]
        close(self.build(instance, backend).entropy(), wanted, magnitude=self.magnitude(instance))

    def test_kl_divergence(self, instance: Instance, backend: str) -> None:
        other = instance.perturbed()
        both = [
            (self.log_probabilities(instance, row), self.log_probabilities(other, row))
            for row in range(self.n_rows(instance))
        ]
        wanted = [
            math.fsum(math.exp(log_p) * (log_p - theirs[value]) for value, log_p in mine.items())
            for mine, theirs in both
        ]
        p, q = self.build(instance, backend), self.build(other, backend)
        close(kl_divergence(p, q), wanted, magnitude=self.magnitude(instance))
        assert (kl_divergence(p, q).shape, kl_divergence(p, q).dtype) == (p.batch_shape, instance.dtype)
        assert (p.entropy().shape, p.entropy().dtype) == (p.batch_shape, instance.dtype)
        same = torch.distributions.kl_divergence(p, p)
        close(same, torch.zeros_like(same), magnitude=self.magnitude(instance))

    def test_kl_divergence_is_infinite_where_the_other_forbids(self, instance: Instance, backend: str) -> None:
        best = max(self.support(instance, 0).items(), key=lambda pair: pair[1])[0]
        if len(self.support(instance, 0)) == 1:
            pytest.fail("row 0 of every instance needs a second value")
        less = self.forbidding(instance, 0, best)
        p, q = self.build(instance, backend), self.build(less, backend)
        assert kl_divergence(p, q).reshape(-1)[0].item() == INF
        if self.support(less, 0):
            wanted = self.log_zs(instance)[0] - self.log_zs(less)[0]
            close(kl_divergence(q, p).reshape(-1)[0], [wanted], magnitude=self.magnitude(instance))

    def exact_log_probabilities(self, instance: Instance, row: int) -> dict[Plain, float]:
        """Of scores whose differences are exact, however far from 0 they are."""
        support = self.support(instance, row)
        best = max(support.values())
        log_z = log_sum([score - best for score in support.values()])
        return {value: (score - best) - log_z for value, score in support.items()}

    def sharpened(self, instance: Instance) -> Instance:
        """Scores so far apart that exp of their differences is 0."""
        return instance.mapped(lambda part: part * 1e4)

    def test_kl_divergence_is_infinite_however_improbable_what_is_forbidden_is(
        self, instance: Instance, backend: str
    ) -> None:
        support = self.support(instance, 0)
        worst = min(support.items(), key=lambda pair: pair[1])[0]
        p = self.build(self.sharpened(instance), backend)
        q = self.build(self.forbidding(instance, 0, worst), backend)
        assert kl_divergence(p, q).reshape(-1)[0].item() == INF

    def offsets(self, instance: Instance, by: float) -> list[Instance]:
        """The instance far away from 0: without a change of probabilities, and with all scores moved alike."""
        return [self.shifted(instance, by)[0], instance.mapped(lambda part: part + by)]

    def test_entropy_and_divergences_at_an_offset(self, instance: Instance, backend: str) -> None:
        """One argument is a million away, in numbers that are added without rounding."""
        grid = 2.0**20 if instance.dtype == torch.float64 else 8.0
        here, other = (
            each.mapped(lambda part: (part * grid).round() / grid) for each in (instance, instance.perturbed())
        )
        q = self.build(other, backend)
        for moved in self.offsets(here, 2.0**20):
            p = self.build(moved, backend)
            rows = [[self.exact_log_probabilities(each, row) for each in (moved, other)]
                    for row in range(self.n_rows(instance))]  # fmt: skip
            close(p.entropy(), [entropy(mine) for mine, _ in rows], magnitude=self.magnitude(here))
            close(kl_divergence(p, q), [divergence(*each) for each in rows], magnitude=self.magnitude(here))
            close(kl_divergence(q, p), [divergence(*each[::-1]) for each in rows], magnitude=self.magnitude(here))
            assert bool((kl_divergence(p, p) >= 0).all()) and bool((p.entropy() >= 0).all())
            close(kl_divergence(p, p), [0.0] * len(rows), magnitude=self.magnitude(here))

    def test_kl_divergence_to_what_has_no_value_is_infinite(self, backend: str) -> None:
        nothing, row = self.impossible()
        p, q = self.build(nothing.mapped(torch.zeros_like), backend), self.build(nothing, backend)
        assert kl_divergence(p, q).reshape(-1)[row].item() == INF
        assert not kl_divergence(p, q).isnan().any()
        assert not kl_divergence(q, p).isnan().any()

    # --- covariances of costs --------------------------------------------------------------------------------

    def random_costs(self, instance: Instance, seed: int) -> Tensor:
        """Random costs, shaped like `marginals`."""
        shape = self.build(instance, "torch").marginals.shape
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(instance.dtype)

    def test_covariance(self, instance: Instance, backend: str) -> None:
        dist, a, b = self.build(instance, backend), self.random_costs(instance, 1), self.random_costs(instance, 2)
        pairs, squares = [], []
        for row in range(self.n_rows(instance)):
            probabilities = self.probabilities(instance, row)
            marks = {value: self.indicator(instance, row, value) for value in probabilities}
            priced = [each.double().reshape(-1, *next(iter(marks.values())).shape)[row] for each in (a, b)]
            first, second = ({value: float((mark * costs).sum()) for value, mark in marks.items()} for costs in priced)
            pairs.append(covariance(probabilities, first, second))
            squares.append(covariance(probabilities, first, first))
        close(dist.covariance(a, b), pairs)
        close(dist.variance(a), squares)
        assert (dist.variance(a).shape, dist.variance(a).dtype) == (dist.batch_shape, instance.dtype)
        assert bool((dist.variance(torch.ones_like(a)) >= 0).all())

    # --- temperature -----------------------------------------------------------------------------------------

    def test_tempered_divides_every_score(self, instance: Instance, backend: str) -> None:
        dist, (plain, value) = self.build(instance, backend), self.values(instance)[0]
        for t in (0.5, 3):
            with case(t=t):
                tempered = dist.tempered(t)
                assert type(tempered) is type(dist)
                supports = [{each: score / t for each, score in part.items()} for part in self.supports(instance)]
                close(tempered.log_partition, [log_sum(list(support.values())) for support in supports])
                close(tempered.score(value), [part[each] for part, each in zip(supports, plain, strict=True)])

    @pytest.mark.parametrize("t", [0, -1.0, INF, float("nan"), True, "1"])
    def test_a_temperature_is_a_number_above_zero(self, backend: str, t: Any) -> None:
        with pytest.raises(ScoreError, match="t must be a number above 0; got"):
            self.build(self.first_instance(), backend).tempered(t)

    def test_slips_in_sizes_are_explained(self, backend: str) -> None:
        dist = self.build(self.first_instance(), backend)
        with pytest.raises(ScoreError, match=r"sample_shape must be a tuple; got 3; write sample\(\(3,\)\)"):
            dist.sample(3)
        with pytest.raises(ScoreError, match=r"k must be a whole number; got 1\.5"):
            dist.top_k(1.5)

    # --- partial knowledge -----------------------------------------------------------------------------------

    def test_log_prob_of_a_set(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        for partial in self.partials(instance):
            wanted = []
            for row, support in enumerate(self.supports(instance)):
                kept = [score for value, score in support.items() if partial.agrees(row, value)]
                wanted.append(min(log_sum(kept) - log_sum(list(support.values())), 0.0))
            close(dist.log_prob_of_set(partial.argument), wanted)

    def test_constrain_keeps_exactly_what_agrees(self, instance: Instance, backend: str) -> None:
        for partial in self.partials(instance):
            kept = self.build(instance, backend).constrain(partial.argument)
            assert type(kept) is type(self.build(instance, backend))
            supports = [
                {value: score for value, score in support.items() if partial.agrees(row, value)}
                for row, support in enumerate(self.supports(instance))
            ]
            close(kept.log_partition, [log_sum(list(support.values())) for support in supports])
            assert kept.count.reshape(-1).tolist() == [len(support) for support in supports]

    # --- invariances -----------------------------------------------------------------------------------------

    def test_a_common_shift_moves_log_partition_and_nothing_else(self, instance: Instance, backend: str) -> None:
        moved, amounts = self.shifted(instance, 3.25)
        before, after = self.build(instance, backend), self.build(moved, backend)
        close(after.log_partition, [z + a for z, a in zip(self.log_zs(instance), amounts, strict=True)])
        close(after.marginals, before.marginals)
        close(after.entropy(), before.entropy(), magnitude=self.magnitude(instance))
        assert self.to_plain(instance, after.argmax) == self.to_plain(instance, before.argmax)

    def test_a_row_by_itself_is_the_row_in_the_batch(self, instance: Instance, backend: str) -> None:
        whole = self.build(instance, backend)
        log_zs, entropies = whole.log_partition.reshape(-1), whole.entropy().reshape(-1)
        for row in range(self.n_rows(instance)):
            single = self.one_row(instance, row)
            alone = self.build(single, backend)
            close(alone.log_partition, [log_zs[row].item()])
            close(alone.entropy(), [entropies[row].item()], magnitude=self.magnitude(instance))
            assert self.to_plain(single, alone.argmax) == [self.to_plain(instance, whole.argmax)[row]]

    def test_what_is_not_read_changes_nothing(self, instance: Instance, backend: str) -> None:
        before = self.build(instance, backend)
        for garbage, filled in self.with_every_garbage(instance).items():
            after = self.build(filled, backend)
            with case(garbage=garbage):
                for query in ("log_partition", "marginals", "count"):
                    assert torch.equal(getattr(before, query), getattr(after, query)), query
                close(after.entropy(), before.entropy())
                assert self.to_plain(instance, before.argmax) == self.to_plain(instance, after.argmax)
                assert torch.equal(before.top_k(2)[1], after.top_k(2)[1])

    @pytest.mark.parametrize("query", ["log_partition", "marginals", "entropy"])
    def test_what_is_not_read_has_gradient_zero(self, instance: Instance, backend: str, query: str) -> None:
        every = self.with_every_garbage(instance)
        wanted = self.gradients(instance, backend, query) if every else {}
        for garbage, filled in every.items():
            found = self.gradients(filled, backend, query)
            for name, gradient in wanted.items():
                with case(garbage=garbage, by=name):
                    other = found[name]
                    assert (gradient is None) == (other is None)
                    if gradient is not None and other is not None:
                        close(other, gradient)

    def test_some_instance_has_something_that_is_not_read(self) -> None:
        assert any(map(self.with_every_garbage, self._instances().values()))

    def test_kernel_and_reference_agree(self, instance: Instance) -> None:
        results = []
        for backend in self.backends:
            leaves = instance.leaves()
            dist = self.build(leaves, backend)
            total = dist.log_partition.sum() + dist.entropy().sum() + (dist.marginals**2).sum()
            total.backward()
            results.append((dist, {name: part.grad for name, part in leaves.scores.items()}))
        (fast, fast_gradients), (plain, plain_gradients) = results
        close(fast.log_partition, plain.log_partition)
        close(fast.marginals, plain.marginals)
        close(fast.entropy(), plain.entropy(), magnitude=self.magnitude(instance))
        assert self.to_plain(instance, fast.argmax) == self.to_plain(instance, plain.argmax)
        for name, gradient in fast_gradients.items():
            close(gradient, plain_gradients[name])

    def test_inputs_are_never_changed(self, instance: Instance, backend: str) -> None:
        copies = {name: part.clone() for name, part in {**instance.scores, **instance.options}.items()}
        dist = self.build(instance, backend)
        dist.log_partition, dist.marginals, dist.argmax, dist.top_k(2), dist.entropy(), dist.sample((2,))
        for name, part in {**instance.scores, **instance.options}.items():
            assert torch.equal(part, copies[name]), name

    # --- rows in which nothing is possible -------------------------------------------------------------------

    def test_an_impossible_row_has_log_partition_minus_infinity_and_gradient_zero(self, backend: str) -> None:
        instance, row = self.impossible()
        leaves = instance.leaves()
        dist = self.build(leaves, backend)
        close(dist.log_partition, self.log_zs(instance))
        assert dist.log_partition.reshape(-1)[row].item() == -INF
        assert dist.count.reshape(-1)[row].item() == 0
        assert (dist.marginals.reshape(self.n_rows(instance), -1)[row] == 0).all()
        dist.log_partition.reshape(-1)[row].backward()
        for name, part in leaves.scores.items():
            assert part.grad is not None
            assert (part.grad == 0).all(), name

    def test_an_impossible_row_leaves_the_gradients_of_others_alone(self, backend: str) -> None:
        instance, row = self.impossible()
        leaves = instance.leaves()
        dist = self.build(leaves, backend)
        others = [r for r in range(self.n_rows(instance)) if r != row]
        (dist.log_partition.reshape(-1)[others].sum() + dist.marginals.pow(2).sum()).backward()
        for name, part in leaves.scores.items():
            assert part.grad is not None
            assert part.grad.isfinite().all(), name

    @pytest.mark.parametrize("query", ["argmax", "mode", "top_k", "sample"])
    def test_an_impossible_row_is_named_when_a_value_is_asked_for(self, backend: str, query: str) -> None:
        instance, row = self.impossible()
        dist = self.build(instance, backend)
        ask = {
            "argmax": lambda: dist.argmax,
            "mode": lambda: dist.mode,
            "top_k": lambda: dist.top_k(2),
            "sample": lambda: dist.sample((2,)),
        }[query]
        with pytest.raises(ConstraintError, match=rf"row {row} has no .* above -inf; allow"):
            ask()

    def test_in_an_impossible_row_every_value_has_probability_zero(self, backend: str) -> None:
        instance, row = self.impossible()
        relaxed = instance.mapped(torch.zeros_like)
        value = self.to_value(instance, [next(iter(support)) for support in self.supports(relaxed)])
        dist = self.build(instance, backend)
        assert dist.score(value).reshape(-1)[row].item() == -INF
        assert dist.log_prob(value).reshape(-1)[row].item() == -INF
        for partial in self.partials(instance):
            assert dist.log_prob_of_set(partial.argument).reshape(-1)[row].item() == -INF

    # --- derivatives -----------------------------------------------------------------------------------------

    def derivative_queries(self, instance: Instance) -> dict[str, Callable[[StructuredDistribution], Tensor]]:
        """Differentiable queries by name; the last value of each row is one without -inf."""
        _, value = self.values(instance)[-1]
        partial = self.partials(instance)[0].argument
        same, other = self.build(instance, "torch"), self.build(instance.perturbed(), "torch")
        return {
            "log_partition": lambda dist: dist.log_partition,
            "log_prob": lambda dist: dist.log_prob(value),
            "marginals": lambda dist: dist.marginals,
            "entropy": lambda dist: dist.entropy(),
            "log_prob_of_set": lambda dist: dist.log_prob_of_set(partial),
            "kl_divergence": lambda dist: kl_divergence(dist, other) + kl_divergence(other, dist),
            "kl_divergence, where it is 0": lambda dist: kl_divergence(same, dist),
        }

    @pytest.mark.parametrize(
        "query",
        ["log_partition", "log_prob", "marginals", "entropy", "log_prob_of_set", "kl_divergence",
         "kl_divergence, where it is 0"],
    )  # fmt: skip
    def test_first_and_second_derivatives(self, small: Instance, backend: str, query: str) -> None:
        assert small.dtype == torch.float64
        free, rebuild = finite_parts(small.scores)
        ask = self.derivative_queries(small)[query]

        def result(*entries: Tensor) -> Tensor:
            return ask(self.build(small.with_scores(**rebuild(*entries)), backend))

        # Along random directions in place of every entry; the entries of both backends are compared by another test.
        assert gradcheck(result, free, fast_mode=True)
        assert gradgradcheck(result, free, fast_mode=True)

    def test_answers_in_inference_mode_are_the_same(self, instance: Instance, backend: str) -> None:
        def answers(given: Instance) -> list[Tensor]:
            dist = self.build(given, backend)
            drawn = dist.score(dist.sample(generator=torch.Generator().manual_seed(3)))
            _, scores = dist.top_k(2)
            return [dist.log_partition, dist.marginals, dist.entropy(), dist.score(dist.argmax), scores, drawn]

        with torch.inference_mode():
            found = answers(instance.mapped(torch.clone))
        for mine, wanted in zip(found, answers(instance), strict=True):
            close(mine, wanted)

    def test_covariances_in_inference_mode_are_refused(self, backend: str) -> None:
        costs = self.random_costs(self.first_instance(), 1)
        with torch.inference_mode():
            cloned = self.first_instance().mapped(torch.clone)
            with pytest.raises(ScoreError, match=r"use torch\.no_grad\(\) instead"):
                self.build(cloned, backend).variance(costs)

    def test_derivatives_of_covariances(self, small: Instance, backend: str) -> None:
        """By scores and by costs."""
        free, rebuild = finite_parts(small.scores)
        a, b = (self.random_costs(small, seed).requires_grad_() for seed in (1, 2))

        def result(a: Tensor, b: Tensor, *entries: Tensor) -> Tensor:
            return self.build(small.with_scores(**rebuild(*entries)), backend).covariance(a, b)

        assert gradcheck(result, (a, b, *free), fast_mode=True)
