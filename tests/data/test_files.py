"""Writing all or nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trelliswork.data import atomic_write, open_text
from trelliswork.errors import OutputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.txt") as file:
        file.write("é\n")
        assert not (tmp_path / "a.txt").exists()
    with atomic_write(tmp_path / "b.bin", "wb") as file:
        file.write(b"\x00\x01")
    assert (tmp_path / "a.txt").read_bytes() == "é\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\x01"
    assert names(tmp_path) == ["a.txt", "b.bin"]
    with open_text(tmp_path / "a.txt") as lines:
        assert list(lines) == ["é"]


def test_permissions_are_ordinary(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with atomic_write(tmp_path / "ours") as file:
        file.write("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_error_inside_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "quota"), (errno.EIO, "Input/output error")],
)
def test_failing_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, message: str) -> None:
    def fail(handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=message), atomic_write(tmp_path / "a.txt") as file:
        file.write("x")
    assert names(tmp_path) == []


def test_bad_targets(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, message in [
        (tmp_path, "expected a file, got a folder"),
        (tmp_path / "no" / "a.txt", "the folder does not exist"),
        (tmp_path / "file" / "a.txt", "a part of the path is a file"),
    ]:
        with pytest.raises(OutputError, match=message), atomic_write(path) as file:
            file.write("x")


def test_errors_about_other_files_pass_untouched(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a.txt"):
        (tmp_path / "elsewhere").read_text()
    assert names(tmp_path) == []


def test_unwritable_folder(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="no permission"), atomic_write(tmp_path / "a.txt"):
        pass


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_write(tmp_path / "link.txt") as file:
        file.write("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with atomic_write(pipe) as file:
            file.write("through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_device_is_named_and_left_as_it_is() -> None:
    with (
        pytest.raises(OutputError, match="/dev/full: cannot be written: the disk is full"),
        atomic_write("/dev/full") as file,
    ):
        file.write("x" * 100_000)
    assert Path("/dev/full").is_char_device()


TO_STREAM = """
import sys
from trelliswork.writing import atomic_write
print("before")
with atomic_write(sys.argv[1]) as file:
    file.write("through\\n")
print("after")
"""


@pytest.mark.parametrize(
    ("name", "stream"), [("/dev/stdout", "stdout"), ("/dev/fd/1", "stdout"), ("/dev/stderr", "stderr")]
)
def test_an_open_stream_is_written_to(name: str, stream: str) -> None:
    if not os.path.exists(name):
        pytest.skip(f"this system has no {name}")
    answer = subprocess.run([sys.executable, "-c", TO_STREAM, name], capture_output=True, text=True, check=True)
    expected = {"stdout": ("before\nthrough\nafter\n", ""), "stderr": ("before\nafter\n", "through\n")}
    assert (answer.stdout, answer.stderr) == expected[stream]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
def test_a_file_behind_a_stream_is_not_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("earlier\n")
    with path.open("a") as file:
        subprocess.run([sys.executable, "-c", TO_STREAM, "/dev/stdout"], stdout=file, check=True)
    assert path.read_text() == "earlier\nbefore\nthrough\nafter\n"
    assert names(tmp_path) == ["log"]


def test_nothing_is_left_of_what_goes_to_the_null_device() -> None:
    with atomic_write(os.devnull) as file:
        file.write("x")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["n" * 255, "\u00e9" * 127])
def test_long_names(tmp_path: Path, name: str) -> None:
    for text in ("one", "two"):
        with atomic_write(tmp_path / name) as file:
            file.write(text)
    assert (tmp_path / name).read_text() == "two" and names(tmp_path) == [name]


def test_names_that_are_too_long_are_refused_at_once(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="n: cannot be written: the name is too long; choose a shorter one"),
        atomic_write(tmp_path / ("n" * 256)),
    ):
        pytest.fail("too late")
