"""Help, version, usage errors: quick and without the heavy libraries."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.fresh import Fresh, fresh
from trelliswork import __version__
from trelliswork.cli.commands import COMMANDS, function_of
from trelliswork.cli.commands.train import train
from trelliswork.cli.model_help import OF_MODELS
from trelliswork.data.settings import settings_in
from trelliswork.models import TaggerConfig
from trelliswork.models.catalogue import entries, entry_of
from trelliswork.training import TrainingConfig

HELP = [[command, "--help"] for command in COMMANDS] + [
    ["train", "--model", "bilstm-crf", "-h"],
    ["tune", "--help-all"],
]


@pytest.fixture(scope="module")
def programs() -> Iterator[Fresh]:
    """Processes that have imported what help shows; the guard covers that too."""
    shown = "trelliswork.cli.commands.train", "trelliswork.models.catalogue", "trelliswork.cli.model_help"
    with fresh("trelliswork.cli.main", "typer._adapters", "typer.rich_utils", *shown) as programs:
        yield programs


def imported(programs: Fresh, names: tuple[str, ...], arguments: list[str]) -> str:
    """Of these modules, those that a command has imported."""
    code = "import sys; from trelliswork.cli.main import run; run(sys.argv[1:]);"
    answer = programs.run(f"{code}print([m for m in {names} if m in sys.modules])", *arguments)
    assert answer.status == 0, answer.err
    return answer.out.splitlines()[-1]


@pytest.mark.parametrize("arguments", HELP, ids=" ".join)
def test_help_on_a_command_imports_neither_torch_nor_numba(programs: Fresh, arguments: list[str]) -> None:
    assert imported(programs, ("torch", "numba", "scipy"), arguments) == "[]"


def test_help_and_usage_errors_import_nothing_heavy() -> None:
    with fresh("trelliswork.cli.main") as programs:
        for arguments in (["--help"], ["-h"], [], ["--version"], ["foo"]):
            assert imported(programs, ("torch", "numba", "numpy", "scipy", "safetensors"), arguments) == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(cli: Cli, command: str) -> None:
    answer = cli(command, "--help")
    assert answer.status == 0
    assert f"trelliswork {COMMANDS[command].file}" in answer.out.split("Example")[1]
    assert not re.findall(r"--[a-z]+_\w+", answer.out)


@pytest.mark.parametrize("command", [name for name, listed in COMMANDS.items() if name == listed.file])
def test_the_table_says_what_the_command_says(command: str) -> None:
    assert COMMANDS[command].help == (function_of(command).__doc__ or "").splitlines()[0]


# The help of commands over all models


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")


def options_in(text: str) -> set[str]:
    return set(re.findall(r"^. (--[a-z0-9-]+)", text, re.M))


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("command", ["train", "tune"])
def test_help_has_the_common_options_and_every_model(cli: Cli, command: str) -> None:
    text = cli(command, "--help").out
    assert text.count("\n") <= 100
    assert 20 <= len(options_in(text)) <= 35
    assert {"--model", "--dev", "--out", "--tag-column", "--vectors", "--epochs"} <= options_in(text)
    assert all(re.search(rf"\b{re.escape(name)}\b", text) for name in entries())
    assert f"trelliswork {command} --model NAME --help" in text and "--help-all" in text


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    "arguments", ["--model crf --help", "--help --model crf", "--model=crf -h", "x -h --model crf"]
)
def test_help_on_a_model_has_its_own_options(cli: Cli, arguments: str) -> None:
    answer = cli("train", *arguments.split())
    assert answer.status == 0 and "crf: linear-chain CRF over sparse features." in answer.out
    assert {"--c1", "--c2", "--template", "--order"} <= options_in(answer.out)
    others = {"--hidden", "--smoothing", "--pretrain", "--hidden-units", "--out", "--vectors", "--source-units"}
    assert not others & options_in(answer.out)
    assert "Markov order" in answer.out, "an option is described as the model has it"


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", entries())
def test_every_model_has_help(cli: Cli, name: str) -> None:
    answer = cli("train", "--help", "--model", name)
    config = entry_of(name).sections["model"][0]
    shown = options_in(answer.out)
    assert answer.status == 0 and answer.out.count("\n") < 150 and "by the model" not in answer.out
    names = {about.option for _, about in settings_in(config) if about.option and not about.goes_with}
    own = {f"--{option.replace('_', '-')}" for option in names - {"hidden_units", *entry_of(name).without}}
    assert own <= shown


def test_all_options_are_shown_when_asked_for(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    everything = cli("train", "--help-all").out
    options = {f"--{name.replace('_', '-')}" for name in OF_MODELS}
    assert options <= options_in(everything) and "Examples" in everything
    assert all(each.phrase in " ".join(everything.split()) for each in entries().values())


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        ("trian x", "train"),
        ("train x --modle crf --out m", "--model"),
        ("predict ner x --confidense", "--confidence"),
        ("serve ner --prot 8000", "--port"),
        ("export ner --onxn", "--onnx"),
        ("train x --out m --model bilstm-crff", "bilstm-crf"),
        ("train x --out m --model BiLSTM", "bilstm-crf"),
        ("train --help --model biafine", "biaffine"),
        ("tune x --out m --model=seq2sec", "seq2seq"),
    ],
)
def test_a_misspelt_name_is_asked_about(cli: Cli, arguments: str, near: str) -> None:
    answer = cli(*arguments.split())
    assert (answer.status, answer.out) == (2, "")
    assert f"; did you mean {near}? " in answer.err and answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("predict m x --format xml", "'--format': 'xml' is not one of 'conll', "),
        ("predict m x --workers 0", "'--workers': expected a value greater than or equal to 1; see"),
        ("train x --epochs many --out m", "'--epochs': expected a valid integer; see"),
        ("train x --c2 much --out m", "'--c2': expected a valid number; see"),
    ],
)
def test_values_that_an_option_does_not_take(cli: Cli, arguments: str, sentence: str) -> None:
    answer = cli(*arguments.split())
    assert answer.status == 2 and f"error: invalid value for {sentence}" in answer.err and answer.err.count("\n") == 1


def test_the_list_of_models_fits_a_terminal_of_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = cli("train", "--help").out
    models = text[text.index("Feature-based taggers") : text.index("Examples")].splitlines()
    assert all(line.startswith(("   ", "Feature-based")) for line in models if line.strip()), (
        "a name on a line of its own"
    )


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
