"""Machine code on disk: found again, never used for other code, other tools or another processor, never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from trelliswork.runtime import kernel_cache

PACKAGE = kernel_cache.PACKAGE
USE = """
import numpy as np
from trelliswork.runtime.kernel_math import highest
assert highest(np.array([1.0, 3.0, 2.0]), 3) == 3.0
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package with nothing compiled."""
    target = tmp_path / "site" / "trelliswork"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def use(package: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment = {
        **kept,
        "PYTHONPATH": str(package.parent),
        "XDG_CACHE_HOME": str(package.parent / "home"),
        **settings,
    }
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"kernel_math.highest-*{kernel_cache.SUFFIX}"))


def is_compiled_again(package: Path, **settings: str) -> bool:
    before = {file.name: file.stat().st_mtime_ns for file in files(package.parent)}
    use(package, **settings)
    return {file.name: file.stat().st_mtime_ns for file in files(package.parent)} != before


def test_a_kernel_is_compiled_once(copy: Path) -> None:
    assert is_compiled_again(copy)
    assert not is_compiled_again(copy)
    assert [file.parent for file in files(copy)] == [copy / "runtime" / "__pycache__"]


@pytest.mark.thorough
def test_other_sources_versions_settings_and_processors_are_other_code(copy: Path) -> None:
    use(copy)
    assert is_compiled_again(copy, NUMBA_OPT="1")
    assert is_compiled_again(copy, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    options, version = copy / "runtime" / "compilation.py", copy / "__init__.py"
    options.write_text(options.read_text().replace('{"reassoc", "arcp"}', '{"reassoc"}'))
    assert is_compiled_again(copy), "a file that the kernel's own file imports"
    assert len(files(copy)) == 1, "code of earlier sources goes"
    version.write_text(version.read_text() + '\n__version__ = "0.0.0"\n')
    assert is_compiled_again(copy)


def test_a_damaged_file_is_compiled_again(copy: Path) -> None:
    use(copy)
    [file] = files(copy)
    sound = file.read_bytes()
    for damaged in (b"", b"short", sound[:-1] + bytes([sound[-1] ^ 1])):
        file.write_bytes(damaged)
        assert is_compiled_again(copy), damaged[:10]
    assert not is_compiled_again(copy)


def block_caches(package: Path) -> None:
    """Nobody can make a folder where a file is, not even root."""
    for folder in {file.parent for file in package.rglob("*.py")}:
        (folder / "__pycache__").touch()
    (package.parent / "home").touch()


@pytest.mark.thorough
def test_without_a_folder_beside_the_source_the_users_own_is_used(copy: Path) -> None:
    (copy / "runtime" / "__pycache__").touch()
    assert use(copy).stderr == ""
    assert [file.parent for file in files(copy.parent)] == [copy.parent / "home" / "trelliswork" / "runtime"]
    assert not is_compiled_again(copy)


def test_without_any_folder_kernels_are_compiled_in_memory_with_one_note(copy: Path) -> None:
    block_caches(copy)
    done = use(copy)
    assert done.stderr.count("no folder for compiled kernels can be written") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert use(copy, NUMBA_CACHE_DIR=str(copy.parent / "chosen")).stderr == ""


@pytest.mark.thorough
def test_the_command_line_prints_it_as_a_note(copy: Path) -> None:
    block_caches(copy)
    script = f"from trelliswork.cli.commands import warmup\ndef compile_one():\n{indent(USE, ' ')}\n"
    script += "warmup.compile_kernels = compile_one\nfrom trelliswork.cli.entry import main\nraise SystemExit(main())"
    command = [sys.executable, "-c", script, "warmup", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "XDG_CACHE_HOME": str(copy.parent / "home")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=copy.parent)
    assert (done.returncode, done.stdout) == (0, "")
    assert (
        done.stderr.startswith("note: no folder for compiled kernels can be written; ") and done.stderr.count("\n") == 1
    )


@pytest.mark.thorough
def test_a_full_disk_is_a_note_too(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the size of files stands in for the disk."""
    script = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    script += "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n" + USE
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "XDG_CACHE_HOME": str(copy.parent / "home")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "no folder for compiled kernels can be written" in done.stderr
    assert not list(copy.parent.rglob("*.part")) and not files(copy.parent)


@pytest.mark.thorough
def test_two_processes_compile_at_once(copy: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    both = [subprocess.Popen([sys.executable, "-c", USE], env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(files(copy)) == 1 and not list(copy.rglob("*.part"))
    assert not is_compiled_again(copy)


def test_a_kernel_may_not_close_over_variables() -> None:
    outer = 3

    def inner() -> int:
        return outer

    with pytest.raises(TypeError, match="closes over variables"):
        kernel_cache.KernelCache(inner, ())
