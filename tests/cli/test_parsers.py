"""Dependency parsers on the command line: the same commands as for taggers, which know nothing of trees."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.treebanks import conllu, patterns
from tests.models.table_parser import TableParser
from trelliswork.cli.answering import Question, answers
from trelliswork.cli.inputs import open_new
from trelliswork.cli.main import run
from trelliswork.cli.report.evaluation import report_from_text
from trelliswork.cli.writing_answers import Inputs, writer_for
from trelliswork.data import Choices, Sentence, Vocabulary, read_treebank
from trelliswork.data.kept_lines import KeptLines
from trelliswork.models import load
from trelliswork.models.base import Answer, PartProbability, arc_columns
from trelliswork.models.catalogue import ENTRIES
from trelliswork.reading import read_bytes
from trelliswork.text import Token, read_documents

TABLE = replace(
    ENTRIES["biaffine"],
    home="tests.models.table_parser:TableParser",
    settings="tests.models.table_parser:TableConfig",
    recipe="tests.models.table_parser:TableRecipe",
)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.conllu, dev.conllu."""
    folder, every = tmp_path_factory.mktemp("trees"), list(patterns())
    (folder / "train.conllu").write_text(conllu(every[:40]), encoding="utf-8")
    (folder / "dev.conllu").write_text(conllu(every[40:]), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def table_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What --model biaffine trains is a table of pairs of words."""
    monkeypatch.setitem(ENTRIES, "biaffine", TABLE)


@pytest.fixture(scope="module")
def parser(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained parser with its tokeniser."""
    folder = tmp_path_factory.mktemp("parsers") / "en"
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(ENTRIES, "biaffine", TABLE)
        command = ["train", bank / "train.conllu", "--dev", bank / "dev.conllu", "--out", folder, "--quiet"]
        assert run([*map(str, command)]) == 0
    return folder


def test_train_describes_the_trees_and_keeps_a_tokeniser(cli: Cli, bank: Path, tmp_path: Path) -> None:
    answer = cli("train", bank / "train.conllu", "--dev", bank / "dev.conllu", "--out", tmp_path / "m")
    assert answer.status == 0, answer.err
    told = "train: 40 sentences, 220 words, 7 labels; all trees are projective; dev: 14 sentences"
    assert told in answer.err and "tokeniser: learned from" in answer.err
    assert "LAS" in answer.out and "distance of head" in answer.out
    model: Any = load(tmp_path / "m")
    assert isinstance(model, TableParser) and (tmp_path / "m" / "tokeniser" / "config.json").exists()
    about = model.metrics["data"]
    assert (about["train"], about["train_sentences"], about["train_tokens"]) == ("train.conllu", 40, 220)
    assert about["format"]["conllu"] and about["format"]["tag_column"] == 8


def test_without_a_dev_file_the_last_part_is_held_out(cli: Cli, bank: Path, tmp_path: Path) -> None:
    answer = cli("train", bank / "train.conllu", "--out", tmp_path / "m", "--tokeniser", "rules")
    assert answer.status == 0 and "dev: the last 4 of the sentences (10%)" in answer.err


def test_trees_that_are_not_projective_and_missing_labels_are_told(cli: Cli, tmp_path: Path) -> None:
    rows = [("a", "X", 3, "_"), ("b", "X", 0, "_"), ("c", "X", 2, "_"), ("d", "X", 3, "_")]
    (tmp_path / "t.conllu").write_text(conllu([rows] * 4), encoding="utf-8")
    command = ("train", tmp_path / "t.conllu", "--out", tmp_path / "m", "--tokeniser", "rules")
    answer = cli(*command, "--quiet")
    assert answer.status == 0
    assert "note: the treebank has no labels (column 8 is _ throughout); the parser learns heads alone" in answer.err
    assert "3 trees (100.0%) are not projective" in cli(*command, "--force").err
    some = [[*rows[:3], ("d", "X", 3, "dep")]] * 4
    (tmp_path / "t.conllu").write_text(conllu(some), encoding="utf-8")
    place = f"{tmp_path / 't.conllu'}:4"
    assert (
        f"note: 9 words without a label, the first at {place}; _ is learned as a label" in cli(*command, "--force").err
    )


def test_columns_are_read_and_may_be_predicted(cli: Cli, bank: Path, tmp_path: Path) -> None:
    command = ("train", bank / "train.conllu", "--dev", bank / "dev.conllu", "--tokeniser", "rules")
    answer = cli(*command, "--feature-columns", "UPOS", "--out", tmp_path / "m")
    assert answer.status == 0 and "note: the model reads column UPOS in addition to the words" in answer.err
    model: Any = load(tmp_path / "m")
    assert model.n_columns == 1 and "Ann/PROPN" in model.words
    answer = cli(*command, "--feature-columns", "UPOS", "--predict-columns", "--out", tmp_path / "n")
    assert answer.status == 0 and (tmp_path / "n" / "columns").is_dir()


def test_what_is_no_treebank_is_refused(cli: Cli, bank: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"tokens": ["a"], "tags": ["X"]}\n')
    answer = cli("train", tmp_path / "t.jsonl", "--model", "biaffine", "--out", tmp_path / "m")
    assert answer.status == 2 and "expected a treebank in CoNLL-U, with heads and labels, got JSON" in answer.err
    answer = cli("train", bank / "train.conllu", "--model", "biaffine", "--tag-column", "UPOS", "--out", tmp_path / "m")
    assert answer.status == 2 and "--tag-column is for taggers" in answer.err
    broken = conllu(list(patterns())[:3]).replace("\t0\troot\t", "\t_\t_\t", 1)
    (tmp_path / "t.conllu").write_text(broken, encoding="utf-8")
    answer = cli("train", tmp_path / "t.conllu", "--out", tmp_path / "m")
    assert answer.status == 2 and ":5: sentence s1: expected the head of 'sees' in column 7, got _" in answer.err
    assert not (tmp_path / "m" / "config.json").exists()


# Predicting


def cells(text: str) -> list[list[str]]:
    """The columns of the lines of words."""
    return [line.split("\t") for line in text.splitlines() if line[:1].isdigit() and line.partition("\t")[0].isdigit()]


@pytest.fixture
def new(bank: Path, tmp_path: Path) -> Path:
    """The dev sentences without what a parser finds."""
    path = tmp_path / "new.conllu"
    rows = [line.split("\t") for line in (bank / "dev.conllu").read_text(encoding="utf-8").split("\n")]
    for row in rows:
        if row[0].isdigit():
            row[6] = row[7] = "_"
    path.write_text("\n".join(map("\t".join, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_conllu_comes_back_with_heads_and_labels_and_all_else_as_it_was(
    cli: Cli, parser: Path, new: Path, tmp_path: Path, ending: str
) -> None:
    text = new.read_text(encoding="utf-8").replace("\n", ending)
    new.write_bytes(text.encode())
    assert cli("predict", parser, new, "--out", tmp_path / "out.conllu").status == 0
    written = (tmp_path / "out.conllu").read_bytes().decode()
    before, after = ([line.split("\t") for line in each.split(ending)] for each in (text, written))
    assert len(before) == len(after)
    words = [(a, b) for a, b in zip(before, after, strict=True) if a[0].isdigit()]
    assert all(a == b for a, b in zip(before, after, strict=True) if not a[0].isdigit())
    kept = [0, 1, 2, 4, 5, 8, 9]
    assert all([a[i] for i in kept] == [b[i] for i in kept] for a, b in words)
    found = load(parser).predict([[row[1] for row in rows] for rows in _sentences(after)])
    assert [(int(b[6]), b[7]) for _, b in words] == [arc for answer in found for arc in answer.value]


def _sentences(rows: list[list[str]]) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for row in rows:
        if row[0] == "1":
            found.append([])
        if row[0].isdigit():
            found[-1].append(row)
    return found


def test_probabilities_are_entries_of_misc(cli: Cli, parser: Path, new: Path) -> None:
    rows = cells(cli("predict", parser, new, "--confidence").out)
    answers = load(parser).predict([[row[1] for row in rows] for rows in _sentences(rows)])
    expected = [
        f"HeadProb={part.head_probability:.4f}|ArcProb={part.probability:.4f}"
        for answer in answers for part in answer.parts
    ]  # fmt: skip
    assert [row[9].removeprefix("SpaceAfter=No|").removeprefix("Gloss=x|") for row in rows] == expected
    assert any(row[9].startswith("SpaceAfter=No|HeadProb=") for row in rows)


def test_the_best_trees_are_blocks_of_conllu(cli: Cli, parser: Path, new: Path, tmp_path: Path) -> None:
    out = cli("predict", parser, new, "--top-k", "3").out
    blocks = out.split("\n\n")[:-1]
    assert len(blocks) == 3 * 14
    assert [block.split("# analysis = ")[1].splitlines()[0] for block in blocks[:3]] == ["1 of 3", "2 of 3", "3 of 3"]
    shares = [float(block.split("# probability = ")[1].splitlines()[0]) for block in blocks[:3]]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0
    assert all(block.count("# sent_id = ") == 1 for block in blocks) and blocks[0].startswith("# newdoc id = d\n")
    assert "4-4.1" not in out and blocks[1].count("\n4.1\t") == blocks[0].count("\n4.1\t")
    (tmp_path / "new.txt").write_text("Ann sees the dog.\n", encoding="utf-8")
    raw = cli("predict", parser, tmp_path / "new.txt", "--text", "--top-k", "2").out
    assert raw.count("# analysis = ") == 2 and raw.count("# text = Ann sees the dog.") == 2


def test_raw_text_becomes_conllu(cli: Cli, parser: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("Ann don't likes cat! Bob sees the sea.\n", encoding="utf-8")
    out = cli("predict", parser, tmp_path / "new.txt", "--text").out
    assert out.startswith("# sent_id = 1\n# text = Ann don't likes cat!\n1\tAnn\t_\tPROPN\t_\t_\t")
    assert "\n2-3\tdon't\t" in out and "\t_\tSpaceAfter=No\n" in out
    rows = cells(out)
    assert [row[1] for row in rows][:6] == ["Ann", "do", "n't", "likes", "cat", "!"]
    assert [row[7] for row in rows].count("root") == 2


def test_pins_decode_around_what_is_known(cli: Cli, parser: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("Ann sees the dog .\nBob hears the cat .\n", encoding="utf-8")
    command = ("predict", parser, tmp_path / "new.txt", "--pretokenised")
    rows = cells(cli(*command, "--pin", "1=0", "--pin", "2:4=1:det").out)
    assert rows[0][6] == rows[5][6] == "0" and rows[8][6:8] == ["1", "det"] and rows[3][6:8] != ["1", "det"]
    assert {row[7] for row in cells(cli(*command, "--pin", "3=_:obj").out)[2::5]} == {"obj"}
    wrong = {
        ("1=9",): "--pin 1=9: expected a head in 0..5, as the sentence has 5 words; got 9",
        ("1=2:foo",): "--pin 1=2:foo: expected one of the labels",
        ("1=x",): "--pin 1=x: expected HEAD, HEAD:LABEL or _:LABEL",
        ("1=0", "2=0"): "new.txt:1: no analysis agrees with the pins 1=0, 2=0; drop one of them",
    }
    for pins, told in wrong.items():
        answer = cli(*command, *(part for pin in pins for part in ("--pin", pin)))
        assert answer.status == 2 and told in answer.err


def test_json_csv_and_columns(cli: Cli, parser: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("Ann sees the dog .\n", encoding="utf-8")
    command = ("predict", parser, tmp_path / "new.txt", "--pretokenised", "--confidence")
    record = json.loads(cli(*command, "--format", "jsonl", "--top-k", "2").out)
    answer = load(parser).predict([["Ann", "sees", "the", "dog", "."]])[0]
    assert list(zip(record["heads"], record["labels"], strict=True)) == answer.value
    assert record["arc_probabilities"] == [round(part.probability, 6) for part in answer.parts]
    assert record["probability"] == round(answer.probability or 0, 6) and len(record["analyses"]) == 2
    assert record["upos"][0] == "PROPN" and set(record["analyses"][0]) == {"probability", "heads", "labels"}
    lines = cli(*command, "--format", "csv").out.splitlines()
    assert lines[0] == "sentence,word,upos,head,deprel,head_probability,arc_probability" and len(lines) == 6
    columns = [line.split("\t") for line in cli(*command, "--format", "conll").out.splitlines()[:5]]
    assert [(int(row[2]), row[3]) for row in columns] == answer.value and len(columns[0]) == 6


def test_records_and_tables_come_back_with_trees(cli: Cli, parser: Path, tmp_path: Path) -> None:
    records = tmp_path / "new.jsonl"
    records.write_text('{"id": 7.0, "tokens": ["Ann", "sees"]}\n{"text": "Ann sees. Bob hears."}\n', encoding="utf-8")
    first, second = cli("predict", parser, records).out.splitlines()
    assert (
        first.startswith('{"id": 7.0, "tokens": ["Ann", "sees"], "heads": [') and len(json.loads(first)["labels"]) == 2
    )
    assert [each["tokens"][0] for each in json.loads(second)["sentences"]][:1] == ["Ann"]
    table = tmp_path / "new.csv"
    table.write_text("sentence,word,HEAD\n1,Ann,\n1,sees,\n", encoding="utf-8")
    lines = cli("predict", parser, table).out.splitlines()
    assert lines[0] == "sentence,word,HEAD,upos,deprel" and all(line.count(",") == 4 for line in lines)
    plain = tmp_path / "new.conll"
    plain.write_text("Ann\nsees\n", encoding="utf-8")
    assert [len(line.split("\t")) for line in cli("predict", parser, plain).out.splitlines()] == [4, 4]


def test_trees_for_people(cli: Cli, parser: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("Ann sees the dog .\n", encoding="utf-8")
    command = (
        "predict",
        parser,
        tmp_path / "new.txt",
        "--pretokenised",
        "--confidence",
        "--pin",
        "2=0",
        "--pin",
        "4=2",
    )
    shown = cli(*command, "--pin", "1=2", "--pin", "3=4", "--pin", "5=2", "--format", "pretty").out.splitlines()
    assert [line[:8] for line in shown[:5]] == ["  ╭───╴ ", "╶─┼───╴ ", "  │ ╭─╴ ", "  ├─┴─╴ ", "  ╰───╴ "]
    assert shown[0][8:].startswith("Ann   ") and "%" in shown[0]
    assert "  1. " in cli(*command, "--format", "pretty", "--top-k", "2").out
    page = cli(*command, "--format", "html", "--top-k", "2").out
    assert page.count("<svg") == 2 and page.count("<li>") == 2 and "new.txt, parsed" in page


def test_ids_that_heads_cannot_name_are_refused(cli: Cli, parser: Path, new: Path) -> None:
    new.write_text(new.read_text(encoding="utf-8").replace("\n2\t", "\n3\t", 1), encoding="utf-8")
    answer = cli("predict", parser, new)
    assert answer.status == 2 and "expected word 2, got the id '3'; number the words" in answer.err


# Judging


def test_evaluate_gold_words(cli: Cli, parser: Path, bank: Path, tmp_path: Path) -> None:
    answer = cli("evaluate", parser, bank / "dev.conllu", "--json", tmp_path / "s.json", "--html", tmp_path / "s.html")
    assert answer.status == 0 and "14 sentences, 77 tokens" in answer.out
    scores = json.loads((tmp_path / "s.json").read_text())
    trees = read_treebank(bank / "dev.conllu")[1]
    expected = load(parser).evaluate(trees)
    assert scores["las"] == expected["las"] and scores["uas"] == expected["uas"] > 0.5
    assert f"LAS{'':21}{100 * expected['las']:6.2f}" in answer.out and "calibration error" in answer.out
    page = (tmp_path / "s.html").read_text()
    assert "Arcs by label" in page and "What was taken for what" in page
    assert "A - B" in cli("evaluate", parser, bank / "dev.conllu", "--against", parser).out


def test_a_label_never_seen_is_a_mistake(cli: Cli, parser: Path, bank: Path, tmp_path: Path) -> None:
    text = (bank / "dev.conllu").read_text(encoding="utf-8").replace("\troot\t", "\tROOT\t")
    (tmp_path / "odd.conllu").write_text(text, encoding="utf-8")
    answer = cli("evaluate", parser, tmp_path / "odd.conllu")
    assert answer.status == 0 and "ROOT" in answer.out
    (tmp_path / "odd.conllu").write_text(text.replace("\t0\tROOT", "\t_\t_", 1), encoding="utf-8")
    answer = cli("evaluate", parser, tmp_path / "odd.conllu")
    assert answer.status == 2 and "sentence s1: expected the head of" in answer.err


class GoldTokens:
    """A tokeniser that cuts as the treebank does."""

    def __init__(self, file: Path) -> None:
        self.found = {document.text: document.sentences for document in read_documents(file)}

    def tokenise(self, text: str) -> list[list[Token]]:
        return list(map(list, self.found[text]))


def test_evaluate_from_text(cli: Cli, parser: Path, bank: Path, tmp_path: Path) -> None:
    answer = cli("evaluate", parser, bank / "dev.conllu", "--from-text", "--json", tmp_path / "s.json")
    assert answer.status == 0
    shown = [line.split("  ")[0] for line in answer.out.splitlines()[3:]]
    assert shown == ["tokens", "sentences", "words", "UPOS", "UAS", "LAS", "LAS, no subtypes", "CLAS"]
    assert 0 < json.loads((tmp_path / "s.json").read_text())["LAS"] <= 1


def test_with_gold_tokens_scores_from_text_are_those_of_gold_words(parser: Path, bank: Path) -> None:
    model: Any = load(parser)
    model.tokeniser = GoldTokens(bank / "dev.conllu")
    trees = read_treebank(bank / "dev.conllu")[1]
    found, expected = report_from_text(model, [str(bank / "dev.conllu")], trees, 8).record, model.report(trees).record
    assert found["tokens"] == found["words"] == found["sentences"] == 1
    assert (found["UAS"], found["LAS"], found["CLAS"]) == (expected["uas"], expected["las"], expected["clas"])


def test_from_text_needs_conllu(cli: Cli, model: Path, data: Path) -> None:
    answer = cli("evaluate", model, data / "dev.conll", "--from-text")
    assert answer.status == 2 and "--from-text needs CoNLL-U" in answer.err


# Looking at data and models


def test_check_counts_trees_and_lists_what_is_none(cli: Cli, bank: Path, tmp_path: Path) -> None:
    answer = cli("check", bank / "train.conllu", bank / "dev.conllu", "--strict")
    assert answer.status == 0 and "  trees      40, 0 (0.0%) not projective; deepest 3 (line 4)" in answer.out
    assert "word = 2, tag = 4 (plain), head = 7, label = 8" in answer.out
    assert "  labels     7: nsubj 40," in answer.out and "sentences that are not trees: none" in answer.out
    text = (bank / "train.conllu").read_text(encoding="utf-8")
    (tmp_path / "t.conllu").write_text(text.replace("\t2\tnsubj\t", "\t0\tnsubj\t", 1), encoding="utf-8")
    answer = cli("check", tmp_path / "t.conllu")
    assert answer.status == 0 and "sentences that are not trees: 1" in answer.out
    assert (
        f"{tmp_path / 't.conllu'}:5: sentence s1: expected one word with head 0, got 2: 1 'Ann', 2 'sees'" in answer.out
    )
    assert cli("check", tmp_path / "t.conllu", "--strict").status == 1


def test_check_says_nothing_of_trees_where_there_are_none(cli: Cli, new: Path, data: Path) -> None:
    assert "trees" not in cli("check", new, "--strict").out and "trees" not in cli("check", data / "dev.conll").out


def test_explain_shows_other_heads(cli: Cli, parser: Path, new: Path, tmp_path: Path) -> None:
    answer = cli("explain", parser, new, "--limit", "1")
    model: Any = load(parser)
    words = [row[1] for row in _sentences(cells(new.read_text(encoding="utf-8")))[0]]
    trees = model._trees([Sentence(tuple(words))], None)
    heads = trees.arc_marginals[0].detach()
    lines = answer.out.splitlines()
    first = next(line for line in lines if line.startswith("  1 "))
    chosen = model.predict([words])[0].value[0]
    assert f"{chosen[1]} of {chosen[0]} {words[chosen[0] - 1]}" in first and len(lines) > len(words)
    assert f"{100 * float(heads[chosen[0], 1]):5.1f}%" in first
    assert cli("explain", parser, new, "--html", tmp_path / "e.html").status == 0
    page = (tmp_path / "e.html").read_text()
    assert page.count('<table class="arcs">') == 10 and "Heads of " in page and "(root)" in page


def test_info_export_and_tune(cli: Cli, parser: Path, bank: Path, tmp_path: Path) -> None:
    info = cli("info", parser).out
    assert (
        "a parser by pairs of words" in info and "plain text" in info and "word FORM, head HEAD, label DEPREL" in info
    )
    answer = cli("export", parser, tmp_path / "onnx", "--onnx")
    assert answer.status == 2 and "got a TableParser; train one, say --model window" in answer.err
    assert cli("export", parser, tmp_path / "python", "--python").status == 2
    pytest.importorskip("optuna")
    command = ("tune", bank / "train.conllu", "--dev", bank / "dev.conllu", "--out", tmp_path / "s")
    answer = cli(*command, "--trials", "2", "--epochs", "2", "--quiet")
    assert answer.status == 0, answer.err
    assert isinstance(load(tmp_path / "s" / "best"), TableParser)


TREEBANKS = sorted((Path(__file__).parents[2].parent / "shared/data").glob("*/*.conllu*"))


@pytest.mark.parametrize("sure", [False, True])
@pytest.mark.parametrize("file", TREEBANKS or [None], ids=lambda file: "none" if file is None else file.name)
def test_real_treebanks_come_back_but_for_what_is_predicted(tmp_path: Path, file: Path | None, sure: bool) -> None:
    """Byte for byte: comments, tokens of several words, empty nodes, enhanced dependencies, all other columns.

    With probabilities, these come last in MISC.
    """
    if file is None:
        pytest.skip("no treebanks beside the project")
    plain = tmp_path / "given.conllu"
    text = read_bytes(file).decode()
    if file.suffix == ".gz":
        text = "".join(block + "\n\n" for block in text.split("\n\n")[:2000])
    plain.write_bytes(text.encode())
    model, written = FlatParser(), []
    inputs = Inputs(str(plain), "conll", Choices(numbered=True), KeptLines())
    inputs.format, sentences = open_new(str(plain), "conll", inputs.choices, inputs.kept.keep)  # type: ignore[union-attr]
    writer = writer_for(None, inputs, model, 0, sys.stdout)
    for sentence, answer in answers(model, sentences, Question(confidence=sure)):
        written.append(writer.write(sentence, answer))
    after = "".join([*written, writer.end()])
    before_rows, after_rows = ([line.split("\t") for line in each.split("\n")] for each in (text, after))
    for before, found in zip(before_rows, after_rows, strict=True):
        if before[0].isdigit():
            wanted = [*before[:6], "0" if before[0] == "1" else "1", f"l{before[0]}", *before[8:]]
            if sure:
                wanted[9] = f"{'' if before[9] == '_' else before[9] + '|'}HeadProb=0.5000|ArcProb=0.2500"
            assert found == wanted
        else:
            assert found == before


class FlatParser(TableParser):
    """All words depend on the first."""

    def __init__(self) -> None:
        super().__init__(Vocabulary([]), Vocabulary([]), {})

    def predict(self, inputs: Any, *, top_k: int = 1, pins: Any = None, confidence: bool = True) -> list[Answer]:
        trees = [[(min(i, 1), f"l{i + 1}") for i in range(len(each))] for each in inputs]
        parts = [
            [PartProbability(i, i + 1, label, 0.25, head, 0.5) for i, (head, label) in enumerate(tree)]
            for tree in trees if confidence
        ]  # fmt: skip
        return [
            Answer(tree, None, columns=arc_columns(tree), parts=parts[i] if confidence else ())
            for i, tree in enumerate(trees)
        ]
