"""CRFsuite's models and data, and CSV files, from the command line."""

from __future__ import annotations

import csv
import json
import random
import shutil
from math import exp
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Cli
from tests.data.test_crfsuite import DUMP
from trelliswork.data.corpus import builtin_corpus
from trelliswork.errors import TrellisworkError
from trelliswork.models import load_tagger
from trelliswork.models.storage import CONFIG, METRICS

DATA = "A-->B\tw\\:a b\nB\t-->:2.0\n\nB\t-->\t lead:0.5\n"


def is_one_sentence(answer: Answer, part: str) -> bool:
    return answer.status == 2 and answer.err.count("\n") == 1 and part in answer.err


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "model.txt"
    path.write_text(DUMP)
    return path


@pytest.fixture
def attributes(tmp_path: Path) -> Path:
    path = tmp_path / "data.crfsuite"
    path.write_text(DATA)
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the built-in corpus as a CSV file."""
    path = tmp_path_factory.mktemp("csv") / "ner.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Sentence #", "Word", "POS", "Tag"])
        for s, sentence in enumerate(builtin_corpus(sizes=(60, 1, 1))["train"], 1):
            for i, token in enumerate(zip(sentence.words, sentence.pos, sentence.entities, strict=True)):
                rows.writerow(["" if i else f"Sentence: {s}", *token])
    return path


def test_a_dump_becomes_a_model_that_tags(cli: Cli, dump: Path, attributes: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    answer = cli("convert", dump, "--out", out)
    assert answer.status == 0 and "2 labels, 3 attributes, 4 weights" in answer.out
    tagged = cli("tag", out, attributes, "--confidence", "--format", "jsonl")
    first, second = map(json.loads, tagged.out.splitlines())
    assert (first["tags"], second["tags"]) == (["A-->B", "B"], ["A-->B"])
    paths = {"AA": exp(0.194066), "AB": exp(0.194066 + 0.487814 - 2 * 0.097033), "BA": 1.0, "BB": exp(-2 * 0.097033)}
    z = sum(paths.values())
    sure = [(paths["AA"] + paths["AB"]) / z, (paths["AB"] + paths["BB"]) / z]
    assert first["confidences"] == pytest.approx(sure, abs=1e-5)
    assert second["attributes"] == [{"-->": 1.0, " lead": 0.5}]
    assert cli("evaluate", out, attributes).status == 0
    assert "--> -> B" in cli("info", out).out
    votes = cli("explain", out, attributes).out
    assert "+0.194  w:a b" in votes and "+0.488  previous tag = A-->B" in votes and "+0.500   lead" in votes
    assert is_one_sentence(cli("convert", dump, "--out", out), "holds a model already; add --force")
    assert cli("convert", dump, "--out", out, "--force").status == 0


def test_a_binary_model_tags_as_crfsuite_does(cli: Cli, tmp_path: Path) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = pycrfsuite.Trainer(verbose=False)
    data = [([["a", "x"], ["b"]], ["A", "B"]), ([["b"], ["c"], ["a"]], ["B", "C", "A"])] * 3
    for x, y in data:
        trainer.append(x, y)
    trainer.train(str(tmp_path / "model.crfsuite"))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "model.crfsuite"))
    file = tmp_path / "data.crfsuite"
    blocks = ["\n".join("\t".join([y, *x]) for x, y in zip(*each, strict=True)) for each in data]
    file.write_text("\n\n".join(blocks) + "\n")
    assert cli("convert", tmp_path / "model.crfsuite", "--out", tmp_path / "model").status == 0
    lines = cli("tag", tmp_path / "model", file, "--confidence", "--format", "jsonl").out.splitlines()
    for line, (x, _) in zip(map(json.loads, lines), data, strict=True):
        assert line["tags"] == theirs.tag(x)
        wanted = [theirs.marginal(y, i) for i, y in enumerate(line["tags"])]
        assert line["confidences"] == pytest.approx(wanted, abs=1e-5)
    theirs.close()


def test_training_from_crfsuites_data(cli: Cli, tmp_path: Path) -> None:
    file, out = tmp_path / "train.crfsuite", tmp_path / "model"
    file.write_text("B-X\tw=a\nI-X\tw=b\nO\tw=c\tlen:0.5\n\n" * 8)
    answer = cli("train", file, "--model", "crf", "--out", out)
    assert answer.status == 0 and "attributes as CRFsuite has them" in answer.err
    assert "overall      100.00" in cli("evaluate", out, file).out
    assert "CRFsuite has them, tags IOB2" in cli("check", file).out
    lines = tmp_path / "new.jsonl"
    lines.write_text('{"tokens": ["a", "b"], "attributes": [{"w=a": 1}, ["w=b"]]}\n')
    assert cli("tag", out, lines).status == 0
    (tmp_path / "template").write_text("U:%x[0,0]\n")
    refused = cli("train", file, "--model", "crf", "--template", tmp_path / "template", "--out", tmp_path / "m")
    assert refused.status == 2 and "leave the template out" in refused.err
    assert is_one_sentence(cli("train", file, "--model", "window", "--out", tmp_path / "m"), "add --model crf")


def test_files_that_do_not_fit_the_model(cli: Cli, dump: Path, attributes: Path, tmp_path: Path) -> None:
    out, model, words = tmp_path / "converted", tmp_path / "words", tmp_path / "words.conll"
    words.write_text("Ann B-X\nsings O\n\n" * 4)
    assert cli("train", words, "--model", "crf", "--out", model).status == 0
    assert cli("convert", dump, "--out", out).status == 0
    assert is_one_sentence(cli("tag", model, attributes), "got a CRFsuite file of attributes")
    (tmp_path / "words.jsonl").write_text('{"tokens": ["a"]}\n')
    assert is_one_sentence(cli("tag", out, tmp_path / "words.jsonl"), "words.jsonl:1: expected the attributes of 1")
    (tmp_path / "odd.jsonl").write_text('{"tokens": ["a"], "attributes": [{"x": null}]}\n')
    assert is_one_sentence(cli("tag", out, tmp_path / "odd.jsonl"), "odd.jsonl:1: sentence 1, token 1: expected text")
    (tmp_path / "bad.crfsuite").write_text("A\tx:y\n")
    assert is_one_sentence(cli("tag", out, tmp_path / "bad.crfsuite"), "bad.crfsuite:1:2: expected a finite number")
    assert is_one_sentence(cli("convert", attributes, "--out", tmp_path / "m"), "expected the dump of a CRFsuite model")
    assert is_one_sentence(cli("convert", tmp_path / "no", "--out", tmp_path / "m"), "no such file")
    assert not (tmp_path / "m").exists()


def test_a_csv_file_from_check_to_evaluate(cli: Cli, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "ner"
    shown = "CSV, 4 columns: sentence = 1 (Sentence #), word = 2 (Word), tag = 4 (Tag, IOB2), features = 3 (POS)"
    assert shown in cli("check", table).out
    trained = cli("train", table, "--dev", table, "--model", "crf", "--max-iterations", 20, "--out", out)
    assert trained.status == 0 and shown in trained.err
    assert "columns          word Word, tag Tag, features POS" in cli("info", out).out
    assert cli("evaluate", out, table).status == 0
    swapped = tmp_path / "new.csv"
    swapped.write_text("POS,Word\nNNP,Jordan\nVBD,smiled\n")
    conll = tmp_path / "new.conll"
    conll.write_text("Jordan NNP\nsmiled VBD\n")
    (tmp_path / "both.csv").write_text("Sentence #,Word,POS\n1,Jordan,NNP\n1,smiled,VBD\n")
    answers = [cli("tag", out, each).out for each in (swapped, tmp_path / "both.csv", conll)]
    tags = [[line.replace(",", " ").split()[-1] for line in text.splitlines()] for text in answers]
    assert tags[0] == tags[1] == ["Tag", *tags[2]] and len(tags[2]) == 2
    assert answers[0].startswith("POS,Word,Tag\nNNP,Jordan,") and answers[2].startswith("Jordan NNP ")
    swapped.write_text("Word\nJordan\n")
    assert is_one_sentence(cli("tag", out, swapped), "new.csv:1: expected a column 'POS' for the feature")
    (tmp_path / "bad.csv").write_text("Word,POS,Tag\nJordan,NNP\n")
    assert is_one_sentence(cli("check", tmp_path / "bad.csv"), "bad.csv:2:2: expected 3 columns, got 2")


def test_no_damage_to_a_model_is_a_traceback(cli: Cli, dump: Path, attributes: Path, tmp_path: Path) -> None:
    good, bad, rng = tmp_path / "good", tmp_path / "bad", random.Random(0)
    assert cli("convert", dump, "--out", good).status == 0
    shutil.copytree(good, bad)
    for file in sorted(good.iterdir()):
        content = file.read_bytes()
        for turn in range(40):
            damaged = bytearray(content)
            if turn % 4 == 3:
                damaged = damaged[: rng.randrange(len(content))]
            else:
                damaged[rng.randrange(len(content))] = rng.randrange(256)
            (bad / file.name).write_bytes(damaged)
            try:
                load_tagger(bad)
            except TrellisworkError as error:
                assert "\n" not in str(error)  # noqa: PT017
        (bad / file.name).write_bytes(content)


@pytest.mark.parametrize(
    ("file", "path", "value"),
    [
        (CONFIG, ["labels"], [1, 2]),
        (CONFIG, ["labels"], None),
        (CONFIG, ["data_scheme"], 3),
        (CONFIG, ["settings"], []),
        (CONFIG, ["settings", "c2"], "x"),
        (CONFIG, ["n_attributes"], -1),
        (METRICS, ["data"], 1),
        (METRICS, ["data", "format"], {"word_column": "2"}),
        (METRICS, ["data", "format"], {"word_column": 9, "names": ["a"]}),
        (METRICS, ["dev"], [1]),
        (METRICS, ["training"], {"settings": 1}),
    ],
)
def test_values_that_no_model_has(
    cli: Cli, dump: Path, attributes: Path, tmp_path: Path, file: str, path: list[str], value: object
) -> None:
    out = tmp_path / "model"
    assert cli("convert", dump, "--out", out).status == 0
    content = json.loads((out / file).read_text())
    holder = content
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    (out / file).write_text(json.dumps(content))
    for answer in (cli("info", out), cli("tag", out, attributes)):
        assert is_one_sentence(answer, "copy")
