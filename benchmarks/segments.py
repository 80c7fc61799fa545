"""Speed of segmentations against their peers: `make bench` or `python -m benchmarks.segments [--quick]`.

The same scores, gold segmentations and ragged lengths go to every library; the work is loss and gradients of all
scores, or decoding. flash-semicrf has several ways to do it; each is measured, and the fastest is the peer. Writes
docs/results/bench-segments.md and bench-segments.json. Nothing else should run on the machine.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate
from trelliswork.distributions import SemiMarkov
from trelliswork.nn import SemiCRF

SIZES = [(8, 60, 8, 8), (1, 60, 8, 8), (4, 100, 12, 4)]
LOSS, BEST, FACTORED = "loss + gradient", "argmax", "loss + gradient, factored scores"
TARGETS = {LOSS: {"flash-semicrf": 30.0, "torch-struct": 1000.0}, BEST: {"torch-struct": 50.0}, FACTORED: {}}
TORCH_STRUCT_LIMIT = 2e8  # numbers in its largest intermediate
FLASH = importlib.util.find_spec("flash_semicrf") is not None
Task = Callable[[], object]


@dataclass(frozen=True)
class Problem:
    """One batch: scores that want gradients, gold segmentations, and rows of full to half length."""

    segments: Tensor
    layer: SemiCRF
    starts: Tensor
    lengths: Tensor

    @staticmethod
    def of(batch: int, n: int, k: int, c: int, order: int = 1) -> Problem:
        torch.manual_seed(0)
        lengths = torch.randint(n // 2, n + 1, (batch,))
        lengths[0] = n
        segments, layer = torch.randn(batch, n, k, c), SemiCRF(c, k, order=order)
        starts = layer.distribution(segments, lengths).sample_starts().detach()
        return Problem(segments.requires_grad_(), layer, starts, lengths)

    def step(self, loss: Callable[[], Tensor]) -> Task:
        """A training step's work on the structured layer: loss, and gradients of scores and parameters."""

        def run() -> None:
            self.layer.zero_grad()
            self.segments.grad = None
            loss().backward()

        return run


def ours(problem: Problem) -> dict[str, Task]:
    layer, segments = problem.layer, problem.segments

    def best() -> object:
        with torch.no_grad():
            return layer.decode(segments, problem.lengths)

    return {LOSS: problem.step(lambda: layer.loss(segments, problem.starts, problem.lengths, "sum")), BEST: best}


def potentials(problem: Problem) -> Tensor:
    """[batch, n, k, to, from], as flash-semicrf wants them (torch-struct one duration more); part of their work.

    Start scores are added to what leaves position 0, end scores to what ends a row.
    """
    segments, layer = problem.segments, problem.layer
    batch, n, k, c = segments.shape
    edges = segments[..., None] + (0 if layer.transitions is None else layer.transitions.T)
    first = segments[:, 0] + layer.start_transitions
    at_start = torch.full((batch, k, c, c), -1e5).index_put(
        (torch.arange(batch)[:, None, None], torch.arange(k)[:, None], torch.arange(c), torch.tensor(0)), first
    )
    ends = torch.arange(1, n + 1)[:, None] + torch.arange(k) == problem.lengths[:, None, None]
    edges = torch.cat([at_start[:, None], edges[:, 1:]], 1)
    edges = edges + torch.where(ends[..., None, None], layer.end_transitions[:, None], 0.0)
    past = torch.arange(1, n + 1)[:, None] + torch.arange(k) > problem.lengths[:, None, None]
    return edges.masked_fill(past[..., None, None], -1e5)


def gold_score(problem: Problem) -> Tensor:
    """Their gold score, by ours: the structured part is what is compared."""
    return problem.layer.distribution(problem.segments, problem.lengths).score(problem.starts).sum()


def torch_struct(problem: Problem) -> dict[str, Task]:
    from torch_struct import SemiMarkovCRF

    def distribution(edges: Tensor) -> SemiMarkovCRF:
        with_nothing = torch.nn.functional.pad(edges, (0, 0, 0, 0, 1, 0), value=-1e5)  # duration 0
        return SemiMarkovCRF(with_nothing, lengths=problem.lengths + 1)

    def loss() -> Tensor:
        return distribution(potentials(problem)).partition.sum() - gold_score(problem)

    def best() -> object:
        return SemiMarkovCRF.struct.from_parts(distribution(potentials(problem).detach()).argmax)

    return {LOSS: problem.step(loss), BEST: best}


def flash(problem: Problem) -> Iterator[tuple[str, dict[str, Task]]]:
    """flash-semicrf's ways on the CPU that take scores of segments; its streaming one takes scores of tokens."""
    from flash_semicrf import SemiMarkov as Flash
    from flash_semicrf.semirings import LogSemiring, MaxSemiring

    ways = {"vectorized": {"use_linear_scan": True, "use_vectorized": True}, "scan": {"use_linear_scan": True}}
    for name, options in ways.items():

        def total(semiring: type, edges: Tensor, options: dict[str, bool] = options) -> Tensor:
            found, *_ = Flash(semiring).logpartition(edges, lengths=problem.lengths + 1, **options)
            return found.sum()

        def best(total: Callable[..., Tensor] = total) -> object:
            edges = potentials(problem).detach().requires_grad_()
            return torch.autograd.grad(total(MaxSemiring, edges), edges)

        def loss(total: Callable[..., Tensor] = total) -> Tensor:
            return total(LogSemiring, potentials(problem)) - gold_score(problem)

        yield f"flash-semicrf, {name}", {LOSS: problem.step(loss), BEST: best}


def factored_tasks(batch: int, n: int, k: int, c: int) -> dict[str, Task]:
    """log Z and its gradient from scores of tokens, by ours and by flash-semicrf's streaming way."""
    torch.manual_seed(0)
    tokens = torch.randn(batch, n, c).requires_grad_()
    durations, transitions = torch.randn(k, c).requires_grad_(), torch.randn(c, c).requires_grad_()
    lengths = torch.full((batch,), n)

    def mine() -> None:
        SemiMarkov.factored(tokens, durations, transitions=transitions).log_partition.sum().backward()

    def theirs() -> None:
        from flash_semicrf import semi_crf_streaming_forward

        sums = torch.nn.functional.pad(tokens.double().cumsum(1), (0, 0, 1, 0))
        semi_crf_streaming_forward(sums, transitions, durations, lengths, k, use_triton=False).sum().backward()

    return {OURS: mine, **({"flash-semicrf": theirs} if FLASH else {})}


def fastest(ways: dict[str, Task]) -> str:
    """The name of the quickest of some calls, by the best of three."""
    import time

    seconds: dict[str, float] = {}
    for name, call in ways.items():
        for _ in range(3):
            begin = time.perf_counter()
            call()
            seconds[name] = min(seconds.get(name, float("inf")), time.perf_counter() - begin)
    return min(seconds, key=lambda name: seconds[name])


def contests() -> Iterator[Contest]:
    for size in SIZES:
        problem = Problem.of(*size)
        batch, n, k, c = size
        peers = dict(flash(problem)) if FLASH else {}
        for task in (LOSS, BEST):
            calls = [Candidate(OURS, ours(problem)[task])]
            if peers:
                chosen = fastest({name: tasks[task] for name, tasks in peers.items()})
                print(f"flash-semicrf's fastest way here: {chosen}")
                calls.append(Candidate("flash-semicrf", peers[chosen][task]))
            if batch * n * (k * c) ** 2 * 4 < TORCH_STRUCT_LIMIT:
                calls.append(Candidate("torch-struct", torch_struct(problem)[task]))
            targets = {peer: x for peer, x in TARGETS[task].items() if peer in {call.name for call in calls}}
            yield Contest(task, str(size), calls, targets)
    for size in [(8, 60, 8, 8), (1, 1000, 16, 16)]:
        yield Contest(FACTORED, str(size), [Candidate(*pair) for pair in factored_tasks(*size).items()])


def growths() -> Iterator[Growth]:
    def step(n: int, k: int, c: int, order: int = 1) -> Task:
        return ours(Problem.of(2, n, k, c, order))[LOSS]

    def long(n: int) -> Task:
        return factored_tasks(1, n, 16, 16)[OURS]

    yield Growth("loss + gradient, (2, n, 16, 16)", (100, 200, 400), 1.0, lambda n: step(n, 16, 16))
    yield Growth("loss + gradient, (2, 300, k, 8): at most", (16, 32, 64), 1.0, lambda k: step(300, k, 8))
    yield Growth("the same with k = 2, in c: at most", (32, 64, 128), 2.0, lambda c: step(100, 2, c))
    yield Growth("0th order, (2, 300, 16, c)", (16, 32, 64), 1.0, lambda c: step(300, 16, c, 0))
    yield Growth("factored, (1, n, 16, 16)", (2500, 5000, 10_000), 1.0, long)


LONG = """
import resource, torch
from trelliswork.distributions import SemiMarkov
tokens = torch.randn(1, 10_000, 16).requires_grad_()
durations, transitions = torch.randn(16, 16).requires_grad_(), torch.randn(16, 16).requires_grad_()
SemiMarkov.factored(tokens, durations, transitions=transitions).log_partition.sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def peak_gigabytes() -> float:
    """Of a process of its own, torch included, that does log Z and gradients at n = 10,000, k = 16, c = 16."""
    return float(subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True).stdout)


def note() -> str:
    absent = (
        "" if FLASH else " flash-semicrf is not installed here and left out: `pip install --no-deps flash-semicrf`."
    )
    return f"""
`python -m benchmarks.segments`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one
thread; in brackets how many times as long as ours (the median of the rounds' ratios). Sizes are (batch, n, k, c), rows
of half to full length; gradients of segment scores and of all parameters. The peers' potentials [batch, n, k, c, c] are
built from the same scores; of flash-semicrf's ways the fastest is shown, and torch-struct's numbers are right only for
rows of one length. Factored scores are those of tokens, compared with flash-semicrf's streaming way.{absent}

Memory: log Z and gradients of factored scores with n = 10,000, k = 16, c = 16 take {peak_gigabytes():.2f} GB at most,
torch itself included; wanted: under 1 GB.
"""


if __name__ == "__main__":
    main("segments", "Speed of segmentations", note(), contests, growths)
