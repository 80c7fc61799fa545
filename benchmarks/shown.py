"""Small figures that README and tutorials show: `python -m benchmarks.shown [choosing | search | columns]`.

`choosing` runs the program of docs/tutorials/choosing.md with 300 and with 1,000 sentences, `search` the command of
docs/tutorials/training.md, and `columns` what README says of `--predict-columns`; the last two need CoNLL-2000 as
train.txt and test.txt in the folder given by --data. Results go to docs/results/shown.json and shown.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import RESULTS
from trelliswork import __version__
from trelliswork.data import atomic_write

PAGE = RESULTS.parent / "tutorials" / "choosing.md"
SMALL, LARGE = "sizes=(300, 60, 200)", "sizes=(1000, 60, 200)"
Table = list[list[str]]


def choosing(data: Path) -> dict[str, Table]:
    """What the program of the page prints, up to and with its table."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text.split("On one core of our machine")[0], re.M | re.S)
    header = ["model", "F1", "CPU time", "parameters"]
    return {
        f"choosing a model, {n} sentences": [header, *_printed("".join(blocks).replace(SMALL, sizes))]
        for n, sizes in (("300", SMALL), ("1,000", LARGE))
    }


def _printed(program: str) -> Table:
    with (
        tempfile.TemporaryDirectory() as name,
        contextlib.chdir(name),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        exec(program, {"__name__": "choosing"})
    return [line.strip("| ").split(" | ") for line in printed.getvalue().splitlines() if line.startswith("| ")]


def search(data: Path) -> dict[str, Table]:
    """Eight trials on the first 1,000 sentences of CoNLL-2000, the next 400 being dev."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _cut(data / "train.txt", folder / "train.txt", 0, 1000)
        _cut(data / "train.txt", folder / "dev.txt", 1000, 1400)
        said = _command("tune train.txt --dev dev.txt --model crf --max-iterations 60 --trials 8 --out search", folder)
    lines = [line.split() for line in said.splitlines()]
    begin = next(i for i, words in enumerate(lines) if words[:2] == ["rank", "trial"])
    title = "search for the settings of a CRF, first 1,000 sentences of CoNLL-2000"
    header = ["rank", "trial", "dev F1", *lines[begin][4:]]
    rows = [words + ["finished"] * (len(header) - len(words) + 1) for words in lines[begin + 1 : begin + 9]]
    table = [[*header, "state"], *rows]
    return {title: [row[:4] + row[5:] for row in table]}  # without the seconds


def columns(data: Path) -> dict[str, Table]:
    """Chunking with parts of speech that are missing, predicted or gold."""
    rows = [["parts of speech", "test F1"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _cut(data / "train.txt", folder / "train.txt", 0, 967)
        _cut(data / "test.txt", folder / "test.txt", 0, 505)
        words = re.sub(r"^(\S+) \S+ ", r"\1 _ ", (folder / "test.txt").read_text(encoding="utf-8"), flags=re.M)
        (folder / "unknown.txt").write_text(words, encoding="utf-8")
        for says, options, test in (
            ("none", "--feature-columns none", "test.txt"),
            ("predicted", "--predict-columns", "unknown.txt"),
            ("gold", "", "test.txt"),
        ):
            _command(f"train train.txt --model crf --max-iterations 40 {options} --out {says}", folder)
            _command(f"evaluate {says} {test} --json {says}.json", folder)
            scores = json.loads((folder / f"{says}.json").read_text(encoding="utf-8"))
            rows.append([says, f"{100 * scores['conlleval']['overall']['f1']:.2f}"])
    return {"chunking, first 967 and 505 sentences of CoNLL-2000, 40 iterations": rows}


def _cut(source: Path, target: Path, first: int, last: int) -> None:
    sentences = source.read_text(encoding="utf-8").strip().split("\n\n")
    target.write_text("\n\n".join(sentences[first:last]) + "\n\n", encoding="utf-8")


def _command(line: str, folder: Path) -> str:
    command = [sys.executable, "-m", "trelliswork", *line.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


JOBS: dict[str, Callable[[Path], dict[str, Table]]] = {"choosing": choosing, "search": search, "columns": columns}


def page(stored: dict[str, dict[str, Table]]) -> str:
    """The tables as Markdown."""
    parts = ["# Small figures that README and tutorials show\n"]
    note = f"Made by `python -m benchmarks.shown`. One core, default seed; Trelliswork {__version__}."
    parts.append(f"{note} CPU times are of a machine that other work shares.\n")
    for job, tables in stored.items():
        for title, (header, *rows) in tables.items():
            parts.append(f"## {title[:1].upper()}{title[1:]}\n\n`python -m benchmarks.shown {job}`\n")
            parts.append("".join(f"| {' | '.join(row)} |\n" for row in (header, ["---"] * len(header), *rows)))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], default=[*JOBS], metavar="JOB")
    parser.add_argument("--data", type=Path, default=Path("conll2000"), help="folder with train.txt and test.txt")
    given = parser.parse_args()
    file = RESULTS / "shown.json"
    for job in given.jobs:
        found = JOBS[job](given.data.absolute())
        stored = {**(json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}), job: found}
        with atomic_write(file) as output:
            output.write(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
        with atomic_write(file.with_suffix(".md")) as output:
            output.write(page(stored))


if __name__ == "__main__":
    main()
