"""Input made to break a command or its terminal: one sentence, and no control character reaches the screen."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW, Answer, Cli
from tests.cli.test_bad_input import is_one_sentence

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
WORD = "\x1b[31mAnn\x9b2J\x07"
SHOWN = r"\x1b[31mAnn\x9b2J\x07"


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    path = tmp_path / "evil.conll"
    rows = f"{WORD}\tB-\x1bP\nsings\tO\n\nBob\tB-\x1bP\nran\tO\n\n"
    path.write_text(rows * 6, encoding="utf-8")
    return path


@pytest.fixture
def features(tagged: Path, cli: Cli) -> Path:
    """A feature CRF whose words and tags hold control characters."""
    out = tagged.with_name("crf")
    answer = cli("train", tagged, "--out", out, "--model", "crf", "--max-iterations", "20")
    assert answer.status == 0 and not CONTROL.search(answer.out + answer.err)
    return out


def is_clean(answer: Answer) -> bool:
    return answer.status == 0 and not CONTROL.search(answer.out + answer.err)


@pytest.mark.parametrize("options", [[], ["--confidence"], ["--top-k", "2"]])
def test_pretty_shows_control_characters(features: Path, tagged: Path, cli: Cli, options: list[str]) -> None:
    answer = cli("tag", features, tagged, "--format", "pretty", *options)
    assert is_clean(answer) and SHOWN in answer.out and r"\x1bP" in answer.out
    data = cli("tag", features, tagged)
    assert WORD in data.out, "columns are data and stay as they are"


def test_pretty_of_a_network(model: Path, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "evil.txt"
    path.write_text(f"{WORD} lives in Paris .\n", encoding="utf-8")
    answer = cli("tag", model, path, "--pretokenised", "--format", "pretty")
    assert is_clean(answer) and SHOWN in answer.out


def test_other_reports_show_control_characters(features: Path, tagged: Path, cli: Cli) -> None:
    for command in (
        ["check", tagged],
        ["info", features],
        ["explain", features, tagged],
        ["evaluate", features, tagged],
    ):
        answer = cli(*command)
        assert is_clean(answer) and r"\x1b" in answer.out, command


def test_errors_show_control_characters(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "keys.jsonl"
    path.write_text('{"\\u001b]0;title\\u0007": 1, "\\u009b2J": 2}\n')
    answer = cli("check", path)
    assert is_one_sentence(answer) and not CONTROL.search(answer.err)
    assert answer.err.endswith(r'expected the key "tokens", got \x1b]0;title\x07, \x9b2J' + "\n")
    answer = cli("check", tmp_path / "no\x1b[2J.conll")
    assert is_one_sentence(answer) and answer.err.endswith("/no\\x1b[2J.conll: no such file; check the path\n")


SETTINGS = {
    "deep": ("[model]\nhidden = " + "[" * 100_000, "expected TOML, got something else (nested too deeply); fix it"),
    "digits": (
        "[model]\nhidden = " + "9" * 5_000,
        "got something else (a number of thousands of digits",
    ),
    "hexadecimal": (
        "[model]\nhidden = 0x" + "f" * 5_000,
        "a whole number of at most 64 bits for hidden, got a huge int",
    ),
    "wide": (f"[model]\nhidden = {10**30}", "expected a whole number of at most 64 bits for hidden, got 1000"),
    "threads": ("[training]\nthreads = 10000000000", "expected 1 to 1024 threads, got 10000000000; change it"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_nobody_can_use(case: str, data: Path, tmp_path: Path, cli: Cli) -> None:
    text, problem = SETTINGS[case]
    path = tmp_path / "c.toml"
    path.write_text(f'data.train = "{data / "train.conll"}"\n{text}\n')
    answer = cli("train", path, "--model", "window", "--out", tmp_path / "m")
    assert is_one_sentence(answer) and answer.err.startswith(f"error: {path}:") and problem in answer.err
    assert len(answer.err) < 400 and not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["tag", "evaluate", "train"])
def test_threads_that_no_machine_has(command: str, model: Path, data: Path, tmp_path: Path, cli: Cli) -> None:
    place = ["--out", tmp_path / "m"] if command == "train" else []
    folder = [] if command == "train" else [model]
    answer = cli(command, *folder, data / "dev.conll", *place, "--threads", "10000000000")
    assert is_one_sentence(answer) and "'--threads': expected a value less than or equal to 1024" in answer.err


def test_settings_beside_a_model_that_are_not_text(data: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "m"
    command = ["train", data / "dev.conll", "--out", out, "--epochs", "1", "--quiet", *WINDOW]
    assert cli(*command).status == 0
    (out / "config.toml").write_bytes(b"\xff\xfe")
    answer = cli(*command, "--force")
    assert answer.status == 0 and answer.err.count("\n") <= 1
    assert "[training]" in (out / "config.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", [14, -6])
def test_converting_a_damaged_gzip_file(place: int, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "model.crfsuite"
    content = bytearray(gzip.compress(b"FILEHEADER = {\n" * 4000, mtime=0))
    content[place] ^= 0xFF
    path.write_bytes(content)
    answer = cli("convert", path, "--out", tmp_path / "m")
    assert is_one_sentence(answer)
    assert answer.err == f"error: {path}: not a whole gzip file; copy or compress it again\n"


def test_pins_of_thousands_of_digits(model: Path, text_file: Path, cli: Cli) -> None:
    answer = cli("tag", model, text_file, "--text", "--pin", f"{'1' * 5_000}=O")
    assert is_one_sentence(answer) and "expected TOKEN=TAG" in answer.err
