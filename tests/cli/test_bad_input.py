"""Bad input: one sentence with the fix, exit status 2, and nothing left behind."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW, Answer, Cli
from trelliswork import writing
from trelliswork.data import weight_files
from trelliswork.models import Tagger

GOOD = "Ann\tB-PER\nsings\tO\n\n"


def is_one_sentence(answer: Answer) -> bool:
    return answer.status == 2 and answer.err.startswith("error: ") and answer.err.count("\n") == 1


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ": expected at least one sentence, got none; the file is empty"),
    "blank": (b"\n \n\n", ": expected at least one sentence, got none; the file is empty"),
    "binary": (
        b"\x7fELF\0\0\1\n",
        ":1: expected UTF-8 text, got a binary (or UTF-16) file: it holds a NUL; convert the file to UTF-8",
    ),
    "latin1": (b"caf\xe9\tO\n", ":1:4: expected UTF-8 text, got the byte 0xe9; convert the file to UTF-8"),
    "column": (f"{GOOD}{GOOD}Bob\n\n".encode(), ":7:1: expected 2 columns, got 1"),
}


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("command", ["train", "evaluate", "check"])
def test_a_file_that_cannot_be_read(cli: Cli, model: Path, tmp_path: Path, command: str, case: str) -> None:
    content, problem = FILES[case]
    path = tmp_path / f"{case}.conll"
    path.write_bytes(content)
    options = {"train": ["--out", tmp_path / "m"], "evaluate": ["--tag-column", "2"], "check": []}
    folder = [model] if command == "evaluate" else []
    answer = cli(command, *folder, path, *options[command])
    assert is_one_sentence(answer)
    assert answer.err == f"error: {path}{problem}\n"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "content", "fix"),
    [
        ("table.xlsx", b"PK\3\4\x14\0", "save the sheet as .csv"),
        ("News.DOC", b"\xd0\xcf\x11\xe0", "save its text as .txt and add --text"),
        ("paper.pdf", b"%PDF-1.4\n%\xe2\xe3", "save its text as .txt and add --text"),
        ("docs.spacy", b"\x78\x9c\x01", "write its documents as JSON lines, columns or CoNLL-U"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--text"]], ids=["columns", "text"])
def test_a_file_of_another_program_is_not_text(
    cli: Cli, model: Path, tmp_path: Path, name: str, content: bytes, fix: str, options: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    answer = cli("predict", model, tmp_path / name, *options)
    assert is_one_sentence(answer) and "expected UTF-8 text, got " in answer.err and answer.err.endswith(f"; {fix}\n")


@pytest.mark.parametrize("case", ["empty", "binary", "latin1"])
def test_tag_leaves_no_output_for_a_file_that_cannot_be_read(cli: Cli, model: Path, tmp_path: Path, case: str) -> None:
    path = tmp_path / f"{case}.conll"
    path.write_bytes(FILES[case][0])
    answer = cli("tag", model, path, "--out", tmp_path / "out.conll")
    assert is_one_sentence(answer) and str(path) in answer.err
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_late_fault_leaves_no_output_either(cli: Cli, model: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "late.txt", tmp_path / "out.conll"
    path.write_bytes(b"Jordan visited Paris .\n" * 600 + b"\xff\n")
    out.write_text("earlier\n")
    answer = cli("tag", model, path, "--text", "--out", out)
    assert answer.err == f"error: {path}:601:1: expected UTF-8 text, got the byte 0xff; convert the file to UTF-8\n"
    assert out.read_text() == "earlier\n" and len(list(tmp_path.iterdir())) == 2


def test_a_missing_file(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("check", tmp_path / "no.conll").err == f"error: {tmp_path / 'no.conll'}: no such file; check the path\n"
    answer = cli("tag", model, tmp_path)
    assert answer.err == f"error: {tmp_path}: expected files in the folder, got none; name another\n"
    assert (
        cli("check", tmp_path).err == f"error: {tmp_path}: expected a file, got a folder; name one of the files in it\n"
    )


def test_a_file_without_the_columns_of_the_model(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    assert cli("train", data / "dev.conll", "--out", out, "--epochs", "1", "--quiet", *WINDOW).status == 0
    words = tmp_path / "words.conll"
    words.write_text("Ann\nsings\n")
    answer = cli("tag", out, words)
    assert is_one_sentence(answer)
    problem = "expected the feature column in 1..1, got 2; the file has 1 columns; add it, or train with"
    assert (
        answer.err
        == f"error: {words}: {problem} --feature-columns none on the words alone, or with --predict-columns\n"
    )
    text = cli("tag", out, words, "--text")
    assert (
        is_one_sentence(text)
        and "expected 2 feature columns in addition to the word, as in training, got 0" in text.err
    )


def test_unknown_tags_at_evaluation(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "test.conll"
    path.write_text(f"{GOOD}Bob\tB-PER\nlikes\tO\ncheese\tB-FOOD\n\n")
    answer = cli("evaluate", model, path, "--tag-column", "2", "--json", tmp_path / "s.json")
    assert is_one_sentence(answer)
    assert answer.err.startswith(f"error: {path}:6: the model does not know the tag 'B-FOOD', only O, B-DATE, ")
    assert answer.err.endswith("; correct it or train on data that has it\n")
    assert not (tmp_path / "s.json").exists()
    path.write_text("dog\tNN\n\n")
    assert f"{path}:1: the model does not know the tag 'NN'" in cli("evaluate", model, path, "--tag-column", "2").err


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def truncate(name: str) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return cut


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no config": (remove("config.json"), "config.json: missing; copy the whole model folder or train again"),
    "no weights": (remove("weights.safetensors"), "weights.safetensors: missing; copy the whole model folder"),
    "no metrics": (remove("metrics.json"), "metrics.json: missing; copy the whole model folder or train again"),
    "half a config": (truncate("config.json"), "config.json: truncated or not JSON ("),
    "half of the weights": (truncate("weights.safetensors"), "weights.safetensors: truncated or not safetensors"),
    "half of the metrics": (truncate("metrics.json"), "metrics.json: truncated or not JSON ("),
}


@pytest.mark.parametrize("case", DAMAGE)
@pytest.mark.parametrize("command", ["tag", "info", "evaluate"])
def test_a_damaged_model(cli: Cli, model: Path, data: Path, tmp_path: Path, command: str, case: str) -> None:
    damage, problem = DAMAGE[case]
    folder = tmp_path / "copy"
    shutil.copytree(model, folder)
    damage(folder)
    file = [] if command == "info" else [data / "test.conll"]
    answer = cli(command, folder, *file)
    assert is_one_sentence(answer) and answer.out == ""
    assert f"{folder}/{problem}" in answer.err


def test_no_model_at_all(cli: Cli, tmp_path: Path) -> None:
    expected = f"error: {tmp_path / 'no'}: expected a model folder, got nothing; check the path\n"
    assert cli("info", tmp_path / "no") == (2, "", expected)


def full_disk(*arguments: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_while_tagging(cli: Cli, model: Path, text_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = text_file.with_name("out.conll")
    monkeypatch.setattr(writing.os, "fsync", full_disk)
    answer = cli("tag", model, text_file, "--text", "--out", out)
    reason = "cannot be written: the disk is full; free some space or choose another disk"
    assert answer == (2, "", f"error: {out}: {reason}\n")
    assert [each.name for each in text_file.parent.iterdir()] == [text_file.name]


def test_a_full_disk_while_training(cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_files.safetensors.numpy, "save", full_disk)
    answer = cli("train", data / "dev.conll", "--out", tmp_path / "m", "--epochs", "1", "--quiet", *WINDOW)
    assert is_one_sentence(answer)
    assert f"{tmp_path / 'm'}: cannot be written: No space left on device; free space" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_of_a_file(cli: Cli, model: Path, data: Path, text_file: Path) -> None:
    taken = text_file.with_name("taken")
    taken.mkdir()
    reason = f"error: {taken}: cannot be written: expected a file, got a folder; choose another name\n"
    assert cli("evaluate", model, data / "test.conll", "--json", taken, "--quiet")[::2] == (2, reason)
    assert list(taken.iterdir()) == []


def test_a_folder_that_is_missing(cli: Cli, model: Path, text_file: Path) -> None:
    out = text_file.parent / "no" / "out.conll"
    answer = cli("tag", model, text_file, "--text", "--out", out)
    assert answer.err == f"error: {out}: cannot be written: the folder does not exist; create it first\n"


def test_a_file_in_the_way_of_a_folder(cli: Cli, data: Path, text_file: Path) -> None:
    before = text_file.read_text()
    train = cli("train", data / "dev.conll", "--out", text_file)
    assert is_one_sentence(train) and "expected a folder for the model, got a file" in train.err
    assert is_one_sentence(cli("demo", "--out", text_file))
    assert text_file.read_text() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable to root")
def test_an_unwritable_folder(cli: Cli, model: Path, text_file: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    answer = cli("tag", model, text_file, "--text", "--out", locked / "out.conll")
    assert answer.err.endswith("cannot be written: no permission to write there; choose another folder\n")


def test_no_permission_is_told(cli: Cli, model: Path, text_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(writing.tempfile, "mkstemp", refuse)
    out = text_file.with_name("out.conll")
    answer = cli("tag", model, text_file, "--text", "--out", out)
    assert answer.err == f"error: {out}: cannot be written: no permission to write there; choose another folder\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--epochs", "0"], "epochs must be at least 1; got 0"),
        (["--lr", "-1"], "lr must be above 0 and finite; got -1.0; leave it out for that of the optimizer"),
        (["--dropout", "1.5"], "dropout must lie in [0, 1); got 1.5; leave it out for 0.3"),
        (
            ["--optimizer", "magic"],
            "optimizer must be one of adamw, adam, sgd, momentum, nesterov, adagrad, rmsprop; got 'magic'",
        ),
        (["--scheme", "XYZ"], "scheme must be one of IOB1, IOB2, IOBES, plain"),
        (
            ["--feature-columns", "two"],
            "expected the number of the feature column, got 'two'; the columns have no names",
        ),
        (["--tag-column", "9"], "expected the tag column in 1..4, got 9; the file has 4 columns"),
        (["--delimiter", ""], "--delimiter must not be empty"),
    ],
)
def test_bad_settings(cli: Cli, data: Path, tmp_path: Path, options: list[str], sentence: str) -> None:
    answer = cli("train", data / "dev.conll", "--model", "window", "--out", tmp_path / "m", *options)
    assert is_one_sentence(answer) and sentence in answer.err
    assert list(tmp_path.iterdir()) == []


def test_one_sentence_is_too_few_to_hold_one_out(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "one.conll"
    path.write_text(GOOD)
    answer = cli("train", path, "--out", tmp_path / "m", "--quiet")
    assert answer.err.startswith(f"error: {path}: expected at least 2 sentences to hold one out; ")


def test_traceback_on_request(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trelliswork.errors import ModelError

    with pytest.raises(ModelError):
        cli("info", tmp_path, "--traceback")
    monkeypatch.setenv("TRELLISWORK_DEBUG", "1")
    with pytest.raises(ModelError):
        cli("info", tmp_path)


def test_our_own_mistakes_are_not_hidden(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(directory: object, **given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Tagger, "load", stumble)
    with pytest.raises(ZeroDivisionError):
        cli("info", model)


def test_a_search_needs_its_extra(cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    answer = cli("tune", data / "train.conll", "--out", tmp_path / "s")
    assert is_one_sentence(answer) and 'install it with pip install "trelliswork[tune]"' in answer.err
    assert not (tmp_path / "s").exists()
