"""Ctrl-C at any moment, also while a library is being imported: one line, exit status 130, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LINE = "error: interrupted; no file is left half-written\n"
# Presses Ctrl-C when a module of that name is looked for.
PRESS = """
import os, signal, sys
wanted = sys.argv.pop(1)
class Pressing:
    def find_spec(self, name, path, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
from trelliswork.cli.entry import main
sys.exit(main())
"""
# Presses Ctrl-C inside a folder that is locked, with a file half written, in the import of a module.
INSIDE = """
import os, signal, sys
from pathlib import Path
from trelliswork import ctrl_c
from trelliswork.training.exclusive import exclusive
from trelliswork.writing import atomic_write
ctrl_c.install()
Path("pressing.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
sys.path.insert(0, "")
with exclusive(Path("a/m")), atomic_write("a/out.txt") as file:
    file.write("half")
    import pressing
"""


def ran(code: str, *arguments: str, cwd: Path, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=timeout)


NAMES = ("typer", "trelliswork.cli.commands.train", "numpy", "torch", "torch.nn", "numba", "llvmlite")


@pytest.mark.parametrize("name", NAMES)
def test_in_the_import_of(name: str, data: Path, tmp_path: Path) -> None:
    model = "window" if name.startswith("torch") else "crf"  # features need no torch
    arguments = ["train", str(data / "train.conll"), "--model", model, "--out", "m"]
    answer = ran(PRESS, name, *arguments, cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (130, LINE)
    assert os.listdir(tmp_path) == []


def test_what_is_held_then_is_let_go(tmp_path: Path) -> None:
    answer = ran(INSIDE, cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (130, LINE)
    (tmp_path / "pressing.py").unlink()
    left = [path.name for path in tmp_path.rglob("*") if "pycache" not in str(path)]
    assert left == []


def test_nothing_heavy_is_imported_before_ctrl_c_is_handled() -> None:
    code = "import sys, trelliswork.cli.entry; print(*(m for m in ('typing', 'pathlib', 'typer') if m in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == []


# Presses Ctrl-C while an object is destroyed, where Python prints an exception and goes on.
DESTROYED = """
import os, signal, time
from trelliswork import ctrl_c
ctrl_c.install()
class Pressing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
Pressing()
try:
    time.sleep(600)
except KeyboardInterrupt:
    ctrl_c.say_interrupted()
    raise SystemExit(ctrl_c.status())
"""


def test_in_a_destructor(tmp_path: Path) -> None:
    answer = ran(DESTROYED, cwd=tmp_path, timeout=60)
    assert (answer.returncode, answer.stderr) == (130, LINE)
