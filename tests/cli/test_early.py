"""What is wrong with a command line is reported before torch and numba are loaded, which takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fresh import Fresh, fresh
from trelliswork.cli.main import run

# A command line that fails when it imports what takes long.
GUARDED = """
import sys

assert not {"torch", "numba", "optuna"} & set(sys.modules)

class Guard:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "numba", "optuna"):
            raise AssertionError("imported " + name)

sys.meta_path.insert(0, Guard())
from trelliswork.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
TAGGED = "Ann\tB-PER\nsings\tO\n\nBob\tB-PER\nsings\tO\n"
MISSING = "no such file; check the path"
NO_MODEL = "expected a model folder, got nothing; check the path"


@pytest.fixture(scope="module")
def light() -> Iterator[Fresh]:
    """Processes that have imported what commands need before anything heavy."""
    names = ("train", "tune", "predict", "evaluate", "info", "export")
    commands = (f"trelliswork.cli.commands.{name}" for name in names)
    with fresh("trelliswork.cli.main", "typer._adapters", *commands) as programs:
        yield programs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tagged file, folders that are none of ours, and what looks like models."""
    (tmp_path / "t.conll").write_text(TAGGED, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("[model\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "unknown").mkdir()
    about = {"kind": "Oracle", "format_version": 1, "library_version": "0.1.0"}
    (tmp_path / "unknown" / "config.json").write_text(json.dumps(about), encoding="utf-8")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text(json.dumps({**about, "kind": "Tagger"}), encoding="utf-8")
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / "config.json").write_text("{}", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("train no.conll --out m", f"no.conll: {MISSING}"),
        ("train no.conll --model bilstm-crf --out m", f"no.conll: {MISSING}"),
        ("train full --out m", "full: expected a file, got a folder"),
        ("train t.conll --dev no.conll --out m", f"no.conll: {MISSING}"),
        ("train t.conll --vectors no.txt --out m", f"no.txt: {MISSING}"),
        ("train t.conll --template no.txt --out m", f"no.txt: {MISSING}"),
        ("train t.conll --model hucrf --pretrain no.txt --out m", f"no.txt: {MISSING}"),
        ("train t.conll --model tokeniser --raw no.txt --out m", f"no.txt: {MISSING}"),
        ("train t.conll --model seq2sql --database no.sqlite --out m", f"no.sqlite: {MISSING}"),
        ("train t.conll --model window --init no --out m", f"no: {NO_MODEL}"),
        ("train t.conll --tokeniser no --out m", "no: expected --tokeniser auto, rules or the folder of a tokeniser"),
        ("train t.conll --out full", "full: expected a model or an empty folder, got other files"),
        ("train t.conll --out trained", "trained: holds a model already; add --force"),
        ("train t.conll --model window --seeds 2 --out trained", "trained: holds one model, and --seeds makes"),
        ("train t.conll --out t.conll/m", "t.conll to be a folder, got a file"),
        ("train t.conll --model bilstm --out m", "did you mean bilstm-crf?"),
        ("train t.conll --hidden 3 --out m", "--hidden is not used by crf"),
        ("train t.conll --hiden 3 --out m", "no such option: --hiden; did you mean --hidden?"),
        ("train t.conll", "a place to write to, --out, got none"),
        ("train broken.toml --out m", "broken.toml:1:7: expected TOML"),
        ("train no.toml --out m", f"no.toml: {MISSING}"),
        ("train t.conll --config no.toml --out m", f"no.toml: {MISSING}"),
        ("tune no.conll --out s", f"no.conll: {MISSING}"),
        ("tune t.conll --dev no.conll --out s", f"no.conll: {MISSING}"),
        ("tune t.conll --config broken.toml --out s", "broken.toml:1:7: expected TOML"),
        ("predict no t.conll", f"no: {NO_MODEL}"),
        ("predict half no.conll", f"no.conll: {MISSING}"),
        ("predict half no/*.conll --out d/", "expected files to read, got none that match no/*.conll"),
        ("predict half t.conll no.conll --out d/", f"no.conll: {MISSING}"),
        ("predict empty t.conll", "empty/config.json: missing"),
        ("predict t.conll t.conll", "t.conll: expected a model folder, got a file"),
        ("predict unknown t.conll", "unknown: expected a model of kind Tagger, got Oracle"),
        ("predict half t.conll", "half/weights.safetensors: missing"),
        ("predict half t.conll --out no/x.conll", "no/x.conll: cannot be written: the folder does not exist"),
        ("predict half t.conll --out t.conll/x", "t.conll/x: cannot be written: a part of the path is a file"),
        ("evaluate no t.conll", f"no: {NO_MODEL}"),
        ("evaluate half no.conll", f"no.conll: {MISSING}"),
        ("evaluate half t.conll --against no", f"no: {NO_MODEL}"),
        ("evaluate half t.conll --html no/r.html", "no/r.html: cannot be written: the folder does not exist"),
        ("evaluate half t.conll --json full", "full: cannot be written: expected a file, got a folder"),
        ("explain no t.conll", f"no: {NO_MODEL}"),
        ("explain half no.conll", f"no.conll: {MISSING}"),
        ("check no.conll", f"no.conll: {MISSING}"),
        ("check t.conll no.conll", f"no.conll: {MISSING}"),
        ("export no --onnx", f"no: {NO_MODEL}"),
        ("export empty --python", "empty/config.json: missing"),
        ("info no", f"no: {NO_MODEL}"),
        ("info t.conll", "t.conll: expected a model folder, got a file"),
        ("convert no.crfsuite --out m", f"no.crfsuite: {MISSING}"),
        ("convert t.conll --out full", "full: expected a model or an empty folder"),
        ("demo --out t.conll", "t.conll"),
    ],
)
def test_wrong_paths_and_names_are_reported_first(light: Fresh, folder: Path, command: str, sentence: str) -> None:
    done = light.run(GUARDED, *command.split(), folder=folder)
    assert done.status == 2, done.err
    assert sentence in done.err and done.err.startswith("error: ") and done.err.count("\n") == 1
    assert not (folder / "m").exists() and not (folder / "s").exists()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("serve no", f"no: {NO_MODEL}"),
        ("serve a=no", f"no: {NO_MODEL}"),
        ("serve half --train no.conll", f"no.conll: {MISSING}"),
    ],
)
def test_serve_too(light: Fresh, folder: Path, command: str, sentence: str) -> None:
    pytest.importorskip("uvicorn", reason="the extra [web] is not installed")
    done = light.run(GUARDED, *command.split(), folder=folder)
    assert done.status == 2 and sentence in done.err and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--pretrained ./no", "./no: expected the folder of a model of Hugging Face, got nothing; check the path"),
        ("--pretrained t.conll", "t.conll: expected a folder with a model of Hugging Face, got a file"),
        ("--pretrained .", ".: expected a folder with a model of Hugging Face, got one without config.json"),
        ("--pretrained-words mean", "--pretrained-words is about a pretrained encoder; add --pretrained NAME|DIR"),
        ("--pretrained no/such", "no/such: not among the models on this machine, and HF_HUB_OFFLINE is set"),
    ],
)
def test_an_encoder_that_is_not_there(light: Fresh, folder: Path, options: str, sentence: str) -> None:
    offline = "import os; os.environ['HF_HUB_OFFLINE'] = '1'"
    done = light.run(f"{offline}\n{GUARDED}", *f"train t.conll --model window {options} --out m".split(), folder=folder)
    assert done.status == 2 and done.err.startswith(f"error: {sentence}"), done.err


def test_a_package_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trelliswork.lazy.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    (tmp_path / "t.conll").write_text(TAGGED)
    assert run(["train", str(tmp_path / "t.conll"), "--pretrained", "no", "--out", str(tmp_path / "m")]) == 2
    assert capsys.readouterr().err.startswith("error: a pretrained encoder needs the extra [transformers]")


def test_the_guard_sees_what_is_imported(light: Fresh, folder: Path) -> None:
    done = light.run(GUARDED, *["train", "t.conll", "--dev", "t.conll", "--model", "hmm", "--out", "m"], folder=folder)
    assert done.status == 1 and "imported numba" in done.err


def test_a_pipe_is_not_read_by_a_check(folder: Path) -> None:
    """`train <(command)`: what a check has read is gone."""
    reading, writing = os.pipe()
    os.write(writing, TAGGED.encode())
    os.close(writing)
    code = "import sys; from trelliswork.cli.main import run; sys.exit(run(sys.argv[1:]))"
    arguments = ["-c", code, "train", f"/dev/fd/{reading}", "--model", "crf", "--max-iterations", "2", "--out", "m"]
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, pass_fds=[reading], check=False
    )  # fmt: skip
    os.close(reading)
    assert done.returncode == 0, done.stderr
    assert "train: 1 sentence, 2 tokens; dev: 1 sentence, 2 tokens" in done.stderr
