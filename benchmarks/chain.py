"""Speed of the linear chain against its peers: `make bench` or `python -m benchmarks.chain [--quick]`.

The same scores, tags and ragged mask go to every library; the work is loss and gradients of all scores, or decoding to
lists. Nothing else should run on the machine. Writes docs/results/bench-chain.md and bench-chain.json.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.timing import Candidate, medians

SIZES = [(32, 30, 9), (32, 30, 45), (8, 200, 20), (64, 50, 100), (1, 30, 45)]
RESULTS = Path(__file__).parent.parent / "docs" / "results"
OURS = "trelliswork"
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


def run(quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for size in SIZES:
        for task in TARGETS:
            contestants = [
                Candidate(name, tasks[task], threads)
                for name, tasks, counts in candidates(Problem.of(*size))
                for threads in counts
            ]
            found = medians(contestants, rounds=5 if quick else 21)
            rows.append({"size": size, "task": task, "ms": {f"{name}@{t}": ms for (name, t), ms in found.items()}})
            if task == "loss + gradient":
                rows[-1]["ms"]["CRFsuite@1"] = crfsuite_milliseconds(*size)  # type: ignore[index]
            print(line(rows[-1]), flush=True)
    return rows


COLUMNS = ["(B, T, C)", "ours", "ours, 2 threads", "pytorch-crf", "TorchCRF", "torch-struct", "CRFsuite"]


def cells(row: dict) -> list[str]:
    """ms of ours; of the others ms and how many times as long as ours (same threads)."""
    ms, own = row["ms"], row["ms"][f"{OURS}@1"]
    out = [str(tuple(row["size"])), f"{own:.3f}", f"{ms[f'{OURS}@2']:.3f}"]
    for peer in ("pytorch-crf", "TorchCRF", "torch-struct", "CRFsuite"):
        value = ms.get(f"{peer}@1")
        out.append("—" if value is None else f"{value:.2f} ({value / own:.1f}x)")
    return out


def line(row: dict) -> str:
    return f"{row['task']:16s} " + "  ".join(f"{cell:>18s}" for cell in cells(row))


def missed(rows: list[dict]) -> list[str]:
    """Targets that this run does not reach."""
    out = []
    for row in rows:
        ms, own = row["ms"], row["ms"][f"{OURS}@1"]
        for peer, target in TARGETS[row["task"]].items():
            ratio = ms.get(f"{peer}@1", float("inf")) / own
            if ratio < target:
                out.append(f"{row['task']} {tuple(row['size'])}: {ratio:.1f}x {peer}, wanted {target:g}x")
        if ms[f"{OURS}@2"] > 1.1 * own:
            out.append(f"{row['task']} {tuple(row['size'])}: two threads take {ms[f'{OURS}@2'] / own:.2f} of one")
    return out


def report(rows: list[dict]) -> str:
    machine = platform.processor() or platform.machine()
    text = [
        "# Speed of the linear chain",
        "",
        "`make bench`: milliseconds a call, medians of interleaved runs in one process, float32, one thread unless",
        "said; in brackets how many times as long as ours. Ragged rows (half to full length), gradients of emissions",
        "and of all parameters; Viterbi includes making the lists. torch-struct is left out where its intermediates do",
        "not fit in memory, and has no end scores. CRFsuite is given one binary attribute a token (it takes no dense",
        "scores) and is timed by its L-BFGS iterations.",
        "",
        f"{machine}, 2 cores, Python {platform.python_version()}, torch {torch.__version__}.",
    ]
    for task in TARGETS:
        text += ["", f"## {task}", "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        text += ["| " + " | ".join(cells(row)) + " |" for row in rows if row["task"] == task]
    wanted = [f"{task} {x:g}x {peer}" for task, peers in TARGETS.items() for peer, x in peers.items()]
    text += ["", f"Targets, at every size: {'; '.join(wanted)}; two threads at most 10 % slower than one."]
    shortfall = missed(rows)
    text += ["Missed in this run:", *[f"- {each}" for each in shortfall]] if shortfall else ["All reached in this run."]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing written")
    quick = parser.parse_args().quick
    rows = run(quick)
    print("\n".join(missed(rows)) or "all targets reached")
    if not quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "bench-chain.json").write_text(json.dumps(rows, indent=1) + "\n")
        (RESULTS / "bench-chain.md").write_text(report(rows))
        print(f"written: {RESULTS / 'bench-chain.md'}")


if __name__ == "__main__":
    main()
