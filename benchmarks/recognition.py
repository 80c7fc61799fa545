"""Error rates of recognizers: strings of spoken digits, and handwritten words whose letters are not cut.

    python -m benchmarks.recognition --data ../shared/data --only digits

Every run trains by `trelliswork train --model ctc` on a manifest that is made here, with a seed: digits of one speaker
are joined to strings with low noise between them, and the letters of a word stand side by side as one image. The test
part is read once, at the end. A run that was done is kept in docs/results/recognition.json; `--page` only writes
docs/results/recognition.md anew.
"""

from __future__ import annotations

import io
import json
import statistics
import time
import wave
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.accuracy.measure import trelliswork
from benchmarks.trained_runs import Result, main
from trelliswork import __version__

RATE = 8000
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")


@dataclass(frozen=True)
class Run:
    """A data set that `make` writes as train.tsv, dev.tsv and test.tsv, how it is trained, and what it should reach."""

    name: str
    make: Callable[[Path, Path], None]
    options: str
    least: float
    aim: float


# Strings of spoken digits.


def make_digits(data: Path, work: Path) -> None:
    """Strings of digits of one speaker: recordings 0-4 of each digit for test, 5-8 for dev, the others to learn from.

    Those of test and dev have 3 to 7 digits. Three in four to learn from have one or two: a network that starts with
    long strings writes blanks for many epochs.
    """
    random = np.random.default_rng(0)
    with zipfile.ZipFile(data / "spoken_digits" / "recordings.zip") as archive:
        names = [name for name in archive.namelist() if name.endswith(".wav")]
        samples = {Path(name).stem: _samples(archive.read(name)) for name in names}
    parts = {"test": (range(5), 60), "dev": (range(5, 9), 20), "train": (range(9, 50), 240)}
    for part, (indices, n_strings) in parts.items():
        lines = []
        for speaker in SPEAKERS:
            pool: list[tuple[int, int]] = []
            for i in range(n_strings):
                digits = []
                shorter = part == "train" and i % 4
                for _ in range(random.integers(1, 3) if shorter else random.integers(3, 8)):
                    pool = pool or [(d, index) for index in indices for d in range(10)]
                    digits.append(pool.pop(random.integers(len(pool))))
                pieces = [_noise(random)]
                for digit, index in digits:
                    pieces += [samples[f"{digit}_{speaker}_{index}"], _noise(random)]
                name = f"{part}-{speaker}-{i}.wav"
                _write(work / name, np.concatenate(pieces))
                lines.append(f"{name}\t{' '.join(str(digit) for digit, _ in digits)}\n")
        (work / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


def _samples(content: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(content)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def _noise(random: np.random.Generator) -> np.ndarray:
    """20 to 150 ms of low noise."""
    return (random.normal(size=int(RATE * random.uniform(0.02, 0.15))) * random.uniform(5, 50)).astype("<i2")


def _write(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.astype("<i2").tobytes())


# Handwritten words.


def words_without(fold: int) -> Callable[[Path, Path], None]:
    """Return a function that writes the words of a fold for test, some of the next for dev, others to learn from."""

    def make(data: Path, work: Path) -> None:
        with np.load(data / "ocr_letters" / "letters.npz") as file:
            pixels = np.unpackbits(file["pixels"], axis=1).reshape(-1, 16, 8)
            letters, starts, folds = file["letters"].tolist(), file["word_start"].tolist(), file["fold"].tolist()
        lines: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
        for i, ((first, last), its) in enumerate(zip(pairwise(starts), folds, strict=True)):
            part = "test" if its == fold else "dev" if its == (fold + 1) % 10 and i % 4 == 0 else "train"
            image = np.concatenate(list(pixels[first:last]), 1)  # rows, columns
            header = f"P5 {image.shape[1]} {image.shape[0]} 255\n".encode()
            (work / f"{i}.pgm").write_bytes(header + (255 * (1 - image)).astype(np.uint8).tobytes())
            lines[part].append(f"{i}.pgm\t{''.join(chr(ord('a') + each) for each in letters[first:last])}\n")
        for part, each in lines.items():
            (work / f"{part}.tsv").write_text("".join(each), encoding="utf-8")

    return make


DIGITS = "--precision bf16 --epochs 22 --patience 22 --stride 4 --hidden 96 --dropout 0.2 --batch-tokens 1600 --lr 2e-3"
LETTERS = (
    "--precision bf16 --epochs 12 --patience 12 --height 16 --units characters --dropout 0.3 --batch-tokens 3000 "
    "--lr 3e-3"
)
RUNS = [
    Run("digits", make_digits, DIGITS, 3.0, 1.0),
    *(Run(f"letters-{fold}", words_without(fold), LETTERS, 6.0, 3.5) for fold in range(10)),
]


def measure(run: Run, seed: int, data: Path, work: Path) -> Result:
    """Train on what `make` writes, with a seed; the scores on the test part."""
    run.make(data, work)
    began = time.perf_counter()
    seconds = trelliswork(
        "train", work / "train.tsv", "--dev", work / "dev.tsv", "--model", "ctc", *run.options.split(), "--seed",
        str(seed), "--out", work / "model",
    )  # fmt: skip
    minutes = (time.perf_counter() - began) / 60
    trelliswork("evaluate", work / "model", work / "test.tsv", "--quiet", "--json", work / "scores.json")
    scores = json.loads((work / "scores.json").read_text(encoding="utf-8"))
    metrics = json.loads((work / "model" / "metrics.json").read_text(encoding="utf-8"))
    test = (work / "test.tsv").read_text(encoding="utf-8").splitlines()
    return {
        "name": run.name, "seed": seed, "recordings": len(test), "error": round(100 * scores["symbol_error_rate"], 3),
        "exact": round(100 * scores["exact_match"], 2), "dev": round(100 * (1 - metrics["dev"]["score"]), 3),
        "calibration": round(100 * scores["calibration"]["expected_error"], 2),
        "epochs": metrics["training"]["epochs"], "seconds": round(seconds), "minutes": round(minutes, 1),
        "options": run.options,
    }  # fmt: skip


def page(results: Sequence[Result]) -> str:
    """The page, in Markdown."""
    lines = [
        "# Recognition",
        "",
        "Made by `python -m benchmarks.recognition`: symbols in error, per cent, of strings that `--model ctc` finds",
        "with its beam. Nothing was chosen by test. The seeded script makes the strings and divides the parts.",
        "",
        "- **digits**: 3 to 7 recordings of one speaker joined with 20 to 150 ms of low noise (six speakers, Free",
        "  Spoken Digit Dataset). Recordings 0-4 of each digit are for test, 5-8 for dev, 1,440 strings of the others",
        "  to learn from, three in four of these of one or two digits.",
        "- **letters-N**: words of Taskar's OCR letters as one image of 16 rows, without the places where letters",
        "  meet; fold N for test, a quarter of the next for dev, all others to learn from.",
        "",
        "| run | test recordings | error | at least | aim | dev | all right | calibration error | processor minutes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    by_name = {run.name: run for run in RUNS}
    for each in results:
        run = by_name[each["name"]]
        lines.append(
            f"| {each['name']} | {each['recordings']:,} | **{each['error']:.2f}** | {run.least:g} | {run.aim:g} | "
            f"{each['dev']:.2f} | {each['exact']:.1f} | {each['calibration']:.1f} | {each['seconds'] / 60:.1f} |"
        )
    folds = [each["error"] for each in results if each["name"].startswith("letters")]
    if folds:
        lines += ["", f"Letters, mean of {len(folds)} of ten folds: **{statistics.mean(folds):.2f}**."]
    lines += ["", "## How", ""]
    for name, options in {each["name"].partition("-")[0]: each["options"] for each in results}.items():
        lines.append(f"{name}: `trelliswork train train.tsv --dev dev.tsv --model ctc {options} --out model`  ")
    return "\n".join([*lines, "", f"Trelliswork {__version__}, one thread, on a machine with other work to do.", ""])


if __name__ == "__main__":
    main("recognition", __doc__ or "", RUNS, measure, page)
