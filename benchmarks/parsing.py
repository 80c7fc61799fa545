"""Parsers on real treebanks, all through the command line: what they reach, and how long it takes.

    python -m benchmarks.parsing                               # every run that has no figure yet, one after another
    python -m benchmarks.parsing --only biaffine --seed 1      # one of them with another seed
    python -m benchmarks.parsing --page                        # only write docs/results/parsing.md anew

Train is for learning, dev chooses the epoch, and nothing is chosen by test. The data are those of `../shared/data`,
or of --data.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.accuracy.measure import trelliswork
from benchmarks.report import table
from benchmarks.trained_runs import Result, cells, main

VECTORS = "embeddings_glove/glove6b_100d_top60k.txt.gz"
GLOVE = f"--vectors {VECTORS}"


@dataclass(frozen=True)
class Treebank:
    """Files of a treebank in the folder of all data, and the scores that are shown, by their keys in the report."""

    title: str
    train: str
    dev: str
    test: str
    scores: Mapping[str, str]


EWT = Treebank(
    "UD English EWT 2.16, gold tokens, no gold tags, every word counted",
    "ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-dev.conllu",
    "ud_english_ewt/en_ewt-ud-test.conllu",
    {"UAS": "uas", "LAS": "las", "calibration error of arcs": "calibration.expected_error"},
)  # fmt: skip
MASC = Treebank(
    "MASC, labelled brackets by evalb's rules, no gold tags",
    "constituency_masc/train.mrg", "constituency_masc/dev.mrg", "constituency_masc/test.mrg",
    {"F1": "f1", "precision": "precision", "recall": "recall"},
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One line of a table: a treebank, the options of `trelliswork train`, and the least that is wanted."""

    name: str
    treebank: Treebank
    options: str
    goals: Mapping[str, float]
    evaluations: Mapping[str, str] = field(default_factory=dict)  # further ones by title: options of `evaluate`


FROM_TEXT = {"from raw text": "--from-text"}
RUNS = (
    Run("biaffine", EWT, f"--model biaffine --tags joint --min-count 2 {GLOVE} --epochs 18 --patience 18",
        {"UAS": 88.0, "LAS": 85.5, "calibration error of arcs": 3.0}, FROM_TEXT),
    Run("transition", EWT, f"--model transition --tags joint {GLOVE} --epochs 14", {"UAS": 84.4, "LAS": 81.1}),
    Run("transition-chained", EWT, f"--model transition --tags chained {GLOVE} --epochs 14",
        {"UAS": 84.4, "LAS": 81.1}),
    Run("transition-beam", EWT,
        f"--model transition --tags joint {GLOVE} --epochs 18 --patience 18 --beam 8 --global-epochs 4",
        {"LAS": 81.6}),
    Run("span-cky", MASC, f"--model span-cky {GLOVE}", {"F1": 82.0}),
    Run("pcfg", MASC, "--model pcfg", {"F1": 70.0}),
)  # fmt: skip


def command(run: Run, seed: int) -> str:
    """What is typed in the folder of the data."""
    bank = run.treebank
    return f"trelliswork train {bank.train} --dev {bank.dev} {run.options} --seed {seed} --out {run.name}"


def measure(run: Run, seed: int, data: Path, work: Path) -> Result:
    """Train, then score on dev and test."""
    bank = run.treebank
    if not (data / bank.train).exists():
        sys.exit(f"{data / bank.train}: expected a treebank, got nothing; use --data")
    options = [str(data / each) if each == VECTORS else each for each in run.options.split()]
    began = time.perf_counter()
    seconds = trelliswork(
        "train", data / bank.train, "--dev", data / bank.dev, *options, "--seed", str(seed), "--out", work / "model"
    )
    found: Result = {"name": run.name, "seed": seed, "command": command(run, seed), "seconds": round(seconds)}
    found["elapsed"] = round(time.perf_counter() - began)
    for part, file in (("dev", bank.dev), ("test", bank.test)):
        trelliswork("evaluate", work / "model", data / file, "--quiet", "--json", work / f"{part}.json")
        found[part] = json.loads((work / f"{part}.json").read_text(encoding="utf-8"))
    for title, more in run.evaluations.items():
        trelliswork(
            "evaluate", work / "model", data / bank.test, *more.split(), "--quiet", "--json", work / "more.json"
        )
        found[title] = json.loads((work / "more.json").read_text(encoding="utf-8"))
    return found


def value(scores: Mapping[str, Any], key: str) -> float:
    """A score in percent, by a dotted key."""
    for part in key.split("."):
        scores = scores[part]
    return 100 * float(scores)  # type: ignore[arg-type]


def rows(results: Sequence[Result]) -> list[list[str]]:
    found = []
    for run in RUNS:
        own = [each for each in results if each["name"] == run.name]
        for title, key in run.treebank.scores.items():
            if not own:
                continue
            test, dev = ([value(each[part], key) for each in own] for part in ("test", "dev"))
            seeds = [each["seed"] for each in own]
            found.append([run.name, title, *cells(test, dev, run.goals.get(title), seeds)])
    return found


def page(results: Sequence[Result]) -> str:
    lines = [
        "# Parsing",
        "",
        "Made by `python -m benchmarks.parsing`. Train is for learning, dev chose the epoch and the settings, and",
        "nothing was chosen by test. Means over the seeds, with their standard deviation where there are several.",
        "",
        *table(["model", "score", "test", "dev", "wanted", "seeds"], rows(results)),
        "",
        *(f"- {title}." for title in dict.fromkeys(run.treebank.title for run in RUNS)),
        "",
        *_further(results),
        "## How",
        "",
    ]
    for each in results:
        minutes, core = each["elapsed"] / 60, each["seconds"] / 60
        note = f" {each['note']}" if "note" in each else ""
        lines += [f"`{each['command']}`  ", f"{minutes:.0f} minutes ({core:.0f} of one core).{note}", ""]
    return "\n".join(lines)


def _further(results: Sequence[Result]) -> list[str]:
    """The other evaluations of each run, all of their scores."""
    lines = []
    for run in RUNS:
        for each in (each for each in results if each["name"] == run.name):
            for title in run.evaluations:
                found = {name: share for name, share in each.get(title, {}).items() if isinstance(share, float)}
                if found:
                    lines += [f"## {run.name}, {title}, seed {each['seed']}: F1", ""]
                    shown = {name: f"{100 * share:.2f}" for name, share in found.items() if name != "score"}
                    lines += [*table(list(shown), [list(shown.values())]), ""]
    return lines


if __name__ == "__main__":
    main("parsing", __doc__, RUNS, measure, page)
