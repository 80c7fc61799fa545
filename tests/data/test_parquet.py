"""Rows of Parquet: read like records of JSON, and written with all columns of the file and those of the answers."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trelliswork.cli.writers import JsonWriter
from trelliswork.cli.writers.parquet import ParquetWriter
from trelliswork.data import Choices, Sentence, file_kind, json_text, read_jsonl, reader_for
from trelliswork.data.parquet import ROWS, read_parquet
from trelliswork.data.readers import open_tagged
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.base import Alternative, Answer, PartProbability
from trelliswork.structures.grammar.tree import Tree
from trelliswork.text import RuleTokeniser

RECORDS: list[dict[str, Any]] = [
    {"id": 1, "tokens": ["Ann", "sings"], "tags": ["B-PER", "O"], "features": [["NNP", "VBZ"]]},
    {"id": 2, "tokens": ["Oslo"], "ner_tags": ["B-LOC"]},
    {"id": 3, "text": "Ann sings.", "spans": [{"start": 0, "end": 3, "label": "PER"}]},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), path)
    return path


def test_rows_are_read_as_records_of_json_are(tmp_path: Path) -> None:
    rows = written(tmp_path / "a.parquet", RECORDS)
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in RECORDS), encoding="utf-8")
    for with_tags in (True, False):
        expected = list(read_jsonl(lines, with_tags=with_tags, tokeniser=RuleTokeniser()))
        found = list(read_parquet(rows, with_tags=with_tags, tokeniser=RuleTokeniser()))
        assert [(each.words, each.tags, each.features, each.line, each.offsets) for each in found] == [
            (each.words, each.tags, each.features, each.line, each.offsets) for each in expected
        ]
        assert [each.extra for each in found] == RECORDS
    assert file_kind("a.PARQUET") == file_kind("a.pq") == "parquet"
    assert [each.words for each in reader_for(rows)(rows, tokeniser=RuleTokeniser())] == [each.words for each in found]
    assert next(iter(open_tagged(str(rows), Choices())[1])).tags == ("B-PER", "O")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [{"tokens": ["Ann"]}, {"tokens": ["Ann", None]}],
            r'a.parquet:2: expected a string at "tokens"\[1\], got null',
        ),
        ([{"tokens": ["Ann"]}, {"tokens": None}], 'a.parquet:2: expected the key "tokens"'),
        ([{"words": ["Ann"]}], 'a.parquet:1: expected the key "tokens", got words'),
        ([], "expected at least one sentence, got none"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        list(read_parquet(written(tmp_path / "a.parquet", rows), with_tags=False))


def test_what_is_no_parquet_is_a_sentence(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.parquet", RECORDS).read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2], whole[:40] + b"\xff" * 20 + whole[60:]):
        (tmp_path / "b.parquet").write_bytes(content)
        with pytest.raises(DataError, match=r"b\.parquet.*(cannot be read as Parquet|expected)"):
            list(read_parquet(tmp_path / "b.parquet"))
    with pytest.raises(DataError, match="expected a file, as Parquet is read from its end"):
        list(read_parquet("-"))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(twice, tmp_path / "c.parquet")
    with pytest.raises(DataError, match="two called 'id'"):
        list(read_parquet(tmp_path / "c.parquet"))


def test_without_pyarrow_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "trelliswork.data.parquet")
    with pytest.raises(TrellisworkError, match=r'install it with pip install "trelliswork\[arrow\]"'):
        reader_for("a.parquet")("a.parquet")


PART, SPAN = PartProbability(0, 1, "B-PER", 0.25), PartProbability(0, 2, "PER", 0.5)
TREES = [Tree.parse("(S (NP Ann) (VP sings))"), Tree.parse("(S (X Ann) (VP sings))")]
ARCS = [[(2, "nsubj"), (0, "root")], [(0, "root"), (1, "obj")]]
TAGS = ["B-PER", "I-PER"]


def columns(arcs: list[tuple[int, str]]) -> dict[str, list[str]]:
    return {"HEAD": [str(head) for head, _ in arcs], "DEPREL": [label for _, label in arcs], "UPOS": ["X", "Y"]}


def answers(learns_from: str) -> list[Answer]:
    """An answer with nothing but its value, and one with all that can be asked for."""
    if learns_from == "tags":
        alternatives = [Alternative(TAGS, 0.5), Alternative(["O", "O"], 0.125)]
        return [Answer(TAGS, 0.5), Answer(TAGS, 0.5, parts=[PART, PART], spans=[SPAN], alternatives=alternatives)]
    if learns_from == "heads":
        parts = [PartProbability(0, 1, "nsubj", 0.25, 2, 0.5), PartProbability(1, 2, "root", 0.5, 0, 0.75)]
        full = Answer(ARCS[0], 0.5, parts=parts, alternatives=[Alternative(each, 0.5) for each in ARCS],
                      columns=columns(ARCS[0]))  # fmt: skip
        return [Answer(ARCS[0], None, columns=columns(ARCS[0])), full]
    if learns_from == "brackets":
        full = Answer(TREES[0], 0.5, parts=[PART, PART], spans=[SPAN],
                      alternatives=[Alternative(each, 0.25) for each in TREES])  # fmt: skip
        return [Answer(TREES[0], None), full]
    if learns_from == "pairs":
        return [Answer("x", None), Answer("x", 0.5, parts=[PART], alternatives=[Alternative("x", 0.5)], certain=False)]
    if learns_from == "several":
        return [Answer({}, None, tasks={"pos": Answer(["A", "B"], 0.5, parts=[PART, PART]), "ner": Answer(TAGS, 0.5)})]
    value = {"events": [{"type": "meet", "trigger": [0, 1]}]}
    spans = [PartProbability(0, 1, "meet", 0.5, head=1)]
    return [Answer(value, None), Answer(value, 0.5, parts=spans, spans=spans, alternatives=[Alternative(value, 0.5)])]


@pytest.mark.parametrize("learns_from", ["tags", "heads", "brackets", "pairs", "events", "several"])
def test_rows_say_what_json_lines_say(learns_from: str) -> None:
    several = learns_from == "several"
    model: Any = SimpleNamespace(learns_from=learns_from, heads={"pos": None, "ner": None} if several else {"": None})
    lines = JsonWriter({"": "IOB2", "pos": "plain", "ner": "IOB2"})
    writer, expected = ParquetWriter(model, lines, None), []
    content = writer.begin()
    sentences = [
        Sentence(("Ann", "Lee"), extra={"id": 7}),
        Sentence(("Ann", "Lee"), text="Ann Lee", offsets=((0, 3), (4, 7)), features=(("N", "N"),)),
    ]
    for sentence in sentences:
        for answer in answers(learns_from):
            content += writer.write(sentence, answer)
            expected.append(json.loads(lines.write(sentence, answer)))
    content += writer.end()
    found = pq.read_table(io.BytesIO(content)).to_pylist()
    for row, record in zip(found, expected, strict=True):
        if "id" in record:
            assert json.loads(row.pop("extra")) == {"id": record.pop("id")}
        assert present(row) == present(in_columns(record))


def present(value: Any) -> Any:
    """Without what is null."""
    if isinstance(value, dict):
        return {name: present(each) for name, each in value.items() if each is not None}
    return [present(each) for each in value] if isinstance(value, list) else value


def in_columns(record: dict[str, Any]) -> dict[str, Any]:
    """A value of several parts is text in Parquet."""
    found = dict(record)
    if isinstance(record.get("value"), dict):
        found["value"] = json.dumps(record["value"])
        found |= {
            "alternatives": [{**each, "value": json.dumps(each["value"])} for each in record.get("alternatives", ())]
            or None
        }
    return found


def test_columns_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([datetime(2020, 1, 2, tzinfo=UTC), None], pa.timestamp("ns", "UTC")),
            "vector": pa.array([[0.5, float("nan")], None], pa.list_(pa.float32())),
            "share": pa.array([float("nan"), 0.1], pa.float32()),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "raw": pa.array([b"\xff", None]),
            "tokens": [["Ann"], ["Oslo", "sings"]],
            "tags": [["X"], None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    sentences = list(read_parquet(tmp_path / "a.parquet", with_tags=False))
    model: Any = SimpleNamespace(learns_from="tags", heads={"": None})
    writer = ParquetWriter(model, JsonWriter({"": "IOB2"}), str(tmp_path / "a.parquet"))
    content = writer.begin()
    for sentence in sentences:
        content += writer.write(sentence, Answer(["O"] * len(sentence), 1.0))
    found = pq.read_table(io.BytesIO(content + writer.end()))
    kept = [name for name in table.column_names if name != "tags"]
    assert found.schema.names[:5] == kept[:5] and "extra" not in found.schema.names
    for name in kept:
        assert found[name].type == table[name].type
        assert found[name].to_string() == table[name].to_string()
    assert found["tags"].to_pylist() == [["O"], ["O", "O"]]
    first = json.loads(json_text(sentences[0]))
    assert first["when"].startswith("2020-01-02") and first["vector"] == [0.5, None] and first["share"] is None


def test_many_rows_keep_their_order(tmp_path: Path) -> None:
    n = 2 * ROWS + 3
    path = written(tmp_path / "a.parquet", [{"tokens": [str(i)]} for i in range(n)])
    model: Any = SimpleNamespace(learns_from="tags", heads={"": None})
    writer = ParquetWriter(model, JsonWriter({"": "IOB2"}), str(path))
    content = writer.begin()
    for sentence in read_parquet(path, with_tags=False):
        content += writer.write(sentence, Answer([f"T{sentence.line - 1}"], 1.0))
    rows = pq.read_table(io.BytesIO(content + writer.end())).to_pylist()
    assert [(row["tokens"], row["tags"]) for row in rows] == [([str(i)], [f"T{i}"]) for i in range(n)]


def test_an_answer_without_a_column_is_a_sentence() -> None:
    model: Any = SimpleNamespace(learns_from="tags", heads={"": None})
    writer = ParquetWriter(model, JsonWriter({"": "IOB2"}), None)
    writer.begin()
    with pytest.raises(TrellisworkError, match="Parquet has no column for 'probability' of a SimpleNamespace"):
        writer.write(Sentence(("Ann",)), Answer("topic", 1.0))
