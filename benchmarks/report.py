"""What every benchmark shares: run contests, compare with targets, write docs/results/bench-<name>.{md,json}.

A benchmark yields `Contest`s (ours and the peers on one problem) and `Growth`s (ours at n, 2n, 4n, ...), and ends with

    if __name__ == "__main__":
        main("chain", "Speed of the linear chain", NOTE, contests, growths)
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import Candidate, median, ratio, sample

RESULTS = Path(__file__).parent.parent / "docs" / "results"
OURS = "trelliswork"
MOST_BY_TWO_THREADS = 1.1  # of the time that one thread takes
Row = dict[str, Any]


@dataclass(frozen=True)
class Contest:
    """Candidates that do the same work; ours are called `OURS`. Sizes are what the table prints."""

    task: str
    size: str
    candidates: list[Candidate]
    targets: dict[str, float] = field(default_factory=dict)  # peer -> how many times as long as ours it should take
    told: dict[str, float] = field(default_factory=dict)  # peer -> milliseconds that it was measured at otherwise


@dataclass(frozen=True)
class Figures:
    """Numbers measured once, of a job that takes long or is no time at all; `found` has `OURS` and the peers.

    `targets` says how many times ours each should be.
    """

    task: str
    size: str
    found: dict[str, float]
    targets: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Growth:
    """How our time grows: `call(n)` prepares a problem of size n; `exponent` is what math.md says."""

    task: str
    sizes: tuple[int, ...]
    exponent: float
    call: Callable[[int], Callable[[], object]]


def measure(contest: Contest | Figures, quick: bool) -> Row:
    if isinstance(contest, Figures):
        ms = {f"{name}@1": value for name, value in contest.found.items()}
        ratios = {name: value / contest.found[OURS] for name, value in ms.items()}
        row = {"task": contest.task, "size": contest.size, "ms": ms, "ratios": ratios, "targets": contest.targets}
        return row if contest.task.endswith("ms") else {**row, "other_unit": True}
    found = sample(contest.candidates, rounds=5 if quick else 21)
    own = found[OURS, 1]
    ms = {f"{name}@{threads}": median(values) for (name, threads), values in found.items()}
    ratios = {f"{name}@{threads}": ratio(values, own) for (name, threads), values in found.items()}
    for name, value in contest.told.items():
        ms[f"{name}@1"], ratios[f"{name}@1"] = value, value / median(own)
    return {"task": contest.task, "size": contest.size, "ms": ms, "ratios": ratios, "targets": contest.targets}


def measure_growth(growth: Growth, quick: bool) -> Row:
    calls = [Candidate(str(n), growth.call(n)) for n in growth.sizes]
    found = list(sample(calls, rounds=3 if quick else 15).values())
    exponent = math.log(ratio(found[-1], found[-2])) / math.log(growth.sizes[-1] / growth.sizes[-2])
    ms = [median(values) for values in found]
    return {"growth": growth.task, "sizes": growth.sizes, "ms": ms, "found": exponent, "exponent": growth.exponent}


def columns(rows: list[Row]) -> list[str]:
    """`name@threads` of all candidates, ours first."""
    keys = dict.fromkeys(key for row in rows for key in row["ms"])
    return sorted(keys, key=lambda key: not key.startswith(OURS))


def heading(key: str) -> str:
    name, _, threads = key.rpartition("@")
    name = "ours" if name == OURS else name
    return name if threads == "1" else f"{name}, {threads} threads"


def cells(row: Row, keys: list[str]) -> list[str]:
    """ms of ours; of the others ms and how many times as long as ours on one thread."""
    out = [row["size"]]
    for key in keys:
        value = row["ms"].get(key)
        if value is None:
            out.append("—")
        elif key.startswith(OURS):
            out.append(f"{value:.3f}")
        else:
            out.append(f"{value:.2f} ({row['ratios'][key]:.1f}x)")
    return out


def missed(rows: list[Row]) -> list[str]:
    """Targets that this run does not reach."""
    out = []
    for row in rows:
        ratios, name = row["ratios"], f"{row['task']} {row['size']}"
        for peer, target in row["targets"].items():
            found = ratios.get(f"{peer}@1", math.inf)
            if found < target:
                out.append(f"{name}: {found:.1f}x {peer}, wanted {target:g}x")
        if ratios.get(f"{OURS}@2", 0.0) > MOST_BY_TWO_THREADS:
            out.append(f"{name}: two threads take {ratios[f'{OURS}@2']:.2f} of one")
    return out


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(x) + " |" for x in lines)]


def versions() -> str:
    machine = platform.processor() or platform.machine()
    return f"{machine}, 2 cores, Python {platform.python_version()}, torch {torch.__version__}."


def report(title: str, note: str, rows: list[Row], grown: list[Row]) -> str:
    text = [f"# {title}", "", note.strip(), "", versions()]
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        keys = columns(mine)
        text += ["", f"## {task}", "", *table(["size", *map(heading, keys)], [cells(row, keys) for row in mine])]
        wanted = dict.fromkeys(f"{x:g}x {peer}" for row in mine for peer, x in row["targets"].items())
        text += ["", f"Wanted: {', '.join(wanted)}."] if wanted else []
    if grown:
        lines = [
            [r["growth"], ", ".join(map(str, r["sizes"])), ", ".join(f"{x:.2f}" for x in r["ms"]), f"{r['found']:.2f}",
             f"{r['exponent']:g}"] for r in grown
        ]  # fmt: skip
        head = ["task", "n", "ms", "exponent at the last step", "math.md says"]
        text += ["", "## Growth", "", *table(head, lines)]
    shortfall = missed(rows)
    text += ["", "Missed in this run:", "", *(f"- {x}" for x in shortfall)] if shortfall else ["", "All reached."]
    return "\n".join(text) + "\n"


def write_json(name: str, rows: list[Row]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"bench-{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


def write(name: str, title: str, note: str, rows: list[Row], grown: list[Row]) -> None:
    write_json(name, [*rows, *grown])
    (RESULTS / f"bench-{name}.md").write_text(report(title, note, rows, grown))
    print(f"written: docs/results/bench-{name}.md")


def main(
    name: str,
    title: str,
    note: str,
    contests: Callable[[], Iterator[Contest | Figures]],
    growths: Callable[[], Iterator[Growth]] = lambda: iter(()),
) -> None:
    """Run all, print as it goes, and write the results unless --quick."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing written")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    rows: list[Row] = []
    for contest in contests():
        rows.append(row := measure(contest, quick))
        keys = columns([row])
        shown = (f"{heading(key)} {cell}" for key, cell in zip(keys, cells(row, keys)[1:], strict=True))
        print(f"{row['task']}, {row['size']}: {'; '.join(shown)}", flush=True)
    grown = [measure_growth(growth, quick) for growth in growths()]
    for row in grown:
        print(f"{row['growth']}: grows with exponent {row['found']:.2f}, math.md says {row['exponent']:g}", flush=True)
    print("\n".join(missed(rows)) or "all targets reached")
    if rows and not quick:
        write(name, title, note, rows, grown)
