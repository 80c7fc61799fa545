"""Speed of the linear chain against its peers: `make bench` or `python -m benchmarks.chain [--quick]`.

The same scores, tags and ragged mask go to every library; the work is loss and gradients of all scores, or decoding to
lists. Nothing else should run on the machine. Writes docs/results/bench-chain.md and bench-chain.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate

SIZES = [(32, 30, 9), (32, 30, 45), (8, 200, 20), (64, 50, 100), (1, 30, 45)]
TARGETS = {"loss + gradient": {"pytorch-crf": 12.0, "torch-struct": 40.0}, "Viterbi": {"pytorch-crf": 30.0}}
TORCH_STRUCT_LIMIT = 2e9  # numbers in its largest intermediate; beyond, it does not fit in 24 GB


@dataclass(frozen=True)
class Problem:
    """One batch: scores that want gradients, gold tags, and a mask with rows of full to half length."""

    emissions: Tensor
    tags: Tensor
    mask: Tensor

    @staticmethod
    def of(batch: int, n: int, c: int) -> Problem:
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(n // 2, n + 1, (batch,), generator=generator)
        lengths[0] = n
        return Problem(
            torch.randn(batch, n, c, generator=generator).requires_grad_(),
            torch.randint(c, (batch, n), generator=generator),
            torch.arange(n) < lengths[:, None],
        )


def trained(module: torch.nn.Module, loss: Callable[[], Tensor], emissions: Tensor) -> Callable[[], None]:
    """One training step's work on the structured layer: loss, and gradients of scores and parameters."""

    def step() -> None:
        module.zero_grad()
        emissions.grad = None
        loss().backward()

    return step


def pytorch_crf(problem: Problem, layer: torch.nn.Module) -> dict[str, Callable[[], object]]:
    """For `torchcrf.CRF` and, with the same interface, our own."""
    emissions, tags, mask = problem.emissions, problem.tags, problem.mask

    def decode() -> object:
        with torch.no_grad():
            return layer.decode(emissions, mask)  # type: ignore[operator]

    return {
        "loss + gradient": trained(layer, lambda: -layer(emissions, tags, mask), emissions),
        "Viterbi": decode,
    }


def torchcrf(problem: Problem) -> dict[str, Callable[[], object]]:
    """The package TorchCRF."""
    from TorchCRF import CRF

    emissions, tags, mask = problem.emissions, problem.tags, problem.mask
    layer = CRF(emissions.shape[2])

    def decode() -> object:
        with torch.no_grad():
            return layer.viterbi_decode(emissions, mask)

    return {
        "loss + gradient": trained(layer, lambda: -layer(emissions, tags, mask).sum(), emissions),
        "Viterbi": decode,
    }


def torch_struct(problem: Problem, layer: torch.nn.Module) -> dict[str, Callable[[], object]]:
    """torch-struct takes one potential an edge, [batch, n-1, to, from]; building it is part of its work."""
    from torch_struct import LinearChainCRF

    emissions, tags, mask = problem.emissions, problem.tags, problem.mask
    lengths = mask.sum(1)
    c = emissions.shape[2]

    def distribution() -> LinearChainCRF:
        edges = layer.transitions.T[None, None] + emissions[:, 1:, :, None]  # type: ignore[union-attr,index,operator]
        first = (layer.start_transitions + emissions[:, 0])[:, None, None, :]  # type: ignore[operator]
        edges = torch.cat([edges[:, :1] + first, edges[:, 1:]], 1)
        return LinearChainCRF(edges, lengths=lengths)

    def loss() -> Tensor:
        parts = LinearChainCRF.struct.to_parts(tags, c, lengths=lengths)
        return -distribution().log_prob(parts.to(emissions.dtype)).sum()

    def decode() -> object:
        with torch.no_grad():
            best, _ = LinearChainCRF.struct.from_parts(distribution().argmax)
        return best.tolist()

    return {"loss + gradient": trained(layer, loss, emissions), "Viterbi": decode}


def candidates(problem: Problem) -> Iterator[tuple[str, dict[str, Callable[[], object]], tuple[int, ...]]]:
    """(name, task -> call, thread counts) of every library that can do this size."""
    import torchcrf as pytorch_crf_package

    from trelliswork.nn import CRF

    batch, n, c = problem.emissions.shape
    ours, theirs = CRF(c, batch_first=True), pytorch_crf_package.CRF(c, batch_first=True)
    ours.load_state_dict(theirs.state_dict())
    yield OURS, pytorch_crf(problem, ours), (1, 2)
    yield "pytorch-crf", pytorch_crf(problem, theirs), (1, 2)
    yield "TorchCRF", torchcrf(problem), (1,)
    if batch * n * c**3 < TORCH_STRUCT_LIMIT:
        yield "torch-struct", torch_struct(problem, ours), (1,)


def crfsuite_milliseconds(batch: int, n: int, c: int, copies: int = 20, iterations: int = 15) -> float:
    """CRFsuite's objective and gradient for one batch: seconds of an L-BFGS iteration on sequences of one attribute.

    CRFsuite has no dense scores; one binary attribute a token is the least it can be given, so this is its
    forward-backward with next to no feature work.
    """
    import tempfile
    import time

    import pycrfsuite

    generator = torch.Generator().manual_seed(0)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    settings = {"c2": 1.0, "feature.possible_states": True, "feature.possible_transitions": True}
    for _ in range(batch * copies):
        words = [[f"w{int(w)}"] for w in torch.randint(50, (n,), generator=generator)]
        trainer.append(words, [str(int(y)) for y in torch.randint(c, (n,), generator=generator)])
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for limit in (1, 1 + iterations):
            trainer.set_params({**settings, "max_iterations": limit})
            begin = time.perf_counter()
            trainer.train(f"{folder}/model")
            seconds.append(time.perf_counter() - begin)
    done = len(trainer.logparser.iterations) - 1
    return (seconds[1] - seconds[0]) * 1000 / max(done, 1) / copies


NOTE = """
`make bench`: milliseconds a call, medians of 21 interleaved rounds in one process, float32, one thread unless said; in
brackets how many times as long as ours (the median of the rounds' ratios). Sizes are (batch, n, c), rows of half
to full length; gradients of emissions and of all parameters; Viterbi includes making the lists. torch-struct is left
out where its intermediates do not fit in memory, and has no end scores. CRFsuite is given one binary attribute a token
(it takes no dense scores) and is timed by its L-BFGS iterations. Two threads should take at most 10 % longer than one.
"""


def contests() -> Iterator[Contest]:
    for size in SIZES:
        contestants = list(candidates(Problem.of(*size)))
        for task, targets in TARGETS.items():
            told = {"CRFsuite": crfsuite_milliseconds(*size)} if task == "loss + gradient" else {}
            calls = [Candidate(name, tasks[task], threads) for name, tasks, counts in contestants for threads in counts]
            yield Contest(task, str(size), calls, targets, told)


def growths() -> Iterator[Growth]:
    from trelliswork.nn import CRF

    def step(n: int) -> Callable[[], object]:
        problem = Problem.of(8, n, 20)
        return pytorch_crf(problem, CRF(20, batch_first=True))["loss + gradient"]

    yield Growth("loss + gradient, (8, n, 20)", (400, 800, 1600), 1.0, step)


if __name__ == "__main__":
    main("chain", "Speed of the linear chain", NOTE, contests, growths)
