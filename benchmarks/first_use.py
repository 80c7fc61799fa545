"""What the first call costs with warm caches: `python -m benchmarks.first_use [--rounds N] [--before CHECKOUT]`.

Each row is a process of its own, interleaved with the others; processor seconds of the whole process, medians. The
limits were set on a machine that takes 2.5 s to import torch, and are scaled by what that import takes in this run.
With the folder of an earlier checkout, whose sources are then measured in between, a column has what each row took
before. With `--tests`, `make test` of this tree is timed as well, in a fresh clone where nothing is compiled, and a
wheel is built for its size: half an hour; `--whole MINUTES MEGABYTES` takes both as they were measured before. Writes
docs/results/first-use.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.runtime.threads import n_cores

CHECKOUT = Path(__file__).resolve().parent.parent
RESULTS = CHECKOUT / "docs" / "results" / "first-use.md"
TORCH_ON_REFERENCE = 2.5  # seconds
LOADED = 25.0  # milliseconds, not scaled
PEERS = "What a call takes next to that of a peer: [calls](bench-calls.md).\n"
DATA = "May B-PER\nLincoln I-PER\nleft O\nChase B-ORG\n\nI O\nlike O\nRome B-LOC\n\n"


class Job(NamedTuple):
    """A process; `limit` is what it may take beyond the bare import, in seconds of the reference machine."""

    name: str
    arguments: tuple[str, ...]
    bare: str = ""
    limit: float | None = None


def code(text: str) -> tuple[str, ...]:
    return "-c", text


def command(line: str) -> tuple[str, ...]:
    return "-m", "trelliswork", *line.split()


BARE = {name: Job(f"`import {name}`", code(f"import {name}")) for name in ("torch", "numba", "sklearn")}
JOBS = [
    *BARE.values(),
    Job("`import trelliswork`", code("import trelliswork"), "", 0.03),
    Job("`tw.LinearChain`, `tw.nn.CRF`", code("import trelliswork as tw; tw.LinearChain; tw.nn.CRF"), "torch", 0.3),
    Job("`from trelliswork.sklearn import CRF`", code("from trelliswork.sklearn import CRF"), "sklearn", 0.4),
    Job("`predict` of one sentence, feature model", command("predict crf new.conll"), "", 0.7),
    Job("`predict` of one sentence, network", command("predict network new.conll"), "torch", 0.9),
    Job("`train --help`", command("train --help"), "", 0.4),
    Job("`train` with a missing file", command("train missing.conll --out model"), "", 0.5),
]


def environment_of(checkout: Path, folder: str, **settings: str) -> dict[str, str]:
    """Return the settings of a process of a checkout. It keeps bytecode, as that of an installed package is kept."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = {"PYTHONPATH": str(checkout / "src"), "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
    return {**inherited, **places, **settings}


def processor_seconds(job: Job, folder: str, checkout: Path) -> float:
    """Return the user and system time of the process and those that it waited for."""
    environment = environment_of(checkout, folder)
    with open(os.devnull, "w") as nowhere:
        process = subprocess.Popen(
            [sys.executable, *job.arguments], cwd=folder, stdout=nowhere, stderr=nowhere, env=environment
        )
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    return used.ru_utime + used.ru_stime


def prepare(folder: str, checkouts: Sequence[Path]) -> None:
    """Train the two models, and fill the caches."""
    Path(folder, "train.conll").write_text(DATA * 5)
    Path(folder, "new.conll").write_text(DATA.partition("\n\n")[0] + "\n\n")
    for line in (
        "train train.conll --model crf --out crf",
        "train train.conll --model bilstm-crf --epochs 1 --out network",
    ):
        environment = environment_of(CHECKOUT, folder)
        subprocess.run([sys.executable, *command(line)], cwd=folder, check=True, capture_output=True, env=environment)
    for job, checkout in product(JOBS, checkouts):
        processor_seconds(job, folder, checkout)


class Start(NamedTuple):
    """A process on a machine where nothing is compiled; `limit` is in seconds of wall clock on two quiet cores."""

    name: str
    arguments: tuple[str, ...]
    limit: float
    until: str = ""  # in a line that it prints


FIT = """
from trelliswork.sklearn import CRF
CRF(max_iterations=5).fit([[{"word": "May"}, {"word": "left"}]] * 20, [["B-PER", "O"]] * 20)
"""
STARTS = (
    Start(
        "`train --model crf`, first iteration",
        command("train data/train.conll --model crf --feature-columns none --max-iterations 5 --out started --force"),
        12.0,
        "iteration 1:",
    ),
    Start("`demo`", command("demo --out demo"), 25.0),
    Start("`trelliswork.sklearn.CRF().fit`", code(FIT), 8.0),
)


def wall_seconds(start: Start, folder: str, checkout: Path) -> float:
    """Return the time from the start of a process until its line, or its end, with an empty cache."""
    began = time.perf_counter()
    shutil.rmtree(Path(folder, "demo"), ignore_errors=True)
    with tempfile.TemporaryDirectory() as cache:
        settings = environment_of(checkout, folder, NUMBA_CACHE_DIR=cache)
        pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen([sys.executable, *start.arguments], cwd=folder, env=settings, **pipe) as process:
            for line in process.stdout:
                if start.until and start.until in line:
                    seconds = time.perf_counter() - began
                    process.communicate()
                    return seconds
        if process.returncode or start.until:
            raise RuntimeError(f"{start.name} ended with status {process.returncode}")
        return time.perf_counter() - began


def started(folder: str, checkouts: Sequence[Path]) -> list[str]:
    """Return the table of what is compiled while it waits, now and in an earlier checkout."""
    data = Path(folder, "data")
    data.mkdir()
    write_corpus(builtin_corpus(sizes=(600, 100, 1)), data)
    rows = ["| from an empty cache | before | wall clock s | at most | |", "|---|---|---|---|---|"]
    for start in STARTS:
        seconds, *before = (wall_seconds(start, folder, checkout) for checkout in checkouts)
        met = "met" if seconds <= start.limit else "missed"
        shown = f"{before[0]:.1f}" if before else ""
        rows.append(f"| {start.name} | {shown} | {seconds:.1f} | {start.limit:.0f} | {met} |")
    return [*rows, "", f"{n_cores()} cores; load at the end: {os.getloadavg()[0]:.1f}."]


CONLL = CHECKOUT.parent / "shared" / "data" / "conll2000" / "train.txt"
LOADING = """
import sys, time, statistics
import trelliswork as tw
took = []
for _ in range(21):
    began = time.process_time()
    tw.load(sys.argv[1])
    took.append(time.process_time() - began)
print(1000 * statistics.median(took))
"""


def loading(folder: str, checkouts: Sequence[Path]) -> list[str]:
    """Return the table of how long a feature model of a real corpus is loaded, in a process that has done so before."""
    if not CONLL.exists():
        return [
            f"Loading a feature model was not measured: there is no {CONLL.name} of CoNLL-2000 next to the project."
        ]
    train = command(f"train {CONLL} --model crf --max-iterations 30 --out loaded --quiet")
    subprocess.run(
        [sys.executable, *train], cwd=folder, check=True, capture_output=True, env=environment_of(CHECKOUT, folder)
    )
    milliseconds = [
        float(
            subprocess.run(
                [sys.executable, "-c", LOADING, "loaded"], cwd=folder, check=True, capture_output=True, text=True,
                env=environment_of(checkout, folder),
            ).stdout
        )
        for checkout in checkouts
    ]  # fmt: skip
    now, *before = milliseconds
    shown = f"{before[0]:.0f}" if before else ""
    met = "met" if now <= LOADED else "missed"
    return [
        "| loading a feature model | before | processor ms | at most | |", "|---|---|---|---|---|",
        f"| CoNLL-2000, {sum(file.stat().st_size for file in Path(folder, 'loaded').iterdir()) / 1e6:.0f} MB | {shown} "
        f"| {now:.0f} | {LOADED:.0f} | {met} |",
    ]  # fmt: skip


def whole() -> tuple[float, float]:
    """Return minutes of `make test` of what is committed, and megabytes of the wheel with its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", CHECKOUT, folder], check=True)
        subprocess.run(["make", ".venv/.ready"], cwd=folder, check=True, capture_output=True)
        began = time.perf_counter()
        failed = subprocess.run(["make", "test"], cwd=folder, capture_output=True, text=True)
        minutes = (time.perf_counter() - began) / 60
        if failed.returncode:
            raise RuntimeError(f"make test failed:\n{failed.stdout[-3000:]}")
        python = Path(folder, ".venv", "bin", "python")
        subprocess.run([python, "-m", "trelliswork.runtime.build"], cwd=folder, check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "dist", "."], cwd=folder, check=True)
        return minutes, sum(file.stat().st_size for file in Path(folder, "dist").iterdir()) / 1e6


def once(minutes: float, megabytes: float) -> list[str]:
    """Return the table of what is done once."""
    rows = ["| | now | at most | |", "|---|---|---|---|"]
    for name, value, limit in (
        ("`make test` in a fresh clone, minutes of wall clock after installation", minutes, 8),
        ("a wheel with its kernels, MB", megabytes, 25),
    ):
        rows.append(f"| {name} | {value:.1f} | {limit} | {'met' if value <= limit else 'missed'} |")
    return [*rows, ""]


def table(seconds: dict[str, float], before: dict[str, float]) -> list[str]:
    scale = seconds[BARE["torch"].name] / TORCH_ON_REFERENCE
    rows = ["| call | before | processor s | bare import | at most | |", "|---|---|---|---|---|---|"]
    for job in JOBS:
        bare = seconds[BARE[job.bare].name] if job.bare else 0.0
        most = None if job.limit is None else bare + job.limit * scale
        met = "" if most is None else "met" if seconds[job.name] <= most else "missed"
        values = before.get(job.name), seconds[job.name], bare, most
        rows.append(f"| {job.name} | {' | '.join(f'{value:.2f}' if value else '' for value in values)} | {met} |")
    return rows


def medians(measured: Sequence[dict[str, float]]) -> dict[str, float]:
    return {job.name: statistics.median(each[job.name] for each in measured) for job in JOBS}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--starts", action="store_true", help="only what starts from an empty cache; print it")
    parser.add_argument("--tests", action="store_true", help="time make test in a fresh clone as well")
    parser.add_argument(
        "--whole", type=float, nargs=2, metavar=("MINUTES", "MEGABYTES"), help="of make test, of a wheel"
    )
    given = parser.parse_args()
    checkouts = [CHECKOUT, *([given.before.resolve()] if given.before else [])]
    measured: dict[Path, list[dict[str, float]]] = {checkout: [] for checkout in checkouts}
    with tempfile.TemporaryDirectory() as folder:
        if given.starts:
            print("\n".join(started(folder, checkouts)))
            return
        prepare(folder, checkouts)
        for _ in range(given.rounds):
            for checkout in checkouts:
                measured[checkout].append({})
            for job, checkout in product(JOBS, checkouts):
                measured[checkout][-1][job.name] = processor_seconds(job, folder, checkout)
        starts = [*started(folder, checkouts), "", *loading(folder, checkouts)]
    measured_once = whole() if given.tests else given.whole
    starts += ["", *once(*measured_once)] if measured_once else [""]
    seconds, before = (
        medians(measured[CHECKOUT]),
        medians([each for other in checkouts[1:] for each in measured[other]]),
    )
    scale = seconds[BARE["torch"].name] / TORCH_ON_REFERENCE
    note = (
        f"`python -m benchmarks.first_use`: medians of {given.rounds} rounds, Python {platform.python_version()}.\n"
        f"Limits are seconds of a machine that imports torch in {TORCH_ON_REFERENCE} s; here they are multiplied by\n"
        f"{scale:.2f}, as torch takes that much less, and the bare import is added. Load at the end: "
        f"{os.getloadavg()[0]:.1f}."
    )
    RESULTS.write_text("\n".join(["# First use", "", note, "", *table(seconds, before), "", *starts, PEERS]))
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
