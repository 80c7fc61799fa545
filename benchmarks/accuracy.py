"""Accuracy on real corpora, trained through the command line with its default settings.

    python -m benchmarks.accuracy --data ../shared/data --seed 0

Writes docs/results/accuracy.md: for each corpus the command, seed, time and scores. A corpus without a dev part lends
the last tenth of its training sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trelliswork import __version__

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "accuracy.md"
DEV_SHARE = 0.1


@dataclass(frozen=True)
class Corpus:
    """A folder of CoNLL-column files, what the score must be, and where the files come from."""

    name: str
    folder: str
    goal: float
    origin: str
    train: str = "train.txt"
    test: str = "test.txt"


@dataclass(frozen=True)
class Row:
    """One line of the report; scores in per cent."""

    corpus: Corpus
    seed: int
    seconds: float
    epochs: int
    dev_f1: float
    precision: float
    recall: float
    f1: float


CORPORA = [
    Corpus("CoNLL-2000 chunking, POS as a feature column", "conll2000", 92.0, "nltk/nltk_data, corpora/conll2000.zip")
]


def trelliswork(*arguments: str | Path) -> None:
    """Run the command line of this environment; its output passes through, its failure ends the benchmark."""
    command = [str(Path(sys.executable).with_name("trelliswork")), *map(str, arguments)]
    print("$ trelliswork", *command[1:], flush=True)
    subprocess.run(command, check=True)


def split(source: Path, train: Path, dev: Path) -> None:
    """The sentences of `source` as they stand: the last tenth to `dev`, the others to `train`."""
    blocks = [block for block in source.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    n_train = len(blocks) - int(len(blocks) * DEV_SHARE)
    for path, part in ((train, blocks[:n_train]), (dev, blocks[n_train:])):
        path.write_text("".join(block.strip("\n") + "\n\n" for block in part), encoding="utf-8")


def measure(corpus: Corpus, data: Path, seed: int, work: Path) -> Row:
    """Train on one corpus and score its test part."""
    folder = data / corpus.folder
    if not (folder / corpus.train).exists():
        sys.exit(f"{folder}: expected {corpus.train} and {corpus.test} ({corpus.origin}), got none; use --data")
    train, dev, model = work / "train.conll", work / "dev.conll", work / "model"
    split(folder / corpus.train, train, dev)
    began = time.perf_counter()
    trelliswork("train", train, "--dev", dev, "--out", model, "--seed", str(seed))
    seconds = time.perf_counter() - began
    trelliswork("evaluate", model, folder / corpus.test)
    return _row(corpus, seed, seconds, model, folder / corpus.test)


def _row(corpus: Corpus, seed: int, seconds: float, model: Path, test: Path) -> Row:
    from trelliswork.data import read_conll
    from trelliswork.models import Tagger

    scores = Tagger.load(model).evaluate(list(read_conll(test)))
    history = [json.loads(line) for line in (model / "history.jsonl").read_text().splitlines()]
    best = max(record["score"] for record in history)
    percent = {name: 100 * scores[name] for name in ("precision", "recall", "f1")}
    return Row(corpus, seed, seconds, len(history), 100 * best, **percent)


def report(rows: list[Row]) -> str:
    """The page, in Markdown."""
    lines = [
        "# Accuracy",
        "",
        "Made by `make accuracy` (`python -m benchmarks.accuracy`). Each corpus is trained with the default settings:",
        "",
        "    trelliswork train train.conll --dev dev.conll --out model --seed SEED",
        "    trelliswork evaluate model test.txt",
        "",
        "`dev.conll` is the last tenth of the training sentences, `train.conll` the rest; the best epoch is chosen on",
        "dev. Scores are per cent of spans, counted as conlleval counts.",
        "",
        "| corpus | seed | epochs | training time | dev F1 | test precision | test recall | test F1 | goal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row.corpus.name, row.seed, row.epochs, f"{row.seconds:.0f} s"]
        cells += [f"{value:.2f}" for value in (row.dev_f1, row.precision, row.recall)]
        cells += [f"**{row.f1:.2f}**", f"{row.corpus.goal:.1f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    machine = f"{os.cpu_count()} CPU cores, Python {platform.python_version()}"
    return "\n".join([*lines, "", f"Trelliswork {__version__}, {machine}.", ""])


def main() -> None:
    """Train, score, write the page; status 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora")
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1, 2], help="one run for each seed")
    options = parser.parse_args()
    rows = []
    for corpus in CORPORA:
        for seed in options.seed:
            with tempfile.TemporaryDirectory() as work:
                rows.append(measure(corpus, options.data, seed, Path(work)))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(report(rows), encoding="utf-8")
    print(report(rows))
    sys.exit(any(row.f1 < row.corpus.goal for row in rows))


if __name__ == "__main__":
    main()
