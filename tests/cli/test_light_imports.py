"""What calls import: seconds of every command are spent on modules that it does not need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fresh import Fresh, fresh

HEAVY = ("torch", "numba", "numpy", "sklearn", "scipy.sparse", "rich.progress", "trelliswork.models.networks.config")
CALLS = {
    "import trelliswork as tw; tw.LinearChain; tw.nn.CRF": {"torch", "numpy"},
    "from trelliswork.sklearn import CRF": {"sklearn", "scipy.sparse", "numpy"},
    "from trelliswork.models import FeatureTagger, load": {"numpy"},
}


@pytest.fixture(scope="module")
def programs() -> Iterator[Fresh]:
    """Processes that have imported next to nothing."""
    with fresh("trelliswork.cli.main", "typer._adapters") as programs:
        yield programs


@pytest.fixture(scope="module")
def programs_with_numpy() -> Iterator[Fresh]:
    commands = "trelliswork.cli.main", "trelliswork.cli.commands.predict"
    with fresh("numpy", "llvmlite.binding", "regex", "typer._adapters", *commands) as programs:
        yield programs


def imported(programs: Fresh, code: str, *arguments: str) -> set[str]:
    """The heavy modules that a new process has after running some code."""
    program = f"import sys\n{code}\nprint('has', *(name for name in {HEAVY} if name in sys.modules))"
    done = programs.run(program, *arguments)
    assert done.status == 0, done.err
    return set(done.out.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("code", CALLS)
def test_names_import_what_they_need(programs: Fresh, code: str) -> None:
    assert imported(programs, code) == CALLS[code]


@pytest.mark.parametrize("options", [[], ["--confidence"], ["--text", "--confidence"], ["--format", "jsonl"]])
def test_a_feature_model_predicts_without_numba(
    programs_with_numpy: Fresh, options: list[str], cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "train.conll").write_text("Ann B-PER\nsings O\n\nBob B-PER\nran O\n\n" * 3)
    model, data = str(tmp_path / "model"), str(tmp_path / "train.conll")
    assert cli("train", data, "--model", "crf", "--max-iterations", "3", "--out", model).status == 0
    run = "from trelliswork.cli.main import run\nassert run(sys.argv[1:]) == 0"
    assert cli("predict", model, data, *options).status == 0  # compiles what is not cached yet
    assert imported(programs_with_numpy, run, "predict", model, data, *options) == {"numpy"}


@pytest.mark.parametrize("arguments", [["train", "--help"], ["train", "missing.conll", "--out", "model"]])
def test_help_and_first_checks_do_without_numpy(programs: Fresh, arguments: list[str]) -> None:
    code = "from trelliswork.cli.main import run\nrun(sys.argv[1:])"
    assert imported(programs, code, *arguments) == {"trelliswork.models.networks.config"}
