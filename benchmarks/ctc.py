"""CTC against torch's own loss: `python -m benchmarks.ctc [--quick]`.

Both get the same log probabilities, labels and ragged lengths; the work is the loss and its gradient by all log
probabilities. Nothing else should run on the machine. Writes docs/results/bench-ctc.md and bench-ctc.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate

SIZES = [(100, 16, 50, 20), (400, 8, 30, 60), (50, 64, 100, 10), (100, 1, 50, 20)]
PEER = "torch ctc_loss"
WANTED = 3.0  # of batches: a single row takes torch about as long as an empty autograd function takes Python
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Problem:
    """One batch in torch's layout; rows have full to half as many frames and labels."""

    log_probs: Tensor
    targets: Tensor
    lengths: Tensor
    target_lengths: Tensor

    @staticmethod
    def of(t: int, batch: int, c: int, u: int) -> Problem:
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(t // 2, t + 1, (batch,), generator=generator)
        target_lengths = torch.randint(u // 2, u + 1, (batch,), generator=generator)
        lengths[0], target_lengths[0] = t, u
        return Problem(
            torch.randn(t, batch, c, generator=generator).log_softmax(-1).requires_grad_(),
            torch.randint(1, c, (batch, u), generator=generator),
            lengths,
            target_lengths.minimum(lengths // 2),
        )

    def step(self, loss: Loss) -> Callable[[], None]:
        def run() -> None:
            self.log_probs.grad = None
            loss(self.log_probs, self.targets, self.lengths, self.target_lengths).backward()  # type: ignore[no-untyped-call]

        return run


def contests() -> Iterator[Contest]:
    from trelliswork.nn import CTC

    for size in SIZES:
        problem = Problem.of(*size)
        calls = [Candidate(OURS, problem.step(CTC(reduction="sum")), threads) for threads in (1, 2)]
        calls.append(Candidate(PEER, problem.step(torch.nn.CTCLoss(reduction="sum"))))
        yield Contest("loss + gradient", str(size), calls, {PEER: WANTED} if size[1] > 1 else {})


def growths() -> Iterator[Growth]:
    from trelliswork.distributions import CTC as Distribution  # noqa: N811 - beside the layer of that name
    from trelliswork.nn import CTC

    yield Growth(
        "loss + gradient, (t, 8, 30, 40)", (400, 800, 1600), 1.0,
        lambda t: Problem.of(t, 8, 30, 40).step(CTC(reduction="sum")),
    )  # fmt: skip

    def alignment(t: int) -> Callable[[], object]:
        problem = Problem.of(t, 8, 30, 40)
        frames = problem.log_probs.detach().transpose(0, 1).contiguous()
        return lambda: (
            Distribution(frames, lengths=problem.lengths).given(problem.targets, problem.target_lengths).argmax
        )

    yield Growth("forced alignment, (t, 8, 30, 40)", (400, 800, 1600), 1.0, alignment)


NOTE = """
`python -m benchmarks.ctc`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one thread
unless said; in brackets how many times as long as ours (the median of the rounds' ratios). Sizes are (frames, batch,
symbols, labels), rows of half to full length. Ours checks labels and scores, computes in float64, and has a second
derivative.
"""


if __name__ == "__main__":
    main("ctc", "Speed of CTC", NOTE, contests, growths)
