"""Transducers on real pairs, all through the command line: what they reach, and how long it takes.

    python -m benchmarks.transduction                             # every run that has no figure yet, one after another
    python -m benchmarks.transduction --only cmudict/pair-ngram   # one of them
    python -m benchmarks.transduction --page                      # only write docs/results/transduction.md anew

Train is for learning, dev chooses the settings and the epoch, and nothing is chosen by test. The data are those of
`../shared/data`, or of --data. A further row is one more entry of `RUNS`, a further data set one more function that
writes train.tsv, dev.tsv and test.tsv.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.accuracy.measure import trelliswork
from benchmarks.questions import make_logic, make_queries, share_right
from benchmarks.report import table
from benchmarks.trained_runs import Result, cells, main
from trelliswork.reading import numbered_lines

Make = Callable[[Path, Path], None]  # from the folder of all data to train.tsv, dev.tsv and test.tsv in another

ERRORS = {"word error rate": "word_error_rate", "symbol error rate": "symbol_error_rate"}


@dataclass(frozen=True)
class Data:
    """Pairs, how their files are made, and the scores that are shown, by their keys in the report."""

    title: str
    make: Make
    scores: Mapping[str, str]
    right: Callable[[Path, str], float] | None = None  # the exact match, where `evaluate` would count something else


def make_cmudict(data: Path, folder: Path) -> None:
    """Phones without stress; words are split by a hash of their letters, all pronunciations on one side."""
    lines: dict[str, dict[str, None]] = {"train": {}, "dev": {}, "test": {}}
    for line in (data / "cmudict" / "cmudict.dict").read_text(encoding="utf-8").splitlines():
        word, *phones = line.split("#")[0].split()
        word = re.sub(r"\(\d+\)$", "", word)
        if re.fullmatch(r"[a-z'.\-]+", word):
            share = int(hashlib.sha1(word.encode()).hexdigest(), 16) % 100
            part = "test" if share < 10 else "dev" if share < 12 else "train"
            lines[part][f"{word}\t{' '.join(phone.rstrip('012') for phone in phones)}"] = None
    for part, found in lines.items():
        (folder / f"{part}.tsv").write_text("\n".join(found) + "\n", encoding="utf-8")


def make_lemmas(data: Path, folder: Path) -> None:
    """Parts of speech and characters of forms, characters of lemmas: each pair once, and all tokens beside them.

    To learn from, a pair of n tokens is there 1 + log2 n times, rounded down: frequent words are the irregular ones.
    """
    for part, file in (("train", "train.conllu.gz"), ("dev", "dev.conllu"), ("test", "test.conllu")):
        lines = []
        for _, line in numbered_lines(data / "ud_english_ewt" / f"en_ewt-ud-{file}"):
            if line.split("\t")[0].isdigit():
                _, form, lemma, upos = line.split("\t")[:4]
                lines.append(f"{upos} {' '.join(form)}\t{' '.join(lemma)}\n")
        times = {line: n.bit_length() if part == "train" else 1 for line, n in Counter(lines).items()}
        (folder / f"{part}.tsv").write_text("".join(line * n for line, n in times.items()), encoding="utf-8")
        (folder / f"{part}.tokens.tsv").write_text("".join(lines), encoding="utf-8")


def token_accuracy(work: Path, part: str) -> float:
    """The share of tokens, not of different ones, whose target is right."""
    sources, found = work / "sources.txt", work / "found.tsv"
    tokens = [line.split("\t") for line in (work / f"{part}.tokens.tsv").read_text(encoding="utf-8").splitlines()]
    sources.write_text("".join(f"{each}\n" for each in dict.fromkeys(token[0] for token in tokens)), encoding="utf-8")
    trelliswork("predict", work / "model", sources, "--out", found)
    answers = dict(line.split("\t")[:2] for line in found.read_text(encoding="utf-8").splitlines())
    return statistics.mean(answers[source] == target for source, target in tokens)


def make_multi30k(data: Path, folder: Path) -> None:
    """Line i of one file translates line i of the other."""
    for part, file in (("train", "train"), ("dev", "val"), ("test", "test_2016_flickr")):
        sides = [numbered_lines(data / "multi30k" / f"{file}.{language}.gz") for language in ("en", "de")]
        lines = [f"{source}\t{target}\n" for (_, source), (_, target) in zip(*sides, strict=True)]
        (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


def copy_files(names: Mapping[str, str], data: Path, folder: Path) -> None:
    """Files that are pairs already, by the part that they are."""
    for part, name in names.items():
        shutil.copy(data / name, folder / f"{part}.tsv")


def sigmorphon(language: str) -> Data:
    """Graphemes to phonemes of one language."""
    files = {part: f"g2p_sigmorphon2021/{language}_{part}.tsv" for part in ("train", "dev", "test")}
    return Data(f"SIGMORPHON 2021 task 1, {language}", partial(copy_files, files), ERRORS)


CMUDICT = Data(
    "CMUdict without stress, 110,785 words to learn from, several right pronunciations", make_cmudict, ERRORS
)
ARABIC = Data(
    "Arabic names in Latin letters, one right spelling each",
    partial(copy_files, {part: f"transliteration_ar_en/ar2en-{file}.txt" for part, file in
                         (("train", "train"), ("dev", "eval"), ("test", "test"))}),
    ERRORS,
)  # fmt: skip
LEMMAS = Data(
    "Lemmas of English EWT from form and part of speech: each different pair once (to learn from, more often if it is "
    "frequent), and accuracy over all tokens",
    make_lemmas, {**ERRORS, "accuracy of tokens": "token_accuracy"},
)  # fmt: skip
MULTI30K = Data(
    "Multi30k, English to German, tokenised and in lower case as given, test 2016", make_multi30k, {"BLEU": "bleu"}
)
TRANSLATION = "--subwords 4000 --shared --tied --length-penalty 1 --judge bleu"
CHUNKS = {"dut": " --target-chunk 3", "vie_hanoi": " --target-chunk 3 --source-units characters"}  # chosen on dev
LANGUAGES = {  # Phonetisaurus 0.3.0 on the same test data
    "eng_us": 43.8, "bul": 23.2, "dut": 20.1, "geo": 0.0, "vie_hanoi": 61.7, "ady": 30.0, "ice": 36.0,
}  # fmt: skip
EDIT = {  # the word error rates that are wanted, with one setting for all
    "dut": 14.7, "bul": 18.3, "vie_hanoi": 2.5, "geo": 0.0, "ice": 16.0, "ady": 24.0,
}  # fmt: skip
ONE_SETTING = "--model edit --source-units characters --epochs 20"
ENGLISH = "--model edit --source-units characters --epochs 15"


@dataclass(frozen=True)
class Run:
    """One entry of the table: data, the options of `trelliswork train`, and what is wanted, at most or at least."""

    name: str
    data: Data
    options: str
    goals: Mapping[str, float]
    evaluate: str = ""  # options of `evaluate`


GEO = Data(
    "GeoQuery in Prolog, names left open with their kinds in the database, up to names of variables and order of "
    "conjuncts", make_logic, {"exact match": "exact match"}, share_right,
)  # fmt: skip
GEO_RELATIVE = Data(
    "The same with variables numbered from the last new one (Jia and Liang 2016)", partial(make_logic, relative=True),
    GEO.scores, share_right,
)  # fmt: skip
ATIS = Data(
    "ATIS as lambda terms, up to names of variables and order of conjuncts (own split)",
    partial(copy_files, {part: f"semantic_parsing/atis_lambda_{part}.tsv" for part in ("train", "dev", "test")}),
    {"exact match": "exact match"},
)
QUERIES = Data("GeoQuery in SQL, names left open", make_queries, {"answer": "answer", "exact match": "exact match"})
RUNS = (
    Run("cmudict/pair-ngram", CMUDICT, "--model pair-ngram",
        {"word error rate": 25.9, "symbol error rate": 6.25}),
    Run("arabic/pair-ngram", ARABIC, "--model pair-ngram --target-chunk 3 --length-penalty 0.5",
        {"word error rate": 75.1, "symbol error rate": 23.0}),
    *(Run(f"{language}/pair-ngram", sigmorphon(language),
          f"--model pair-ngram{CHUNKS.get(language, '')}", {"word error rate": wanted})
      for language, wanted in LANGUAGES.items()),
    *(Run(f"{language}/edit", sigmorphon(language), ONE_SETTING, {"word error rate": wanted})
      for language, wanted in EDIT.items()),
    Run("eng_us/edit", sigmorphon("eng_us"), ENGLISH, {"word error rate": 42.5}),
    Run("eng_us/edit, 3 seeds", sigmorphon("eng_us"), f"{ENGLISH} --seeds 3", {"word error rate": 41.0}),
    Run("arabic/edit", ARABIC, "--model edit --epochs 12", {"word error rate": 72, "symbol error rate": 21.5}),
    Run("arabic/edit, 5 seeds", ARABIC, "--model edit --epochs 12 --seeds 5",
        {"word error rate": 72, "symbol error rate": 21.5}),
    Run("lemmas/edit", LEMMAS, "--model edit --epochs 15", {"accuracy of tokens": 96.5}),
    Run("cmudict/edit", CMUDICT, "--model edit --epochs 7 --layers 2 --hidden 256 --cell-dim 256 --dropout 0.2 "
        "--batch-tokens 1500",
        {"word error rate": 23.5, "symbol error rate": 5.7}),
    Run("multi30k/seq2seq", MULTI30K, f"--model seq2seq {TRANSLATION} --epochs 15 --batch-tokens 2500 --lr 0.0015",
        {"BLEU": 35}),
    Run("multi30k/transformer", MULTI30K, f"--model transformer {TRANSLATION} --dim 128 --hidden 128 --layers 4 "
        "--feedforward 2 --average ema --ema-decay 0.997 --epochs 28 --batch-tokens 2500 --lr 0.004",
        {"BLEU": 36}),
    Run("geoquery/seq2seq", GEO_RELATIVE, "--model seq2seq --encoder lstm --dim 128 --hidden 128 --min-count 2 "
        "--dropout 0.3 --epochs 60 --patience 30 --batch-tokens 100", {"exact match": 82}),
    Run("geoquery/seq2tree", GEO, "--model seq2tree --epochs 60 --patience 30 --dropout 0.4 --batch-tokens 100",
        {"exact match": 85}),
    Run("atis/seq2tree", ATIS, "--model seq2tree --epochs 30 --patience 15 --batch-tokens 600", {"exact match": 78}),
    Run("geoquery-sql/seq2sql", QUERIES,
        "--model seq2sql --database {folder}/geography.sqlite --stem english --epochs 60 --patience 30 "
        "--dropout 0.4 --batch-tokens 100",
        {"answer": 75}),
)  # fmt: skip


def command(run: Run, seed: int) -> str:
    """What is typed in a folder with the files."""
    seeds = f" --seed {seed}" if seed else ""
    return f"trelliswork train train.tsv --dev dev.tsv {run.options.format(folder='.')}{seeds} --out model"


def measure(run: Run, seed: int, data: Path, work: Path) -> Result:
    """Train, then score on dev and test; the speed is that of `predict` on the sources of test."""
    run.data.make(data, work)
    began = time.perf_counter()
    options = run.options.format(folder=work).split()
    seconds = trelliswork(
        "train", work / "train.tsv", "--dev", work / "dev.tsv", *options, "--seed", str(seed), "--out", work / "model"
    )
    found: Result = {"name": run.name, "seed": seed, "command": command(run, seed), "seconds": round(seconds)}
    found["elapsed"] = round(time.perf_counter() - began)
    for part in ("dev", "test"):
        trelliswork("evaluate", work / "model", work / f"{part}.tsv", *run.evaluate.split(), "--quiet", "--json",
                    work / f"{part}.json")  # fmt: skip
        found[part] = json.loads((work / f"{part}.json").read_text(encoding="utf-8"))
        if (work / f"{part}.tokens.tsv").exists():
            found[part]["token_accuracy"] = token_accuracy(work, part)
        if run.data.right is not None:
            found[part]["exact match"] = run.data.right(work, part)
    members = sorted((work / "model").glob("seed-*"))
    if members:
        scores = [_score_of(each, run, work) for each in members]
        found["note"] = f"Alone: {', '.join(f'{100 * score:.2f}' for score in scores)} ({next(iter(run.data.scores))})."
    return found


def _score_of(model: Path, run: Run, work: Path) -> float:
    """What one of several models that answer together reaches alone on test: the first score of the data."""
    trelliswork("evaluate", model, work / "test.tsv", "--quiet", "--json", work / "member.json")
    return float(json.loads((work / "member.json").read_text(encoding="utf-8"))[next(iter(run.data.scores.values()))])


def rows(results: Sequence[Result]) -> list[list[str]]:
    """A line for each score of each run that was measured."""
    found = []
    for run in RUNS:
        own = [each for each in results if each["name"] == run.name]
        for title, key in run.data.scores.items():
            if not own or key not in own[0]["test"]:
                continue
            test, dev = ([100 * float(each[part][key]) for each in own] for part in ("test", "dev"))
            seeds = [each["seed"] for each in own]
            found.append([*run.name.split("/", 1), title, *cells(test, dev, run.goals.get(title), seeds)])
    return found


def page(results: Sequence[Result]) -> str:
    lines = [
        "# Transduction",
        "",
        "Made by `python -m benchmarks.transduction`. Train is for learning, dev chose the settings and the epoch, and",
        "nothing was chosen by test. A word is right if it equals any of its right targets, and symbol errors are",
        "counted against the nearest one. Means over the seeds, with their standard deviation where there are several.",
        "",
        *table(["data", "model", "score", "test", "dev", "wanted", "seeds"], rows(results)),
        "",
        *(f"- {title}." for title in dict.fromkeys(run.data.title for run in RUNS)),
        "",
        "## How",
        "",
    ]
    for each in results:
        minutes, core = each["elapsed"] / 60, each["seconds"] / 60
        note = f" {each['note']}" if "note" in each else ""
        lines += [f"{each['name']}: `{each['command']}`  "]
        lines += [f"{minutes:.1f} minutes ({core:.1f} of one core).{note}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main("transduction", __doc__, RUNS, measure, page)
