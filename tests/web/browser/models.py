"""Small models of every kind, trained once on the built-in corpus, for the tests and the screenshots of the page."""

from __future__ import annotations

import sys
from pathlib import Path

from trelliswork.cli.main import run
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data.corpus.trees import write_treebank

SIZES = (400, 60, 60)
NAMES = ("ner", "quick", "pos", "parser", "phrases", "chart", "sounds")
SOUNDS = {
    "sh": "ʃ", "ch": "tʃ", "th": "θ", "ee": "iː", "oo": "uː", "a": "æ", "b": "b", "d": "d", "e": "ɛ", "f": "f",
    "i": "ɪ", "k": "k", "l": "l", "m": "m", "n": "n", "o": "ɒ", "p": "p", "r": "r", "s": "s", "t": "t", "u": "ʌ",
}  # fmt: skip
ONSETS = ("sh", "ch", "th", "b", "d", "k", "l", "m", "t")
VOWELS, CODAS = ("a", "ee", "oo", "i", "o"), ("n", "t", "sh", "p", "")


def pairs() -> list[str]:
    """Made-up words and how they are said; "th" is now and then voiced."""
    found = []
    for i, onset in enumerate(ONSETS):
        for j, vowel in enumerate(VOWELS):
            for k, coda in enumerate(CODAS):
                pieces = [each for each in (onset, vowel, coda) if each]
                said = [SOUNDS[each] for each in pieces]
                if onset == "th" and (i + j + k) % 3 == 0:
                    said[0] = "ð"
                found.append(f"{''.join(pieces)}\t{' '.join(said)}")
    return found


def train_models(folder: Path) -> dict[str, Path]:
    """A model of each kind, by name; what is there already is left as it is."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    _write_data(data)
    names = [str(data / "train.conll"), "--dev", str(data / "dev.conll"), "--quiet"]
    banks = ["--dev", str(data / "dev.conllu"), "--quiet"]
    commands = {
        "ner": [*names, "--model", "crf", "--feature-columns", "none", "--max-iterations", "40"],
        "quick": [*names, "--model", "hmm", "--feature-columns", "none"],
        "pos": [*names, "--model", "crf", "--tag-column", "2", "--feature-columns", "none", "--max-iterations", "15"],
        "parser": [
            str(data / "train.conllu"), *banks, "--model", "biaffine", "--epochs", "6", "--lr", "0.01",
            "--hidden", "64",
        ],
        "phrases": [str(data / "train.mrg"), "--dev", str(data / "dev.mrg"), "--quiet", "--model", "pcfg"],
        "chart": [
            str(data / "dev.mrg"), "--dev", str(data / "test.mrg"), "--quiet", "--model", "span-cky", "--epochs", "6",
            "--lr", "0.02", "--hidden", "32", "--word-dim", "32", "--span-dim", "32",
        ],
        "sounds": [str(data / "train.tsv"), "--dev", str(data / "dev.tsv"), "--quiet", "--model", "pair-ngram"],
    }  # fmt: skip
    for name, command in commands.items():
        if not (folder / name / "config.json").exists():
            status = run(["train", *command, "--out", str(folder / name)])
            assert status == 0, f"training {name} ended with {status}"
    return {name: folder / name for name in NAMES}


def _write_data(data: Path) -> None:
    corpus = builtin_corpus(sizes=SIZES)
    write_corpus(corpus, data)
    write_treebank(corpus, data)
    lines = pairs()
    (data / "train.tsv").write_text("\n".join(lines[5:]) + "\n", encoding="utf-8")
    (data / "dev.tsv").write_text("\n".join(lines[:5]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    print(train_models(Path(sys.argv[1])))
