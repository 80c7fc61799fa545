"""Messages: all under the logger `trelliswork`, silent in a library, text or JSON from commands, progress if asked."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import WINDOW, Cli
from trelliswork.cli import messages, training
from trelliswork.cli.messages import LogFormat, ProgressDisplay, choose_messages, progress_display, say, show_messages
from trelliswork.cli.training import progress_for
from trelliswork.logs import LOGGER, tell
from trelliswork.training.progress import BarProgress, EpochRecord, LineProgress

LIBRARY = """
import logging, sys, warnings
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data import read_conll
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.training import TrainingConfig, train
write_corpus(builtin_corpus(sizes=(10, 5, 5)), sys.argv[1])
sentences = list(read_conll(sys.argv[1] + "/train.conll"))
for configured in (False, True):
    if configured:
        logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s|%(levelname)s|%(message)s")
    tagger = Tagger.from_data(sentences, TaggerConfig(word_dim=4, hidden=4, affix_dim=2, column_dim=2))
    train(tagger, sentences, sentences, TrainingConfig(epochs=1))
    print("trained", flush=True)
"""


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_library_is_silent_until_logging_is_configured(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIBRARY, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert first == "trained" and rest[-1] == "trained"
    assert rest[:-1] and all(line.startswith("trelliswork|INFO|") for line in rest[:-1])
    assert any(line.startswith("trelliswork|INFO|epoch 1: loss ") for line in rest)


def test_a_training_in_json(cli: Cli, data: Path, tmp_path: Path) -> None:
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--out", tmp_path / "m", "--epochs", 2]
    answer = cli(*command, *WINDOW, "--log-format", "json")
    found = lines(answer.err)
    assert answer.status == 0 and all(list(each)[:3] == ["time", "level", "message"] for each in found)
    assert [each["level"] for each in found if "--predict-columns" in each["message"]] == ["warning"]
    epochs = [each for each in found if each.get("event") == "epoch"]
    assert [each["epoch"] for each in epochs] == [1, 2]
    assert all(0 < each["loss"] < 10 and 0 <= each["score"] <= 1 and each["metric"] == "f1" for each in epochs)
    assert epochs[1]["message"].startswith(f"epoch 2: loss {epochs[1]['loss']:.4f}, dev f1 ")


def test_iterations_and_errors_in_json(cli: Cli, data: Path, tmp_path: Path) -> None:
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--model", "crf", "--max-iterations", 11]
    found = lines(cli(*command, "--out", tmp_path / "m", "--log-format", "json").err)
    iterations = [each for each in found if each.get("event") == "iteration"]
    assert [each["iteration"] for each in iterations] == list(range(1, 12))
    assert all(each["loss"] > 0 for each in iterations)
    assert any(each["score"] is not None for each in iterations)
    answer = cli("predict", tmp_path / "m", tmp_path / "none.conll", "--log-format", "json")
    (error,) = lines(answer.err)
    assert answer.status == 2 and answer.out == ""
    assert error["level"] == "error" and error["message"].endswith("none.conll: no such file; check the path")


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    with show_messages():
        say("reading \x1b[2Jred")
        say("note: two of them")
        tell("broken", level=logging.ERROR)
        tell("on the bar already", shown=True)
        say("unheard", quiet=True)
    assert capsys.readouterr() == ("", "reading \\x1b[2Jred\nnote: two of them\nerror: broken\n")
    say("after the command")
    assert capsys.readouterr() == ("", "")
    assert LOGGER.propagate and LOGGER.level == logging.NOTSET


def test_a_number_that_json_has_not_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    with show_messages():
        choose_messages(LogFormat.json, None)
        tell("odd", loss=float("nan"), level=logging.INFO, message_of=Path("a"))
    (found,) = lines(capsys.readouterr().err)
    assert (found["loss"], found["message_of"]) == (None, "a")


@pytest.mark.parametrize(
    ("terminal", "format", "asked", "expected"),
    [
        (True, "text", None, ProgressDisplay.bar),
        (True, "text", True, ProgressDisplay.bar),
        (True, "text", False, ProgressDisplay.nothing),
        (True, "json", None, ProgressDisplay.nothing),
        (True, "json", True, ProgressDisplay.lines),
        (False, "text", None, ProgressDisplay.nothing),
        (False, "text", True, ProgressDisplay.lines),
    ],
)
def test_progress_only_if_a_terminal_or_an_option_asks(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, format: str, asked: bool | None, expected: ProgressDisplay
) -> None:
    monkeypatch.setattr(messages.sys.stderr, "isatty", lambda: terminal, raising=False)
    with show_messages():
        choose_messages(LogFormat(format), asked)
        assert progress_display() is expected
        shown = progress_for()
    assert isinstance(shown, BarProgress if expected is ProgressDisplay.bar else LineProgress)
    assert getattr(shown, "within", None) == (training.SECONDS if expected is ProgressDisplay.lines else None)


def test_progress_within_an_epoch(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="trelliswork")
    for within in (None, 0.0):
        progress = LineProgress(within=within)
        progress.start_epoch(2, 5, 100)
        progress.batch(25, 0.5)
        progress.epoch(EpochRecord(2, 0.5, None, "f1", 10.0, 1.0))
    events = [record.fields for record in caplog.records]  # type: ignore[attr-defined]
    assert [each["event"] for each in events] == ["epoch", "progress", "epoch"]
    assert (events[1]["epoch"], events[1]["share"], events[1]["loss"]) == (2, 0.25, 0.5)
    assert caplog.records[1].getMessage().startswith("epoch 2/5: 25%, loss 0.5000, ")


def test_every_command_has_the_options(cli: Cli) -> None:
    for command in ("train", "info", "serve", "warmup"):
        out = cli(command, "--help-all" if command == "train" else "--help").out
        assert "--log-format" in out and "--progress" in out


def test_no_module_prints_beside_the_logger() -> None:
    """Standard error is written to in these places alone: before anything is imported, and by other processes."""
    package = Path(sys.modules["trelliswork"].__file__ or "").parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "sys.stderr" in path.read_text(encoding="utf-8")
    }
    allowed = {"cli/messages.py", "ctrl_c.py", "training/progress.py", "web/worker.py", "writing.py"}
    assert found <= allowed, found - allowed
