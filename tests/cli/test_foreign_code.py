"""Whose code a command runs: its own, and a feature function that the command line names; never that of a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

TRAPS = (
    "cffi", "click", "colorama", "coverage", "cupy", "dill", "fsspec", "hypothesis", "ipykernel", "IPython", "jax",
    "llvmlite", "ml_dtypes", "numba", "numpy", "onnx", "opt_einsum", "optuna", "pandas", "rich", "safetensors", "scipy",
    "shellingham", "sklearn", "sympy", "tbb", "tensorboard", "torch", "torch_xla", "torchvision",
    "tqdm", "transformers", "triton", "typer", "yaml",
)  # fmt: skip
TRAP = "import pathlib\npathlib.Path({marker!r}).open('a').write(__name__ + chr(10))\nraise ImportError(__name__)\n"
FUNCTION = "def attributes(sentence):\n    return [{'word': word} for word in sentence.words]\n"
SCRIPT = [str(Path(sys.executable).with_name("trelliswork"))]
MODULE = [sys.executable, "-m", "trelliswork"]  # for which Python itself looks into the current folder
OWN = ["train", "t.conll", "--model", "crf", "--max-iterations", 2, "--quiet"]
OWN += ["--features", "own:attributes", "--out", "crf"]


@pytest.fixture
def trapped(data: Path, tmp_path: Path) -> Path:
    """A folder with files named like libraries, each of which leaves its name in `marker` when it is run."""
    for name in TRAPS:
        (tmp_path / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    (tmp_path / "own.py").write_text(FUNCTION)
    (tmp_path / "t.conll").write_text("\n\n".join((data / "dev.conll").read_text().split("\n\n")[:6]) + "\n\n")
    return tmp_path


def ran(folder: Path, command: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    whole = [*command, *map(str, arguments)]
    return subprocess.run(whole, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def check(folder: Path, command: list[str], *arguments: object) -> None:
    answer = ran(folder, command, *arguments)
    assert answer.returncode == 0, answer.stderr
    assert not (folder / "marker").exists(), (folder / "marker").read_text()


def test_files_of_the_current_folder_are_not_run(trapped: Path) -> None:
    """With torch and without it."""
    check(trapped, MODULE, *OWN)
    check(trapped, MODULE, "tag", "crf", "t.conll", "--features", "own:attributes")
    window = ["--model", "window", "--epochs", 1, "--hidden", 4, "--quiet", "--out", "window"]
    check(trapped, MODULE, "train", "t.conll", *window)


def test_files_of_the_current_folder_are_not_run_by_the_script(trapped: Path) -> None:
    if not Path(SCRIPT[0]).exists():
        pytest.skip("the command is not installed")
    check(trapped, SCRIPT, "--version")
    check(trapped, SCRIPT, *OWN)


def test_a_function_may_be_in_a_package_but_not_use_files_beside_it(
    cli: Cli, trapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trapped / "packed").mkdir()
    (trapped / "packed" / "tools.py").write_text("KEY = 'word'\n")
    (trapped / "packed" / "inner.py").write_text(
        "from packed.tools import KEY\ndef f(sentence):\n    return [{KEY: word} for word in sentence.words]\n"
    )
    (trapped / "sided.py").write_text(f"import own_tools\n{FUNCTION}")
    (trapped / "own_tools.py").write_text("")
    monkeypatch.chdir(trapped)
    train = ["train", "t.conll", "--model", "crf", "--max-iterations", 2, "--quiet", "--out", "m", "--features"]
    answer = cli(*train, "sided:attributes")
    assert answer.status == 2 and "imports 'own_tools', and only 'sided' is taken from the current folder" in answer.err
    assert cli(*train, "packed.inner:f").status == 0
    assert not any(trapped.samefile(folder) for folder in sys.path if Path(folder).is_dir())
    for name in ("packed.inner", "packed.tools", "packed"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("options", [[], ["--resume"], ["--force"]])
def test_a_file_of_settings_never_chooses_code(
    cli: Cli, trapped: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(trapped)
    (trapped / "evil.py").write_text(TRAP.format(marker=str(trapped / "marker")))
    text = '[data]\ntrain = "t.conll"\nout = "m"\n[model]\nname = "crf"\nfeatures = "evil:f"\nmax_iterations = 2\n'
    (trapped / "config.toml").write_text(text)
    for command in (["train", "config.toml"], ["train", "--config", "config.toml"], ["tune", "config.toml"]):
        answer = cli(*command, *options)
        expected = "it names the feature function 'evil:f', and a file of settings never chooses code; if you trust it,"
        assert answer.status == 2 and f"config.toml: {expected} add --features evil:f" in answer.err
    assert not (trapped / "marker").exists() and not (trapped / "m").exists()
    if not options:
        assert cli("train", "config.toml", "--quiet", "--features", "own:attributes").status == 0
        head = (trapped / "m" / "config.toml").read_text().splitlines()[0]
        assert "trelliswork train config.toml --features own:attributes --out DIR" in head
        monkeypatch.delitem(sys.modules, "own")
