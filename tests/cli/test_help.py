"""Help, version, usage errors: quick and without the heavy libraries."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trelliswork import __version__
from trelliswork.cli.commands import COMMANDS, function_of
from trelliswork.cli.commands.train import train
from trelliswork.models import TaggerConfig
from trelliswork.training import TrainingConfig


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["--version"], ["foo"]])
def test_help_and_usage_errors_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from trelliswork.cli.main import run; run(sys.argv[1:]);"
        "print([m for m in ('torch', 'numba', 'numpy', 'scipy', 'safetensors') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(cli: Cli, command: str) -> None:
    answer = cli(command, "--help")
    assert answer.status == 0
    assert f"trelliswork {COMMANDS[command].file}" in answer.out.split("Example")[1]
    assert not re.findall(r"--[a-z]+_\w+", answer.out)


@pytest.mark.parametrize("command", [name for name, listed in COMMANDS.items() if name == listed.file])
def test_the_table_says_what_the_command_says(command: str) -> None:
    assert COMMANDS[command].help == (function_of(command).__doc__ or "").splitlines()[0]


def test_no_arguments_is_help(cli: Cli) -> None:
    answer = cli()
    assert (answer.status, answer.err) == (0, "")
    assert all(command in answer.out for command in COMMANDS)


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"trelliswork {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["foo"], "error: no such command 'foo'; see trelliswork --help\n"),
        (["export"], "error: missing argument 'DIR'; see trelliswork export --help\n"),
        (["demo", "--epochs", "x"], "--epochs"),
    ],
)
def test_wrong_usage_is_one_sentence(cli: Cli, arguments: list[str], sentence: str) -> None:
    answer = cli(*arguments)
    assert answer.status == 2
    assert answer.out == ""
    assert sentence in answer.err
    assert answer.err.startswith("error: ") and answer.err.count("\n") == 1


@pytest.mark.parametrize("config", [TaggerConfig, TrainingConfig])
def test_settings_that_are_not_given_are_those_of_the_model(config: Any) -> None:
    options = inspect.signature(train).parameters
    for field in dataclasses.fields(config):
        if field.name in options:
            assert options[field.name].default in (None, field.default), field.name
