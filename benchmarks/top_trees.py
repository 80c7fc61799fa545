"""Speed of the k best trees: `python -m benchmarks.top_trees [--quick]`.

One sentence of standard normal scores, one thread. Nothing else should run on the machine. Writes
docs/results/bench-top-trees.md and .json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate

SIZES = [(n, k) for n in (20, 50, 200) for k in (10, 100)]
N_LABELS = 20
BEFORE = "lists of k and Lawler's searches"
# Milliseconds of one call of the implementation before 0060-k-best-trees.md, in the order of SIZES.
MEASURED_BEFORE = {
    "spanning": [1.11, 10.77, 4.36, 32.84, 258.32, 2061.55],
    "spanning, many roots": [1.1, 10.59, 2.56, 30.72, 217.09, 1702.89],
    "spanning, 20 labels": [1.76, 17.33, 6.36, 55.28, 268.0, 2324.36],
    "projective": [1.53, 19.7, 6.41, 76.76, 693.05, 5360.2],
    "projective, 20 labels": [2.3, 24.73, 9.04, 105.02, 1325.63, 9508.37],
    "span trees": [0.53, 6.9, 1.4, 29.21, 31.29, 658.93],
    "span trees of any arity": [0.63, 8.34, 1.95, 35.76, 39.76, 840.14],
    "grammar of 20 symbols": [6.08, 94.99, 71.71, 1056.23],
}


def make(structure: str, n: int) -> Callable[[], Any]:
    """What makes a distribution: each call of `top_k` begins with the scores."""
    from trelliswork import Grammar, ProjectiveTree, SpanningTree, SpanTree, WeightedCFG

    generator = torch.Generator().manual_seed(0)
    if structure == "grammar of 20 symbols":
        rules = [f"N{a} -> N{(3 * a + b) % 20} N{(7 * a + 5 * b) % 20} 1" for a in range(20) for b in range(10)]
        grammar = Grammar.from_rules("\n".join([*rules, *(f"N{a} -> 'w{a}' 1" for a in range(20))]))
        lexical = torch.randn(1, n, 20, generator=generator)
        return lambda: WeightedCFG(grammar, lexical=lexical)
    if structure.startswith("span trees"):
        spans = torch.randn(1, n, n, N_LABELS, generator=generator)
        return lambda: SpanTree(spans, empty=0 if "any arity" in structure else None)
    arcs = torch.randn(1, n + 1, n + 1, generator=generator)
    labels = torch.randn(1, n + 1, n + 1, N_LABELS, generator=generator) if "labels" in structure else None
    family = ProjectiveTree if structure.startswith("projective") else SpanningTree
    return lambda: family(arcs, labels, single_root="many roots" not in structure)


STRUCTURES = [
    "spanning", "spanning, many roots", "spanning, 20 labels", "projective", "projective, 20 labels", "span trees",
    "span trees of any arity", "grammar of 20 symbols",
]  # fmt: skip


def contests() -> Iterator[Contest]:
    for structure in STRUCTURES:
        before = MEASURED_BEFORE.get(structure, [])
        for place, (n, k) in enumerate(SIZES):
            if n == 200 and structure.startswith("grammar"):
                continue
            made = make(structure, n)
            call = Candidate(OURS, lambda made=made, k=k: made().top_k(k))  # type: ignore[misc]
            told = {BEFORE: before[place]} if place < len(before) else {}
            yield Contest(f"{structure}, ms", f"n = {n}, k = {k}", [call], told=told)


def growths() -> Iterator[Growth]:
    for structure, exponent in (("spanning", 2.0), ("projective", 3.0), ("span trees", 3.0)):

        def call(n: int, structure: str = structure) -> Callable[[], object]:
            made = make(structure, n)
            return lambda: made().top_k(100)

        yield Growth(f"{structure}, k = 100", (100, 200, 400), exponent, call)


NOTE = f"""
`python -m benchmarks.top_trees`: milliseconds of `top_k(k)` of one sentence of n words, scores drawn from a normal
distribution, medians of 21 rounds, float32, one thread; one root word unless said, {N_LABELS} labels on spans. The
column "{BEFORE}" is the implementation before, measured by the same calls on the same machine, and in brackets how many
times as long it took; see the [decision](../decisions/0060-k-best-trees.md). Random scores are the hard case for
spanning trees: every second tree closes some cycle.
"""


if __name__ == "__main__":
    main("top-trees", "Speed of the k best trees", NOTE, contests, growths)
