"""Programs in processes of their own that have imported little so far.

They are forked off one that has imported some modules already: to start each anew takes ten times as long.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple


class Ended(NamedTuple):
    """What a program left behind."""

    status: int
    out: str
    err: str


class Fresh:
    """Programs that begin with the modules that the process behind two pipes has imported."""

    def __init__(self, process: subprocess.Popen[str], place: Path) -> None:
        self.process, self.place = process, place

    def run(self, program: str, *arguments: str, folder: Path | None = None) -> Ended:
        """Run Python code as `python -c` does, in a folder."""
        assert self.process.stdin is not None and self.process.stdout is not None
        given = {"program": program, "arguments": arguments, "folder": str(folder or Path.cwd())}
        print(json.dumps(given), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        return Ended(status, *((self.place / name).read_text(encoding="utf-8") for name in ("out", "err")))


@contextmanager
def fresh(*modules: str) -> Iterator[Fresh]:
    """Inside, programs are run with these modules imported, and what they import; but for those that are not there."""
    with TemporaryDirectory() as place:
        command = [sys.executable, "-m", "tests.fresh", place, *modules]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, cwd=Path(__file__).parents[1], text=True, **pipes) as process:
            yield Fresh(process, Path(place))


def main(place: Path, *modules: str) -> None:
    """Run a program for each line of standard input, and say its status."""
    sys.path[0] = ""  # as with `python -c`
    for name in modules:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_ran(json.loads(line), place))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _ran(given: dict[str, Any], place: Path) -> int:
    for number, name in enumerate(("in", "out", "err")):
        path = os.devnull if name == "in" else place / name
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(given["folder"])
    sys.argv = ["-c", *given["arguments"]]
    status = 0
    try:
        exec(compile(given["program"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
