"""Every query of `LinearChain` against enumeration: the generic contract, then what only chains have."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.contract import chains
from tests.contract.base import (
    BACKENDS,
    INF,
    Instance,
    PartialKnowledge,
    Plain,
    StructureContract,
    close,
    covariance,
    finite_parts,
    log_sum,
)
from trelliswork.distributions import LinearChain, kl_divergence, linear_chain
from trelliswork.distributions import spans as span_events
from trelliswork.errors import ScoreError
from trelliswork.tags.schemes import spans_of

UNREAD = 77  # stands at positions that are not read, going in


class TestLinearChain(StructureContract):
    gradient_of = "emissions"

    def instances(self) -> dict[str, Instance]:
        return chains.many()

    def small_instances(self) -> dict[str, Instance]:
        return chains.small()

    def impossible(self) -> tuple[Instance, int]:
        closed = chains.chain(21, lengths=torch.tensor([4, 2, 3]))
        return chains.with_forbidden(closed, emissions=[(1, 1, 0), (1, 1, 1), (1, 1, 2)], transitions=[(0, 1)]), 1

    def build(self, instance: Instance, backend: str) -> LinearChain:
        return LinearChain(**instance.scores, **instance.options, backend=backend)

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return chains.support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return chains.n_rows(instance)

    def to_plain(self, instance: Instance, value: Tensor) -> list[Plain]:
        rows, read = value.reshape(chains.n_rows(instance), -1).tolist(), chains.read(instance)
        plain = [tuple(itertools.compress(tags, keep)) for tags, keep in zip(rows, read, strict=True)]
        assert sum(map(sum, rows)) == sum(map(sum, plain)), "positions that are not read come out as 0"
        return plain

    def to_value(self, instance: Instance, plain: list[Any]) -> Tensor:
        shape = instance.scores["emissions"].shape[:-1]
        value = torch.full((chains.n_rows(instance), shape[-1]), UNREAD)
        for row, tags in enumerate(plain):
            read = chains.places(instance, row)
            value[row, read] = torch.tensor(tags[: len(read)])
        return value.reshape(shape)

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["emissions"].shape[-2:], dtype=torch.float64)
        marks[chains.places(instance, row), list(plain)] = 1.0
        return marks

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        return [self.pinned(instance), self.sets(instance), self.nothing_known(instance)]

    def pinned(self, instance: Instance) -> PartialKnowledge:
        """The first position of each row is known: it has the tag of the row's best sequence."""
        known = [
            max(support.items(), key=lambda pair: pair[1])[0][0] if support else 0 for support in self.all(instance)
        ]
        partial = torch.full(chains.valid(instance).shape, -100)
        for row, tag in enumerate(known):
            partial[row, chains.places(instance, row)[0]] = tag
        argument = partial.reshape(instance.scores["emissions"].shape[:-1])
        return PartialKnowledge(argument, lambda row, tags: tags[0] == known[row])

    def all(self, instance: Instance) -> list[dict[Any, float]]:
        return [self.support(instance, row) for row in range(self.n_rows(instance))]

    def sets(self, instance: Instance) -> PartialKnowledge:
        """Every last position has any tag but 0; at other positions all are allowed, where nothing is read none."""
        shape = instance.scores["emissions"].shape
        allowed = chains.valid(instance)[:, :, None].repeat(1, 1, shape[-1])
        for row in range(self.n_rows(instance)):
            allowed[row, chains.places(instance, row)[-1], 0] = False
        return PartialKnowledge(allowed.reshape(shape), lambda row, tags: tags[-1] != 0)

    def nothing_known(self, instance: Instance) -> PartialKnowledge:
        shape = instance.scores["emissions"].shape[:-1]
        return PartialKnowledge(torch.full(shape, -100), lambda row, tags: True)

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        moved = instance.with_scores(
            emissions=instance.scores["emissions"] + by, transitions=instance.scores["transitions"] - 2 * by
        )
        lengths = chains.valid(instance).sum(1).tolist()
        return moved, [by * length - 2 * by * (length - 1) for length in lengths]

    def one_row(self, instance: Instance, row: int) -> Instance:
        read, scores = chains.places(instance, row), dict(instance.scores)
        n, c = scores["emissions"].shape[-2:]
        scores["emissions"] = scores["emissions"].reshape(-1, n, c)[row, read][None]
        if scores["transitions"].dim() > 2:
            arcs = scores["transitions"].reshape(self.n_rows(instance), n - 1, c, c)
            scores["transitions"] = arcs[row, [t - 1 for t in read[1:]]][None]
        return Instance(scores, {})

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        read, emissions = chains.valid(instance), instance.scores["emissions"]
        n, c = emissions.shape[-2:]
        filled = torch.where(read[:, :, None], emissions.reshape(-1, n, c), garbage)
        scores = {"emissions": filled.reshape(emissions.shape)}
        arcs = instance.scores["transitions"]
        if arcs.dim() > 2:
            first = read.int().argmax(1)
            arrives = read & (torch.arange(n) != first[:, None])
            kept = torch.where(arrives[:, 1:, None, None], arcs.reshape(len(read), n - 1, c, c), garbage)
            scores["transitions"] = kept.reshape(arcs.shape)
        return instance.with_scores(**scores)

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        n, c = instance.scores["emissions"].shape[-2:]
        emissions = instance.scores["emissions"].clone().reshape(-1, n, c)
        emissions[row, chains.places(instance, row)[-1], plain[-1]] = -INF
        return instance.with_scores(emissions=emissions.reshape(instance.scores["emissions"].shape))

    # --- chains only -----------------------------------------------------------------------------------------

    def enumerated_pairs(self, instance: Instance) -> Tensor:
        """p(tag before t = i, tag at t = j) at [row, t-1, i, j]."""
        n, c = instance.scores["emissions"].shape[-2:]
        pairs = torch.zeros(self.n_rows(instance), n - 1, c, c, dtype=torch.float64)
        for row in range(self.n_rows(instance)):
            read = chains.places(instance, row)
            for tags, p in self.probabilities(instance, row).items():
                for i in range(1, len(read)):
                    pairs[row, read[i] - 1, tags[i - 1], tags[i]] += p
        return pairs

    def test_pairwise_marginals(self, instance: Instance, backend: str) -> None:
        found = self.build(instance, backend).pairwise_marginals
        assert found.dtype == instance.dtype
        close(found, self.enumerated_pairs(instance).reshape(found.shape))

    def test_the_gradient_by_transitions_start_and_end(self, instance: Instance, backend: str) -> None:
        leaves = instance.leaves()
        self.build(leaves, backend).log_partition.sum().backward()
        pairs, unary = self.enumerated_pairs(instance), self.enumerated_marginals(instance)
        transitions = leaves.scores["transitions"]
        wanted = pairs.sum((0, 1)) if transitions.dim() == 2 else pairs.reshape(transitions.shape)
        # without a second position nothing depends on the transitions
        close(torch.zeros_like(transitions) if transitions.grad is None else transitions.grad, wanted)
        for name, end in (("start", 0), ("end", -1)):
            if name in leaves.scores:
                at_edge = [unary[row, chains.places(instance, row)[end]] for row in range(len(unary))]
                close(leaves.scores[name].grad, torch.stack(at_edge).sum(0))

    def costs(self, instance: Instance, by_position: bool) -> dict[str, Tensor]:
        *batch, n, c = instance.scores["emissions"].shape
        return chains.chain(40, tuple(batch), n, c, by_position=by_position, dtype=instance.dtype).scores

    @pytest.mark.parametrize("by_position", [False, True], ids=["shared costs", "costs by position"])
    def test_expected_costs_of_every_kind(self, instance: Instance, backend: str, by_position: bool) -> None:
        costs = self.costs(instance, by_position)
        priced = Instance(costs, instance.options)
        means, squares = [], []
        for row in range(self.n_rows(instance)):
            price, probabilities = chains.support(priced, row), self.probabilities(instance, row)
            means.append(math.fsum(p * price[tags] for tags, p in probabilities.items()))
            squares.append(covariance(probabilities, price, price))
        dist, given = (
            self.build(instance, backend),
            [costs[each] for each in ("emissions", "transitions", "start", "end")],
        )
        close(dist.expected(*given), means)
        close(dist.variance(*given), squares)

    @pytest.mark.parametrize("kind", ["costs", "transitions", "start", "end"])
    def test_expected_costs_one_kind_at_a_time(self, instance: Instance, backend: str, kind: str) -> None:
        costs = self.costs(instance, by_position=False)
        name = "emissions" if kind == "costs" else kind
        priced = Instance(
            {other: part if other == name else torch.zeros_like(part) for other, part in costs.items()},
            instance.options,
        )
        dist, marks = self.build(instance, backend), self.random_costs(instance, 3)
        means, pairs = [], []
        for row in range(self.n_rows(instance)):
            price, probabilities = chains.support(priced, row), self.probabilities(instance, row)
            means.append(math.fsum(p * price[tags] for tags, p in probabilities.items()))
            by_tag = Instance({**{each: torch.zeros_like(part) for each, part in costs.items()}, "emissions": marks},
                              instance.options)  # fmt: skip
            pairs.append(covariance(probabilities, price, chains.support(by_tag, row)))
        close(dist.expected(**{kind: costs[name]}), means)
        close(dist.covariance({kind: costs[name]}, marks), pairs)
        close(dist.covariance(marks, {kind: costs[name]}), pairs)

    def test_costs_of_what_is_forbidden_are_not_read(self, backend: str) -> None:
        closed = chains.with_forbidden(chains.chain(5), emissions=[(0, 1, 0)], transitions=[(0, 1)])
        closed = closed.with_scores(start=torch.tensor([-INF, 0.0, 0.0], dtype=torch.float64))
        dist, costs = self.build(closed, backend), self.costs(closed, by_position=False)
        worse = {
            "costs": torch.where(closed.scores["emissions"] > -INF, costs["emissions"], INF),
            "transitions": torch.where(closed.scores["transitions"] > -INF, costs["transitions"], INF),
            "start": torch.where(closed.scores["start"] > -INF, costs["start"], INF),
        }
        plain = {kind: costs["emissions" if kind == "costs" else kind] for kind in worse}
        close(dist.variance(**worse), dist.variance(**plain))

    def test_expected_number_of_wrong_tags(self, instance: Instance, backend: str) -> None:
        """The risk of the best sequence under Hamming loss is the length less its tags' marginals."""
        dist = self.build(instance, backend)
        best, c = dist.argmax, instance.scores["emissions"].shape[-1]
        wrong = 1 - torch.nn.functional.one_hot(best, c).to(instance.dtype)
        right = dist.marginals.gather(-1, best[..., None]).squeeze(-1)
        lengths = chains.valid(instance).sum(1).reshape(dist.batch_shape)
        close(dist.expected(wrong), lengths - right.sum(-1))

    # --- constraints and partial labels ----------------------------------------------------------------------

    def test_constrain_by_transitions_start_and_end(self, instance: Instance, backend: str) -> None:
        c = instance.scores["emissions"].shape[-1]
        arcs = torch.arange(c)[:, None] <= torch.arange(c)  # tags never fall
        start, end = torch.arange(c) < c, torch.arange(c) > 0
        kept = self.build(instance, backend).constrain(transitions=arcs, start=start, end=end)
        wanted = [
            sum(list(tags) == sorted(tags) and tags[-1] > 0 for tags in support) for support in self.all(instance)
        ]
        assert kept.count.reshape(-1).tolist() == wanted

    def test_token_log_probs_are_conditional_probabilities(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        for plain, value in self.values(instance)[:6]:
            shares = dist.token_log_probs(torch.where(chains.valid(instance).reshape(value.shape), value, -100))
            wanted = torch.zeros(chains.valid(instance).shape, dtype=torch.float64)
            for row, tags in enumerate(plain):
                scores = self.support(instance, row)
                prefixes = [
                    log_sum([score for other, score in scores.items() if other[:i] == tags[:i]])
                    for i in range(len(tags) + 1)
                ]
                for i, t in enumerate(chains.places(instance, row)):
                    wanted[row, t] = prefixes[i + 1] - prefixes[i]
            close(shares, wanted.reshape(shares.shape))

    def test_token_log_probs_add_up_to_the_log_prob_of_the_set(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        for partial in self.partials(instance):
            close(dist.token_log_probs(partial.argument).sum(-1), dist.log_prob_of_set(partial.argument))

    def test_an_impossible_prefix_takes_the_whole_blame(self, backend: str) -> None:
        emissions = torch.zeros(1, 3, 2, dtype=torch.float64)
        emissions[0, 1, 1] = -INF
        shares = LinearChain(emissions, torch.zeros(2, 2), backend=backend).token_log_probs(torch.tensor([[0, 1, 0]]))
        close(shares[0, 0], [math.log(0.5)])
        assert shares[0, 1:].tolist() == [-INF, 0.0]

    def test_token_log_probs_are_at_most_0(self, backend: str) -> None:
        """Also where all is allowed, so that nothing but rounding is left, and far away from 0."""
        generator = torch.Generator().manual_seed(2)
        emissions = torch.randn(2, 60, 4, generator=generator, dtype=torch.float64)
        transitions = torch.randn(4, 4, generator=generator, dtype=torch.float64)
        everything = torch.ones(2, 60, 4, dtype=torch.bool)
        for offset in (0.0, 1e6):
            shares = LinearChain(emissions + offset, transitions, backend=backend).token_log_probs(everything)
            assert bool((shares <= 0).all()) and bool((shares > -1e-9).all())

    def test_token_log_probs_have_exact_derivatives(self, small: Instance, backend: str) -> None:
        _, value = self.values(small)[-1]
        known = torch.where(chains.valid(small), value, -100)
        free, rebuild = finite_parts(small.scores)

        def shares(*entries: Tensor) -> Tensor:
            return self.build(small.with_scores(**rebuild(*entries)), backend).token_log_probs(known)

        assert gradcheck(shares, free)
        assert gradgradcheck(shares, free, fast_mode=True)

    def test_pairwise_marginals_and_expectations_have_exact_derivatives(self, small: Instance, backend: str) -> None:
        free, rebuild = finite_parts(small.scores)
        costs = self.costs(small, by_position=False)

        def pairs(*entries: Tensor) -> tuple[Tensor, Tensor]:
            dist = self.build(small.with_scores(**rebuild(*entries)), backend)
            return dist.pairwise_marginals, dist.expected(costs["emissions"], costs["transitions"])

        assert gradcheck(pairs, free)
        assert gradgradcheck(pairs, free, fast_mode=True)

    # --- torch.distributions ---------------------------------------------------------------------------------

    def test_expand(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        wide = dist.expand((2, *dist.batch_shape))
        assert wide.batch_shape == (2, *dist.batch_shape)
        close(wide.log_partition, torch.stack([dist.log_partition] * 2))
        close(wide.marginals, torch.stack([dist.marginals] * 2))
        assert torch.equal(wide.argmax, torch.stack([dist.argmax] * 2))

    def test_log_prob_of_many_values_at_once(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        values = torch.stack([value for _, value in self.values(instance)[:4]])
        together = dist.log_prob(torch.stack([values, values]))
        assert together.shape == (2, len(values), *dist.batch_shape)
        for i, value in enumerate(values):
            close(together[1, i], dist.log_prob(value))
            close(dist.score(values)[i], dist.score(value))

    def test_samples_lie_in_the_support(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        assert dist.support.check(dist.sample((3,))).all()


both_backends = pytest.mark.parametrize("backend", BACKENDS)


@both_backends
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_enumerate_support(backend: str, batch: tuple[int, ...]) -> None:
    instance = chains.chain(50, batch, n=3, c=2)
    dist = LinearChain(**instance.scores, backend=backend)
    values = dist.enumerate_support()
    assert values.shape == (8, *batch, 3)
    assert len({tuple(value.reshape(-1, 3)[0].tolist()) for value in values}) == 8
    close(dist.log_prob(values).exp().sum(0), torch.ones(batch))
    assert dist.enumerate_support(expand=False).shape == (8, *[1] * len(batch), 3)


def test_enumerate_support_refuses_what_is_ragged_or_too_much() -> None:
    ragged = LinearChain(torch.zeros(2, 3, 2), torch.zeros(2, 2), lengths=torch.tensor([3, 1]))
    with pytest.raises(ScoreError, match="without padding or holes; enumerate ragged rows one by one"):
        ragged.enumerate_support()
    with pytest.raises(ScoreError, match=r"sequences; use sample or top_k instead"):
        LinearChain(torch.zeros(1, 30, 2), torch.zeros(2, 2)).enumerate_support()


@both_backends
@pytest.mark.parametrize("p_by_position", [False, True])
@pytest.mark.parametrize("q_by_position", [False, True])
def test_kl_between_shared_and_positional_arcs(backend: str, p_by_position: bool, q_by_position: bool) -> None:
    p = chains.chain(51, by_position=p_by_position, lengths=chains.RAGGED)
    q = chains.chain(52, by_position=q_by_position, lengths=chains.RAGGED)
    wanted = []
    for row in range(3):
        mine, other = chains.support(p, row), chains.support(q, row)
        log_p, log_q = (math.log(sum(map(math.exp, part.values()))) for part in (mine, other))
        wanted.append(math.fsum(math.exp(s - log_p) * (s - log_p - other[tags] + log_q) for tags, s in mine.items()))
    found = kl_divergence(
        LinearChain(**p.scores, **p.options, backend=backend), LinearChain(**q.scores, **q.options, backend=backend)
    )
    close(found, wanted)


def test_kl_refuses_chains_of_different_lengths() -> None:
    p = LinearChain(torch.zeros(1, 3, 2), torch.zeros(2, 2))
    q = LinearChain(torch.zeros(1, 3, 2), torch.zeros(2, 2), lengths=torch.tensor([2]))
    with pytest.raises(ScoreError, match="same shape, lengths and mask"):
        kl_divergence(p, q)


@both_backends
def test_kl_is_differentiable_by_both(backend: str) -> None:
    p, q = chains.small()["shared"], chains.small()["shared"].perturbed(3)
    p_free, p_rebuild = finite_parts(p.scores)
    q_free, q_rebuild = finite_parts(q.scores)

    def divergence(*entries: Tensor) -> Tensor:
        mine = LinearChain(**p_rebuild(*entries[:4]), **p.options, backend=backend)
        other = LinearChain(**q_rebuild(*entries[4:]), **q.options, backend=backend)
        return kl_divergence(mine, other)

    assert gradcheck(divergence, [*p_free, *q_free])


@both_backends
def test_among_ties_the_lowest_tags_win_from_the_end_backwards(backend: str) -> None:
    dist = LinearChain(torch.zeros(1, 3, 3), torch.zeros(3, 3), backend=backend)
    assert dist.argmax.tolist() == [[0, 0, 0]]
    tied = torch.tensor([[[1.0, 1.0], [0.0, 0.0]]])
    arcs = torch.tensor([[0.0, 1.0], [1.0, 0.0]])  # 0 -> 1 and 1 -> 0 tie: the last tag decides, and 0 is lower
    assert LinearChain(tied, arcs, backend=backend).argmax.tolist() == [[1, 0]]


@both_backends
def test_a_count_beyond_all_floats_is_infinite_and_never_nan(backend: str) -> None:
    arcs = torch.zeros(3, 3)
    arcs[1, 0] = -INF
    assert LinearChain(torch.zeros(1, 1200, 3), arcs, backend=backend).count.tolist() == [INF]


@both_backends
def test_what_stands_at_unread_positions_of_partial_labels_is_ignored(backend: str) -> None:
    dist = LinearChain(torch.zeros(1, 3, 2), torch.zeros(2, 2), lengths=torch.tensor([2]), backend=backend)
    close(dist.log_prob_of_set(torch.tensor([[1, -100, UNREAD]])), [math.log(0.5)])


# --- spans ---------------------------------------------------------------------------------------------------

SPAN_TAGS = {
    "IOB1": ["O", "I-X", "B-X", "I-Y", "B-Y"],
    "IOB2": ["I-Y", "O", "B-X", "I-X", "B-Y"],
    "IOBES": ["O", "B-X", "I-X", "E-X", "S-X", "S-Y", "B-Y", "E-Y"],
}


def spans_up_to(n: int) -> list[tuple[int, int, str]]:
    return [(i, j, label) for label in "XY" for i in range(n) for j in range(i + 1, n + 1)]


def probabilities_of_spans(instance: Instance, row: int, scheme: str) -> dict[tuple[int, int, str], float]:
    """Of the spans that some tags have; a span that none have is left out."""
    support, names = chains.support(instance, row), SPAN_TAGS[scheme]
    z, weights = math.fsum(map(math.exp, support.values())), defaultdict[tuple[int, int, str], list[float]](list)
    for tags, score in support.items():
        for span in spans_of([names[tag] for tag in tags], scheme, policy="strict"):
            weights[span].append(math.exp(score) / z)
    return {span: math.fsum(each) for span, each in weights.items()}


@both_backends
@pytest.mark.parametrize("scheme", SPAN_TAGS)
@pytest.mark.parametrize("by_position", [False, True], ids=["shared", "by position"])
@pytest.mark.parametrize("short", [256, 0], ids=["whole rows", "windows"])
def test_span_probabilities(
    backend: str, scheme: str, by_position: bool, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_events, "SHORT", short)
    lengths, c = [4, 1, 3], len(SPAN_TAGS[scheme])
    instance = chains.chain(60, c=c, by_position=by_position, lengths=torch.tensor(lengths))
    dist = LinearChain(**instance.scores, **instance.options, backend=backend)
    spans = [spans_up_to(length) for length in lengths]
    found = dist.span_probabilities(spans, tags=SPAN_TAGS[scheme], scheme=scheme)
    for row, each in enumerate(spans):
        wanted = probabilities_of_spans(instance, row, scheme)
        close(found[row], [wanted.get(span, 0.0) for span in each])


@both_backends
@pytest.mark.parametrize("scheme", SPAN_TAGS)
@pytest.mark.parametrize("batch", [(), (2, 2)])
def test_span_probability_of_one_span_in_each_row(backend: str, scheme: str, batch: tuple[int, ...]) -> None:
    instance = chains.chain(61, batch, n=3, c=len(SPAN_TAGS[scheme]))
    dist = LinearChain(**instance.scores, backend=backend)
    wanted = [probabilities_of_spans(instance, row, scheme) for row in range(chains.n_rows(instance))]
    for span in [(0, 1, "X"), (1, 3, "Y"), (0, 3, "X")]:
        found = dist.span_probability(*span, tags=SPAN_TAGS[scheme], scheme=scheme)
        assert found.shape == batch
        close(found, [each.get(span, 0.0) for each in wanted])


def test_many_spans_of_a_long_text_go_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    names, generator = ["O", "B-X", "I-X"], torch.Generator().manual_seed(0)
    dist = LinearChain(torch.randn(2, 9, 3, generator=generator), torch.randn(3, 3, generator=generator))
    spans = [[(i, j, "X") for i in range(row, 9) for j in range(i + 1, 10)] for row in range(2)]
    whole = dist.span_probabilities(spans, tags=names)
    sizes: list[int] = []
    one_group = LinearChain._span_log_probs

    def counted(self: LinearChain, owned: list[Any], *others: Any) -> Tensor:
        sizes.append(len(owned))
        return one_group(self, owned, *others)

    monkeypatch.setattr(LinearChain, "_span_log_probs", counted)
    monkeypatch.setattr(linear_chain, "GROUP_SCORES", 7 * 27)
    for found, wanted in zip(dist.span_probabilities(spans, tags=names), whole, strict=True):
        torch.testing.assert_close(found, wanted)
    assert max(sizes) == 7 and sum(sizes) == 45 + 36


def test_spans_of_nothing_and_of_too_much() -> None:
    dist = LinearChain(torch.zeros(2, 3, 5), torch.zeros(5, 5), lengths=torch.tensor([3, 2]))
    names = SPAN_TAGS["IOB2"]
    assert [len(row) for row in dist.span_probabilities([[], []], tags=names)] == [0, 0]
    with pytest.raises(ScoreError, match=r"spans must lie in 0\.\.2 with start < end; got \(1, 3, 'X'\)"):
        dist.span_probabilities([[], [(1, 3, "X")]], tags=names)
    with pytest.raises(ScoreError, match="tags must name all 5 tag indices; got 2 names"):
        dist.span_probability(0, 1, "X", tags=names[:2])
    with pytest.raises(ValueError, match=r"label must be a span type of the tags \(X, Y\); got 'Z'"):
        dist.span_probability(0, 1, "Z", tags=names)
    holes = LinearChain(torch.zeros(1, 3, 5), torch.zeros(5, 5), mask=torch.tensor([[True, False, True]]))
    with pytest.raises(ScoreError, match="mask with holes; drop the masked positions first"):
        holes.span_probability(0, 1, "X", tags=names)


@both_backends
def test_span_probability_is_differentiable(backend: str) -> None:
    instance = chains.with_forbidden(chains.chain(62, (1,), n=3, c=3), transitions=[(0, 2)], start=[(2,)])
    free, rebuild = finite_parts(instance.scores)

    def probability(*entries: Tensor) -> Tensor:
        dist = LinearChain(**rebuild(*entries), backend=backend)
        return dist.span_probability(0, 2, "X", tags=["O", "B-X", "I-X"], scheme="IOB2")

    assert gradcheck(probability, free)
    assert gradgradcheck(probability, free, fast_mode=True)


# --- any chain at all ----------------------------------------------------------------------------------------


@st.composite
def any_chain(draw: st.DrawFn) -> Instance:
    """Small chains with scores in quarters, -inf among them, and any mask that leaves each row a position."""
    batch, n, c = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    entries = st.one_of(st.integers(-12, 12).map(lambda i: i / 4), st.just(-INF))

    def tensor(*shape: int) -> Tensor:
        size = math.prod(shape)
        return torch.tensor(draw(st.lists(entries, min_size=size, max_size=size)), dtype=torch.float64).reshape(shape)

    mask = torch.tensor(
        draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n).filter(any), min_size=batch, max_size=batch))
    )
    arcs = tensor(batch, n - 1, c, c) if draw(st.booleans()) and n > 1 else tensor(c, c)
    return Instance(
        {"emissions": tensor(batch, n, c), "transitions": arcs, "start": tensor(c), "end": tensor(c)}, {"mask": mask}
    )


@both_backends
@given(instance=any_chain())
def test_any_chain_has_the_log_partition_count_and_marginals_of_its_enumeration(
    backend: str, instance: Instance
) -> None:
    contract = TestLinearChain()
    leaves = instance.leaves()
    dist = contract.build(leaves, backend)
    supports = contract.all(instance)
    close(dist.log_partition, contract.log_zs(instance))
    assert dist.count.tolist() == [len(support) for support in supports]
    possible = [row for row, support in enumerate(supports) if support]
    dist.log_partition.sum().backward()
    gradient = leaves.scores["emissions"].grad
    assert gradient is not None
    assert gradient.isfinite().all()
    for row in range(len(supports)):
        if row not in possible:
            assert (gradient[row] == 0).all()
            continue
        p = contract.probabilities(instance, row)
        close(gradient[row], sum(q * contract.indicator(instance, row, tags) for tags, q in p.items()))
        alone = contract.build(contract.one_row(instance, row), backend)
        best = contract.to_plain(contract.one_row(instance, row), alone.argmax)[0]
        assert supports[row][best] == max(supports[row].values())


NARROW = torch.ones(2, 2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (
            lambda chain: chain.expected(torch.zeros(2, 3)),
            r"costs must be \(2, 3, 4\) like the emissions; got \(2, 3\)",
        ),
        (lambda chain: chain.constrain(transitions=NARROW), r"allowed transitions must be bool \(4, 4\).*\(2, 2\)"),
        (lambda chain: chain.constrain(start=torch.ones(4)), r"allowed start must be bool \(4,\).*float32"),
        (lambda chain: chain.constrain(end=NARROW[0]), r"allowed end must be bool \(4,\).*\(2,\)"),
        (lambda chain: chain.span_probabilities([[]], tags=list("OBIX")), r"each of the 2 rows; got 1 lists"),
    ],
)
def test_arguments_of_the_wrong_shape_are_named(ask: Any, problem: str) -> None:
    with pytest.raises(ScoreError, match=problem):
        ask(LinearChain(torch.zeros(2, 3, 4), torch.zeros(4, 4)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_samples_have_no_probabilities(backend: str) -> None:
    chain = LinearChain(torch.zeros(2, 3, 4), torch.zeros(4, 4), backend=backend)
    assert chain.log_prob(chain.sample((0,))).shape == chain.score(chain.sample((0,))).shape == (0, 2)
