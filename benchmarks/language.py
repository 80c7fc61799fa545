"""Language models beside others: n-grams (MITLM, KenLM), word vectors (fastText, gensim, GloVe), output layers.

    python -m benchmarks.language perplexity --train ptb.train.txt --test ptb.test.txt
    python -m benchmarks.language estimation --train text.txt --mitlm .../estimate-ngram
    python -m benchmarks.language scoring --train ptb.train.txt --test ptb.test.txt       # needs the kenlm module
    python -m benchmarks.language memory --train text.txt --build-binary .../build_binary
    python -m benchmarks.language similarity --vectors FOLDER|FILE ... --pairs FILE ...
    python -m benchmarks.language skipgram --train text.txt             # needs fasttext, and gensim if it is there
    python -m benchmarks.language output --train text.txt

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from trelliswork.data import Sentence
from trelliswork.data.readers import read_pretokenised
from trelliswork.models import load
from trelliswork.models.language.config import NgramConfig, VectorConfig
from trelliswork.models.language.corpus import TextReading, read_corpus
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.language.vectors import WordVectorModel, read_word_pairs
from trelliswork.nn.output_layers import AdaptiveSoftmaxLayer, HierarchicalSoftmaxLayer, OutputLayer, SoftmaxLayer
from trelliswork.nn.output_layers.adaptive import clusters_of

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


def similarity(options: argparse.Namespace) -> None:
    """Spearman's correlation with human similarities, and how many pairs have two words of the vocabulary.

    Vectors are folders of models, or text files, whose words are looked up in lower case. The last figure is that of
    the pairs that all of them cover.
    """
    models = {path: _vectors(path) for path in options.vectors}
    for file in options.pairs:
        pairs = list(read_word_pairs(file))
        common = [
            pair for pair in pairs if all(model.knows(word.lower()) for model in models.values() for word in pair.words)
        ]
        for path, model in models.items():
            (every,) = model.evaluate(_lower(pairs))["by_file"].values()
            (shared,) = model.evaluate(_lower(common))["by_file"].values()
            print(
                f"{Path(file).name} {path}: {every['covered']} of {len(pairs)} covered "
                f"{every['spearman_of_covered']:.3f}, {every['answered']} answered {every['spearman']:.3f}, "
                f"{len(common)} common {shared['spearman']:.3f}"
            )


def _vectors(path: str) -> WordVectorModel:
    loaded = load(path) if Path(path).is_dir() else WordVectorModel.from_file(path)
    assert isinstance(loaded, WordVectorModel)
    return loaded


def _lower(pairs: list[Sentence]) -> list[Sentence]:
    return [replace(pair, words=tuple(map(str.lower, pair.words))) for pair in pairs]


def skipgram(options: argparse.Namespace) -> None:
    """Words of the text a second, two epochs on one thread, reading the text and building the vocabulary included."""
    import fasttext

    lines = Path(options.train).read_text(encoding="utf-8").split("\n")
    n, common = (
        sum(len(line.split()) for line in lines),
        {"epoch": 2, "dim": 100, "lr": 0.05, "minCount": 5, "thread": 1},
    )
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: WordVectorModel.fit(lines, VectorConfig(epochs=2)),
        "fasttext": lambda: fasttext.train_unsupervised(options.train, "skipgram", verbose=0, **common),
    }
    with suppress(ImportError):
        from gensim.models import FastText

        settings = {"vector_size": 100, "sg": 1, "sample": 1e-4, "epochs": 2, "workers": 1, "min_count": 5}
        calls["gensim"] = lambda: FastText(sentences=[line.split() for line in lines], **settings)
    _interleaved(calls, options.rounds, lambda seconds: f"{2 * n / seconds:,.0f} words/s")


def output(options: argparse.Namespace) -> None:
    """A step of the output layer, forward and backward: 700 words of the text, the 60,000 most frequent ones known."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n, dim, corpus = 60_000, 256, read_corpus([options.train], READING)
    words = torch.from_numpy(corpus.tokens[corpus.tokens < min(n, len(corpus.names) - 1)].astype(np.int64))
    targets, hidden = words[torch.randint(len(words), (700,))], torch.randn(700, dim, requires_grad=True)
    layers = {
        "full": SoftmaxLayer(dim, n),
        "adaptive": AdaptiveSoftmaxLayer(dim, n, cutoffs=clusters_of(n)),
        "adaptive, one cluster": AdaptiveSoftmaxLayer(dim, n),
        "hierarchical": HierarchicalSoftmaxLayer(dim, n),
    }
    calls = {name: partial(_step, layer, hidden, targets) for name, layer in layers.items()}
    _interleaved(calls, options.rounds, lambda seconds: f"{1000 * seconds:.1f} ms")


def _step(layer: OutputLayer, hidden: torch.Tensor, targets: torch.Tensor) -> None:
    layer.zero_grad()
    layer.total_loss(hidden, targets).backward()


def _interleaved(calls: Mapping[str, Callable[[], object]], rounds: int, shown: Callable[[float], str]) -> None:
    """Print the least time of each call, and the median of its ratio to the first."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.process_time()
            call()
            times[name].append(time.process_time() - began)
    first = next(iter(times.values()))
    for name, seconds in times.items():
        ratio = statistics.median(b / a for a, b in zip(first, seconds, strict=True))
        print(f"{name}: {shown(min(seconds))}, time {ratio:.3f} of the first")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measures = {each.__name__: each for each in (perplexity, estimation, scoring, memory, similarity, skipgram, output)}
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--train")
    parser.add_argument("--vectors", nargs="+")
    parser.add_argument("--pairs", nargs="+")
    parser.add_argument("--test")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mitlm")
    parser.add_argument("--build-binary")
    options = parser.parse_args()
    measures[options.measure](options)


if __name__ == "__main__":
    main()
