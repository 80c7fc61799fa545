"""`python -m benchmarks.accuracy`: run what is asked for, write the pages; status 1 when a goal is missed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks import accuracy
from benchmarks.accuracy.measure import ROOT, Result, measure
from benchmarks.accuracy.page import missed, report
from benchmarks.accuracy.quotes import QUOTES, quoted
from benchmarks.accuracy.runs import RUNS
from benchmarks.report import RESULTS
from trelliswork.data import atomic_write

STORE = RESULTS / "accuracy.json"


def stored(path: Path = STORE) -> list[Result]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def keep(result: Result, path: Path = STORE) -> None:
    """Into the file with all results, in place of one of the same name and seed."""
    found = {(each["name"], each["seed"]): each for each in stored(path)}
    found[result["name"], result["seed"]] = result
    places = {run.name: place for place, run in enumerate(RUNS)}
    ordered = sorted((each for each in found.values() if each["name"] in places), key=lambda each: places[each["name"]])
    with atomic_write(path) as file:
        file.write(json.dumps(ordered, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=accuracy.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora")
    parser.add_argument("--only", nargs="+", choices=[run.name for run in RUNS], metavar="NAME", help="these runs")
    parser.add_argument("--seed", type=int, default=0, help="of networks")
    parser.add_argument("--page", action="store_true", help="only write the pages anew")
    options = parser.parse_args()
    known = {(each["name"], each["seed"], each["command"]) for each in stored()}
    for run in [] if options.page else RUNS:
        seed = options.seed if run.network else 0
        if run.name not in options.only if options.only else (run.name, seed, run.command(seed)) in known:
            continue
        with tempfile.TemporaryDirectory() as work:
            result = measure(run, seed, options.data, Path(work))
        keep(result)
        print(f"{run.title}: {json.dumps(result)}\n", flush=True)
    results = stored()
    (RESULTS / "accuracy.md").write_text(report(results), encoding="utf-8")
    for path in QUOTES:
        path.write_text(quoted(path, results), encoding="utf-8")
    for line in missed(results):
        print(f"MISSED: {line}")
    sys.exit(bool(missed(results)))


if __name__ == "__main__":
    main()
