"""Errors on handwritten letters, ten folds: `python -m benchmarks.ocr` writes docs/results/ocr.{md,json}.

A linear CRF and a hidden-unit CRF read the same 128 binary pixels and nothing else. Each fold is tested on once, after
training on the nine others. A run that was stopped goes on with the folds that are missing; `--again` starts afresh.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.report import RESULTS
from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.hidden_units.learning import HiddenUnitLearner
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters, HiddenUnitCRF
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn

DATA = Path(__file__).parents[2] / "shared" / "data" / "ocr_letters" / "letters.npz"
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
N_PIXELS = 128
N_UNITS = 500
LINEAR = LearningConfig(c2=0.1, max_iterations=200)
HIDDEN = HiddenUnitLearner(l2=0.03, max_epochs=30, rate=0.003, dropout=0.2)
NOTE = f"""# Handwritten letters

`python -m benchmarks.ocr`: share of wrong letters in percent, on the 6,877 words (52,152 letters) of Taskar's OCR data;
each fold is tested on after training on the nine others. Both models read 128 binary pixels and a constant, nothing
else; no image was shifted or added. The settings were chosen on fold 1, by models that had not seen fold 0 either.

- linear CRF: L-BFGS, c2 = {LINEAR.c2:g}
- hidden-unit CRF: {N_UNITS} units, Adam, {HIDDEN.max_epochs} epochs of {HIDDEN.batch} words a batch,
  c2 = {HIDDEN.l2:g}; every epoch leaves out {100 * HIDDEN.dropout:g} % of the black pixels, at random

Seconds are CPU seconds on one thread.
"""
Row = dict[str, Any]
Words = tuple[AttributeRows, np.ndarray[Any, Any]]


def read_words(path: Path, folds: set[int]) -> Words:
    """The letters of the words of some folds: attributes 0..127 are black pixels, 128 is there always."""
    data = np.load(path)
    chosen = np.isin(data["fold"], list(folds))
    lengths = np.diff(data["word_start"]).astype(np.int64)
    letters = np.repeat(chosen, lengths)
    black = np.unpackbits(data["pixels"], axis=1)[letters]
    on = np.concatenate([black, np.ones((len(black), 1), np.uint8)], 1)
    offsets = np.concatenate([[0], np.cumsum(on.sum(1, dtype=np.int64))])
    rows = AttributeRows(lengths[chosen], offsets, np.nonzero(on)[1].astype(np.int32))
    return rows, data["letters"][letters].astype(np.int64)


def linear_crf(words: Words) -> FeatureCRF:
    rows, gold = words
    parameters = Parameters.of(rows, gold, N_PIXELS + 1, len(LETTERS), all_states=True, all_transitions=True)
    *_, last = learn(rows, gold, parameters, LINEAR)
    return FeatureCRF(LETTERS, KeyIndex(), parameters, last.weights)


def hidden_unit_crf(words: Words) -> FeatureCRF:
    parameters = HiddenParameters.dense(N_PIXELS + 1, len(LETTERS), N_UNITS)
    *_, last = HIDDEN.learn(Corpus(*words), parameters)
    return HiddenUnitCRF(LETTERS, KeyIndex(), parameters, last.weights)


MODELS = {"hidden-unit CRF": hidden_unit_crf, "linear CRF": linear_crf}


def error(crf: FeatureCRF, words: Words) -> float:
    """Percent of letters that are wrong."""
    rows, gold = words
    found = [LETTERS.index(letter) for word in crf.predict(rows) for letter in word]
    return 100 * float((np.array(found) != gold).mean())


def run_fold(name: str, fold: int, path: Path) -> Row:
    train, test = read_words(path, set(range(10)) - {fold}), read_words(path, {fold})
    began = time.process_time()
    crf = MODELS[name](train)
    seconds = time.process_time() - began
    return {"model": name, "fold": fold, "error": round(error(crf, test), 2), "seconds": round(seconds, 1)}


def table(rows: list[Row]) -> str:
    """A line a fold and one of means over the folds that are done."""
    lines = ["| fold | " + " | ".join(f"{name} | s" for name in MODELS) + " |", "|---|" + "---|---|" * len(MODELS)]
    for label, folds in [*((str(fold), {fold}) for fold in range(10)), ("mean", set(range(10)))]:
        cells = []
        for name in MODELS:
            found = [row for row in rows if row["model"] == name and row["fold"] in folds]
            error, seconds = ([row[what] for row in found] for what in ("error", "seconds"))
            cells.append(f"{np.mean(error):.2f} | {np.mean(seconds):.0f}" if found else " | ")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="letters.npz")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--again", action="store_true", help="forget the folds that are done")
    options = parser.parse_args()
    torch.set_num_threads(1)
    stored = options.out / "ocr.json"
    done = [] if options.again or not stored.exists() else json.loads(stored.read_text(encoding="utf-8"))
    known = {(row["model"], row["fold"]) for row in done}
    for name, fold in (each for each in product(MODELS, range(10)) if each not in known):
        done.append(run_fold(name, fold, options.data))
        stored.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
        (options.out / "ocr.md").write_text(f"{NOTE}\n{table(done)}\n", encoding="utf-8")
        print(json.dumps(done[-1]), flush=True)
    print(table(done))


if __name__ == "__main__":
    main()
