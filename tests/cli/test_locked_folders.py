"""One run at a time in a folder, for every kind of model; what killed runs leave blocks nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW, Cli
from tests.cli.test_bulk_kills import until
from trelliswork.cli.main import run
from trelliswork.training.exclusive import LOCK, exclusive

NETWORK = ["--epochs", "1", *WINDOW]
FEATURES = ["--model", "crf", "--max-iterations", "2"]
REFUSED = f"another run is training there (process {os.getpid()}); wait for its end, stop it, or choose another folder"


@pytest.fixture
def file(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Some sentences, where the command runs."""
    (tmp_path / "t.conll").write_text("\n\n".join((data / "dev.conll").read_text().split("\n\n")[:12]) + "\n\n")
    monkeypatch.chdir(tmp_path)
    return "t.conll"


@pytest.mark.parametrize("options", [NETWORK, FEATURES, [*NETWORK, "--seeds", "2"]], ids=["network", "crf", "seeds"])
@pytest.mark.parametrize("more", [[], ["--force"]])
def test_a_refused_run_changes_nothing(cli: Cli, file: str, options: list[str], more: list[str]) -> None:
    out = Path("m")
    with exclusive(out):
        (out / "config.toml").write_text("of the run that is going on")
        (out / ".config.toml.x1y2z3_4.part").write_text("which it is just writing")
        answer = cli("train", file, "--quiet", "--out", out, *options, *more)
        assert answer.status == 2 and f"m: {REFUSED}" in answer.err
        assert (out / "config.toml").read_text() == "of the run that is going on"
        assert (out / ".config.toml.x1y2z3_4.part").exists()
    answer = cli("train", file, "--quiet", "--out", out, *options, *more)
    assert answer.status == 0, answer.err
    assert not list(out.rglob(LOCK)) and not list(out.rglob("*.part"))


def test_one_of_several_seeds(cli: Cli, file: str) -> None:
    with exclusive(Path("m/seed-1")):
        answer = cli("train", file, "--quiet", "--out", "m", *NETWORK, "--seeds", "2")
    assert answer.status == 2 and f"{Path('m/seed-1')}: {REFUSED}" in answer.err
    assert sorted(os.listdir("m")) == ["seed-0"]


def test_a_search(cli: Cli, file: str) -> None:
    pytest.importorskip("optuna")
    command = ["tune", file, "--quiet", "--trials", "1", "--out", "s", *FEATURES]
    with exclusive(Path("s"), "tuning"):
        answer = cli(*command)
    assert answer.status == 2 and f"s: {REFUSED.replace('training', 'tuning')}" in answer.err
    Path("s").mkdir()
    Path("s/.best.toml.x1y2z3_4.part").write_text("")
    assert cli(*command).status == 0
    assert sorted(os.listdir("s")) == ["best", "best.toml", "study.log"]
    assert LOCK not in os.listdir("s/best")


def test_a_folder_of_other_files_is_not_touched(cli: Cli, file: str) -> None:
    Path("mine").mkdir()
    Path("mine/notes.part").write_text("")
    before = Path("mine").stat().st_mtime_ns
    answer = cli("train", file, "--quiet", "--out", "mine", *NETWORK)
    assert answer.status == 2 and "expected a model or an empty folder, got other files" in answer.err
    assert Path("mine").stat().st_mtime_ns == before


def kill_itself_while_it_writes_settings(command: list[str]) -> None:
    """What a forked process does; it ends here, whatever happens."""
    replace = os.replace

    def killed(source: str, target: str) -> None:
        if Path(target).name == "config.toml":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = killed  # type: ignore[assignment]
    try:
        run(command)
    finally:
        os._exit(1)


@pytest.mark.parametrize("options", [NETWORK, FEATURES], ids=["network", "crf"])
def test_a_kill_while_the_settings_are_written(cli: Cli, file: str, options: list[str]) -> None:
    command = ["train", file, "--quiet", "--out", "m", *options]
    child = os.fork()
    if child == 0:
        kill_itself_while_it_writes_settings(command)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left = sorted(os.listdir("m"))
    assert left[1:] == [LOCK] and left[0].startswith(".config.toml.") and left[0].endswith(".part")
    answer = cli(*command)
    assert answer.status == 0, answer.err
    assert not [name for name in os.listdir("m") if name.startswith(".")]


def epochs_in(folder: Path) -> int:
    file = folder / "history.jsonl"
    return file.read_text(encoding="utf-8").count("\n") if file.exists() else 0


def test_sigterm_and_ctrl_c_leave_a_run_to_resume_and_no_lock(cli: Cli, file: str) -> None:
    command, out = ["train", file, "--out", "m", *WINDOW, "--epochs", "100000"], Path("m")
    started = [sys.executable, "-m", "trelliswork", *command]
    with subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: epochs_in(out) > 0 or process.poll() is not None)
        process.terminate()
        _, messages = process.communicate()
    assert process.returncode == 143 and "Traceback" not in messages
    assert not (out / LOCK).exists() and (out / "checkpoint/state.safetensors").exists()
    n_epochs = epochs_in(out)

    def interrupt() -> None:
        until(lambda: epochs_in(out) > n_epochs)
        signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    resumed = cli(*command, "--resume")
    interrupting.join()
    assert resumed.status == 130 and "Traceback" not in resumed.err
    assert not (out / LOCK).exists() and epochs_in(out) > n_epochs > 0


def test_bad_data_leaves_no_folder(cli: Cli, file: str) -> None:
    for options in (NETWORK, FEATURES, [*NETWORK, "--seeds", "2"]):
        assert cli("train", "missing.conll", "--quiet", "--out", "a/b", *options).status == 2
        assert not Path("a").exists()


def test_features_in_the_place_of_an_unfinished_network_leave_no_checkpoint(cli: Cli, file: str) -> None:
    Path("m/checkpoint").mkdir(parents=True)
    Path("m/checkpoint/state.safetensors").write_text("")
    command = ["train", file, "--quiet", "--out", "m", *FEATURES]
    assert "holds an unfinished run" in cli(*command).err
    assert cli(*command, "--force").status == 0
    assert "checkpoint" not in os.listdir("m")
