"""What calls import: seconds of every command are spent on modules that it does not need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fresh import Fresh, fresh

CORPUS = "trelliswork.models.taggers.features.corpus"
HEAVY = (
    "torch", "numba", "numpy", "sklearn", "scipy.sparse", "pydantic", "rich.console", "rich.markdown", "rich.traceback",
    "rich.progress", "trelliswork.models.networks.config", "trelliswork.distributions.ctc",
    "trelliswork.distributions.registry", "trelliswork.data.readers", CORPUS,
)  # fmt: skip
CALLS = {
    "import trelliswork as tw; tw.LinearChain; tw.nn.CRF": {"torch", "numpy"},
    "from trelliswork.sklearn import CRF": {"sklearn", "scipy.sparse", "numpy", CORPUS},
    "from trelliswork.models import FeatureTagger, load": {"numpy"},
}


@pytest.fixture(scope="module")
def programs() -> Iterator[Fresh]:
    """Processes that have imported next to nothing."""
    with fresh("trelliswork.cli.main") as programs:
        yield programs


@pytest.fixture(scope="module")
def programs_with_numpy() -> Iterator[Fresh]:
    commands = "trelliswork.cli.main", "trelliswork.cli.commands.predict"
    with fresh("numpy", "llvmlite.binding", "regex", *commands) as programs:
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
    assert imported(programs_with_numpy, run, "predict", model, data, *options) == {"numpy", "trelliswork.data.readers"}


RUN = "from trelliswork.cli.main import run\nrun(sys.argv[1:])"


def test_help_does_without_numpy(programs: Fresh) -> None:
    assert imported(programs, RUN, "train", "--help") == {"trelliswork.models.networks.config", "rich.console"}


def test_first_checks_do_without_numpy(programs: Fresh) -> None:
    found = imported(programs, RUN, "train", "missing.conll", "--out", "model")
    assert found == {"trelliswork.models.networks.config", "trelliswork.data.readers"}


def test_values_that_need_a_check_have_one(programs: Fresh) -> None:
    code = f"{RUN}\nprint('pydantic' in sys.modules)"
    for value, problem in (("2.5", "expected a valid integer"), ("0", "expected a value greater than or equal to 1")):
        done = programs.run(f"import sys\n{code}", "train", "missing.conll", "--out", "model", "--threads", value)
        assert problem in done.err and done.out == "True\n"


def test_markdown_and_tracebacks_are_there_for_others(programs: Fresh) -> None:
    code = """
from typer import rich_utils
from trelliswork.cli.main import run
run(["--help"])
from rich.markdown import Markdown
from rich.traceback import Traceback
made = rich_utils.Markdown("*b*"), rich_utils.Traceback.extract(ValueError, ValueError("a"), None)
assert type(made[0]) is Markdown and made[1].stacks, made
"""
    lines = code.strip().splitlines()
    for program in ("\n".join(lines), "\n".join([*lines[1:3], lines[0], *lines[3:]])):
        done = programs.run(program)
        assert done.status == 0, done.err
