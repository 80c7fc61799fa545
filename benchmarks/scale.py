"""What a second process gains, and how much memory training on more data takes.

    python -m benchmarks.scale /path/to/conll2000            # about 25 minutes, on a quiet machine with two cores
    python -m benchmarks.scale /path/to/conll2000 --only features bilstm-crf    # these; the others stay as they are
    python -m benchmarks.scale /path/to/conll2000 --quick    # a tenth of the data: whether it runs

Runs the commands that a user would run, each process with one thread, one process and two in turn, and takes the
medians of three rounds. Speed-ups are those of learning (its own clock: from the data in memory to the weights) and of
whole commands that annotate. Two cores share memory, caches and heat, and may do less than twice the work of one: what
two trainings do side by side that know nothing of each other bounds what two processes of one training can gain.

Larger data is made from CoNLL-2000 by repeating it with one word in ten changed, so that the number of different words
keeps growing. Memory is the peak of what a process itself holds (RssAnon); mapped files, which the system may drop, are
not counted. Writes docs/results/scale.{json,md} and the figures in docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import RESULTS
from benchmarks.scale_plan import plan
from trelliswork.writing import atomic_write

ROUNDS, N, ITERATIONS, EPOCHS, FILES = 3, 2, 150, 2, 24
CHANGED = 0.1  # share of the words of a copy that are new
TRAIN = [sys.executable, "-m", "trelliswork", "train"]
TOGETHER = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(N), "-m", "trelliswork", "train"]
FEW = ["--model", "crf", "--max-iterations", "3", "--hash-bits", "12"]  # weights that are soon all there
MANY = ["--model", "crf", "--max-iterations", "3", "--hash-bits", "20"]
TARGETS = {"features": 1.7, "annotation": 1.7, "bilstm-crf": 1.5}
TASKS = (*TARGETS, "memory")
PAGE = RESULTS.parent / "scale.md"
MARKS = "<!-- figures: python -m benchmarks.scale -->", "<!-- end of figures -->"
Row = dict[str, Any]


class Ran(NamedTuple):
    """Seconds of a command, the peak of memory of each of its processes that computes, in MB, and what it printed."""

    seconds: float
    memory: list[int]
    printed: str

    @property
    def n_weights(self) -> int:
        """Of the model over features that was trained."""
        found = re.search(r"([\d,]+) weights? of", self.printed)
        return int(found[1].replace(",", "")) if found else 0


def run(command: list[str]) -> Ran:
    """Run a command to its end."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # else every run compiles the modules of numba again
    began, peaks, stop = time.perf_counter(), dict[int, int](), threading.Event()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        watch = threading.Thread(target=_watch, args=(process.pid, peaks, stop))
        watch.start()
        code = process.wait()
        stop.set()
        watch.join()
        seconds = time.perf_counter() - began
        log.seek(0)
        printed = log.read()
    if code != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {code}\n{printed[-2000:]}")
    return Ran(seconds, sorted(peaks.values(), reverse=True), printed)


def _watch(root: int, peaks: dict[int, int], stop: threading.Event) -> None:
    """Look at the memory of a process and of those that it started until it ends."""
    while not stop.wait(0.5):
        for pid in _family(root):
            peaks[pid] = max(peaks.get(pid, 0), _status(pid).get("RssAnon", 0) // 1024)


def _family(root: int) -> Iterator[int]:
    parents = {pid: _status(pid).get("PPid", 0) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    wanted = {root}
    while more := {pid for pid, parent in parents.items() if parent in wanted} - wanted:
        wanted |= more
    yield from wanted


def _status(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split()[:2] for line in lines if line.startswith(("RssAnon:", "PPid:")))
    return {name.rstrip(":"): int(value) for name, value in pairs}


def enlarged(source: Path, target: Path, n_tokens: int) -> Path:
    """A file of about so many tokens: `source` again and again, in each copy some words changed."""
    blocks, chance, n, copy = source.read_text().strip().split("\n\n"), random.Random(0), 0, 0
    with target.open("w") as file:
        while n < n_tokens:
            for block in blocks:
                lines = block.split("\n")
                n += len(lines)
                if copy:
                    lines = [_changed(line, f"x{copy}", chance) for line in lines]
                file.write("\n".join(lines) + "\n\n")
                if n >= n_tokens:
                    break
            copy += 1
    return target


def _changed(line: str, mark: str, chance: random.Random) -> str:
    """A line of columns, its word now and then changed into one that no other copy has."""
    word, space, rest = line.partition(" ")
    return f"{word}{mark}{space}{rest}" if chance.random() < CHANGED else line


def learning_seconds(model: Path) -> float:
    """What the clock of learning says."""
    history = model / "history.jsonl"
    if history.is_file():
        return sum(json.loads(line)["seconds"] for line in history.read_text().splitlines())
    return float(json.loads((model / "metrics.json").read_text())["training"]["seconds"])


def trainings(task: str, options: list[str], work: Path, n_tokens: int) -> Row:
    """Medians of one process, of two, and of two apart; `n_tokens` are learned from, passes multiplied."""
    seconds: dict[int, list[float]] = {1: [], N: []}
    ran: dict[int, Ran] = {}
    apart = list[float]()
    for _ in range(ROUNDS):
        for n, command in ((1, TRAIN), (N, TOGETHER)):
            own, ran[n] = trained(command, options, work / f"{task}-{n}")
            seconds[n].append(own)
        apart.append(side_by_side(options, work, task))
    medians = {n: statistics.median(each) for n, each in seconds.items()}
    scores = {n: json.loads((work / f"{task}-{n}" / "metrics.json").read_text())["dev"]["score"] for n in seconds}
    return {
        "task": task, "command": " ".join(["train", *options]), "seconds": medians, "rounds": seconds, "scores": scores,
        "apart": statistics.median(apart), "tokens": n_tokens, "target": TARGETS[task],
        "speed_up": medians[1] / medians[N], "most": N * medians[1] / statistics.median(apart),
        "memory": {n: each.memory[:n] for n, each in ran.items()},
    }  # fmt: skip


def trained(command: list[str], options: list[str], out: Path) -> tuple[float, Ran]:
    """Seconds of learning, and the whole command."""
    ran = run([*command, *options, "--force", "--out", str(out)])
    return learning_seconds(out), ran


def side_by_side(options: list[str], work: Path, task: str) -> float:
    """Seconds of learning, on average, of trainings that run at the same time and know nothing of each other."""
    with ThreadPoolExecutor(N) as threads:
        ran = [threads.submit(trained, TRAIN, options, work / f"{task}-apart-{i}") for i in range(N)]
        return statistics.mean(each.result()[0] for each in ran)


def annotation(model: Path, folder: Path, work: Path, n_tokens: int) -> Row:
    """Medians of one worker, and of two."""
    found: dict[int, list[Ran]] = {1: [], N: []}
    for i in range(ROUNDS):
        for n in found:
            out = work / f"annotated-{n}-{i}"
            command = ["predict", str(model), f"{folder}/*.txt", "--out", str(out), "--workers", str(n)]
            found[n].append(run([sys.executable, "-m", "trelliswork", *command]))
    rounds = {n: [each.seconds for each in runs] for n, runs in found.items()}
    medians = {n: statistics.median(each) for n, each in rounds.items()}
    return {
        "task": "annotation", "command": "predict CRF 'in/*.txt' --out DIR --workers N", "seconds": medians,
        "rounds": rounds, "tokens": n_tokens, "target": TARGETS["annotation"], "speed_up": medians[1] / medians[N],
        "memory": {n: runs[-1].memory[: n + 1] for n, runs in found.items()},
    }  # fmt: skip


def memory_rows(train: Path, dev: Path, work: Path, sizes: tuple[int, int]) -> Iterator[Row]:
    """Peaks of memory for two sizes of data; with few weights, what is more is that of tokens."""
    files = [enlarged(train, work / f"large-{n}.txt", n) for n in sizes]
    scratch = ["--scratch", str(work / "scratch")]
    kinds = [
        ("4,096 hashed attributes, in memory", 1, FEW), ("4,096 hashed attributes, in memory", N, FEW),
        ("4,096 hashed attributes, scratch", 1, [*FEW, *scratch]),
        ("1,048,576 hashed attributes, scratch", 1, [*MANY, *scratch]),
    ]  # fmt: skip
    for kind, n, options in kinds:
        command, out = TRAIN if n == 1 else TOGETHER, work / "memory"
        ran, seconds = list[Ran](), list[float]()
        for file in files:
            ran.append(run([*command, str(file), "--dev", str(dev), *options, "--force", "--out", str(out)]))
            seconds.append(learning_seconds(out))
        yield {
            "kind": kind, "processes": n, "tokens": sizes, "mb": [max(each.memory[:n]) for each in ran],
            "weights": [each.n_weights for each in ran], "seconds": seconds,
            "reading": [each.seconds - own for each, own in zip(ran, seconds, strict=True)],
        }  # fmt: skip


def divided(source: Path, work: Path, part: float) -> tuple[Path, Path, int]:
    """A part of the sentences of a file to learn from, one in nine of them to stop on; how many tokens are learned."""
    blocks = source.read_text().strip().split("\n\n")
    blocks = blocks[: int(part * len(blocks))]
    parts = {"dev": blocks[8::9], "train": [block for i, block in enumerate(blocks) if i % 9 != 8]}
    for name, kept in parts.items():
        (work / f"{name}.txt").write_text("\n\n".join(kept) + "\n\n")
    return work / "train.txt", work / "dev.txt", sum(block.count("\n") + 1 for block in parts["train"])


def measured(data: Path, work: Path, part: float, tasks: Collection[str]) -> dict[str, Any]:
    """Some tasks, on a part of the data."""
    train, dev, each = divided(data / "train.txt", work, part)
    files, rows = [str(train), "--dev", str(dev)], list[Row]()
    if {"features", "annotation"} & set(tasks):
        crf = [*files, "--model", "crf", "--max-iterations", str(ITERATIONS)]
        rows.append(trainings("features", crf, work, ITERATIONS * each))
    if "annotation" in tasks:
        folder = work / "in"
        folder.mkdir()
        for i in range(FILES):
            enlarged(train, folder / f"{i}.txt", each)
        rows.append(annotation(work / "features-1", folder, work, FILES * each))
    if "bilstm-crf" in tasks:
        network = [*files, "--model", "bilstm-crf", "--epochs", str(EPOCHS)]
        rows.append(trainings("bilstm-crf", network, work, EPOCHS * each))
    sizes = int(300_000 * part), int(1_200_000 * part)
    memory = list(memory_rows(train, dev, work, sizes)) if "memory" in tasks else []
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"machine": machine, "part": part, "speed": rows, "memory": memory}


def merged(stored: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What was found, and what was stored of other tasks."""
    rows = {row["task"]: row for row in (*stored["speed"], *found["speed"])}
    return {
        **found,
        "speed": [rows[task] for task in TARGETS if task in rows],
        "memory": found["memory"] or stored["memory"],
    }


def figures(found: dict[str, Any]) -> str:
    """The figures, and the plan that follows from them."""
    lines = [
        "Made by `python -m benchmarks.scale`. Each process has one thread; medians of three rounds, one process and",
        "two in turn. *At most* is what two trainings gain that run side by side and know nothing of each other: twice",
        "the work, and longer for each. Memory is the peak of what a process holds itself, in MB; mapped files are not",
        "counted.", "",
        f"{found['machine']}.", "",
        "| task | 1 process, s | 2 processes, s | speed-up | at most | wanted | memory of 1 | memory of each of 2 |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in found["speed"]:
        one, two = row["seconds"].values()
        most = f"{row['most']:.2f}" if "most" in row else ""
        peaks = [", ".join(map(str, each)) for each in row["memory"].values()]
        cells = row["task"], f"{one:.1f}", f"{two:.1f}", f"{row['speed_up']:.2f}", most, row["target"], *peaks
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", *(f"- {row['task']}: `{_short(row['command'])}`{_score(row)}" for row in found["speed"]), ""]
    lines += [
        "Memory of learning by L-BFGS, three iterations, at two sizes of data:", "",
        "| data | processes | tokens | weights | MB | seconds |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in found["memory"]:
        cells = [" and ".join(f"{each:,.0f}" for each in row[name]) for name in ("tokens", "weights", "mb", "seconds")]
        lines.append(f"| {row['kind']} | {row['processes']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *plan(found)])


def with_figures(page: str, found: dict[str, Any]) -> str:
    """A page with the figures between its marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{linked(figures(found))}\n{MARKS[1]}{after}"


def linked(text: str) -> str:
    """The figures with their source under each heading, for a page in docs/."""
    return re.sub(r"^(## .+)$", r"\1\n\nFrom [the stored figures](results/scale.md).", text, flags=re.MULTILINE)


def _short(command: str) -> str:
    return " ".join(Path(part).name if part.startswith("/") else part for part in command.split())


def _score(row: Row) -> str:
    if "scores" not in row:
        return f", {row['tokens']:,} tokens, CoNLL columns with part of speech"
    scores = " and ".join(f"{100 * each:.2f}" for each in row["scores"].values())
    return f"; {row['tokens']:,} tokens, passes multiplied; score on the dev file {scores}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train.txt of CoNLL-2000")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=TASKS, help="some tasks")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = measured(given.data, Path(work), 0.1 if given.quick else 1.0, given.only)
    if set(given.only) < set(TASKS):
        found = merged(json.loads((given.out / "scale.json").read_text(encoding="utf-8")), found)
    write(given.out / "scale.json", json.dumps(found, indent=1) + "\n")
    write(given.out / "scale.md", f"# Several processes, and data larger than memory\n\n{figures(found)}")
    if given.out == RESULTS:
        write(PAGE, with_figures(PAGE.read_text(encoding="utf-8"), found))
    print(figures(found))


def write(path: Path, text: str) -> None:
    """Write a whole file."""
    with atomic_write(path) as file:
        file.write(text)


if __name__ == "__main__":
    main()
