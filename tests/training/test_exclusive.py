"""The lock of a folder: one run at a time, and no harm to anything else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trelliswork.data import Sentence
from trelliswork.errors import OutputError
from trelliswork.models import FeatureTagger, LearningConfig
from trelliswork.models.storage import check_output
from trelliswork.training import exclusive as module
from trelliswork.training.exclusive import LOCK, exclusive

HOLD = """
import sys
from pathlib import Path
from trelliswork.training.exclusive import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_is_as_it_was_afterwards(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "new" / "inner"):
        with exclusive(folder):
            assert names(folder) == [LOCK]
            check_output(folder)  # a lock does not make a folder occupied
    assert names(tmp_path) == ["empty"] and names(tmp_path / "empty") == []


def test_what_is_written_inside_stays(tmp_path: Path) -> None:
    with exclusive(tmp_path / "m"):
        (tmp_path / "m" / "config.toml").write_text("")
    assert names(tmp_path / "m") == ["config.toml"]


def test_a_second_run_is_refused_whatever_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "m")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == b"held\n"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    with pytest.raises(OutputError, match="another run is training there"), exclusive(tmp_path / "m"):
        pass
    assert names(tmp_path / "m") == [LOCK], "a refused run leaves the lock alone"
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    with exclusive(tmp_path / "m"):
        pass
    assert names(tmp_path / "m") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_hold_the_lock(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with exclusive(tmp_path / "m"):
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the test is over
            os._exit(0)
    try:
        with exclusive(tmp_path / "m"):
            pass
    finally:
        os.close(writing)
        os.waitpid(child, 0)
        os.close(reading)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_that_leaves_the_block_does_not_free_the_folder(tmp_path: Path) -> None:
    with exclusive(tmp_path):
        child = os.fork()
        if child == 0:
            module._release(tmp_path / LOCK, next(iter(module._descriptors), -1))
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(OutputError, match="another run is training there"), exclusive(tmp_path):
            pass


def test_a_machine_of_another_name_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with exclusive(tmp_path, "tuning"):
        here = module.platform.node()
        monkeypatch.setattr(module.platform, "node", lambda: "elsewhere")
        message = rf"another run is tuning there \(process {os.getpid()} on {here}\); wait"
        with pytest.raises(OutputError, match=message), exclusive(tmp_path):
            pass


@pytest.mark.parametrize("text", ["precious", ""])
@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_file_that_the_lock_is_linked_to_is_left_alone(tmp_path: Path, make: object, text: str) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "m"
    victim.write_text(text)
    folder.mkdir()
    make(victim, folder / LOCK)  # type: ignore[operator]
    if make is os.link:
        with exclusive(folder):
            pass
    else:
        message = r"\.trelliswork\.lock: expected to lock the folder by this file, got .*; remove it or choose"
        with pytest.raises(OutputError, match=message), exclusive(folder):
            pass
    assert victim.read_text() == text


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_cannot_be_a_lock(tmp_path: Path, make: object) -> None:
    make(tmp_path / LOCK)  # type: ignore[operator]
    with pytest.raises(OutputError, match="expected to lock the folder by this file"), exclusive(tmp_path):
        pass


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("")
    with pytest.raises(OutputError, match=r"m: cannot be made: .*; choose another folder"), exclusive(tmp_path / "m"):
        pass


def test_a_lock_whose_file_was_removed_meanwhile_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, opened = module._open, []

    def racing(path: Path) -> int:
        descriptor = own(path)
        opened.append(descriptor)
        if len(opened) == 1:
            path.unlink()  # as the run that ends just now does
        return descriptor

    monkeypatch.setattr(module, "_open", racing)
    with exclusive(tmp_path):
        assert len(opened) == 2
        with pytest.raises(OutputError, match="another run"), exclusive(tmp_path):
            pass


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with exclusive(tmp_path):
        pass


def test_half_written_files_of_dead_runs_go_and_others_stay(tmp_path: Path) -> None:
    out = tmp_path / "m"
    (out / "checkpoint").mkdir(parents=True)
    ours = (".config.toml.x1y2z3_4.part", "checkpoint/.state.safetensors.part", "checkpoint/best-1.safetensors")
    theirs = (".notes.part", ".config.toml.part", "config.toml")
    for name in (*ours, *theirs):
        (out / name).write_text("")
    with exclusive(out):
        assert names(out) == sorted([LOCK, *theirs])


def test_a_whole_checkpoint_stays(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("state.safetensors", "best-1.safetensors", ".best-2.safetensors.part"):
        (folder / name).write_text("")
    with exclusive(tmp_path):
        assert names(folder) == ["best-1.safetensors", "state.safetensors"]


def test_saving_from_python_respects_the_lock(tmp_path: Path) -> None:
    train = [Sentence(("Ann", "sings"), ("B-PER", "O"))] * 2
    tagger = FeatureTagger.fit(train, LearningConfig(max_iterations=2))
    tagger.save(tmp_path / "m")
    with exclusive(tmp_path / "m"):
        tagger.save(tmp_path / "m")  # by the one who holds it
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "m")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    with pytest.raises(OutputError, match="another run is training there"):
        tagger.save(tmp_path / "m")
    process.kill()
    process.wait()
    tagger.save(tmp_path / "m")
    assert LOCK not in names(tmp_path / "m")
