"""What the choice of attributes costs and brings on CoNLL-2000: hashing, cutoffs, induced conjunctions.

    python -m benchmarks.attributes [name ...] --data ../shared/data/conll2000

Measures the rows named (all, if none is) and writes docs/results/attributes.md; other rows stay as they were.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from trelliswork.data import Choices, Sentence, open_conll
from trelliswork.data.attributes import Templates
from trelliswork.models import FeatureTagger, LearningConfig

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
ATOMIC = Templates.parse([f"U{c}{i:+}:%x[{i},{c}]" for c in (0, 1) for i in range(-2, 3)] + ["B"])
PERCEPTRON = LearningConfig("perceptron", max_iterations=10)
ROWS: dict[str, tuple[LearningConfig, Templates | None]] = {
    "default, perceptron": (PERCEPTRON, None),
    "default, perceptron, --hash-bits 16": (replace(PERCEPTRON, hash_bits=16), None),
    "default, perceptron, --hash-bits 18": (replace(PERCEPTRON, hash_bits=18), None),
    "default, perceptron, --hash-bits 20": (replace(PERCEPTRON, hash_bits=20), None),
    "default, perceptron, --cutoff 2": (replace(PERCEPTRON, cutoff=2), None),
    "atomic": (LearningConfig(), ATOMIC),
    "atomic, --induce 1000": (LearningConfig(induce=1000), ATOMIC),
    "atomic, --induce 5000": (LearningConfig(induce=5000), ATOMIC),
}
HEAD = """# Attributes

Made by `python -m benchmarks.attributes`: feature CRFs on CoNLL-2000 chunking, one thread, all training sentences; test
F1 as conlleval counts. *default* is the template that `trelliswork train --model crf` chooses; *atomic* has the words
and parts of speech of five tokens and no conjunctions. *perceptron* is averaged, 10 epochs; else L-BFGS with c2 = 1.

| attributes | test F1 | iterations | weights | attributes with weights | folder | loads in | training, CPU |
|---|---|---|---|---|---|---|---|
"""


def sentences(path: Path) -> list[Sentence]:
    return list(open_conll(path, Choices(tag_column=3, feature_columns=(2,)))[1])


def measure(config: LearningConfig, templates: Templates | None, train: list[Sentence], test: list[Sentence]) -> Any:
    """Train, score, save and load."""
    iterations = 0

    def count(progress: Any, _: FeatureTagger) -> bool:
        nonlocal iterations
        iterations = progress.iteration
        return False

    began = time.process_time()
    tagger = FeatureTagger.fit(train, config, templates=templates, on_progress=count)
    seconds = time.process_time() - began
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        tagger.save(model)
        size = sum(path.stat().st_size for path in model.iterdir())
        began = time.process_time()
        FeatureTagger.load(model)
        load = time.process_time() - began
    used = int((tagger.crf.parameters.offsets[1:] > tagger.crf.parameters.offsets[:-1]).sum())
    return {
        "f1": 100 * tagger.evaluate(test)["score"], "iterations": iterations, "weights": tagger.n_parameters,
        "attributes": used, "megabytes": size / 1e6, "load": load, "seconds": seconds,
    }  # fmt: skip


def line(name: str, row: dict[str, float]) -> str:
    sizes = f"{row['iterations']} | {row['weights']:,} | {row['attributes']:,} | {row['megabytes']:.1f} MB"
    return f"| {name} | **{row['f1']:.2f}** | {sizes} | {1000 * row['load']:.0f} ms | {row['seconds']:.0f} s |\n"


def write_page(rows: dict[str, dict[str, float]]) -> None:
    table = "".join(line(each, rows[each]) for each in ROWS if each in rows)
    (RESULTS / "attributes.md").write_text(HEAD + table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {'; '.join(ROWS)}")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "conll2000")
    given = parser.parse_args()
    if not (given.data / "train.txt").exists():
        sys.exit(f"{given.data}: expected train.txt and test.txt of CoNLL-2000, got none; use --data")
    torch.set_num_threads(1)
    train, test = sentences(given.data / "train.txt"), sentences(given.data / "test.txt")
    stored = RESULTS / "attributes.json"
    rows = json.loads(stored.read_text()) if stored.exists() else {}
    for name in given.names or ROWS:
        rows[name] = measure(*ROWS[name], train, test)
        print(line(name, rows[name]), end="", flush=True)
        stored.write_text(json.dumps(rows, indent=1) + "\n")
        write_page(rows)


if __name__ == "__main__":
    main()
