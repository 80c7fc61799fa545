"""docs/results/accuracy.md, from the stored results."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from statistics import mean
from textwrap import fill

from benchmarks.accuracy.measure import Result
from benchmarks.accuracy.runs import ENTITIES, FEATURES, NETWORKS, PARTS_OF_SPEECH, RISING, RUNS, Run
from benchmarks.ocr_neural import ENTRIES
from benchmarks.report import RESULTS, table
from trelliswork import __version__

NOTE = """
Made by `make accuracy` (`python -m benchmarks.accuracy`; `--only NAME` refreshes one run, `accuracy.json` keeps them).
Each line is one command (with `--out model`); its scores are those of `trelliswork evaluate model` on the test file, in
per cent. Spans are counted as conlleval counts. Time is processor time of the training command, on one thread, files
included. GloVe: 100 dimensions, the 60,000 most frequent words, not trained further.
"""
OF_NETWORKS = """
`dev.conll` is the last tenth of the training sentences, `train.conll` the rest; the best epoch is chosen on dev, and
the model is not trained on dev afterwards. Settings are those of the named models, the same for every corpus below but
where the command says otherwise. Runs of one seed differ from those of another by a tenth or two. A segmenter leaves
out training sentences with a span of more than 10 tokens (16 of 8,043). grSemi-CRF is the network of Zhuo et al.:
vectors of words, capitals and affixes, and the pyramid straight over them; the deeper one has LSTMs and characters
below.
"""
OF_PARTS_OF_SPEECH = "Accuracy of words, gold tokens."
OF_ENTITIES = """
F1 of spans, strict: only well-formed spans count. The named model as it is, and what a recipe for such text makes of it
(`python -m benchmarks.entities`; steps and settings: [entities.md](entities.md)).
"""
ENTITIES_GOAL = 38.0
OF_FEATURES = """
All are trained on the whole of `train.txt`, with given settings: `dev.conll` is only reported on. (The default
smoothing of HMM and naive Bayes, 0.1, was chosen with the last tenth of `train.txt` held out.) The attributes of
`benchmarks/templates/chunking.txt` are those of CRFsuite's chunking tutorial, but for the ends of sentences. With its
own, CRFsuite (python-crfsuite 0.9.12, c2 = 1) reaches 93.61, with L1 93.67 (9,640 active weights), as averaged
perceptron 93.29.
"""
PUBLISHED = """
Published, for comparison: CoNLL-2000 without large pretrained models, BiLSTM-CRF 94.13 (random vectors) and 94.46
(Huang, Xu and Yu 2015), window network 94.32 (Collobert et al. 2011), gated recursive semi-CRF 95.01 with vectors and
labels of SENNA (Zhuo et al. 2016); EWT, UDPipe 1: 94.4; OCR letters, neural CRF about 4.4 % (Do and Artières 2010).
"""
OF_LETTERS = """
Per cent of letters in error, ten folds: train on nine, test on one. Settings, folds and times:
[ocr.md](ocr.md) (`python -m benchmarks.ocr`), [ocr-neural.md](ocr-neural.md) (`python -m benchmarks.ocr_neural`).
"""


def report(results: list[Result]) -> str:
    """The page, in Markdown."""
    sections = [
        ("CoNLL-2000 chunking: networks", OF_NETWORKS, NETWORKS),
        ("UD English EWT: parts of speech", OF_PARTS_OF_SPEECH, PARTS_OF_SPEECH),
        ("WNUT-17: entities in social media", OF_ENTITIES, ENTITIES),
        ("CoNLL-2000 chunking: models over features", OF_FEATURES, FEATURES),
    ]
    parts = [["# Accuracy", NOTE.strip(), PUBLISHED.strip()]]
    for title, text, runs in sections:
        parts.append([f"## {title}", text.strip(), *tables(runs, results), *(recipe() if runs is ENTITIES else [])])
    machine = f"{os.cpu_count()} CPU cores, Python {platform.python_version()}"
    parts += [comparison(results), letters(), [f"Trelliswork {__version__}, {machine}."]]
    return "\n\n".join(text for part in parts for text in part) + "\n"


def of(run: Run, results: list[Result]) -> list[Result]:
    """The results of a run, by seed, if they were made by the command that it has now."""
    found = [each for each in results if each["name"] == run.name and each["command"] == run.command(each["seed"])]
    return sorted(found, key=lambda each: each["seed"])


def reached(run: Run, result: Result) -> bool:
    return run.goal is None or score(run, result) >= run.goal


def score(run: Run, result: Result) -> float:
    return result["accuracy" if run.corpus.score == "accuracy" else "f1"]


def missed(results: list[Result]) -> list[str]:
    """Goals that are not reached by the runs that are stored."""
    out = [
        f"{run.corpus.title}, {run.title}, seed {found['seed']}: {score(run, found):.2f}, goal {run.goal}"
        for run in RUNS
        for found in of(run, results)
        if not reached(run, found)
    ]
    return out + ([] if rises(results) else ["the order HMM < MEMM < CRF does not hold"])


def rises(results: list[Result]) -> bool:
    f1 = {each["name"]: each["f1"] for each in results if each["name"] in RISING}
    found = [f1[name] for name in RISING if name in f1]
    return found == sorted(set(found))


def tables(runs: list[Run], results: list[Result]) -> list[str]:
    """The scores of some runs, and their commands."""
    score = runs[0].corpus.score
    shares = ["precision", "recall", score] if score != "accuracy" else [score]
    head = ["model", *(["seed"] if runs[0].network else []), "iterations", "weights", "size", "time", *shares, "goal"]
    rows, commands = [], []
    for run in runs:
        for found in of(run, results):
            rows.append([run.title, *([str(found["seed"])] if run.network else []), *_cells(run, found)])
        commands.append([run.title, f"`{run.command(0)}`"])
    return ["\n".join(table(head, rows)), "\n".join(table(["model", "command"], commands))]


def _cells(run: Run, found: Result) -> list[str]:
    goal = "" if run.goal is None else f"{run.goal} {'reached' if reached(run, found) else 'MISSED'}"
    spans = [] if run.corpus.score == "accuracy" else [f"{found[name]:.2f}" for name in ("precision", "recall")]
    size = f"{found['megabytes']:.1f} MB" if "megabytes" in found else ""
    return [
        str(found["iterations"]), f"{found['weights']:,}", size, f"{found['seconds']:.0f} s", *spans,
        f"**{score(run, found):.2f}**", goal,
    ]  # fmt: skip


def comparison(results: list[Result]) -> list[str]:
    """What the pairs of models say about each other."""
    f1 = {each["name"]: each["f1"] for each in results if "f1" in each}
    if not all(name in f1 for name in (*RISING, "naive-bayes", "logistic")):
        return []
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


def recipe(folder: Path = RESULTS) -> list[str]:
    """The last step of the recipe for entities in noisy text."""
    found = entity_score(folder)
    if found is None:
        return []
    title, score = found
    goal = f"{ENTITIES_GOAL} {'reached' if score >= ENTITIES_GOAL else 'MISSED'}"
    return ["\n".join(table(["recipe", "strict F1", "goal"], [[title, f"**{score:.2f}**", goal]]))]


def entity_score(folder: Path) -> tuple[str, float] | None:
    """What stands at the end of the recipe, and its score on test data."""
    if not (folder / "entities.json").exists():
        return None
    last = json.loads((folder / "entities.json").read_text(encoding="utf-8"))["rows"][-1]
    return f"{last['models']}, {last['answer']}, trained on {last['trained_on']}", mean(last["test"])


def letters(folder: Path = RESULTS) -> list[str]:
    """The errors on handwritten letters, of the folds that are done."""
    rows = []
    for name, errors in letter_errors(folder).items():
        goal = ENTRIES[name].goal if name in ENTRIES else 5.0 if name == "hidden-unit CRF" else None
        told = "" if goal is None else f"at most {goal} {'reached' if mean(errors) <= goal else 'MISSED'}"
        figures = f"{min(errors):.2f}", f"{max(errors):.2f}", f"**{mean(errors):.2f}**"
        rows.append([name, str(len(errors)), *figures, told])
    head = ["model", "folds", "lowest", "highest", "mean error", "goal"]
    return ["## Handwritten letters", OF_LETTERS.strip(), "\n".join(table(head, rows))] if rows else []


def letter_errors(folder: Path) -> dict[str, list[float]]:
    """The error on each fold, by model."""
    found: dict[str, list[float]] = {}
    if (folder / "ocr.json").exists():
        for row in json.loads((folder / "ocr.json").read_text(encoding="utf-8")):
            found.setdefault(row["model"], []).append(row["error"])
    if (folder / "ocr-neural.json").exists():
        for name, folds in json.loads((folder / "ocr-neural.json").read_text(encoding="utf-8")).items():
            found[name] = [fold["error"] for fold in folds.values()]
    return found
