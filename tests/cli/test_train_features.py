"""`train --model crf`, and the other commands on what it makes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.pages import check_page, sections
from trelliswork.models import FeatureTagger, load_tagger


@pytest.fixture(scope="module")
def chunker(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from trelliswork.cli.main import run

    folder = tmp_path_factory.mktemp("models") / "chunker"
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--model", "crf", "--tag-column", 3]
    assert run([*map(str, [*command, "--feature-columns", 2, "--out", folder, "--quiet"])]) == 0
    return folder


def test_a_template_and_an_algorithm(cli: Cli, data: Path, tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.write_text("# words\nU1:%x[0,0]\nU2:%x[-1,0]/%x[0,0]\nB\n")
    out = tmp_path / "ner"
    options = ["--model", "crf", "--template", template, "--algorithm", "perceptron", "--max-iterations", 3]
    answer = cli("train", data / "train.conll", "--out", out, "--feature-columns", "none", *options)
    assert answer.status == 0
    assert "iteration 3: loss" in answer.err
    assert "3 iterations" in answer.out and "overall" in answer.out
    tagger = load_tagger(out)
    assert isinstance(tagger, FeatureTagger)
    assert {name.split(":")[0] for name in tagger.names} == {"U1", "U2"}


def test_other_commands_take_it(cli: Cli, chunker: Path, data: Path) -> None:
    scores = cli("evaluate", chunker, data / "test.conll")
    assert scores.status == 0 and "overall" in scores.out
    tagged = cli("tag", chunker, data / "test.conll", "--confidence", "--top-k", 2)
    assert tagged.status == 0 and "# analysis 2 of 2" in tagged.out
    shown = cli("info", chunker, "--top-features", 3)
    assert "a linear-chain CRF over features" in shown.out and "strongest features" in shown.out
    record = json.loads(cli("info", chunker, "--json", "--top-features", 3).out)
    assert len(record["features"]) == 3


@pytest.mark.parametrize("model", ["logistic", "window"])
def test_sentences_with_rare_tags_are_left_out(cli: Cli, tmp_path: Path, model: str) -> None:
    train, dev = tmp_path / "train.conll", tmp_path / "dev.conll"
    train.write_text("a A\nb B\n\n" * 3 + "a A\nb RARE\nc RARER\n\n" + "b RARE\n\n" + "c OFTEN\n\n" * 3)
    dev.write_text("a A\nb B\n\n")
    length = ["--epochs", 1] if model == "window" else []
    command = ["train", train, "--dev", dev, "--model", model, *length]
    answer = cli(*command, "--min-tag-count", 3, "--out", tmp_path / "model")
    assert answer.status == 0, answer.err
    assert "left out of train: 2 sentences with a tag seen fewer than 3 times" in answer.err
    assert "train: 6 sentences, 9 tokens" in answer.err
    assert sorted(load_tagger(tmp_path / "model").labels.vocabulary.to_list()) == ["A", "B", "OFTEN"]
    assert "min_tag_count = 3" in (tmp_path / "model" / "config.toml").read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--min-tag-count", 0], "--min-tag-count must be at least 1; got 0"),
        (["--min-tag-count", 9], "expected sentences whose tags are seen at least 9 times, got none; lower"),
        (["--min-tag-count", 2, "--partial"], "needs one known tag for each token, got --partial; leave one out"),
    ],
)
def test_counts_of_tags_that_cannot_be(cli: Cli, tmp_path: Path, options: list[object], problem: str) -> None:
    (tmp_path / "train.conll").write_text("a A\nb B\n\n" * 4)
    answer = cli("train", tmp_path / "train.conll", "--model", "crf", "--out", tmp_path / "model", *options)
    assert answer.status != 0 and problem in answer.err and not (tmp_path / "model").exists()


def test_a_tag_that_training_lacked_counts_as_a_mistake(cli: Cli, tmp_path: Path) -> None:
    train, test = tmp_path / "train.conll", tmp_path / "test.conll"
    train.write_text("a B-X\nb O\n\n" * 4)
    test.write_text("a B-X\nb I-X\n")
    assert cli("train", train, "--model", "crf", "--out", tmp_path / "model").status == 0
    answer = cli("evaluate", tmp_path / "model", test)
    assert answer.status == 0 and "token accuracy           50.00" in answer.out
    test.write_text("a B-Y\nb O\n")
    assert "does not know the tag 'B-Y'" in cli("evaluate", tmp_path / "model", test).err


def test_explain_shows_the_votes(cli: Cli, chunker: Path, data: Path, tmp_path: Path) -> None:
    answer = cli("explain", chunker, data / "test.conll", "--limit", 2)
    assert answer.status == 0
    assert "%" in answer.out and "previous tag = " in answer.out and "U02:" not in answer.out
    assert re.search(r"[+-]\d\.\d{3}  suffix-\d = '", answer.out)
    page = tmp_path / "votes.html"
    assert cli("explain", chunker, data / "test.conll", "--html", page).status == 0
    check_page(text := page.read_text(encoding="utf-8"))
    assert text.count('<table class="votes">') == len(sections(text)) == 10 and "Legend:" in text
    assert f"<title>Votes of {chunker} on test.conll" in text


def test_explain_shows_the_words_that_a_network_decided_by(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    answer = cli("explain", model, data / "test.conll", "--feature-columns", "none", "--limit", 2)
    assert answer.status == 0
    assert re.search(r"[+-]\d+\.\d{3}  word = '", answer.out) and "best answers:" in answer.out
    page = tmp_path / "words.html"
    assert cli("explain", model, data / "test.conll", "--feature-columns", "none", "--html", page).status == 0
    check_page(text := page.read_text(encoding="utf-8"))
    assert f"<title>Words of {model} on test.conll" in text


def test_explanations_as_json(cli: Cli, chunker: Path, model: Path, data: Path, tmp_path: Path) -> None:
    for folder, options in ((chunker, []), (model, ["--feature-columns", "none"])):
        answer = cli("explain", folder, data / "test.conll", *options, "--limit", 2, "--json")
        records = [json.loads(line) for line in answer.out.splitlines()]
        assert answer.status == 0 and len(records) == 2
        for token in records[0]["votes"]:
            assert token["more"] == 0 and token["rival"] != token["label"]
            total = sum(vote["score"] for vote in token["votes"])
            assert total == pytest.approx(token["score"], abs=0.02 * (abs(total) + 5))
    both = cli("explain", model, data / "test.conll", "--json", "--html", tmp_path / "page.html")
    assert both.status == 2 and "leave one out" in both.err and not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--template", "{bad}"], "bad:1: expected a template that begins with U or B, got 'W:%x[0,0]'"),
        (["--template", "{missing}"], "no such file"),
        (
            ["--algorithm", "adam"],
            "algorithm must be one of lbfgs, sgd, perceptron, pa, arow, margin, herding; got 'adam'",
        ),
        (["--c2", "-1"], "c2 must be at least 0"),
        (["--template", "{far}"], "far:1: U:%x[0,7] asks for column 7; the data has"),
        (
            ["--features", "nowhere:f"],
            "feature function nowhere:f cannot be imported: there is no module 'nowhere'",
        ),
        (["--features", "nowhere"], "expected package.module:function, got 'nowhere'"),
        (["--hash-bits", "50"], "hash_bits must lie in 1..28; got 50"),
        (["--induce", "-1"], "induce must be at least 0; got -1"),
        (["--cutoff", "-1"], "cutoff must be at least 0; got -1"),
        (["--resume"], "--resume goes on with a network, and a CRF over features is trained in one go; leave it out"),
        (
            ["--seeds", "2"],
            "--seeds is for networks, and weights over features hardly depend on the seed; leave",
        ),
    ],
)
def test_bad_input(cli: Cli, data: Path, tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "bad").write_text("W:%x[0,0]\n")
    (tmp_path / "far").write_text("U:%x[0,7]\n")
    given = [option.format(**{name: tmp_path / name for name in ("bad", "missing", "far")}) for option in options]
    answer = cli("train", data / "train.conll", "--model", "crf", "--out", tmp_path / "out", *given)
    assert answer.status == 2 and message in answer.err
    assert not (tmp_path / "out").exists()


FUNCTION = """
def attributes(sentence):
    columns = zip(sentence.words, sentence.features[0])
    return [{"word": word, "ends": word[-2:], "column": column} for word, column in columns]
"""


def test_a_function_where_the_command_runs(
    cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_attributes.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    train = ["train", data / "train.conll", "--dev", data / "dev.conll", "--model", "crf", "--tag-column", 3]
    columns = ["--feature-columns", 2, "--out", tmp_path / "model"]
    answer = cli(*train, *columns, "--features", "my_attributes:attributes", "--max-iterations", 10, "--induce", 5)
    assert answer.status == 0
    assert "round 1 of 5: loss" in answer.err and "conjunction" in answer.err
    given = ["--features", "my_attributes:attributes"]
    refused = cli("tag", tmp_path / "model", data / "test.conll")
    assert refused.status == 2 and "add --features my_attributes:attributes" in refused.err
    for command in ("evaluate", "tag"):
        assert cli(command, tmp_path / "model", data / "test.conll", *given).status == 0
    assert "my_attributes:attributes" in cli("info", tmp_path / "model", *given).out
    explained = cli("explain", tmp_path / "model", data / "test.conll", "--limit", 2, *given)
    assert explained.status == 0 and "word:" in explained.out
    monkeypatch.delitem(sys.modules, "my_attributes")


def test_hashed_attributes_are_numbers(cli: Cli, data: Path, tmp_path: Path) -> None:
    options = ["--model", "crf", "--out", tmp_path / "model", "--hash-bits", 14, "--max-iterations", 10, "--cutoff", 2]
    assert cli("train", data / "train.conll", *options).status == 0
    assert "names are not kept" in cli("info", tmp_path / "model").out
    explained = cli("explain", tmp_path / "model", data / "test.conll", "--limit", 1)
    assert explained.status == 0 and "#" in explained.out and "names are not kept" in explained.err
