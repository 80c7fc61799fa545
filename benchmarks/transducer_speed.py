"""Pair n-grams against Phonetisaurus, attention against yoyodyne, and the loss of edit transducers against torch, by
processor time in one run.

    python -m benchmarks.transducer_speed --phonetisaurus COMMAND               # all of CMUdict
    python -m benchmarks.transducer_speed --phonetisaurus COMMAND --words 10000 # a part of it
    python -m benchmarks.transducer_speed --yoyodyne COMMAND

The peers are in environments of their own (pip install phonetisaurus==0.3.0; pip install torch==2.13.0, then
yoyodyne==0.5.27 without torchvision and torchaudio). Programs learn from the same file; times are processor seconds of
the processes, so a machine that others use hits all alike. Words a second leave out what a program takes to begin: what
one word takes, or the first of several epochs. Writes docs/results/transducer-speed.md and .json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.accuracy.measure import ROOT
from benchmarks.edit import DIM, SYMBOLS, WANTED, Problem
from benchmarks.report import RESULTS, table, versions
from benchmarks.timing import Candidate, median, ratio, sample
from benchmarks.transduction import make_cmudict
from trelliswork.data import atomic_write

STORE = RESULTS / "transducer-speed.json"
OURS, PEER, ATTENTIVE_PEER = "trelliswork", "Phonetisaurus 0.3.0", "yoyodyne 0.5.27"
LEAST_SPEED = 1.2  # words a second that are wanted, as a multiple of those of Phonetisaurus
LEAST_RATIO = 3  # of the words a second that attention learns from
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of Linux
EPOCHS, N_LEARNED, N_DEV = (1, 3), 2000, 100
PARAMETERS = "1.5 million weights, GRUs both ways and one that attends"
OUR_ATTENTION = "--model seq2seq --dim 128 --hidden 328 --batch-tokens 600"  # about 32 words
THEIR_ATTENTION = (
    "fit --seed_everything 0 --trainer.accelerator cpu --trainer.enable_progress_bar false "
    "--model yoyodyne.models.SoftAttentionGRUModel --model.embedding_size 128 --model.decoder_hidden_size 256 "
    "--model.source_encoder yoyodyne.models.modules.GRUEncoder --model.source_encoder.hidden_size 256 "
    "--data.batch_size 32"
)
SIZES = [(10, 8, 64), (20, 20, 64)]
Row = dict[str, Any]
Command = list[str]


def seconds(command: Command, given: Path | None = None) -> float:
    """The processor time of a program and of all that it starts, waited for or not."""
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)  # Phonetisaurus does not wait for its decoder
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with given.open() if given is not None else open(os.devnull) as text:
        subprocess.run(command, check=True, env=env, stdin=text, capture_output=True)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def words_per_second(command: Callable[[Path], Command], words: Sequence[str], folder: Path, rounds: int) -> float:
    """How many words a second, without what the program takes to begin."""
    files = {name: folder / f"{name}.txt" for name in ("one", "all")}
    files["one"].write_text(f"{words[0]}\n", encoding="utf-8")
    files["all"].write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    seconds(command(files["one"]), files["one"])  # kernels are compiled once
    spent = {
        name: statistics.median(seconds(command(file), file) for _ in range(rounds)) for name, file in files.items()
    }
    return (len(words) - 1) / (spent["all"] - spent["one"])


def pair_ngrams(phonetisaurus: str, data: Path, n_words: int | None, rounds: int) -> Row:
    """Training and answers of both."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        make_cmudict(data, folder)
        lines = (folder / "train.tsv").read_text(encoding="utf-8").splitlines()
        step = max(1, len(lines) // n_words) if n_words else 1
        lines = lines[::step]
        (folder / "train.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (folder / "train.dict").write_text("".join(line.replace("\t", " ") + "\n" for line in lines), encoding="utf-8")
        test = [line.split("\t")[0] for line in (folder / "test.tsv").read_text(encoding="utf-8").splitlines()]
        words = list(dict.fromkeys(test))[:: step if n_words else 1]
        ours = [sys.executable, "-m", "trelliswork"]
        train = [*ours, "train", str(folder / "train.tsv"), "--dev", str(folder / "dev.tsv"), "--model", "pair-ngram"]
        seconds([*train, "--out", str(folder / "first")])  # kernels are compiled once
        trained = {OURS: seconds([*train, "--out", str(folder / "model")])}
        trained[PEER] = seconds(
            [phonetisaurus, "train", "--model", str(folder / "g2p.fst"), str(folder / "train.dict")]
        )
        commands: dict[str, Callable[[Path], Command]] = {
            OURS: lambda file: [*ours, "predict", str(folder / "model"), "--lexicon", str(file)],
            PEER: lambda file: [phonetisaurus, "predict", "--model", str(folder / "g2p.fst")],
        }
        rates = {name: words_per_second(each, words, folder, rounds) for name, each in commands.items()}
    return {"pairs": len(lines), "words": len(words), "rounds": rounds, "training": trained, "rates": rates}


def attention(yoyodyne: str, data: Path, rounds: int) -> Row:
    """Words a second that a network with attention learns from, with the scores on dev words after each epoch."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for part, n in (("train", N_LEARNED), ("dev", N_DEV)):
            lines = (data / "g2p_sigmorphon2021" / f"bul_{part}.tsv").read_text(encoding="utf-8").splitlines()[:n]
            (folder / f"{part}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        train, dev = (str(folder / f"{part}.tsv") for part in ("train", "dev"))
        ours = [sys.executable, "-m", "trelliswork", "train", train, "--dev", dev, *OUR_ATTENTION.split(), "--force"]
        files = ["--data.train", train, "--data.val", dev, "--data.target_sep", " ", "--data.model_dir", str(folder)]
        theirs = [yoyodyne, *THEIR_ATTENTION.split(), *files, "--trainer.default_root_dir", str(folder)]
        commands: dict[str, Callable[[int], Command]] = {
            OURS: lambda n: [*ours, "--epochs", str(n), "--out", str(folder / "model")],
            ATTENTIVE_PEER: lambda n: [*theirs, "--trainer.max_epochs", str(n)],
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                few, more = (seconds(command(n)) for n in EPOCHS)
                spent[name].append((more - few) / (EPOCHS[1] - EPOCHS[0]))
    return {"rounds": rounds, "rates": {name: N_LEARNED / statistics.median(each) for name, each in spent.items()}}


def edit_losses(rounds: int) -> list[Row]:
    """The sum over all scripts with its gradient, by kernels and by torch, diagonal by diagonal."""
    found = []
    for size in SIZES:
        problem = Problem.of(*size)
        calls = [Candidate("ours", problem.sums("kernel")), Candidate("torch", problem.sums("torch"))]
        samples = sample(calls, rounds)
        ours, torch = samples["ours", 1], samples["torch", 1]
        found.append({"size": size, "ours": median(ours), "torch": median(torch), "ratio": ratio(torch, ours)})
    return found


def page(row: Row) -> str:
    lines = [
        "# Speed of transducers",
        "",
        "Made by `python -m benchmarks.transducer_speed`. Pair n-grams and Phonetisaurus learn from the same pairs of",
        "CMUdict without stress and answer the same test words, from file to file, by processor time of one core;",
        "training of ours has its scores on the dev words in it.",
        "",
        versions(),
    ]
    if "pair-ngram" in row:
        own = row["pair-ngram"]
        lines += ["", f"## Pair n-grams, {own['pairs']:,} pairs, {own['words']:,} words", "", *table(
            ["program", "training, s", "words/s", "wanted"],
            [[OURS, f"{own['training'][OURS]:.1f}", f"{own['rates'][OURS]:,.0f}",
              f"{LEAST_SPEED * own['rates'][PEER]:,.0f}"],
             [PEER, f"{own['training'][PEER]:.1f}", f"{own['rates'][PEER]:,.0f}", ""]],
        )]  # fmt: skip
    if "attention" in row:
        rates = row["attention"]["rates"]
        lines += ["", f"## Attention, {PARAMETERS}", "",
                  f"Words a second that are learned from, {N_LEARNED:,} Bulgarian words with phones, 32 in a batch,",
                  f"scores on {N_DEV} words after each epoch included; rounds: {row['attention']['rounds']}.",
                  "", *table(["program", "words/s", "ours is faster by", "wanted"], [
                      [OURS, f"{rates[OURS]:,.0f}", f"{rates[OURS] / rates[ATTENTIVE_PEER]:.1f}", f"{LEAST_RATIO}"],
                      [ATTENTIVE_PEER, f"{rates[ATTENTIVE_PEER]:,.0f}", "", ""],
                  ])]  # fmt: skip
    if "edit" in row:
        shown = [
            [str(tuple(each["size"])), f"{each['ours']:.2f}", f"{each['torch']:.2f}", f"{each['ratio']:.1f}",
             f"{WANTED:g}"] for each in row["edit"]
        ]  # fmt: skip
        lines += ["", f"## Loss of edit transducers with its gradient, {SYMBOLS} symbols, vectors of {DIM}", "",
                  "Milliseconds of a call, sizes (source, target, batch); torch goes diagonal by diagonal.", "",
                  *table(["size", "ours, ms", "torch, ms", "ours is faster by", "wanted"], shown)]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transducer_speed", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--phonetisaurus", metavar="COMMAND", help="its command; without it, that part stays as it was")
    parser.add_argument("--yoyodyne", metavar="COMMAND", help="its command; without it, that part stays as it was")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of all data")
    parser.add_argument("--words", type=int, metavar="N", help="learn from about N pairs, and answer fewer words")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    row: Row = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
    if options.phonetisaurus or not options.yoyodyne:
        row["edit"] = edit_losses(21)
    if options.yoyodyne:
        row["attention"] = attention(options.yoyodyne, options.data, options.rounds)
    if options.phonetisaurus:
        row["pair-ngram"] = pair_ngrams(options.phonetisaurus, options.data, options.words, options.rounds)
    with atomic_write(STORE) as file:
        file.write(json.dumps(row, indent=1) + "\n")
    (RESULTS / "transducer-speed.md").write_text(page(row), encoding="utf-8")
    print(page(row))


if __name__ == "__main__":
    main()
