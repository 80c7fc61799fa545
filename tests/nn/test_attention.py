"""Structured attention: the context is the expectation over every structure, and gradients flow through it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.oracles import dependencies, segments
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.nn import (
    BernoulliAttention,
    ChainAttention,
    SegmentAttention,
    SoftmaxAttention,
    TreeAttention,
)

INF = float("inf")
N, D = 5, 3
SELECTIONS: dict[str, Any] = {
    "softmax": SoftmaxAttention,
    "bernoulli": BernoulliAttention,
    "chain": ChainAttention,
    "segments": lambda **options: SegmentAttention(3, **options),
}
TREES = ("projective", "spanning", "independent")
each_selection = pytest.mark.parametrize("kind", SELECTIONS)
each_tree = pytest.mark.parametrize("kind", TREES)


def random_tensor(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def layer(kind: str, seed: int = 7, **options: Any) -> torch.nn.Module:
    """A layer of float64 with random parameters."""
    made = SELECTIONS[kind](**options).double()
    for i, parameter in enumerate(made.parameters()):
        torch.nn.init.zeros_(parameter).data += random_tensor(*parameter.shape, seed=seed + i)
    return made


# --- the truth: E[Σ of the values of what z selects], over every z ------------------------------------------------


def selections(kind: str, made: Any, scores: Tensor) -> list[tuple[list[int], Tensor]]:
    """Every z of one row as the positions that it selects, and its score."""
    n = len(scores)
    if kind == "softmax":
        return [([t], scores[t]) for t in range(n)]
    if kind == "segments":
        parts = made.distribution(scores[None])._parts
        every = segments.segmentations(parts, 0)
        chosen = [[t for a, b, label in each for t in range(a, b) if label] for each in every]
        return list(zip(chosen, segments.scores(parts, 0), strict=True))
    every_z = list(itertools.product((0, 1), repeat=n))
    chosen = [[t for t in range(n) if z[t]] for z in every_z]
    if kind == "bernoulli":
        return [(each, scores[each].sum()) for each in chosen]
    totals = []
    for z in every_z:
        arcs = sum((made.transitions[a, b] for a, b in itertools.pairwise(z)), made.start[z[0]] + made.end[z[-1]])
        totals.append(arcs + sum((scores[t] for t in range(n) if z[t]), torch.zeros(())))
    return list(zip(chosen, totals, strict=True))


def expected_context(every: list[tuple[list[int], Tensor]], values: Tensor) -> Tensor:
    log_p = torch.stack([score for _, score in every]).log_softmax(0)
    return torch.stack([p * values[chosen].sum(0) for (chosen, _), p in zip(every, log_p.exp(), strict=True)]).sum(0)


@each_selection
def test_the_context_is_the_expectation_over_every_selection(kind: str) -> None:
    made, scores, values = layer(kind), random_tensor(2, N), random_tensor(2, N, D, seed=1)
    lengths = torch.tensor([N, 3])
    context, weights = made(scores, values, lengths)
    for row, length in enumerate(lengths.tolist()):
        every = selections(kind, made, scores[row, :length])
        torch.testing.assert_close(context[row], expected_context(every, values[row, :length]))
    assert (weights[1, 3:] == 0).all()
    torch.testing.assert_close(context, torch.einsum("bt,btd->bd", weights, values))


def test_transitions_may_come_from_the_input() -> None:
    made, scores, values = layer("chain"), random_tensor(1, N), random_tensor(1, N, D, seed=1)
    arcs = random_tensor(1, N - 1, 2, 2, seed=3)
    every = []
    for z in itertools.product((0, 1), repeat=N):
        total = made.start[z[0]] + made.end[z[-1]] + sum(scores[0, t] for t in range(N) if z[t])
        for t, (a, b) in enumerate(itertools.pairwise(z)):
            total = total + made.transitions[a, b] + arcs[0, t, a, b]
        every.append(([t for t in range(N) if z[t]], total))
    context, _ = made(scores, values, transitions=arcs)
    torch.testing.assert_close(context[0], expected_context(every, values[0]))


@each_tree
def test_the_context_of_a_word_is_the_expected_value_of_its_head(kind: str) -> None:
    arcs, values = random_tensor(2, N, N), random_tensor(2, N, D, seed=1)  # the root and four words
    lengths = torch.tensor([N - 1, 2])
    made = TreeAttention(kind)
    context, weights = made(arcs, values, lengths)
    for row, n in enumerate(lengths.tolist()):
        if kind == "independent":
            every = [
                h for h in itertools.product(range(n + 1), repeat=n) if all(h[m - 1] != m for m in range(1, n + 1))
            ]
        else:
            every = dependencies.trees(n, single_root=True, projective=kind == "projective")
        scores = torch.stack([sum(arcs[row, h, m] for m, h in enumerate(heads, 1)) for heads in every])
        of_heads = torch.stack([values[row, list(heads)] for heads in every])  # (trees, n, d)
        truth = torch.einsum("t,tmd->md", scores.softmax(0), of_heads)
        torch.testing.assert_close(context[row, :n], truth)
    assert (weights[1, 2:] == 0).all()
    torch.testing.assert_close(weights.sum(-1), (weights.sum(-1) > 0).double())


# --- gradients -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["kernel", "torch"])
@pytest.mark.parametrize("kind", ["chain", "segments"])
def test_gradients_flow_through_the_marginals(kind: str, backend: str) -> None:
    made, lengths = layer(kind, backend=backend), torch.tensor([4, 2])
    names = [name for name, _ in made.named_parameters()]

    def context(scores: Tensor, values: Tensor, *parameters: Tensor) -> Tensor:
        own = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(made, own, (scores, values, lengths)).context

    inputs = [random_tensor(2, 4), random_tensor(2, 4, 2, seed=1), *(p.detach().clone() for p in made.parameters())]
    inputs = [each.requires_grad_() for each in inputs]
    assert gradcheck(context, inputs)
    if backend == "kernel":
        assert gradgradcheck(lambda scores: context(scores, *inputs[1:]).sum(), inputs[:1], fast_mode=True)


@each_tree
def test_gradients_flow_through_trees(kind: str) -> None:
    arcs, values = random_tensor(1, 4, 4).requires_grad_(), random_tensor(1, 4, 2, seed=1).requires_grad_()
    assert gradcheck(lambda *inputs: TreeAttention(kind)(*inputs).context, (arcs, values))


# --- special cases -------------------------------------------------------------------------------------------


@each_tree
def test_several_threads_change_no_result_and_no_derivative(kind: str) -> None:
    inputs = random_tensor(2, 4, 4).requires_grad_(), random_tensor(2, 4, 2, seed=1).requires_grad_()

    def contexts(arcs: Tensor, values: Tensor) -> Tensor:
        return TreeAttention(kind)(arcs, values, torch.tensor([3, 2])).context  # type: ignore[arg-type]

    results = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        context = contexts(*inputs)
        results.append((context, *torch.autograd.grad(context.square().sum(), inputs)))
    for alone, shared in zip(*results, strict=True):
        torch.testing.assert_close(alone, shared)
    assert gradcheck(contexts, inputs)
    assert gradgradcheck(contexts, inputs, fast_mode=True)


def test_without_transitions_a_chain_is_independent_choices() -> None:
    scores, values = random_tensor(2, N), random_tensor(2, N, D)
    truth = BernoulliAttention()(scores, values)
    torch.testing.assert_close(ChainAttention().double()(scores, values).weights, truth.weights)
    torch.testing.assert_close(SegmentAttention(1).double()(scores, values).weights, truth.weights)


@each_selection
def test_what_scores_minus_infinity_is_never_selected(kind: str) -> None:
    scores, values = random_tensor(1, N), random_tensor(1, N, D)
    scores[0, 2] = -INF
    scores.requires_grad_()
    context, weights = layer(kind)(scores, values)
    assert weights[0, 2] == 0
    (gradient,) = torch.autograd.grad(context.sum(), scores)
    assert gradient[0, 2] == 0
    assert gradient.isfinite().all() and gradient.abs().sum() > 0


@each_selection
def test_padding_is_not_read(kind: str) -> None:
    made, lengths = layer(kind), torch.tensor([N, 1])
    scores, values = random_tensor(2, N), random_tensor(2, N, D)
    truth = made(scores, values, lengths)
    scores[1, 1:], values[1, 1:] = float("nan"), float("nan")
    scores.requires_grad_()
    found = made(scores, values, lengths)
    torch.testing.assert_close(found.context, truth.context)
    torch.testing.assert_close(found.weights, truth.weights)
    (gradient,) = torch.autograd.grad(found.context.sum(), scores)
    assert (gradient[1, 1:] == 0).all() and gradient.isfinite().all()


@each_tree
def test_padding_of_trees_is_not_read(kind: str) -> None:
    arcs, values, lengths = random_tensor(1, N, N), random_tensor(1, N, D), torch.tensor([2])
    truth = TreeAttention(kind)(arcs, values, lengths)
    small = TreeAttention(kind)(arcs[:, :3, :3], values[:, :3])
    values[0, 3:] = float("nan")
    arcs[0, 3:], arcs[0, :, 3:] = 99.0, 99.0
    found = TreeAttention(kind)(arcs, values, lengths)
    torch.testing.assert_close(found.context, truth.context)
    torch.testing.assert_close(found.context[:, :2], small.context)
    assert (found.context[0, 2:] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@each_selection
def test_dtype_in_is_dtype_out(kind: str, dtype: torch.dtype) -> None:
    scores, values = random_tensor(2, N), random_tensor(2, N, D)
    found = layer(kind).to(dtype)(scores.to(dtype), values.to(dtype))
    assert found.context.dtype == found.weights.dtype == dtype
    truth = layer(kind)(scores, values)
    torch.testing.assert_close(found.weights.double(), truth.weights, atol=0.05, rtol=0.02)


def test_any_batch_shape_and_one_position() -> None:
    scores, values = random_tensor(2, 3, 1), random_tensor(2, 3, 1, D)
    for kind in SELECTIONS:
        assert layer(kind)(scores, values).context.shape == (2, 3, D)
    assert TreeAttention()(random_tensor(2, 3, 2, 2), random_tensor(2, 3, 2, D)).context.shape == (2, 3, 1, D)


def test_the_structure_itself_can_be_asked() -> None:
    scores = torch.tensor([[-9.0, 9.0, 9.0, -9.0]])
    assert ChainAttention().distribution(scores).argmax.tolist() == [[0, 1, 1, 0]]
    made = SegmentAttention(2)
    with torch.no_grad():
        made.widths[0] = -5.0
    assert made.distribution(scores).argmax == [[(0, 1, 0), (1, 3, 1), (3, 4, 0)]]


@pytest.mark.parametrize(
    ("attempt", "error", "sentence"),
    [
        (lambda: SoftmaxAttention()(torch.zeros(1, 2), torch.zeros(1, 3, 4)), ScoreError, "values must be"),
        (lambda: ChainAttention()(torch.zeros(1, 2), torch.zeros(1, 2)), ScoreError, "values must be"),
        (lambda: ChainAttention()(torch.zeros(1, 0), torch.zeros(1, 0, 4)), ScoreError, "n >= 1"),
        (lambda: ChainAttention()(torch.zeros(1, 2).long(), torch.zeros(1, 2, 4)), ScoreError, "floating point"),
        (
            lambda: BernoulliAttention()(torch.tensor([[0.0, float("nan")]]), torch.zeros(1, 2, 4)),
            ScoreError,
            r"got nan at \(0, 1\)",
        ),
        (lambda: SoftmaxAttention()(torch.tensor([[INF]]), torch.zeros(1, 1, 4)), ScoreError, r"got inf at \(0, 0\)"),
        (
            lambda: SoftmaxAttention()(torch.full((1, 2), -INF), torch.zeros(1, 2, 4)),
            ConstraintError,
            "every position of a row scores -inf",
        ),
        (
            lambda: SoftmaxAttention()(torch.zeros(1, 2), torch.zeros(1, 2, 4), torch.tensor([3])),
            ScoreError,
            "lengths must",
        ),
        (lambda: SegmentAttention(0), ScoreError, "max_width must be at least 1; got 0"),
        (lambda: TreeAttention("softmax"), ScoreError, "kind must be projective, spanning or independent"),
        (lambda: TreeAttention()(torch.zeros(1, 3, 3), torch.zeros(1, 2, 4)), ScoreError, "the root's first"),
    ],
)
def test_bad_input_is_a_sentence(attempt: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        attempt()
