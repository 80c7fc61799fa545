"""Speed before and after a change of the house: `python -m benchmarks.house CHECKOUT`, where an older tree is.

Each tree has a process of its own on one thread, and both answer each call by turns. The least processor time of a call
is what counts: what else runs on the machine adds to the others, and hardly to the least. Behind it stand the ratios to
peers that `make bench` left in docs/results of either tree. Writes docs/results/house.md; a word after CHECKOUT, such
as "chain: argmax", prints the lines that have it and writes nothing.

`python -m benchmarks.house --level x86-64-v3 [WORD]` compares kernels for this processor with those for a level, as
wheels carry them, of this tree; it prints only.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

import torch

ROOT = Path(__file__).parent.parent
OURS = "trelliswork"
TURNS, SECONDS = 24, 0.03  # of each call in each tree; of a turn
SLOW, FEW_TURNS = 50, 3  # milliseconds: where one takes longer, both are far apart
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
        yield "chain: 100 samples", size, lambda e=emissions, t=transitions: LinearChain(e, t).sample((100,))
        yield (
            "chain: marginals + gradient",
            size,
            loss_of(lambda e, t=transitions: (LinearChain(e, t).marginals * e.detach()).sum(), emissions.clone()),
        )
    for b, n, k, c in ((8, 40, 8, 9), (32, 20, 6, 20)):
        segments, transitions, size = random(b, n, k, c), random(c, c), f"({b}, {n}, {k}, {c})"
        yield (
            "segments: log Z + gradient",
            size,
            loss_of(lambda s, t=transitions: SemiMarkov(s, t).log_partition.sum(), segments.clone()),
        )
        yield "segments: argmax", size, lambda s=segments, t=transitions: SemiMarkov(s, t).argmax
        yield (
            "segments: marginals + gradient",
            size,
            loss_of(lambda s, t=transitions: (SemiMarkov(s, t).marginals * s.detach()).sum(), segments.clone()),
        )
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


def answer() -> None:
    """Say which calls there are, then how many milliseconds the one takes whose number is read, again and again."""
    torch.set_num_threads(1)
    known = list(calls())
    print(json.dumps([f"{task}|{size}" for task, size, _ in known]), flush=True)
    for line in sys.stdin:
        print(1000 * least(known[int(line)][2]), flush=True)


def least(call: Call) -> float:
    """Seconds of processor time: the least of the runs of a call in one turn, one at least."""
    found, end = [], time.perf_counter() + SECONDS
    while not found or time.perf_counter() < end:
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


class Tree:
    """A process that times the calls of the tree at `checkout`."""

    def __init__(self, checkout: Path, more: Mapping[str, str] = MappingProxyType({})):
        settings = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1", **more}
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.calls: list[str] = json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def milliseconds(self, call: int) -> float:
        questions: IO[str] | None = self._process.stdin
        assert questions is not None
        print(call, file=questions, flush=True)
        return float(self._line())


Times = dict[str, tuple[float, float]]  # before and after


def measured(before: Tree, after: Tree, word: str) -> Times:
    found: Times = {}
    for number, name in enumerate(before.calls):
        if word in name:
            before.milliseconds(number), after.milliseconds(number)  # kernels are compiled
            slowest = max(before.milliseconds(number), after.milliseconds(number))
            n_turns = TURNS if slowest < SLOW else FEW_TURNS
            turns = [(before.milliseconds(number), after.milliseconds(number)) for _ in range(n_turns)]
            found[name] = min(old for old, _ in turns), min(new for _, new in turns)
    return found


def rows(found: Times) -> list[str]:
    lines = []
    for name, (old, new) in found.items():
        mark = " (slower)" if new > LOSS * old else ""
        lines.append(f"| {name.replace('|', ' | ')} | {old:.3f} | {new:.3f} | {old / new:.2f}x{mark} |")
    return lines


Ratios = dict[tuple[str, str, str, str], float]  # how many times as long a peer takes: benchmark, task, size, peer


def ratios(checkout: Path) -> Ratios:
    """What `make bench` left in a tree, of one thread."""
    found: Ratios = {}
    for file in sorted((checkout / "docs/results").glob("bench-*.json")):
        for row in json.loads(file.read_text()):
            for peer, ratio in row.get("ratios", {}).items():
                name, threads = peer.split("@")
                if name != OURS and threads == "1" and not row.get("other_unit"):
                    found[file.stem.removeprefix("bench-"), row["task"], row["size"], name] = ratio
    return found


def ratio_rows(before: Ratios, after: Ratios) -> list[str]:
    return [
        f"| {' | '.join(key)} | {old:.1f}x | {after[key]:.1f}x | {after[key] / old:.2f}{' (fell)' if fell else ''} |"
        for key, old in before.items()
        if key in after
        for fell in [after[key] * LOSS < old]
    ]


def page(found: Times, commit: str, before: Ratios, after: Ratios) -> str:
    slower = sum(new > LOSS * old for old, new in found.values())
    lines = [
        "# Speed before and after the house was rebuilt",
        "",
        f"`python -m benchmarks.house CHECKOUT`, with the tree of {commit} in CHECKOUT: milliseconds of processor time",
        f"of a call on one thread, the least of {TURNS} turns of each tree ({FEW_TURNS} of calls above {SLOW} ms),",
        f"taken by turns on one machine ({processor()}).",
        "What else runs there changes the least hardly, by a few per cent.",
        "",
        "| task | size | before | after | before / after |",
        "|---|---|---|---|---|",
        *rows(found),
        "",
        f"{slower} of {len(found)} calls take more than 5 % longer than before.",
        "",
        "## Ratios to peers",
        "",
        "How many times as long as ours a peer takes on one thread, as `make bench` of either tree wrote it. The two",
        "were made on different days, and what a peer takes differs between them, too.",
        "",
        "| benchmark | task | size | peer | before | after | after / before |",
        "|---|---|---|---|---|---|---|",
        *(lines := ratio_rows(before, after)),
        "",
        f"{sum('(fell)' in line for line in lines)} of {len(lines)} ratios fell by more than 5 %.",
        "",
    ]
    return "\n".join(lines)


def processor() -> str:
    """What the processor calls itself."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    widest = "AVX-512" if any("avx512f" in line for line in lines) else "AVX2 or less"
    return f"{names[0]}, {widest}"


def main(checkout: str, word: str = "") -> None:
    found = measured(Tree(Path(checkout).resolve()), Tree(ROOT), word)
    if word:
        print("\n".join(rows(found)))
        return
    git = ["git", "-C", checkout, "log", "-1", "--format=%h"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    (ROOT / "docs/results/house.md").write_text(page(found, commit, ratios(Path(checkout)), ratios(ROOT)))


def compare_level(name: str, word: str = "") -> None:
    """Print how fast kernels for a level are: the columns are for this processor, for the level, and their ratio."""
    from trelliswork.runtime.shipped import levels

    (level,) = (each for each in levels() if each.name == name)
    found = measured(Tree(ROOT), Tree(ROOT, level.settings), word)
    print("\n".join(rows(found)))
    print(f"{len(found)} calls; median ratio {statistics.median(old / new for old, new in found.values()):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--level"]:
        compare_level(*sys.argv[2:])
    elif len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        answer()
