"""Help, and all that is done with models over features, needs no torch, which takes more memory than their data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fresh import Fresh, fresh

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


@pytest.fixture(scope="module")
def programs() -> Iterator[Fresh]:
    """Processes that have imported other heavy modules than torch."""
    with fresh("numba", "scipy.sparse", "typer._adapters", "trelliswork.cli.main") as programs:
        yield programs


@pytest.mark.parametrize(
    ("name", "more"),
    [("crf", "--max-iterations 5"), ("memm", "--max-iterations 5"), ("hmm", ""), ("hucrf", "--max-iterations 1")],
)
def test_models_over_features(programs: Fresh, data: Path, tmp_path: Path, name: str, more: str) -> None:
    done = programs.run(PROGRAM, str(data), str(tmp_path / "model"), name, more)
    found = [line for line in done.out.splitlines() if line.startswith("result:")]
    assert found == [f"result: {each} 0" for each in ("train", "predict", "evaluate", "info")], done.err


HELP = """
import sys
from trelliswork.cli.main import run

for command in sys.argv[1:]:
    run([command, "--help"])
    print("result:", command, "torch" in sys.modules)
"""


def test_help(programs: Fresh) -> None:
    commands = ["train", "predict", "evaluate", "check", "info", "explain", "tune"]
    done = programs.run(HELP, *commands)
    found = [line for line in done.out.splitlines() if line.startswith("result:")]
    assert found == [f"result: {command} False" for command in commands]
