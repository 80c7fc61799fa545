"""Files come back byte for byte, with only what is predicted replaced or added."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.commands import predict
from trelliswork.data import Choices, Sentence, open_conll
from trelliswork.models import Tagger
from trelliswork.models.base import Answer, Model

SHARED = Path(__file__).parents[2].parent / "shared/data"
NASTY = (
    "# newdoc id = a\n# text = Du don't\n"
    "1-2\tDu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n1\tDe\tde\tADP\tX\tA=1|B=2\t0\troot\t_\t_\n"
    "2\tle\tle\tDET\t_\t_\t1\tdet\t_\tGloss=x|TagProb=0.1\n2.1\tempty\t_\t_\t_\t_\t_\t_\t1:x\t_\n"
    "3\tdon't\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n\n# only a comment\n\n# text = #tag\n1\t#tag\t_\tNOUN\t_\t_\t_\t_\t_\t_"
)


class Gold(Model):
    """A model that answers what it is told, in turn."""

    labels = None
    n_parameters = 0

    def __init__(self, tags: Iterator[Sequence[str]], conllu: bool = True, column: int = 4) -> None:
        self.tags = tags
        self.metrics = {"data": {"format": {"word_column": 2, "tag_column": column, "feature_columns": [],
                                            "conllu": conllu, "n_columns": 10}}}  # fmt: skip

    def predict(self, inputs: Sequence[Sentence], **asked: Any) -> list[Answer]:
        return [Answer(list(next(self.tags)), None, each.words) for each in inputs]


Whole = Callable[..., bytes]


@pytest.fixture
def gold_answers(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Whole:
    """What `predict` writes about a CoNLL-U file with a model that answers its own tags."""

    def written(path: Path, column: int = 4) -> bytes:
        tags = (sentence.tags or () for sentence in open_conll(path, Choices(tag_column=column))[1])
        monkeypatch.setattr(predict, "load_reader", lambda *_: Gold(tags, column=column))
        out = tmp_path / "out.conllu"
        assert cli("predict", "m", path, "--out", out) == (0, "", "")
        return out.read_bytes()

    return written


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\n\n# end\n"])
def test_a_nasty_file(gold_answers: Whole, tmp_path: Path, newline: str, bom: str, ending: str) -> None:
    path = tmp_path / "nasty.conllu"
    path.write_bytes((bom + NASTY + ending).replace("\n", newline).encode())
    assert gold_answers(path) == path.read_bytes()
    assert gold_answers(path, 5) == path.read_bytes()


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no corpora at {SHARED}")
def test_every_treebank_comes_back(gold_answers: Whole) -> None:
    files = sorted(SHARED.rglob("*.conllu"))
    assert files
    for path in files:
        assert gold_answers(path) == path.read_bytes(), path


@pytest.fixture(scope="module")
def pos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of the column UPOS."""
    from trelliswork.cli.main import run

    folder = tmp_path_factory.mktemp("pos")
    rows = ["1\tDe\t_\tADP", "2\tle\t_\tDET", "3\tdon't\t_\tVERB", "4\t#tag\t_\tNOUN"]
    block = "".join(row + "\t_" * 6 + "\n" for row in rows) + "\n"
    (folder / "a.conllu").write_text(block * 8)
    command = [
        "train",
        folder / "a.conllu",
        "--model",
        "crf",
        "--out",
        folder / "m",
        "--quiet",
        "--max-iterations",
        "9",
    ]
    assert run(list(map(str, command))) == 0
    return folder / "m"


def test_only_the_predicted_column_changes(cli: Cli, pos: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(NASTY.replace("\tADP", "\tXXX").replace("\tDET", "\tXXX"))
    assert cli("predict", pos, path).out == NASTY
    assert cli("predict", pos, path, "--format", "conll").out.startswith("De\tADP\nle\tDET\n")


def test_probabilities_are_entries_of_misc(cli: Cli, pos: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(NASTY)
    before, after = NASTY.split("\n"), cli("predict", pos, path, "--confidence").out.split("\n")
    assert [line.split("\t")[:9] for line in after] == [line.split("\t")[:9] for line in before]
    misc = [line.split("\t")[9] for line in after if "\t" in line]
    assert misc[0] == "SpaceAfter=No" and misc[3] == "_", "only words are tagged"
    assert misc[1].startswith("TagProb=0.") and misc[2].startswith("Gloss=x|TagProb=0.") and misc[2][-3:] != "0.1"


def test_tags_without_a_column_go_to_misc(cli: Cli, model: Path, tmp_path: Path) -> None:
    """The model was trained on other columns than those of CoNLL-U."""
    path = tmp_path / "a.conllu"
    path.write_text("1\tJordan\t_\tPROPN\t_\t_\t_\t_\t_\t_\n")
    assert cli("predict", model, path).out.startswith("1\tJordan\t_\tPROPN\t_\t_\t_\t_\t_\tTag=")
    assert cli("predict", model, path, "--tag-column", "XPOS").out.split("\t")[3] == "PROPN"


def tags_of(model: Path, *words: str) -> list[str]:
    return Tagger.load(model).tag(list(words))


CONLL = "\ufeff-DOCSTART- -X- -X- O\r\n\r\nJordan NNP  B-NP X\r\nsings VBZ B-VP X \r\n\r\n\r\nOslo NNP B-NP X"


def test_columns(cli: Cli, model: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "a.conll", tmp_path / "out.conll"
    path.write_bytes(CONLL.encode())
    assert cli("predict", model, path, "--out", out).status == 0
    first, second = tags_of(model, "Jordan", "sings"), tags_of(model, "Oslo")
    expected = CONLL.replace("B-NP X\r", f"B-NP {first[0]}\r").replace("B-VP X", f"B-VP {first[1]}")
    assert out.read_bytes().decode() == expected.removesuffix("X") + second[0]


def test_columns_that_are_not_there_are_added(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("Jordan\nsings\n\nOslo")
    tags = [*tags_of(model, "Jordan", "sings"), *tags_of(model, "Oslo")]
    assert cli("predict", model, path).out == f"Jordan\t{tags[0]}\nsings\t{tags[1]}\n\nOslo\t{tags[2]}"
    lines = cli("predict", model, path, "--confidence").out.split("\n")
    assert [len(line.split("\t")) for line in lines] == [4, 4, 1, 4]


CSV = '\ufeffid,Word,note,Tag\r\n1,Jordan,"a ""b"",\r\nc",X\r\n1,sings,,"X"\r\n\r\n2,"Oslo",;,X'


def test_csv(cli: Cli, model: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "out.csv"
    path.write_bytes(CSV.encode())
    assert cli("predict", model, path, "--out", out).status == 0
    tags = [*tags_of(model, "Jordan", "sings"), *tags_of(model, "Oslo")]
    expected = CSV.replace('c",X', f'c",{tags[0]}').replace('"X"', tags[1]).removesuffix("X") + tags[2]
    assert out.read_bytes().decode() == expected
    assert cli("predict", model, path, "--out", out, "--confidence").status == 0
    header, *rows = csv.reader(io.StringIO(out.read_bytes().decode("utf-8-sig"), newline=""))
    assert header == ["id", "Word", "note", "Tag", "tag_probability", "span_probability"]
    assert [len(row) for row in rows] == [6, 6, 0, 6] and rows[0][2] == 'a "b",\r\nc'


def test_csv_without_tags(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("word;x\nJordan;1\n")
    (tag,) = tags_of(model, "Jordan")
    assert cli("predict", model, path).out == f"word;x;tag\nJordan;1;{tag}\n"
    assert cli("predict", model, path, "--tag-column", "ner").out == f"word;x;ner\nJordan;1;{tag}\n"


def test_json_lines(cli: Cli, model: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    first, second = tags_of(model, "Jordan", "sings"), tags_of(model, "Oslo")
    text = '\ufeff { "id": 1.00,"tokens" :["Jordan", "\\u0073ings"], "tags":["a", "b"], "z": {} }'
    text += '\r\n\r\n{"tokens": ["Oslo"]}'
    path.write_bytes(text.encode())
    assert cli("predict", model, path, "--out", out).status == 0
    expected = text.replace('["a", "b"]', json.dumps(first)).removesuffix("}") + f', "tags": {json.dumps(second)}}}'
    assert out.read_bytes().decode() == expected
    found = json.loads(cli("predict", model, path, "--confidence", "--top-k", "2").out.splitlines()[-1])
    assert list(found) == ["tokens", "tags", "confidences", "spans", "analyses"]


def test_text_with_spans_comes_back_as_such(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = ["😀 Jordan visited Paris. Dr May Lincoln smiled.", "Oslo"]
    records = [{"text": text, "meta": {"n": 1.50}, "spans": []} for text in texts]
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    answer = cli("predict", model, path, "--confidence")
    found = [json.loads(line) for line in answer.out.splitlines()]
    assert [each["meta"] for each in found] == [each["meta"] for each in records] and "1.5}" in answer.out
    spans = [
        (text[span["start"] : span["end"]], span["label"])
        for text, each in zip(texts, found, strict=True)
        for span in each["spans"]
    ]
    expected = [
        (text[start:end], span.label)
        for text in texts
        for each in Tagger.load(model).predict(text)
        for span, (start, end) in zip(each.spans, each.span_offsets, strict=True)
    ]
    assert spans == expected and spans


def test_analyses_of_text_with_spans(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Jordan visited Paris. Dr May Lincoln smiled."}\n')
    found = json.loads(cli("predict", model, path, "--top-k", "2").out)
    assert [len(each) for each in found["analyses"]] == [2, 2], "two for each sentence"
    assert [span for each in found["analyses"] for span in each[0]["spans"]] == found["spans"]


def test_plain_tags_of_text_are_spans_of_words(cli: Cli, pos: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "De le"}\n')
    spans = json.loads(cli("predict", pos, path).out)["spans"]
    assert spans == [
        {"start": 0, "end": 2, "label": "ADP", "text": "De"},
        {"start": 3, "end": 5, "label": "DET", "text": "le"},
    ]


def test_several_analyses_are_blocks(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("word\nJordan\n")
    assert cli("predict", model, path, "--top-k", "2").out.startswith("# analysis 1 of 2: probability ")


def test_a_stream_is_kept(cli: Cli, model: Path, tmp_path: Path) -> None:
    """More sentences than one batch."""
    path = tmp_path / "long.conll"
    path.write_text("Jordan x\nsings y\n\n" * 3000)
    tags = tags_of(model, "Jordan", "sings")
    assert cli("predict", model, path).out == f"Jordan x {tags[0]}\nsings y {tags[1]}\n\n" * 3000
