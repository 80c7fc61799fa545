"""n-gram language models beside MITLM and KenLM: time of estimation, of scoring, and memory.

    python -m benchmarks.language perplexity --train ptb.train.txt --test ptb.test.txt
    python -m benchmarks.language estimation --train text.txt --mitlm .../estimate-ngram
    python -m benchmarks.language scoring --train ptb.train.txt --test ptb.test.txt       # needs the kenlm module
    python -m benchmarks.language memory --train text.txt --build-binary .../build_binary

Text has a sentence on each line, tokens with blanks between them. `estimate-ngram` is in the wheel of phonetisaurus,
`build_binary` in the sources of kenlm. Times are processor times of interleaved rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from trelliswork.data.readers import read_pretokenised
from trelliswork.models.language.config import NgramConfig
from trelliswork.models.language.corpus import TextReading, read_corpus
from trelliswork.models.language.ngram import NgramLanguageModel

READING = TextReading(pretokenised=True)


def trained(path: str, order: int) -> NgramLanguageModel:
    return NgramLanguageModel.fit(read_corpus([path], READING), NgramConfig(order=order), format=READING)


def perplexity(options: argparse.Namespace) -> None:
    for order in range(1, options.order + 1):
        scores = trained(options.train, order).evaluate(list(read_pretokenised(options.test)))
        print(f"order {order}: perplexity {scores['perplexity']:.2f}")


def processor_time(command: list[str], **environment: str) -> float:
    """User and system time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def estimation(options: argparse.Namespace) -> None:
    """Whole processes from text to model: in memory, and with the model written (our folder; MITLM's ARPA file)."""
    libraries = str(Path(options.mitlm).parents[2] / "lib" / Path(options.mitlm).parent.name)
    with TemporaryDirectory() as folder:
        mitlm = [options.mitlm, "-o", str(options.order), "-t", options.train]
        code = f"from benchmarks.language import trained; trained({options.train!r}, {options.order})"
        ours = [sys.executable, "-m", "trelliswork", "train", options.train, "--pretokenised", "--model", "ngram",
                "--order", str(options.order), "--out", f"{folder}/lm", "--force", "--quiet"]  # fmt: skip
        commands = {
            "estimated": ([sys.executable, "-c", code], mitlm),
            "written": (ours, [*mitlm, "-wl", f"{folder}/m.arpa"]),
        }
        for name, pair in commands.items():
            rounds = [
                [processor_time(command, LD_LIBRARY_PATH=libraries) for command in pair] for _ in range(options.rounds)
            ]
            one, other = (statistics.median(each) for each in zip(*rounds, strict=True))
            ratio = statistics.median(b / a for a, b in rounds)
            print(f"{name}: ours {one:.2f} s, MITLM {other:.2f} s, ratio {ratio:.2f}")


def scoring(options: argparse.Namespace) -> None:
    """All sentences in one call beside the kenlm module, which is called for each word."""
    import kenlm

    model = trained(options.train, options.order)
    sentences = [each.words for each in read_pretokenised(options.test)]
    n = sum(len(words) + 1 for words in sentences)
    with TemporaryDirectory() as folder:
        from trelliswork.fst import write_arpa

        write_arpa(model.machine, f"{folder}/m.arpa")
        other = kenlm.Model(f"{folder}/m.arpa")

    def ours() -> float:
        return float(np.concatenate(model.log_probs(sentences)).sum(dtype=float) / np.log(10))

    def by_word() -> float:
        total = 0.0
        for words in sentences:
            state, following = kenlm.State(), kenlm.State()
            other.BeginSentenceWrite(state)
            for word in (*words, "</s>"):
                total += other.BaseScore(state, word, following)
                state, following = following, state
        return total

    def by_sentence() -> float:
        return sum(other.score(" ".join(words)) for words in sentences)

    calls: dict[str, Callable[[], float]] = {"ours": ours, "kenlm by word": by_word, "kenlm by sentence": by_sentence}
    times: dict[str, list[float]] = {name: [] for name in calls}
    totals = {name: call() for name, call in calls.items()}
    for _ in range(options.rounds):
        for name, call in calls.items():
            began = time.process_time()
            call()
            times[name].append(time.process_time() - began)
    for name, seconds in times.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, times["ours"], strict=True))
        print(f"{name}: {1e6 * min(seconds) / n:.3f} us a token, {ratio:.2f} of ours, log10 p {totals[name]:.3f}")


def memory(options: argparse.Namespace) -> None:
    """The arrays of a model that has scored beside KenLM's binary files, which are mapped into memory as they are."""
    model = trained(options.train, options.order)
    model.log_probs([["a"]])
    arrays = [*model.arrays[:5], model._backoff.table]
    print(f"ours: {sum(each.nbytes for each in arrays) / 1e6:.0f} MB, {len(model.arrays.word):,} n-grams")
    with TemporaryDirectory() as folder:
        from trelliswork.fst import write_arpa

        write_arpa(model.machine, f"{folder}/m.arpa")
        for kind in ("probing", "trie"):
            command = [options.build_binary, "-s", kind, f"{folder}/m.arpa", f"{folder}/{kind}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            print(f"kenlm {kind}: {Path(f'{folder}/{kind}').stat().st_size / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measures = {each.__name__: each for each in (perplexity, estimation, scoring, memory)}
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mitlm")
    parser.add_argument("--build-binary")
    options = parser.parse_args()
    measures[options.measure](options)


if __name__ == "__main__":
    main()
