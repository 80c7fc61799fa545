"""Every command of the README and of the pages that list commands, run as printed, and the Python of the README."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
import scipy.io.wavfile
import torch

import trelliswork
from tests.newcomers.following import Here
from trelliswork.cli.main import run
from trelliswork.data import Sentence, conll_text, json_text, read_conll
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data.corpus.trees import write_treebank
from trelliswork.text import Document

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs/guides/models.md", ROOT / "docs/guides/files.md")
SOURCES = Path(trelliswork.__file__).parents[1]


QUICK = "trelliswork check train.conll"  # of the block that trains on the corpus of the demo


def fenced() -> list[tuple[str, str]]:
    """The language and the text of each block of the pages."""
    texts = (page.read_text(encoding="utf-8") for page in PAGES)
    return [block for text in texts for block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)]


def commands() -> list[list[str]]:
    """The lines with a prompt of each block that has some."""
    blocks = [text for language, text in fenced() if not language]
    found = [[line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")] for block in blocks]
    return [lines for lines in found if lines]


def quick_start() -> list[str]:
    (block,) = [each for each in commands() if QUICK in each[0]]
    return block


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command prints; the corpus is smaller than that of the demo, so that it takes seconds."""
    folder = tmp_path_factory.mktemp("hour")
    write_corpus(builtin_corpus(sizes=(400, 40, 40)), folder)
    here = Here(folder)
    return {line: here.shell(line) for line in quick_start()}


def test_every_command_works(printed: dict[str, str]) -> None:
    checked, trained, evaluated, pretty, records = printed.values()
    assert "sentences in both" in checked and "model: ner" in trained and "token accuracy" in evaluated
    first, *analyses = pretty.splitlines()
    words = re.sub(r"\[|\b[A-Z]+ (>?\d+%|<1%)\]", "", first).split()
    assert words == ["Dr", "Jordan", "visited", "Lincoln", "on", "Monday", "."], "the full stop is a token"
    assert [line.split()[0] for line in analyses] == ["1.", "2."]
    assert records.startswith('{"text": "Dr Jordan visited Lincoln on Monday.", "tokens": ["Dr", "Jordan", ')


def test_what_is_printed_has_the_form_of_the_readme(printed: dict[str, str]) -> None:
    """Numbers depend on the size of the corpus; the names that are found do not."""
    pretty = next(text for line, text in printed.items() if "--format pretty" in line)
    shown = README.read_text(encoding="utf-8").split("--format pretty\n")[1].splitlines()[0]

    def without_numbers(line: str) -> str:
        return re.sub(r" [<>]?\d+%", "", line)

    assert without_numbers(pretty.splitlines()[0]) == without_numbers(shown)


# What makes the commands of the other blocks take a second each, and what the last line of their output looks like.
SMALL = ["--epochs", "1", "--hidden", "8", "--word-dim", "4"]
SHORTER = {
    "train chunks.txt": ["--max-iterations", "5"],
    "train train.conll": [*SMALL],
    "tune train.conll": ["--epochs", "1", "--trials", "1", "--segment-dim", "8"],
    "train en.conllu": ["--max-iterations", "5"],
    "train zh.conllu": ["--max-iterations", "20"],
    "train ner.jsonl": ["--max-iterations", "5"],
    "train train.tsv --dev dev.tsv --model edit": ["--epochs", "1", "--hidden", "8"],
    "train ud-train.conllu": [*SMALL, "--arc-dim", "8", "--label-dim", "8"],
    "convert old.crfsuite": ["--out", "converted"],
    "train text.txt more.txt.gz --dev test.txt --model rnn-lm": SMALL,
    "train speech.tsv": ["--epochs", "1", "--hidden", "8"],
}
PRINTED = {
    "train chunks.txt": "next:  trelliswork predict chunker FILE --confidence",
    "explain chunker": "written: votes.html",
    "convert": "converted",
    "train train.conll": "next:   trelliswork predict chunker FILE --confidence   (all together)",
    "tune": "next:  trelliswork evaluate search/best FILE",
    "predict chunker": ".",
    "export": "chunker-onnx",
    "train en.conllu": "next:  trelliswork predict pos FILE --confidence",
    "train zh.conllu": "next:  trelliswork predict words FILE --text",
    "train ner.jsonl": "next:  trelliswork predict ner FILE --confidence",
    "train ud-train.conllu": "next:  trelliswork predict parser FILE",
    "evaluate parser": "CLAS",
    "train trees.mrg": "next:  trelliswork predict grammar FILE",
    "train train.tsv": "next:  trelliswork predict pronounce",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README speaks of."""
    write_corpus(builtin_corpus(sizes=(60, 10, 10)), tmp_path)
    monkeypatch.chdir(tmp_path)
    sentences = [replace(each, features=each.features[:1]) for each in read_conll("train.conll")]
    Path("chunks.txt").write_text("".join(conll_text(each, delimiter=" ") for each in sentences))
    Path("train.conll").write_text("".join(conll_text(Sentence(each.words, each.tags)) for each in sentences))
    Path("dev.conll").write_text("".join(conll_text(Sentence(each.words, each.tags)) for each in sentences[:9]))
    Path("new.conll").write_text("Dr\nJordan\nsmiled\n.\n")
    Path("new.txt").write_text("Dr NNP\nJordan NNP\nsmiled VBD\n. .\n")
    vectors = sorted({word.lower() for each in sentences for word in each.words})
    Path("glove.txt.gz").write_bytes(gzip.compress("".join(f"{word} 0.1 0.2\n" for word in vectors).encode()))
    for name, texts in (("en", ENGLISH), ("zh", CHINESE), ("zh-dev", CHINESE)):
        Path(f"{name}.conllu").write_text("".join(map(treebank, texts * 8)), encoding="utf-8")
    Path("news.txt").write_text("Ann left. Bob, too.\n")
    Path("text.txt").write_text("The dog left. Ann saw the dog.\n\nBob saw the cat, and the cat left.\n" * 4)
    Path("test.txt").write_text("Bob left Rome.\n")
    Path("more.txt.gz").write_bytes(gzip.compress(b"Bob went to Oslo. Ann left Rome.\n" * 4))
    Path("ner.jsonl").write_text("".join(map(json_text, sentences)))
    write_treebank(builtin_corpus(sizes=(60, 10, 10)), tmp_path)
    for part in ("train", "dev", "test"):
        Path(f"{part}.conllu").rename(f"ud-{part}.conllu")
    Path("train.mrg").rename("trees.mrg")
    Path("story.txt").write_text("Orion visited Vernford. Ann smiled.\n")
    for part in ("train", "dev"):
        Path(f"{part}.tsv").write_text("cat\tK AE T\nbat\tB AE T\ntab\tT AE B\n" * 4)
    Path("words.txt").write_text("cab\n")
    write_speech()
    return tmp_path


def write_speech() -> None:
    """Write tones of half a second, and manifests of them."""
    rate, lines = 8000, []
    for i, letters in enumerate(("ab", "ba", "a", "b")):
        tones = [np.sin(np.arange(rate // 4) * (0.3 if letter == "a" else 0.9)) for letter in letters]
        for name in (f"{i}.wav", "new.wav"):
            scipy.io.wavfile.write(name, rate, (np.concatenate(tones) * 20_000).astype(np.int16))
        lines.append(f"{i}.wav\t{letters}\n")
    for name in ("speech", "speech-dev"):
        Path(f"{name}.tsv").write_text("".join(lines))


ENGLISH = [("Ann left Oslo.", ["Ann", "left", "Oslo", "."]), ("Bob, too!", ["Bob", ",", "too", "!"])]
CHINESE = [("我爱北京。", ["我", "爱", "北京", "。"]), ("猫爱上海。", ["猫", "爱", "上海", "。"])]


def treebank(given: tuple[str, list[str]]) -> str:
    text, words = given
    (sentence,) = Document.aligned(text, [words]).sentences
    touches = [after is not None and token.end == after.start for token, after in zip_longest(sentence, sentence[1:])]
    rows = [
        f"{i}\t{word}\t_\t{'NOUN' if word.isalpha() else 'PUNCT'}" + "\t_" * 5 + ("\tSpaceAfter=No" if touch else "\t_")
        for i, (word, touch) in enumerate(zip(words, touches, strict=True), 1)
    ]
    return f"# text = {text}\n" + "\n".join(rows) + "\n\n"


def test_every_other_command_works_as_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process: importing it for each would take longer than all of them."""
    pytest.importorskip("onnx")
    pytest.importorskip("optuna")
    n_run = 0
    for block in commands():
        if QUICK in block[0]:
            continue
        for line in block:
            name, *arguments = shlex.split(line, comments=True)
            assert name == "trelliswork", line
            if arguments[0] == "convert":
                assert run(["export", "chunker", "old.crfsuite", "--crfsuite"]) == 0
            if arguments[0] == "predict" and arguments[1] == "words":
                (folder / "new.txt").write_text("猫爱北京。\n", encoding="utf-8")
            if arguments[:2] == ["train", "train.conll"]:
                shutil.rmtree(folder / "chunker")  # of the block before
            capsys.readouterr()
            added = next((more for start, more in SHORTER.items() if " ".join(arguments).startswith(start)), [])
            status = run([*arguments, *added])
            out, err = capsys.readouterr()
            assert status == 0, f"{line}\n{err}"
            wanted = [text for start, text in PRINTED.items() if " ".join(arguments).startswith(start)]
            shown = [each for each in out.splitlines() if each.strip()]
            assert not wanted or wanted[0] in shown[-1], f"{line}\n{out}"
            n_run += 1
    assert n_run >= 12
    assert "<mark" in Path("news.html").read_text(encoding="utf-8")
    assert "1\t猫\t" in Path("new.conllu").read_text(encoding="utf-8") and "\t北京\t" in Path("new.conllu").read_text()
    assert "\tArcProb=" in (folder / "story.conllu").read_text("utf-8").replace("|", "\t")
    assert (folder / "story.mrg").read_text("utf-8").count("\n") == 2 and (folder / "parser" / "tokeniser").is_dir()
    assert (folder / "ner" / "tokeniser").is_dir() and (folder / "chunker-onnx" / "model.onnx").is_file()


def test_the_python_of_the_readme_gives_the_numbers_in_its_comments() -> None:
    (block,) = [text for language, text in fenced() if language == "python"]
    names: dict[str, object] = {}
    n_compared = 0
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        exec(code, names)
        if not re.match(r"[\d\[]|tensor", comment):
            continue
        target, is_assigned, _ = code.partition(" = ")
        value = names[target] if is_assigned and target.isidentifier() else eval(code, names)
        assert numbers(value) == pytest.approx(numbers_in(comment.partition(":")[0]), abs=6e-5), line
        n_compared += 1
    assert n_compared == 6


def numbers(value: object) -> list[float]:
    """All numbers in tensors, lists and tuples of them."""
    if isinstance(value, torch.Tensor):
        return [float(each) for each in value.detach().flatten()]
    return [number for each in value for number in numbers(each)] if isinstance(value, list | tuple) else [float(value)]  # type: ignore[arg-type]


def numbers_in(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?\d+\.?\d*", text)]


def test_the_demo_prints_what_the_readme_says() -> None:
    """The numbers are those of the whole corpus, the words are always the same."""
    text = README.read_text(encoding="utf-8")
    block = text[text.index("1. Data: 2,000") : text.index("   In [May DATE")]
    source = (SOURCES / "trelliswork/cli/story.py").read_text(encoding="utf-8")
    for heading in ("Results on the test part, in per cent", "One sentence, with the probability of each name"):
        assert heading in block and heading in source
    for title in ("most frequent tag of each word", "neural CRF", "accuracy  precision  recall     F1"):
        assert title in block and title in source
