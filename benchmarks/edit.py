"""Edit transducers against the same in operations of torch: `python -m benchmarks.edit [--quick]`.

Both get the same scores or vectors and ragged lengths. The recursion of torch goes diagonal by diagonal, all cells of
one and all rows at once. Nothing else should run on the machine. Writes
docs/results/bench-edit.md and bench-edit.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate
from trelliswork.distributions import EditAlignment
from trelliswork.nn.edit.network import Pairs, edit_scores, plain_scores

SIZES = [(10, 8, 64), (20, 20, 64), (60, 60, 8)]
PEER = "torch recursion"
WANTED = 5.0
DIM, SYMBOLS = 192, 45
Scorer = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Problem:
    """A batch of pairs of half to full length: scores of steps, and vectors that make them."""

    pairs: Pairs
    steps: Tensor
    vectors: list[Tensor]

    @staticmethod
    def of(n: int, m: int, batch: int) -> Problem:
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(n // 2, n + 1, (batch,), generator=generator)
        target_lengths = torch.randint(m // 2, m + 1, (batch,), generator=generator)
        lengths[0], target_lengths[0] = n, m
        copies = torch.randint(-1, SYMBOLS, (batch, n), generator=generator)
        targets = torch.randint(0, SYMBOLS, (batch, m), generator=generator)
        shapes = (batch, n + 1, DIM), (batch, m + 1, DIM), (SYMBOLS + 4, DIM), (SYMBOLS + 4,)
        vectors = [(0.1 * torch.randn(shape, generator=generator)).requires_grad_() for shape in shapes]
        steps = torch.randn(batch, n + 1, m + 1, 3, generator=generator).log_softmax(-1).requires_grad_()
        return Problem(Pairs(copies, targets, lengths, target_lengths), steps, vectors)

    def _log_partition(self, steps: Tensor, backend: str) -> Tensor:
        lengths = dict(lengths=self.pairs.lengths, target_lengths=self.pairs.target_lengths)
        found: Tensor = EditAlignment(steps, **lengths, backend=backend, validate_args=False).log_partition  # type: ignore[arg-type]
        return found

    def sums(self, backend: str) -> Callable[[], None]:
        """The loss of given scores, and its gradient."""

        def run() -> None:
            self.steps.grad = None
            self._log_partition(self.steps, backend).sum().backward()

        return run

    def network(self, scorer: Scorer, backend: str) -> Callable[[], None]:
        """The loss of given vectors, and its gradient."""

        def run() -> None:
            for each in self.vectors:
                each.grad = None
            steps, ends = scorer(*self.vectors, self.pairs)
            (self._log_partition(steps, backend) + ends).sum().backward()

        return run


def contests() -> Iterator[Contest]:
    for size in SIZES:
        problem = Problem.of(*size)
        calls = [Candidate(OURS, problem.sums("kernel")), Candidate(PEER, problem.sums("torch"))]
        yield Contest("loss + gradient of scores", str(size), calls, {PEER: WANTED})
    for size in SIZES[:2]:
        problem = Problem.of(*size)
        calls = [
            Candidate(OURS, problem.network(edit_scores, "kernel")),
            Candidate(PEER, problem.network(plain_scores, "torch")),
        ]
        yield Contest("loss + gradient of vectors", str(size), calls, {})


def growths() -> Iterator[Growth]:
    yield Growth(
        "loss + gradient of scores, (n, 20, 32)", (50, 100, 200), 1.0, lambda n: Problem.of(n, 20, 32).sums("kernel")
    )


NOTE = """
`python -m benchmarks.edit`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one thread;
in brackets how many times as long as ours (the median of the rounds' ratios). Sizes are (n, m, batch), rows of half to
full length. The first task sums over all scripts of given scores; the second also makes them, from vectors of 192
numbers for each place of both sides: operations and 45 symbols in every cell.
"""


if __name__ == "__main__":
    main("edit", "Speed of edit transducers", NOTE, contests, growths)
