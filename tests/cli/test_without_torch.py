"""Help, and all that is done with models over features, needs no torch, which takes more memory than their data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from trelliswork.cli.main import run

data, out, name, more = sys.argv[1:5]
commands = {
    "train": [data + "/train.conll", "--model", name, "--out", out, *more.split()],
    "predict": [out, data + "/test.conll", "--confidence"],
    "evaluate": [out, data + "/test.conll"],
    "info": [out],
}
for command, arguments in commands.items():
    status = run([command, *arguments])
    print("result:", command, status, *(each for each in ("torch", "trelliswork.nn") if each in sys.modules))
"""


@pytest.mark.parametrize(
    ("name", "more"),
    [("crf", "--max-iterations 5"), ("memm", "--max-iterations 5"), ("hmm", ""), ("hucrf", "--max-iterations 1")],
)
def test_models_over_features(data: Path, tmp_path: Path, name: str, more: str) -> None:
    arguments = [str(data), str(tmp_path / "model"), name, more]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("result:")]
    assert found == [f"result: {each} 0" for each in ("train", "predict", "evaluate", "info")], done.stderr


HELP = """
import sys
from trelliswork.cli.main import run

for command in sys.argv[1:]:
    run([command, "--help"])
    print("result:", command, "torch" in sys.modules)
"""


def test_help() -> None:
    commands = ["train", "predict", "evaluate", "check", "info", "explain", "tune"]
    done = subprocess.run([sys.executable, "-c", HELP, *commands], capture_output=True, text=True, check=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("result:")]
    assert found == [f"result: {command} False" for command in commands]
