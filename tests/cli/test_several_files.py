"""Several files on one command line, as a shell expands `in/*.gz`; and names of outputs that say no format."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def parts(tmp_path: Path, data: Path) -> list[Path]:
    """Three files, one of them packed and in a folder of its own, that are test.conll together."""
    blocks = [block for block in (data / "test.conll").read_text(encoding="utf-8").split("\n\n") if block.strip()]
    paths = [tmp_path / "in" / "a.conll", tmp_path / "in" / "b.conll", tmp_path / "more" / "c.conll.gz"]
    for i, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        content = ("\n\n".join(blocks[i * 10 : i * 10 + 10]) + "\n\n").encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_predict_writes_a_file_for_each(cli: Cli, model: Path, parts: list[Path], tmp_path: Path) -> None:
    for path in parts:
        assert cli("predict", model, path, "--out", f"{tmp_path}/alone/").status == 0
    expected = contents(tmp_path / "alone")
    for i, given in enumerate([parts, [tmp_path / "in", parts[2]], [f"{tmp_path}/in/*.conll", parts[2]]]):
        answer = cli("predict", model, *given, "--out", f"{tmp_path}/out-{i}/", "--workers", 2)
        assert answer.status == 0 and "3 files written to" in answer.out
        assert contents(tmp_path / f"out-{i}") == expected


def test_one_file_that_a_shell_has_found_goes_to_the_folder(
    cli: Cli, model: Path, parts: list[Path], tmp_path: Path
) -> None:
    assert cli("predict", model, parts[2], "--out", f"{tmp_path}/out/").status == 0
    assert list(contents(tmp_path / "out")) == ["c.conll.gz"]


def test_evaluate_gives_one_score_for_all(
    cli: Cli, model: Path, data: Path, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = cli("evaluate", model, data / "test.conll", "--json", tmp_path / "whole.json").out
    for given in (parts, [f"{tmp_path}/in/*", parts[2]], [parts[0], "-", parts[2]]):
        standard_input = io.TextIOWrapper(io.BytesIO(parts[1].read_bytes()))
        monkeypatch.setattr("sys.stdin", standard_input)
        answer = cli("evaluate", model, *given, "--json", tmp_path / "parts.json", "--html", tmp_path / "page.html")
        assert answer.status == 0, answer.err
        first, _, rest = answer.out.partition("\n")
        names = [str(path) for path in parts]
        assert first.replace("<stdin>", names[1]) == f"3 files: {', '.join(names)}"
        assert rest == whole and "30 sentences" in rest
        assert all(f"{path}: tab-separated" in answer.err.replace("-:", f"{parts[1]}:") for path in parts)
        record = json.loads((tmp_path / "parts.json").read_text(encoding="utf-8"))
        assert [name.replace("<stdin>", names[1]) for name in record.pop("files")] == names
        assert record == json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))
        assert "3 files: a.conll, " in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_evaluate_compares_two_models_on_all(cli: Cli, model: Path, data: Path, parts: list[Path]) -> None:
    whole = cli("evaluate", model, data / "test.conll", "--against", model)
    answer = cli("evaluate", model, *parts, "--against", model)
    assert answer.status == 0 and answer.out.partition("\n")[2] == whole.out


def test_check_reads_patterns(cli: Cli, data: Path, parts: list[Path], tmp_path: Path) -> None:
    named = cli("check", data / "train.conll", *parts[:2])
    assert named.status == 0 and named.out.count("unseen words") == 2
    assert cli("check", data / "train.conll", f"{tmp_path}/in/*.conll") == named


@pytest.mark.parametrize(
    ("command", "arguments", "sentence"),
    [
        ("predict", ["{a}", "{b}"], "expected --out DIR/ for the results of several files, got none; add it"),
        ("predict", ["{a}", "{b}", "--out", "{tmp}/all.jsonl"], "got the name of a file; add / if it is to be"),
        ("predict", ["{a}", "{b}", "--out", "{a}"], "expected a folder for the results of several files, got a file"),
        ("predict", ["{a}", "-", "--out", "{tmp}/d/"], "- (standard input) gives no name to its result in a folder"),
        ("predict", ["-", "--out", "{tmp}/d/"], "- (standard input) gives no name to its result in a folder"),
        ("predict", ["{a}", "{tmp}/no.conll", "--out", "{tmp}/d/"], "no.conll: no such file; check the path"),
        ("predict", ["{a}", "{tmp}/in/*", "--out", "{tmp}/d/"], "expected each file once, got {a}; leave one out"),
        ("predict", ["{a}", "{tmp}/*.x", "--out", "{tmp}/d/"], "expected files to read, got none that match {tmp}/*.x"),
        ("evaluate", ["{a}", "{tmp}/in/../in/a.conll"], "{tmp}/in/../in/a.conll, which are the same file; leave one"),
        ("evaluate", ["{tmp}/*.x"], "expected files to read, got none that match {tmp}/*.x; check the pattern"),
        ("evaluate", ["{a}", "-", "--against", "{model}"], "--against reads FILE twice"),
        ("check", ["{tmp}/*.x"], "expected files to read, got none that match {tmp}/*.x; check the pattern"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_a_sentence(
    cli: Cli, model: Path, parts: list[Path], tmp_path: Path, command: str, arguments: list[str], sentence: str
) -> None:
    names = {"a": parts[0], "b": parts[1], "tmp": tmp_path, "model": model}
    given = [each.format(**names) for each in arguments]
    answer = cli(command, *([] if command == "check" else [model]), *given)
    assert answer.status == 2 and sentence.format(**names) in answer.err
    assert not (tmp_path / "d").exists()


def test_files_of_one_name_do_not_replace_each_other(cli: Cli, model: Path, parts: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "more" / "a.conll"
    other.write_bytes(parts[1].read_bytes())
    answer = cli("predict", model, parts[0], other, "--out", f"{tmp_path}/out/")
    assert answer.status == 2
    assert f"{parts[0]} and {other} would both be written to {tmp_path / 'out' / 'a.conll'}" in answer.err


def test_a_name_with_the_characters_of_a_pattern_is_a_file(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    odd = tmp_path / "[a].conll"
    odd.write_bytes((data / "test.conll").read_bytes())
    assert cli("evaluate", model, odd).status == 0
    assert cli("predict", model, odd, data / "dev.conll", "--out", f"{tmp_path}/out/").status == 0
    assert (tmp_path / "out" / "[a].conll").exists()


# Names of outputs


@pytest.mark.parametrize("name", ["x.spacy", "x.tagged", "x.spacy.gz", "x.xml"])
def test_a_suffix_that_says_no_format_is_an_error(cli: Cli, model: Path, data: Path, tmp_path: Path, name: str) -> None:
    answer = cli("predict", model, data / "test.conll", "--out", tmp_path / name)
    assert answer.status == 2
    assert f"--out {tmp_path / name}: expected a name that ends with .conll, .conllu, .csv, .jsonl" in answer.err
    assert f"got .{name.split('.')[1]}; choose another, or add --format" in answer.err
    assert list(tmp_path.iterdir()) == []
    assert cli("predict", model, data / "test.conll", "--out", tmp_path / name, "--format", "conll").status == 0


@pytest.mark.parametrize("name", ["plain", "x.txt", "x.tsv", "x.jsonl"])
def test_a_suffix_of_columns_or_none_is_fine(cli: Cli, model: Path, data: Path, tmp_path: Path, name: str) -> None:
    assert cli("predict", model, data / "test.conll", "--out", tmp_path / name).status == 0


def test_json_lines_are_not_written_to_text_by_default(cli: Cli, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["Ann", "left"]}\n', encoding="utf-8")
    answer = cli("predict", model, tmp_path / "a.jsonl", "--out", tmp_path / "b.txt")
    assert answer.status == 2 and "got .txt; choose another, or add --format" in answer.err


def test_a_suffix_of_the_input_is_its_format(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "eng.testa").write_bytes((data / "test.conll").read_bytes())
    assert cli("predict", model, tmp_path / "eng.testa", "--out", tmp_path / "tagged.testa").status == 0


def test_one_result_is_packed_if_its_name_says_so(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.gz", "a.parquet.gz"):
        status = cli("predict", model, data / "test.conll", "--out", tmp_path / name).status
        assert status == (2 if "parquet" in name else 0)
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == (tmp_path / "a.jsonl").read_bytes()
