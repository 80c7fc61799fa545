"""Train a model and score it, both through the command line."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.accuracy.runs import VECTORS, Corpus, Run
from benchmarks.tutorial_accuracy import sentences_of, tutorial_scores

ROOT = Path(__file__).resolve().parents[2]
DEV_SHARE = 0.1

Result = dict[str, Any]


def measure(run: Run, seed: int, data: Path, work: Path) -> Result:
    """What there is to say about a run; `data` is the folder of the corpora, `work` an empty one."""
    files = [data / each for each in (run.corpus.train, run.corpus.test)]
    for path in files:
        if not path.exists():
            sys.exit(f"{path}: expected a file of {run.corpus.title}, got none; use --data")
    told: Result = {"name": run.name, "seed": seed, "command": run.command(seed)}
    if not run.options:
        return {**told, **tutorial_scores(*map(sentences_of, files))}
    train, dev = parts(run, data, work)
    options = [_found(each, data) for each in run.options.split()] + (["--seed", str(seed)] if run.network else [])
    began = time.perf_counter()
    seconds = trelliswork("train", train, "--dev", dev, *options, "--quiet", "--out", work / "model")
    elapsed = time.perf_counter() - began
    trelliswork("evaluate", work / "model", files[1], "--quiet", "--json", work / "scores.json")
    times = {"seconds": round(seconds, 1), "elapsed": round(elapsed, 1)}
    return {**told, **times, **size(work / "model"), **scores(work / "scores.json", run.corpus)}


def parts(run: Run, data: Path, work: Path) -> tuple[Path, Path]:
    """The files to train on and to choose by."""
    source = data / run.corpus.train
    if run.corpus.dev:
        return source, data / run.corpus.dev
    split(source, work / "train.conll", work / "dev.conll")
    return work / "train.conll" if run.network else source, work / "dev.conll"


def split(source: Path, train: Path, dev: Path) -> None:
    """The sentences of `source` as they stand: the last tenth to `dev`, the others to `train`."""
    blocks = [block for block in source.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    n_train = len(blocks) - int(len(blocks) * DEV_SHARE)
    for path, part in ((train, blocks[:n_train]), (dev, blocks[n_train:])):
        path.write_text("".join(block.strip("\n") + "\n\n" for block in part), encoding="utf-8")


def _found(option: str, data: Path) -> str:
    """An option with the path of the file that it names."""
    if option == Path(VECTORS).name:
        return str(data / VECTORS)
    return str(ROOT / option) if option.startswith("benchmarks/") else option


def trelliswork(*arguments: str | Path) -> float:
    """Run the command line of this environment: its processor seconds. Its failure ends the benchmark."""
    print("$ trelliswork", *arguments, flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "trelliswork", *map(str, arguments)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def size(model: Path) -> Result:
    """How long it was trained, and how large it is."""
    from trelliswork.models import load_tagger

    tagger = load_tagger(model)
    training = tagger.metrics.get("training") or {}
    on_disk = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    return {
        "iterations": training.get("iterations") or training.get("epochs"),
        "weights": tagger.n_parameters,
        "megabytes": round(on_disk / 1e6, 1),
    }


def scores(path: Path, corpus: Corpus) -> Result:
    """Per cent on the test sentences."""
    found = json.loads(path.read_text(encoding="utf-8"))
    shares = {"accuracy": found["accuracy"]}
    if corpus.score != "accuracy":
        spans = found["strict" if corpus.score == "strict F1" else "conlleval"]["overall"]
        shares |= {name: spans[name] for name in ("precision", "recall", "f1")}
    return {name: round(100 * share, 2) for name, share in shares.items()}
