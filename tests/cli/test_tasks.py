"""Models of several tasks on the command line, and models that no file of sentences fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import SMALL, Cli
from trelliswork.cli.main import run
from trelliswork.data import Sentence, VectorSequence, open_conll
from trelliswork.errors import ModelError
from trelliswork.models import MultiTagger, Tagger, VectorTagger, VectorTaggerConfig, load_tagger
from trelliswork.models.taggers.networks.tasks import task_names

TASKS = ["--model", "multi-task", "--tag-columns", "2,4", "--tasks", "pos,entity"]
QUICK = ["--epochs", "2", "--quiet", *SMALL]


@pytest.fixture(scope="module")
def both(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of parts of speech and entities."""
    out = tmp_path_factory.mktemp("tasks") / "both"
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--out", out, *TASKS, "--lr", "0.02", *QUICK]
    assert run([str(each) for each in command]) == 0
    return out


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads vectors."""
    out = tmp_path_factory.mktemp("vectors") / "letters"
    sequence = VectorSequence(torch.eye(3), ("a", "b", "a"))
    VectorTagger.from_data([sequence], VectorTaggerConfig(hidden=4, layers=1)).save(out)
    return out


def test_tags_are_columns_one_for_each_task(cli: Cli, both: Path, data: Path) -> None:
    tagger = load_tagger(both)
    assert isinstance(tagger, MultiTagger) and tagger.tasks == ("pos", "entity")
    sentences = list(open_conll(data / "test.conll")[1])
    expected = tagger.tag(sentences)
    answer = cli("tag", both, data / "test.conll")
    assert answer.status == 0, answer.err
    rows = [[line.split("\t") for line in block.splitlines()] for block in answer.out.strip().split("\n\n")]
    found = [{"pos": [row[1] for row in block], "entity": [row[3] for row in block]} for block in rows]
    assert found == expected
    assert [tuple(row[0] for row in block) for block in rows] == [sentence.words for sentence in sentences]
    chunks = [line.split("\t")[2] for line in (data / "test.conll").read_text().splitlines() if line]
    assert [row[2] for block in rows for row in block] == chunks, "what is not predicted stays"


def test_confidences_are_those_of_the_heads(cli: Cli, both: Path, data: Path) -> None:
    tagger = load_tagger(both)
    assert isinstance(tagger, MultiTagger)
    first = Sentence(next(open_conll(data / "test.conll")[1]).words)
    lines = cli("tag", both, data / "test.conll", "--confidence").out.split("\n\n")[0].splitlines()
    columns = list(zip(*(line.split("\t") for line in lines), strict=True))
    assert len(columns) == 8  # the four of the file, and two for each task
    for tag_column, sure, name in ((1, 4, "pos"), (3, 6, "entity")):
        found = tagger.heads[name].confidences([first])[0]
        assert list(columns[tag_column]) == found.tags
        assert [float(each) for each in columns[sure]] == pytest.approx(found.tokens, abs=1e-4)


def test_json_has_the_layout_that_is_learned_from(cli: Cli, both: Path, text_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "tagged.jsonl"
    assert cli("tag", both, text_file, "--text", "--format", "jsonl", "--top-k", "2", "--out", out).status == 0
    record = json.loads(out.read_text().splitlines()[0])
    assert (
        record["features"] == [record["tasks"]["pos"]["tags"]] and record["tags"] == record["tasks"]["entity"]["tags"]
    )
    assert len(record["tasks"]["pos"]["analyses"]) == 2
    scored = cli("evaluate", both, out)
    assert scored.status == 0 and scored.out.count("token accuracy          100.00") == 2


def test_analyses_and_text_name_the_task(cli: Cli, both: Path, text_file: Path) -> None:
    listed = cli("tag", both, text_file, "--text", "--top-k", "2").out
    assert "# pos, analysis 1 of 2: probability" in listed and "# entity, analysis 2 of 2" in listed
    lines = cli("tag", both, text_file, "--text", "--format", "pretty").out.splitlines()
    assert [line.split()[0] for line in lines] == ["pos", "entity"] * 2


def test_every_task_has_a_table(cli: Cli, both: Path, data: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    answer = cli("evaluate", both, data / "test.conll", "--json", scores)
    assert answer.status == 0, answer.err
    assert "pos:\n" in answer.out and "entity:\n" in answer.out and answer.out.count("token accuracy") == 2
    found = json.loads(scores.read_text())["tasks"]
    assert "conlleval" in found["entity"] and "conlleval" not in found["pos"]
    tagger = load_tagger(both)
    assert isinstance(tagger, MultiTagger)
    gold = [Sentence(each.words, each.features[0]) for each in open_conll(data / "test.conll")[1]]
    assert found["pos"]["accuracy"] == tagger.heads["pos"].evaluate(gold)["accuracy"]


def test_the_model_is_shown_with_its_tasks(cli: Cli, both: Path) -> None:
    shown = cli("info", both).out
    assert "an LSTM from both ends under a linear-chain CRF for each of pos, entity" in shown
    assert "tags of pos" in shown and "tasks.entity.f1" in shown
    record = json.loads(cli("info", both, "--json").out)
    assert record["tasks"]["entity"]["scheme"] == "IOB2" and record["tasks"]["pos"]["scheme"] == "plain"


def test_settings_of_tasks_make_the_same_model_again(cli: Cli, both: Path, tmp_path: Path) -> None:
    assert cli("train", both / "config.toml", "--out", tmp_path / "again", "--quiet").status == 0
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (both, tmp_path / "again")]
    assert weights[0] == weights[1]


def test_csv_names_the_tasks(cli: Cli, data: Path, tmp_path: Path) -> None:
    rows = []
    for i, sentence in enumerate(open_conll(data / "dev.conll")[1]):
        tokens = zip(sentence.words, sentence.features[0], sentence.tags or (), strict=True)
        rows += [f'{i},"{word}","{pos}",{tag}' for word, pos, tag in tokens if '"' not in word]
    file, words = tmp_path / "dev.csv", tmp_path / "words.csv"
    file.write_text("sentence,word,pos,entity\n" + "\n".join(rows) + "\n")
    words.write_text("sentence,word\n1,Jordan\n1,sings\n")
    trained = cli("train", file, "--model", "multi-task", "--out", tmp_path / "m", *QUICK)
    assert trained.status == 0 and "pos:" in trained.out, trained.err
    tagger = load_tagger(tmp_path / "m")
    assert isinstance(tagger, MultiTagger) and tagger.tasks == ("pos", "entity")
    assert "entity:" in cli("evaluate", tmp_path / "m", file).out
    tagged = cli("tag", tmp_path / "m", words)
    assert tagged.status == 0 and tagged.out.splitlines()[0] == "sentence,word,pos,entity"
    assert [len(row.split(",")) for row in tagged.out.splitlines()] == [4, 4, 4]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--tag-columns", "2,3"], "--tag-columns needs --model multi-task, got --model crf; add it"),
        (["--tasks", "a,b"], "--tasks needs --model multi-task"),
        (["--model", "multi-task", "--tag-columns", "2"], "must be two different columns or more, such as 2,3; got 2"),
        (
            ["--model", "multi-task", "--tag-columns", "2,x"],
            "expected the number of the tag column, got 'x'; the columns have no names",
        ),
        (["--model", "multi-task", "--tag-columns", "2,9"], "expected the tag column in 1..4, got 9"),
        (["--model", "multi-task", "--tag-columns", "2,3", "--tag-column", "4"], "leave out --tag-column"),
        (["--model", "multi-task", "--scheme", "IOB2"], "--scheme is for one column of tags"),
        (["--model", "multi-task", "--tasks", "a,b"], "--tasks must be 3 different names"),
        (["--model", "multi-task", "--feature-columns", "none"], "needs two columns of tags or more, got one"),
    ],
)
def test_wrong_columns_are_one_sentence(
    cli: Cli, data: Path, tmp_path: Path, options: list[str], sentence: str
) -> None:
    answer = cli("train", data / "dev.conll", "--out", tmp_path / "m", *options, "--quiet")
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert sentence in answer.err
    assert not (tmp_path / "m").exists()


def test_pins_need_one_task(cli: Cli, both: Path, text_file: Path) -> None:
    answer = cli("tag", both, text_file, "--text", "--pin", "1=O")
    assert answer.status == 2 and "--pin is for models of one task" in answer.err


def test_tasks_are_named_by_their_columns() -> None:
    from trelliswork.data import ColumnFormat

    sentences = [Sentence(("Ann",), ("B-NP",), (("NNP",),))]
    assert task_names(None, None, sentences) == ("features-1", "tags")
    format = ColumnFormat("\t", 3, 1, 3, (2,))
    assert task_names(None, format, sentences) == ("column-2", "column-3")
    conllu = ColumnFormat("\t", 10, 2, 5, (4,), conllu=True)
    assert task_names(None, conllu, sentences) == ("upos", "xpos")


@pytest.mark.parametrize("command", ["tag", "evaluate"])
def test_a_model_of_vectors_is_for_python(cli: Cli, letters: Path, text_file: Path, command: str) -> None:
    answer = cli(command, letters, text_file)
    assert answer.status == 2
    assert "got one that reads vectors; use it from Python: VectorTagger.load(" in answer.err


def test_a_model_of_vectors_is_shown(cli: Cli, letters: Path) -> None:
    assert isinstance(load_tagger(letters), VectorTagger)
    assert "a deep network over vectors of 3 numbers" in cli("info", letters).out
    assert json.loads(cli("info", letters, "--json").out)["labels"] == ["a", "b"]


def test_what_is_no_tagger_of_sentences_says_how_to_load_it(both: Path, letters: Path) -> None:
    with pytest.raises(ModelError, match=r"got a MultiTagger; use trelliswork\.load or MultiTagger\.load"):
        Tagger.from_pretrained(both)
    with pytest.raises(ModelError, match="got a VectorTagger"):
        Tagger.from_pretrained(letters)
