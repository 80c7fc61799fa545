"""Following a page: its commands and its Python are run, and what they print is compared with what the page says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from tests.docs.tutorials import BLOCK, same_up_to_rounding
from trelliswork.cli.main import run

# What a command says in any case, whatever the size of the data.
SAYS = {"train": "model: "}


class Step(NamedTuple):
    """A command line or a Python block, and what it should print; None if the page does not say."""

    kind: str
    text: str
    wanted: str | None


class Runner(Protocol):
    def shell(self, line: str) -> str: ...
    def python(self, code: str) -> str: ...


def steps_of(text: str) -> list[Step]:
    """The lines with a prompt, and the Python blocks with the text that follows each."""
    blocks, found = list(BLOCK.finditer(text)), list[Step]()
    for block, after in zip_longest(blocks, blocks[1:]):
        if block[1] == "python":
            follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
            found.append(Step("python", block[2], after[2] if after is not None and follows else None))
        elif block[1] in ("", "console") and "$ " in block[2]:
            for each in re.split(r"^\$ ", block[2], flags=re.M)[1:]:
                line, _, output = each.partition("\n")
                found.append(Step("shell", line, output if block[1] == "console" and output.strip() else None))
    return found


def follow(text: str, runner: Runner) -> int:
    """Run every step of a page; how many there were. What differs is an AssertionError that shows both."""
    steps = steps_of(text)
    for step in steps:
        printed = runner.shell(step.text) if step.kind == "shell" else runner.python(step.text)
        assert agrees(step, printed), f"{step.text}\nexpected:\n{step.wanted}\nprinted:\n{printed}"
    return len(steps)


def agrees(step: Step, printed: str) -> bool:
    """Whether it printed what the page says: three dots stand for anything, numbers may differ by rounding."""
    command = re.search(r"\btrelliswork (\w+)", step.text)
    if step.kind == "shell" and SAYS.get(command[1] if command else "", "") not in printed:
        return False
    if step.wanted is None or step.wanted == printed or same_up_to_rounding(step.wanted, printed):
        return True
    if "..." not in step.wanted:
        return False
    pattern = ".*".join(re.escape(part.strip("\n")) for part in step.wanted.split("..."))
    return re.fullmatch(rf"\s*{pattern}\s*", printed, re.S) is not None


def steps_of_help(runner: Runner) -> str:
    """Return a page of the commands that `trelliswork --help` proposes for one's own data, in its order."""
    printed = runner.shell("trelliswork --help")
    proposed = re.findall(r"^ +(trelliswork \w+ .*\S) *$", printed, re.M)
    assert len(proposed) >= 4, printed
    return "".join(f"```\n$ {line}\n```\n" for line in proposed)


class Here:
    """In this process, which takes less time than starting one for each command."""

    def __init__(self, folder: Path, added: Callable[[list[str]], list[str]] = lambda arguments: []) -> None:
        self.folder, self.added, self.names = folder, added, dict[str, Any](__name__="newcomer")

    def shell(self, line: str) -> str:
        given, _, command = line.rpartition(" | ")
        name, *arguments = shlex.split(command, comments=True)
        assert name == "trelliswork", f"expected a command of trelliswork, got {line}"
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.folder):
            if given:
                patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{shlex.split(given)[1]}\n".encode())))
            with (
                contextlib.redirect_stdout(io.StringIO()) as printed,
                contextlib.redirect_stderr(io.StringIO()) as told,
            ):
                status = run([*arguments, *self.added(arguments)])
        assert status == 0, f"{line}: status {status}\n{told.getvalue()}"
        return printed.getvalue()

    def python(self, code: str) -> str:
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "page", "exec"), self.names)
        return printed.getvalue()


class Installed:
    """As a newcomer does: commands in a shell, and one Python session, with what is installed in an environment."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder, self.binaries, self.before = folder, binaries, ""

    def shell(self, line: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment = {**inherited, "PATH": f"{self.binaries}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: status {done.returncode}\n{done.stderr}"
        return done.stdout

    def python(self, code: str) -> str:
        """What this block adds to what all blocks before it print."""
        program = self.folder / "newcomer.py"
        program.write_text(self.before + code, encoding="utf-8")
        whole, known = self.shell("python newcomer.py"), ""
        if self.before:
            program.write_text(self.before, encoding="utf-8")
            known = self.shell("python newcomer.py")
        self.before += code
        return whole[len(known) :]
