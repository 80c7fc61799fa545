"""`predict --text` and the same in Python: words are found, and every answer says where they are."""

from __future__ import annotations

import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.errors import TrellisworkError
from trelliswork.models import Tagger
from trelliswork.text import OFFSETS

TEXT = "Jordan visited Paris, 😀 e\u0301vora.\nשלום Dr May Lincoln!\n\nOslo (again)."


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def cut(text: str, start: int, end: int, unit: str) -> str:
    if unit == "code-points":
        return text[start:end]
    code, width = ("utf-16-le", 2) if unit == "utf-16" else ("utf-8", 1)
    return text.encode(code)[width * start : width * end].decode(code)


@pytest.mark.parametrize("unit", OFFSETS)
def test_columns_have_the_place_of_each_word(cli: Cli, model: Path, raw: Path, unit: str) -> None:
    answer = cli("predict", model, raw, "--text", "--offsets", unit)
    rows = [line.split("\t") for line in answer.out.splitlines() if line]
    assert [cut(TEXT, int(start), int(end), unit) for _, start, end, _ in rows] == [row[0] for row in rows]
    assert [row[0] for row in rows][:6] == ["Jordan", "visited", "Paris", ",", "😀", "e\u0301vora"]
    assert answer.out.count("\n\n") == 3, "a blank line behind each sentence"


@pytest.mark.parametrize("unit", OFFSETS)
def test_json_has_text_offsets_and_places_of_spans(cli: Cli, model: Path, raw: Path, unit: str) -> None:
    text = "😀 Jordan visited Paris.\nDr May Lincoln smiled e\u0301."
    raw.write_text(text, encoding="utf-8")
    found = cli("predict", model, raw, "--text", "--format", "jsonl", "--offsets", unit).out
    records = [json.loads(line) for line in found.splitlines()]
    assert [each["text"] for each in records] == text.split("\n")
    assert any(each["spans"] for each in records)
    for record in records:
        assert [cut(text, *place, unit) for place in record["offsets"]] == record["tokens"]
        for span in record["spans"]:
            inside = record["offsets"][span["start"] : span["end"]]
            assert (span["start_char"], span["end_char"]) == (inside[0][0], inside[-1][1]) and "probability" not in span
            assert span["text"] == cut(text, span["start_char"], span["end_char"], unit)
    sure = cli("predict", model, raw, "--text", "--format", "jsonl", "--confidence").out.splitlines()
    assert all("probability" in span for line in sure for span in json.loads(line)["spans"])


def test_lines_and_tokens_apart_by_white_space(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text("Jordan visited\nParis, again.\n")

    def words(*options: str) -> list[list[str]]:
        blocks = cli("predict", model, path, *options).out.strip().split("\n\n")
        return [[line.split("\t")[0] for line in block.splitlines()] for block in blocks]

    assert words("--text") == [["Jordan", "visited", "Paris", ",", "again", "."]]
    assert words("--lines") == [["Jordan", "visited"], ["Paris", ",", "again", "."]]
    assert words("--pretokenised") == words("--from", "pretokenised") == [["Jordan", "visited"], ["Paris,", "again."]]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--pretokenised", "--lines"], "--pretokenised has a sentence on each line already; leave --lines out"),
        (["--from", "csv", "--text"], "--from csv and options of plain text do not go together"),
        (["--pretokenised", "--offsets", "bytes"], "--offsets is for plain text, whose words have places in the file"),
        (["--text", "--top-k", "2", "--format", "csv"], "--top-k cannot be written as csv; add --format conll"),
    ],
)
def test_what_does_not_go_together(cli: Cli, model: Path, raw: Path, options: list[str], sentence: str) -> None:
    answer = cli("predict", model, raw, *options)
    assert answer.status == 2 and sentence in answer.err and answer.err.count("\n") == 1


def test_someone_who_types_is_answered_line_by_line(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"Jordan visited\nParis. Oslo\n")))
    blocks = cli("predict", model, "-", "--text").out.strip().split("\n\n")
    assert [[line.split("\t")[:3] for line in block.splitlines()] for block in blocks] == [
        [["Jordan", "0", "6"], ["visited", "7", "14"]],
        [["Paris", "15", "20"], [".", "20", "21"]],
        [["Oslo", "22", "26"]],
    ]


def test_the_name_of_the_output_says_its_format(cli: Cli, model: Path, raw: Path, tmp_path: Path) -> None:
    begins = {
        "conll": "Jordan\t0\t6\t",
        "conllu": "# sent_id = 1\n# text = Jordan",
        "csv": "sentence,word,start,end,tag\n",
        "jsonl": '{"text": "Jordan',
        "html": "<!DOCTYPE html>",
        "txt": "Jordan\t0\t6\t",
    }
    for suffix, begin in begins.items():
        out = tmp_path / f"out.{suffix}"
        assert cli("predict", model, raw, "--text", "--out", out) == (0, "", "")
        assert out.read_text(encoding="utf-8").startswith(begin), suffix
    cli("predict", model, raw, "--text", "--out", tmp_path / "out.csv", "--format", "jsonl")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith('{"text"')


class Page(HTMLParser):
    """The marks of a page, and whether every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.titles: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "raw.txt"
    path.write_text("Jordan visited <b>Paris</b> & Oslo.", encoding="utf-8")
    html = cli("predict", model, path, "--text", "--confidence", "--format", "html", "--top-k", "2").out
    page = Page(html)
    assert not page.open and "prefers-color-scheme: dark" in html and "<title>raw.txt, tagged</title>" in html
    assert re.fullmatch(r"[A-Z]+: probability [01]\.\d{4}", page.titles[0])
    assert "<ol><li>" in html, "the best analyses"
    assert "<b>Paris" not in html and "http" not in html, "text of others is escaped, and nothing is fetched"
    legend = html[html.index('class="legend"') : html.index("</ul>")]
    assert all(f">{label}</mark>" in legend for label in ("PER", "LOC", "ORG", "DATE", "PROD"))


def test_in_python(model: Path) -> None:
    tagger = Tagger.load(model)
    first, *_, last = tagger.predict(TEXT)
    assert list(first.inputs) == ["Jordan", "visited", "Paris", ",", "😀", "e\u0301vora", "."]
    for answer in (first, last):
        assert [TEXT[start:end] for start, end in answer.offsets] == list(answer.inputs)
        for span, (start, end) in zip(answer.spans, answer.span_offsets, strict=True):
            assert TEXT[start:end].split()[0] == answer.inputs[span.start]
    assert tagger.tag(TEXT) == [tag for answer in tagger.predict(TEXT) for tag in answer.value]
    assert tagger.predict("") == [] and tagger.tag("") == []


def test_lists_of_lists_of_words(model: Path) -> None:
    tagger = Tagger.load(model)
    assert [list(each.inputs) for each in tagger.predict([["Jan"], ["Gent", "sings"]])] == [["Jan"], ["Gent", "sings"]]
    assert tagger.tag([["Jan"], ["Gent", "sings"]]) == [tagger.tag(["Jan"]), tagger.tag(["Gent", "sings"])]
    assert len(tagger.predict(["Jan", "Gent"])) == 1 and tagger.predict(["Jan", "Gent"])[0].offsets == ()
    with pytest.raises(TrellisworkError, match="got a mixture"):
        tagger.predict(["Jan", ["Gent"]])


@pytest.mark.parametrize(
    "text", ["Jordan visited Paris.\nShe liked it very much.\n", "她住在巴黎。\n她的哥哥在罗马工作。\n"]
)
def test_text_without_the_option_is_refused_by_every_command(cli: Cli, model: Path, tmp_path: Path, text: str) -> None:
    path, out = tmp_path / "raw.txt", tmp_path / "m"
    path.write_text(text, encoding="utf-8")
    commands = [
        ["train", path, "--out", out], ["train", path, "--model", "bilstm-crf", "--out", out],
        ["tune", path, "--out", out], ["check", path], ["evaluate", model, path], ["predict", model, path],
    ]  # fmt: skip
    for command in commands:
        answer = cli(*command)
        assert (answer.status, answer.out) == (2, ""), command
        assert (
            answer.err.startswith(f"error: {path}:1: ") and "add --text" in answer.err and answer.err.count("\n") == 1
        )
    assert not out.exists()
    assert cli("predict", model, path, "--text").status == 0
