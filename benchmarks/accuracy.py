"""Accuracy on real corpora, every model trained through the command line.

    python -m benchmarks.accuracy                    every run of the list below (about half an hour)
    python -m benchmarks.accuracy --only memm hmm    these again; the others stay as they were
    python -m benchmarks.accuracy --page             no run: the page from what is stored

Results are kept run by run in docs/results/accuracy.json; docs/results/accuracy.md is made from all of them, and from
the results of other benchmarks that lie beside it. Exit status 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.report import table
from benchmarks.tutorial_accuracy import sentences_of, tutorial_scores
from trelliswork import __version__

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
CORPUS = "conll2000"  # CoNLL-2000 chunking, POS as a feature column; from nltk/nltk_data, corpora/conll2000.zip
DEV_SHARE = 0.1
TEMPLATE = "--template benchmarks/templates/chunking.txt"
PAST = "--template benchmarks/templates/past.txt"

Result = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One line of a table: what is trained, by which options of `trelliswork train`, and the F1 that it must reach."""

    name: str
    title: str
    options: str
    goal: float | None = None
    network: bool = False  # stops early on a dev part, so that this part is not trained on

    @property
    def command(self) -> str:
        if not self.options:  # no template says that a token is the first one, and nothing else about it
            return f"python -m benchmarks.accuracy --only {self.name}"
        data = "train.conll --dev dev.conll" if self.network else "train.txt --dev dev.conll"
        return f"trelliswork train {data} {self.options}"


NETWORKS = [
    Run(f"window-{seed}", f"window network, seed {seed}", f"--dropout 0.3 --seed {seed}", 92.0, network=True)
    for seed in (0, 1, 2)
]
FEATURES = [
    Run("word-hmm", "HMM over words alone", "--model hmm --template benchmarks/templates/word.txt"),
    Run("naive-bayes", "naive Bayes", f"--model naive-bayes {TEMPLATE}"),
    Run("logistic", "logistic regression", f"--model logistic --c2 1 {TEMPLATE}"),
    Run("hmm", "HMM", f"--model hmm {TEMPLATE}"),
    Run("memm", "MEMM", f"--model memm --c2 1 {TEMPLATE}"),
    Run("crf", "CRF", f"--model crf --c2 1 {TEMPLATE}"),
    Run("crf-tutorial", "CRF, CRFsuite's own attributes", "", 93.6),
    Run("memm-past", "MEMM without lookahead", f"--model memm --c2 1 {PAST}"),
    Run("crf-past", "CRF without lookahead", f"--model crf --c2 1 {PAST}"),
    Run("crf-l1", "CRF with L1", f"--model crf --c1 1 --c2 0 {TEMPLATE}", 93.6),
    Run("perceptron", "averaged perceptron", f"--model crf --algorithm perceptron {TEMPLATE}", 93.2),
    Run("crf-default", "CRF, default template", "--model crf --c2 1", 93.6),
]
RUNS = [*NETWORKS, *FEATURES]
RISING = ("hmm", "memm", "crf")  # on the same template, each must be better than the one before


def main() -> None:
    """Run what is asked for, write the page; status 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora")
    parser.add_argument("--only", nargs="+", choices=[run.name for run in RUNS], metavar="NAME", help="these runs")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    wanted = [] if options.page else [run for run in RUNS if not options.only or run.name in options.only]
    for run in wanted:
        with tempfile.TemporaryDirectory() as work:
            keep(run, measure(run, options.data / CORPUS, Path(work)))
        print(f"{run.title}: {json.dumps(stored()[run.name])}\n", flush=True)
    results = stored()
    page = report(results)
    (RESULTS / "accuracy.md").write_text(page, encoding="utf-8")
    print(page)
    sys.exit(bool(missed(results)))


def measure(run: Run, folder: Path, work: Path) -> Result:
    """Train, score the test part, and say what there is to say."""
    if not (folder / "train.txt").exists():
        sys.exit(f"{folder}: expected train.txt and test.txt of CoNLL-2000, got none; use --data")
    if not run.options:
        return {
            "command": run.command,
            **tutorial_scores(*map(sentences_of, (folder / "train.txt", folder / "test.txt"))),
        }
    split(folder / "train.txt", work / "train.conll", work / "dev.conll")
    train = work / "train.conll" if run.network else folder / "train.txt"
    given = [str(ROOT / each) if each.startswith("benchmarks/") else each for each in run.options.split()]
    seconds = trelliswork("train", train, "--dev", work / "dev.conll", *given, "--quiet", "--out", work / "model")
    return {"command": run.command, "seconds": round(seconds, 1), **scores(work / "model", folder / "test.txt")}


def split(source: Path, train: Path, dev: Path) -> None:
    """The sentences of `source` as they stand: the last tenth to `dev`, the others to `train`."""
    blocks = [block for block in source.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    n_train = len(blocks) - int(len(blocks) * DEV_SHARE)
    for path, part in ((train, blocks[:n_train]), (dev, blocks[n_train:])):
        path.write_text("".join(block.strip("\n") + "\n\n" for block in part), encoding="utf-8")


def trelliswork(*arguments: str | Path) -> float:
    """Run the command line of this environment: its processor seconds. Its failure ends the benchmark."""
    command = [str(Path(sys.executable).with_name("trelliswork")), *map(str, arguments)]
    print("$ trelliswork", *command[1:], flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scores(model: Path, test: Path) -> Result:
    """What the model is, and per cent on the test sentences."""
    from trelliswork.data import Choices, open_conll
    from trelliswork.models import load_tagger

    tagger = load_tagger(model)
    found = tagger.evaluate(list(open_conll(test, Choices(feature_columns=(2,)))[1]))
    training = tagger.metrics.get("training") or {}
    return {
        "iterations": training.get("iterations") or training.get("epochs"),
        "weights": tagger.n_parameters,
        **{name: round(100 * found[name], 2) for name in ("precision", "recall", "f1", "accuracy")},
    }


def stored() -> dict[str, Result]:
    path = RESULTS / "accuracy.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep(run: Run, result: Result) -> None:
    """Into the file with all results, in the order of the list."""
    results = {**stored(), run.name: result}
    ordered = {each.name: results[each.name] for each in RUNS if each.name in results}
    (RESULTS / "accuracy.json").write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def missed(results: dict[str, Result]) -> list[str]:
    """Goals that are not reached by the runs that are stored."""
    goals = [run for run in RUNS if run.goal is not None and run.name in results]
    out = [
        f"{run.title}: F1 {results[run.name]['f1']:.2f}, goal {run.goal}" for run in goals if not _reached(run, results)
    ]
    return out + ([] if rises(results) else ["the order HMM < MEMM < CRF does not hold"])


def _reached(run: Run, results: dict[str, Result]) -> bool:
    return run.goal is None or results[run.name]["f1"] >= run.goal


def rises(results: dict[str, Result]) -> bool:
    found = [results[name]["f1"] for name in RISING if name in results]
    return found == sorted(set(found))


# --- the page ------------------------------------------------------------------------------------------------

NOTE = """
Made by `make accuracy` (`python -m benchmarks.accuracy`; `--only NAME` refreshes one run, `accuracy.json` keeps them).
Each line is one command (with `--out model`); its scores are those of `trelliswork evaluate model test.txt`, which are
per cent of spans, counted as conlleval counts. Time is processor time of the command, on one thread, files included.
"""
OF_NETWORKS = """
`dev.conll` is the last tenth of the training sentences, `train.conll` the rest; the best epoch is chosen on dev. The
time of these lines is elapsed time.
"""
OF_FEATURES = """
All are trained on the whole of `train.txt`, with given settings: `dev.conll` is only reported on. (The default
smoothing of HMM and naive Bayes, 0.1, was chosen with the last tenth of `train.txt` held out.) The attributes of
`benchmarks/templates/chunking.txt` are those of CRFsuite's chunking tutorial, but for the ends of sentences. With its
own, CRFsuite (python-crfsuite 0.9.12, c2 = 1) reaches 93.61, with L1 93.67 (9,640 active weights), as averaged
perceptron 93.29.
"""


def report(results: dict[str, Result]) -> str:
    """The page, in Markdown."""
    machine = f"{os.cpu_count()} CPU cores, Python {platform.python_version()}"
    parts = [["# Accuracy", NOTE.strip()]]
    parts += [["## CoNLL-2000 chunking: window network", OF_NETWORKS.strip(), *lines(NETWORKS, results)]]
    parts += [["## CoNLL-2000 chunking: models over features", OF_FEATURES.strip(), *lines(FEATURES, results)]]
    parts += [comparison(results), letters(RESULTS / "ocr.json"), [f"Trelliswork {__version__}, {machine}."]]
    return "\n\n".join(text for part in parts for text in part) + "\n"


def lines(runs: list[Run], results: dict[str, Result]) -> list[str]:
    """The table of some runs, and their commands."""
    head = ["model", "iterations", "weights", "time", "precision", "recall", "F1", "goal"]
    rows, commands = [], []
    for run in runs:
        if run.name not in results:
            continue
        found = results[run.name]
        goal = "" if run.goal is None else f"{run.goal} {'reached' if _reached(run, results) else 'MISSED'}"
        cells = [
            run.title,
            str(found["iterations"]),
            f"{found['weights']:,}" if found["weights"] else "",
            f"{found['seconds']:.0f} s",
        ]
        rows.append([*cells, f"{found['precision']:.2f}", f"{found['recall']:.2f}", f"**{found['f1']:.2f}**", goal])
        commands.append([run.title, f"`{run.command}`"])
    return ["\n".join(table(head, rows)), "\n".join(table(["model", "command"], commands))]


def comparison(results: dict[str, Result]) -> list[str]:
    """What the pairs of models say about each other."""
    if not all(name in results for name in (*RISING, "naive-bayes", "logistic")):
        return []
    f1 = {name: found["f1"] for name, found in results.items()}
    order = f"HMM {f1['hmm']:.2f} < MEMM {f1['memm']:.2f} < CRF {f1['crf']:.2f}"
    held = "holds" if rises(results) else "DOES NOT HOLD"
    says = f"On the same attributes {order}: checked by this benchmark, {held}."
    bias = (
        f"MEMM and CRF have the same weights and the same regularizer and differ in what is normalised: "
        f"{_less(f1, 'crf', 'memm')} points of F1.{_past(f1)} Where only a later token can tell, the MEMM is wrong "
        f"however weak the regularizer is: `tests/models/test_local_models.py::test_label_bias`. The tag before "
        f"is worth {_less(f1, 'memm', 'logistic')} points to the MEMM (over logistic regression) and "
        f"{_less(f1, 'hmm', 'naive-bayes')} to the HMM (over naive Bayes)."
    )
    return ["### What normalisation is worth", says, fill(bias, 120, break_long_words=False, break_on_hyphens=False)]


def _past(f1: dict[str, float]) -> str:
    if "crf-past" not in f1 or "memm-past" not in f1:
        return ""
    return f" With attributes that look at no later token it is {_less(f1, 'crf-past', 'memm-past')}."


def _less(f1: dict[str, float], one: str, other: str) -> str:
    return f"{f1[one] - f1[other]:.2f}"


def letters(path: Path) -> list[str]:
    """The mean error on handwritten letters, where that benchmark has been run."""
    if not path.exists():
        return []
    folds = json.loads(path.read_text(encoding="utf-8"))
    models = [name for name in folds[0] if name != "fold"]
    rows = []
    for name in models:
        errors = [fold[name]["error"] for fold in folds]
        goal = "at most 5" if name.startswith("hidden") else ""
        rows.append(
            [
                name,
                str(len(folds)),
                f"{min(errors):.2f}",
                f"{max(errors):.2f}",
                f"**{sum(errors) / len(errors):.2f}**",
                goal,
            ]
        )
    head = ["model", "folds", "lowest", "highest", "mean error", "goal"]
    return ["## Handwritten letters", "Per cent of letters; see [ocr.md](ocr.md).", "\n".join(table(head, rows))]


if __name__ == "__main__":
    main()
