"""Speed before and after a change of the house: `python -m benchmarks.house CHECKOUT`, where an older tree is.

The same calls run against both trees, turn by turn, each turn in a process of its own on one thread; writes
docs/results/house.md with the medians of the turns. Peers are not needed: what they take has not changed, so that the
ratio to a peer changes as our own time does.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent
TURNS, SECONDS = 5, 0.4  # of each tree; of each call in a turn
LOSS = 1.05

Call = Callable[[], object]


def calls() -> Iterator[tuple[str, str, Call]]:
    """Task, size and what is timed, by names that both trees have."""
    import trelliswork.nn as nn
    from trelliswork.distributions import CTC, LinearChain, ProjectiveTree, SemiMarkov, SpanningTree, SpanTree

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))

    def loss_of(make: Callable[[torch.Tensor], torch.Tensor], scores: torch.Tensor) -> Call:
        leaf = scores.requires_grad_()
        return lambda: torch.autograd.grad(make(leaf), leaf)

    for b, n, c in ((32, 30, 9), (32, 30, 45), (8, 200, 20), (64, 50, 100), (1, 30, 45)):
        emissions, transitions, size = random(b, n, c), random(c, c), f"({b}, {n}, {c})"
        tags = torch.randint(c, (b, n), generator=torch.Generator().manual_seed(0))
        layer = nn.CRF(c, batch_first=True)
        yield "chain: loss + gradient", size, loss_of(lambda e, t=tags, k=layer: -k(e, t), emissions.clone())
        yield "chain: argmax", size, lambda e=emissions, t=transitions: LinearChain(e, t).argmax
        yield "chain: marginals", size, lambda e=emissions, t=transitions: LinearChain(e, t).marginals
    for b, n, k, c in ((8, 40, 8, 9), (32, 20, 6, 20)):
        segments, transitions, size = random(b, n, k, c), random(c, c), f"({b}, {n}, {k}, {c})"
        yield (
            "segments: log Z + gradient",
            size,
            loss_of(lambda s, t=transitions: SemiMarkov(s, t).log_partition.sum(), segments.clone()),
        )
        yield "segments: argmax", size, lambda s=segments, t=transitions: SemiMarkov(s, t).argmax
    for b, n, c in ((8, 30, 10), (32, 40, 10)):
        spans, size = random(b, n, n, c), f"({b}, {n}, {c})"
        yield "span trees: log Z + gradient", size, loss_of(lambda s: SpanTree(s).log_partition.sum(), spans.clone())
        yield "span trees: argmax", size, lambda s=spans: SpanTree(s).argmax
    for name, family in (("projective", ProjectiveTree), ("spanning", SpanningTree)):
        for b, n in ((8, 60), (32, 25)):
            arcs, size = random(b, n + 1, n + 1), f"({b}, {n})"
            yield f"{name}: log Z + gradient", size, loss_of(lambda a, f=family: f(a).log_partition.sum(), arcs.clone())
            yield f"{name}: argmax", size, lambda a=arcs, f=family: f(a).argmax
            costs = random(b, n + 1, n + 1)
            yield (
                f"{name}: marginals + gradient",
                size,
                loss_of(lambda a, f=family, w=costs: (f(a).marginals * w).sum(), arcs.clone()),
            )
    frames, targets = random(16, 200, 30).log_softmax(-1), torch.randint(1, 30, (16, 40))
    yield (
        "CTC: log p + gradient",
        "(16, 200, 30)",
        loss_of(lambda f: CTC(f).log_prob(targets, torch.full((16,), 40)).sum(), frames.clone()),
    )


def turn() -> dict[str, float]:
    """Milliseconds of each call in this process."""
    torch.set_num_threads(1)
    found = {}
    for task, size, call in calls():
        call(), call()
        times, end = [], time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        found[f"{task}|{size}"] = 1000 * statistics.median(times)
    return found


def measured(checkout: Path) -> dict[str, float]:
    """The same in a process that imports the tree at `checkout`."""
    settings = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__], env=settings, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def page(before: dict[str, float], after: dict[str, float], old: str) -> str:
    lines = [
        "# Speed before and after the house was rebuilt",
        "",
        f"`python -m benchmarks.house CHECKOUT`, with the tree of {old} in CHECKOUT: milliseconds a call on one",
        f"thread, medians of {TURNS} turns of each tree, taken by turns on one machine. What peers take has not",
        "changed, so the ratio to a peer changes as our time does.",
        "",
        "| task | size | before | after | before / after |",
        "|---|---|---|---|---|",
    ]
    for key, old_time in before.items():
        task, size = key.split("|")
        mark = " (slower)" if after[key] > LOSS * old_time else ""
        lines.append(f"| {task} | {size} | {old_time:.3f} | {after[key]:.3f} | {old_time / after[key]:.2f}x{mark} |")
    slower = sum(after[key] > LOSS * before[key] for key in before)
    return "\n".join([*lines, "", f"{slower} of {len(before)} calls take more than 5 % longer than before.", ""])


def main(checkout: str) -> None:
    trees = {"before": Path(checkout).resolve(), "after": ROOT}
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for each in trees.values():
        measured(each)  # kernels are compiled
    for _ in range(TURNS):
        for name, each in trees.items():
            turns[name].append(measured(each))
    medians = {
        name: {key: statistics.median(turn[key] for turn in found) for key in found[0]} for name, found in turns.items()
    }
    git = ["git", "-C", checkout, "log", "-1", "--format=%h"]
    old = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    (ROOT / "docs/results/house.md").write_text(page(medians["before"], medians["after"], old))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        print(json.dumps(turn()))
