"""Speed of batched beam search: `python -m benchmarks.beam [--quick]`. Writes docs/results/bench-beam.{md,json}.

There is no library to compare with that takes any transition system, so the peers are the two loops that people write:
over rows and hypotheses with Python lists, and over rows with torch. All three find the same hypotheses.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate

SIZES = [(32, 30, 9, 8), (32, 30, 45, 8), (8, 100, 45, 32), (1, 30, 45, 8)]
TARGETS = {"lists and loops": 3.0, "one row at a time": 1.5}  # of whole batches


def problem(batch: int, n: int, a: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(n // 2, n + 1, (batch,), generator=generator)
    lengths[0] = n
    return torch.randn(batch, n, a, generator=generator), torch.randn(a, a, generator=generator), lengths


def ours(emissions: Tensor, transitions: Tensor, lengths: Tensor, beam: int) -> Callable[[], object]:
    from trelliswork.structures.beam import ChainScorer, Tagging, beam_search

    system = Tagging(lengths, len(transitions))
    scorer = ChainScorer(system, emissions, transitions)

    def search() -> object:
        with torch.no_grad():
            return beam_search(system, scorer, beam).decisions.tolist()

    return search


def row_by_row(emissions: Tensor, transitions: Tensor, lengths: Tensor, beam: int) -> Callable[[], object]:
    """`topk` over one row's beam * a candidates, hypotheses as index tensors."""

    def search_row(scores: Tensor) -> object:
        a = scores.shape[1]
        totals, tags = scores[0].topk(min(beam, a))
        history = tags[:, None]
        for t in range(1, len(scores)):
            candidates = (totals[:, None] + transitions[history[:, -1]] + scores[t]).flatten()
            totals, index = candidates.topk(min(beam, len(candidates)))
            history = torch.cat([history[index // a], (index % a)[:, None]], 1)
        return history.tolist()

    def search() -> object:
        with torch.no_grad():
            return [search_row(row[:length]) for row, length in zip(emissions, lengths.tolist(), strict=True)]

    return search


def lists_and_loops(emissions: Tensor, transitions: Tensor, lengths: Tensor, beam: int) -> Callable[[], object]:
    arcs = transitions.tolist()

    def search_row(scores: list[list[float]]) -> object:
        hypotheses = heapq.nlargest(beam, ((score, (tag,)) for tag, score in enumerate(scores[0])))
        for row in scores[1:]:
            grown = (
                (total + arc + score, (*tags, tag))
                for total, tags in hypotheses
                for tag, (arc, score) in enumerate(zip(arcs[tags[-1]], row, strict=True))
            )
            hypotheses = heapq.nlargest(beam, grown)
        return [tags for _, tags in hypotheses]

    def search() -> object:
        rows = emissions.tolist()
        return [search_row(row[:length]) for row, length in zip(rows, lengths.tolist(), strict=True)]

    return search


NOTE = """
`python -m benchmarks.beam`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one thread;
in brackets how many times as long as ours. Sizes are (batch, n, decisions, beam); rows have half to full length and the
scores of a chain. Ours takes any transition system, sums in float64 and checks every score; the loops know the chain.
One row, or a few with a wide beam, have nothing to gain from a batch and show what the generality costs.
"""


def contests() -> Iterator[Contest]:
    for batch, n, a, beam in SIZES:
        given = problem(batch, n, a)
        candidates = [
            Candidate(OURS, ours(*given, beam)),
            Candidate("one row at a time", row_by_row(*given, beam)),
            Candidate("lists and loops", lists_and_loops(*given, beam)),
        ]
        yield Contest("beam search", str((batch, n, a, beam)), candidates, TARGETS if batch >= 32 else {})


def growths() -> Iterator[Growth]:
    yield Growth("beam search, (8, n, 45), beam 16", (50, 100, 200), 1.0, lambda n: ours(*problem(8, n, 45), 16))


if __name__ == "__main__":
    main("beam", "Speed of beam search", NOTE, contests, growths)
