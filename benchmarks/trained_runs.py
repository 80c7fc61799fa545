"""What benchmarks share that train models by name: results in a file, rows of seeds, and the command line."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.accuracy.measure import ROOT
from benchmarks.report import RESULTS
from trelliswork.data import atomic_write

Result = dict[str, Any]


class Named(Protocol):
    """One run of a benchmark."""

    @property
    def name(self) -> str: ...


def stored(store: Path) -> list[Result]:
    """All results so far."""
    found: list[Result] = json.loads(store.read_text(encoding="utf-8")) if store.exists() else []
    return found


def keep(store: Path, result: Result) -> None:
    """Into the file with all results, in place of one of the same name and seed."""
    found = {(each["name"], each["seed"]): each for each in stored(store)}
    found[result["name"], result["seed"]] = result
    with atomic_write(store) as file:
        file.write(json.dumps([found[key] for key in sorted(found)], indent=1) + "\n")


def cells(test: Sequence[float], dev: Sequence[float], goal: float | None, seeds: Sequence[int]) -> list[str]:
    """Test and dev scores of some seeds, what was wanted, and the seeds."""
    spread = f" ± {statistics.stdev(test):.2f}" if len(test) > 1 else ""
    shown = [f"{statistics.mean(test):.2f}{spread}", f"{statistics.mean(dev):.2f}"]
    return [*shown, "" if goal is None else f"{goal:g}", ", ".join(map(str, seeds))]


def main(
    name: str,
    about: str,
    runs: Sequence[Named],
    measure: Callable[[Any, int, Path, Path], Result],
    page: Callable[[Sequence[Result]], str],
) -> None:
    """Measure the runs that have no figure yet, or those that are named, and write docs/results/`name`.{json,md}."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of all data")
    parser.add_argument("--only", nargs="+", choices=[run.name for run in runs], metavar="NAME", help="these runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options, store = parser.parse_args(), RESULTS / f"{name}.json"
    known = {(each["name"], each["seed"]) for each in stored(store)}
    for run in [] if options.page else runs:
        if run.name not in options.only if options.only else (run.name, options.seed) in known:
            continue
        with tempfile.TemporaryDirectory() as work:
            keep(store, measure(run, options.seed, options.data, Path(work)))
    (RESULTS / f"{name}.md").write_text(page(stored(store)), encoding="utf-8")
