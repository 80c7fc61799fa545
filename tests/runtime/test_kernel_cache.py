"""Machine code on disk: found again, never used for other code, other tools or another processor, never in the way."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from tests.fresh import Ended, Fresh, fresh
from trelliswork.runtime import kernel_cache

PACKAGE = kernel_cache.PACKAGE
ENTER = """
import json, os, sys
os.environ.clear()
os.environ.update(json.loads(sys.argv[1]))
sys.path.insert(0, os.environ["PYTHONPATH"])
import numba, trelliswork
assert trelliswork.__file__.startswith(os.environ["PYTHONPATH"])
numba.config.reload_config()
"""
USE = """
import numpy as np
from trelliswork.runtime.kernel_math import highest
assert highest(np.array([1.0, 3.0, 2.0]), 3) == 3.0
"""


PROGRAMS: Fresh


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    """Processes that have imported numba, and nothing of the package."""
    global PROGRAMS
    with fresh("tests.runtime.ready_numba") as PROGRAMS:
        yield


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The part of the package that a small kernel needs, with nothing compiled."""
    target = tmp_path / "site" / "trelliswork"
    shutil.copytree(PACKAGE / "runtime", target / "runtime", ignore=shutil.ignore_patterns("__pycache__", "shipped"))
    for file in PACKAGE.glob("*.py"):
        shutil.copy(file, target)
    return target


@pytest.fixture
def whole_copy(tmp_path: Path) -> Path:
    target = tmp_path / "site" / "trelliswork"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__", "shipped"))
    return target


def run(program: str, package: Path, **settings: str) -> Ended:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    places = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package.parent / "home")}
    return PROGRAMS.run(ENTER + program, json.dumps({**kept, **places, **settings}))


def use(package: Path, **settings: str) -> Ended:
    done = run(USE, package, **settings)
    assert done.status == 0, done.err
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
    assert use(copy).err == ""
    assert [file.parent for file in files(copy.parent)] == [copy.parent / "home" / "trelliswork" / "runtime"]
    assert not is_compiled_again(copy)


def test_without_any_folder_kernels_are_compiled_in_memory_with_one_note(copy: Path) -> None:
    block_caches(copy)
    done = use(copy)
    assert done.err.count("no folder for compiled kernels can be written") == 1
    assert "NUMBA_CACHE_DIR" in done.err
    assert use(copy, NUMBA_CACHE_DIR=str(copy.parent / "chosen")).err == ""


@pytest.mark.thorough
def test_the_command_line_prints_it_as_a_note(whole_copy: Path) -> None:
    block_caches(whole_copy)
    script = f"from trelliswork.cli import compiling\ndef compile_one(names, **options):\n{indent(USE, ' ')}\n"
    script += "compiling.warm_up = compile_one\nfrom trelliswork.cli.entry import main\nraise SystemExit(main())"
    command = [sys.executable, "-c", script, "warmup", "--quiet"]
    home = whole_copy.parent / "home"
    environment = {**os.environ, "PYTHONPATH": str(whole_copy.parent), "XDG_CACHE_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=whole_copy.parent)
    assert (done.returncode, done.stdout) == (0, "")
    assert (
        done.stderr.startswith("note: no folder for compiled kernels can be written by you alone; ")
        and done.stderr.count("\n") == 1
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


POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has no owners and modes")
AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root changes owners")
NOBODY = 65534


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def notes(package: Path, **settings: str) -> list[str]:
    """What a process says of files that it does not load."""
    lines = use(package, **settings).err.splitlines()
    return [line for line in lines if "is not loaded, as another user may have written it" in line]


@POSIX
def test_folders_are_made_for_their_user_alone(copy: Path) -> None:
    chosen = copy.parent / "made" / "here"
    use(copy, NUMBA_CACHE_DIR=str(chosen))
    [file] = files(chosen)
    assert {mode(folder) for folder in file.parents if folder.is_relative_to(chosen.parent)} == {0o700}
    assert mode(file) == 0o600
    use(copy)
    [beside] = files(copy)
    assert (mode(beside.parent), mode(beside)) == (0o755, 0o644), "those who can read the source can read its kernels"


@POSIX
@pytest.mark.parametrize("what", ["file", "folder"])
@pytest.mark.parametrize("change", [0o020, 0o002, "owner"])
def test_what_others_may_have_written_is_compiled_again_with_one_note(copy: Path, what: str, change: int | str) -> None:
    if change == "owner" and os.geteuid() != 0:
        pytest.skip("only root changes owners")
    chosen = copy.parent / "chosen"
    use(copy, NUMBA_CACHE_DIR=str(chosen))
    [file] = files(chosen)
    changed = file if what == "file" else file.parent
    if isinstance(change, int):
        changed.chmod(mode(changed) | change)
    else:
        os.chown(changed, NOBODY, NOBODY)
    before = file.stat().st_mtime_ns
    assert len(notes(copy, NUMBA_CACHE_DIR=str(chosen))) == 1
    if what == "file":  # a new one takes its place
        assert file.stat().st_mtime_ns != before and mode(file) == 0o600
        assert notes(copy, NUMBA_CACHE_DIR=str(chosen)) == []
    else:
        assert file.stat().st_mtime_ns == before, "nothing is kept where others write"


@POSIX
def test_a_file_of_others_is_never_unpickled(copy: Path) -> None:
    """A planted file with the right name and checksum runs code when it is loaded."""
    chosen, proof = copy.parent / "chosen", copy.parent / "proof"
    use(copy, NUMBA_CACHE_DIR=str(chosen))
    [file] = files(chosen)
    payload = pickle.dumps(Planted(str(proof)))
    file.write_bytes(hashlib.sha256(payload).digest() + payload)
    file.chmod(0o666)
    use(copy, NUMBA_CACHE_DIR=str(chosen))
    assert not proof.exists()
    file.write_bytes(hashlib.sha256(payload).digest() + payload)
    use(copy, NUMBA_CACHE_DIR=str(chosen))
    assert proof.exists(), "the planted file would have run"


class Planted:
    def __init__(self, proof: str) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.proof),)


@POSIX
def test_a_folder_like_tmp_may_be_written_by_all(copy: Path) -> None:
    """With its sticky bit, files there stay their owners'."""
    chosen = copy.parent / "chosen"
    use(copy, NUMBA_CACHE_DIR=str(chosen))
    [file] = files(chosen)
    file.parent.chmod(0o1777)
    assert not is_compiled_again(copy, NUMBA_CACHE_DIR=str(chosen))


@POSIX
@AS_ROOT
def test_what_root_installed_is_used_by_everybody(copy: Path) -> None:
    use(copy)
    script = f"""
import os
import numpy as np
from trelliswork.runtime.kernel_math import highest
highest(np.ones(1, np.float32), 1)  # what is imported on the way may not be readable later
os.setgid({NOBODY})
os.setuid({NOBODY})
highest(np.ones(1), 1)
print(sorted(str(signature[0].dtype) for signature in highest.stats.cache_hits))
"""
    with tempfile.TemporaryDirectory() as folder:  # that of the test is for its user alone
        Path(folder).chmod(0o755)
        shutil.copytree(copy, Path(folder) / copy.name)
        done = run(script, Path(folder) / copy.name, XDG_CACHE_HOME="/nonexistent")
    assert done == (0, "['float64']\n", "")


@POSIX
@AS_ROOT
def test_root_keeps_kernels_of_its_own_next_to_those_of_a_mounted_volume(copy: Path) -> None:
    """In a container, the sources and what was compiled next to them may belong to a user of the host."""
    use(copy)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    [theirs] = files(copy)
    assert len(notes(copy)) == 1
    assert [file.parent for file in files(copy.parent / "home")] == [copy.parent / "home" / "trelliswork" / "runtime"]
    assert files(copy) == [theirs] and theirs.stat().st_uid == NOBODY
    assert notes(copy) == [] and not is_compiled_again(copy), "once"


def test_this_file_is_no_part_of_any_kernel(copy: Path) -> None:
    use(copy)
    cache = copy / "runtime" / "kernel_cache.py"
    cache.write_text(cache.read_text() + "\n# another line\n")
    assert not is_compiled_again(copy)


def test_a_kernel_may_not_close_over_variables() -> None:
    outer = 3

    def inner() -> int:
        return outer

    with pytest.raises(TypeError, match="closes over variables"):
        kernel_cache.KernelCache(inner, ())
