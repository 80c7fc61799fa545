"""Speed of constituency trees against torch-struct: `python -m benchmarks.constituency [--quick]`.

Labelled span trees (TreeCRF) and grammars (SentCFG) get the same scores; the work is loss and gradients of all scores,
or the best tree. Nothing else should run on the machine. Writes docs/results/bench-constituency.md and .json.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate

SPAN_SIZES = [(8, 25, 20), (1, 25, 20), (32, 40, 10)]
GRAMMAR_SIZES = [(4, 20, 10, 20), (8, 12, 5, 10)]
SPAN_TARGETS = {"loss + gradient": 8.0, "best tree": 50.0}
GRAMMAR_TARGETS = {"log p(words) + gradient": 6.0, "best derivation": 50.0}
Calls = dict[str, Callable[[], object]]

NOTE = """
`python -m benchmarks.constituency`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one
thread unless said; in brackets how many times as long as ours (the median of the rounds' ratios). Span trees are
(batch, n, labels), rows of half to full length; the loss is minus log p of given trees, and the best trees come out, in
either library's tensor form: nodes for ours, marked parts for torch-struct. Grammars are (batch, n,
phrases, lexical symbols), every rule there, scores by sentence; the best derivations come out as trees (ours) and as
marked parts (torch-struct).
"""


def ragged(batch: int, n: int) -> Tensor:
    lengths = torch.randint(n // 2, n + 1, (batch,), generator=torch.Generator().manual_seed(0))
    lengths[0] = n
    return lengths


def span_trees(batch: int, n: int, c: int) -> dict[str, Calls]:
    """Library -> task -> call."""
    from torch_struct import TreeCRF

    from trelliswork.distributions import SpanTree

    lengths = ragged(batch, n)
    spans = torch.randn(batch, n, n, c, generator=torch.Generator().manual_seed(1)).requires_grad_()
    drawn = SpanTree(spans.detach(), lengths=lengths)
    nodes = drawn.sample_nodes(generator=torch.Generator().manual_seed(2))
    parts = drawn.to_parts(nodes)

    def step(log_prob: Callable[[], Tensor]) -> Callable[[], object]:
        def call() -> None:
            spans.grad = None
            (-log_prob().sum()).backward()

        return call

    return {
        OURS: {
            "loss + gradient": step(lambda: SpanTree(spans, lengths=lengths).log_prob(nodes)),
            "best tree": lambda: SpanTree(spans.detach(), lengths=lengths).argmax_nodes,
        },
        "torch-struct": {
            "loss + gradient": step(lambda: TreeCRF(spans, lengths=lengths).log_prob(parts)),
            "best tree": lambda: TreeCRF(spans.detach(), lengths=lengths).argmax,
        },
    }


def grammars(batch: int, n: int, n_phrases: int, n_lexical: int) -> dict[str, Calls]:
    from torch_struct import SentCFG

    from trelliswork.distributions import WeightedCFG
    from trelliswork.structures.grammar.grammar import Grammar

    grammar, generator = Grammar.dense(n_phrases, n_lexical), torch.Generator().manual_seed(0)
    size = n_phrases + n_lexical
    lexical = torch.randn(batch, n, n_lexical, generator=generator).requires_grad_()
    rules = torch.randn(batch, grammar.n_rules, generator=generator).log_softmax(-1).requires_grad_()
    roots = torch.randn(batch, n_phrases, generator=generator)
    root = torch.cat([roots, torch.full((batch, n_lexical), -torch.inf)], 1).requires_grad_()
    theirs = (lexical, rules.detach().reshape(batch, n_phrases, size, size).requires_grad_(), roots.requires_grad_())
    lengths = torch.full((batch,), n)

    def ours() -> WeightedCFG:
        return WeightedCFG(grammar, lexical=lexical, rules=rules, root=root, lengths=lengths)

    def step(log_z: Callable[[], Tensor], *leaves: Tensor) -> Callable[[], object]:
        def call() -> None:
            for leaf in leaves:
                leaf.grad = None
            log_z().sum().backward()

        return call

    return {
        OURS: {
            "log p(words) + gradient": step(lambda: ours().log_partition, lexical, rules, root),
            "best derivation": lambda: ours().argmax,
        },
        "torch-struct": {
            "log p(words) + gradient": step(lambda: SentCFG(theirs, lengths=lengths).partition, *theirs),
            "best derivation": lambda: SentCFG(theirs, lengths=lengths).argmax,
        },
    }


def contests() -> Iterator[Contest]:
    warnings.filterwarnings("ignore", message=".*arg_constraints.*")
    problems = [(size, span_trees(*size), SPAN_TARGETS) for size in SPAN_SIZES]
    problems += [(size, grammars(*size), GRAMMAR_TARGETS) for size in GRAMMAR_SIZES]  # type: ignore[misc]
    for size, libraries, targets in problems:
        for task, target in targets.items():
            calls = [Candidate(name, tasks[task]) for name, tasks in libraries.items()]
            calls.append(Candidate(OURS, libraries[OURS][task], 2))
            yield Contest(task, str(size), calls, {"torch-struct": target})


def growths() -> Iterator[Growth]:
    from trelliswork.distributions import SpanTree

    def step(n: int) -> Callable[[], object]:
        spans = torch.randn(2, n, n, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()

        def call() -> None:
            spans.grad = None
            SpanTree(spans).log_partition.sum().backward()

        return call

    yield Growth("span trees, log Z + gradient, (2, n, 4)", (60, 120, 240), 3.0, step)


if __name__ == "__main__":
    main("constituency", "Speed of constituency trees", NOTE, contests, growths)
