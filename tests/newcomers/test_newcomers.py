"""The paths of newcomers, followed on small files inside the tests."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from tests.newcomers.corpora import cut_names
from tests.newcomers.following import Here, Installed, Step, agrees, follow, steps_of, steps_of_help
from tests.newcomers.paths import PATHS, page_of, targets

SHORT = {
    "crf": ["--max-iterations", "10"],
    "biaffine": [
        "--epochs", "1", "--hidden", "16", "--word-dim", "8", "--arc-dim", "8", "--label-dim", "8"
    ],
}  # fmt: skip


def shorter(arguments: list[str]) -> list[str]:
    """Return options that make a command take a second or two."""
    if arguments[0] != "train":
        return []
    model = arguments[arguments.index("--model") + 1] if "--model" in arguments else "crf"
    return SHORT.get(model, [])


SMALL = (100, 20, 20)


@pytest.mark.parametrize("path", ["practitioner", "researcher", "linguist", "contributor"])
def test_a_newcomer_gets_there(path: str, tmp_path: Path) -> None:
    PATHS[path].write_files(tmp_path, SMALL)
    assert follow(page_of(path), Here(tmp_path, shorter))
    assert path != "practitioner" or {"report.html", "tagged.conll", "votes.html"} <= set(os.listdir(tmp_path))


def test_no_dutch_name_is_cut(tmp_path: Path) -> None:
    path = "practitioner with Dutch"
    PATHS[path].write_files(tmp_path, SMALL)
    assert follow(page_of(path), Here(tmp_path, shorter))
    assert cut_names(tmp_path) == []


def test_one_who_switches_gets_there(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    assert follow(page_of("switching"), Here(tmp_path, shorter))


def test_a_service_gets_there(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    PATHS["service"].write_files(tmp_path, SMALL)
    assert follow(page_of("service"), Installed(tmp_path, Path(sys.executable).parent))


def test_help_alone_is_enough(tmp_path: Path) -> None:
    PATHS["help only"].write_files(tmp_path, SMALL)
    runner = Here(tmp_path, shorter)
    assert follow(steps_of_help(runner), runner)


def test_the_targets_of_contributors_exist() -> None:
    named = targets(page_of("contributor"))
    made = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert {"test", "quick"} <= named <= made


PAGE = """
```console
$ echo 'x' | trelliswork predict m -
x ... 12.5%
$ trelliswork info m
```
```python
print(1 + 1)
```
```text
2
```
"""


def test_steps_of_a_page() -> None:
    assert steps_of(PAGE) == [
        Step("shell", "echo 'x' | trelliswork predict m -", "x ... 12.5%\n"),
        Step("shell", "trelliswork info m", None),
        Step("python", "print(1 + 1)\n", "2\n"),
    ]


@pytest.mark.parametrize(
    ("wanted", "printed", "same"),
    [
        ("2\n", "2\n", True), ("2\n", "3\n", False), ("p = 0.517\n", "p = 0.518\n", True),
        ("a ... c\n", "a b\nb c\n", True),
        ("a ... c\n", "a b\n", False), ("...\nmodel: m\n...\n", "x\nmodel: m\ny\n", True), (None, "anything", True),
    ],
)  # fmt: skip
def test_what_is_printed_is_compared(wanted: str | None, printed: str, same: bool) -> None:
    assert agrees(Step("python", "", wanted), printed) is same


def test_a_command_must_say_what_it_always_says() -> None:
    assert not agrees(Step("shell", "trelliswork train x --out m", None), "nothing")


def test_python_of_a_page_is_one_session(tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "python").write_text('#!/bin/sh\nexec python3 "$@"\n')
    (binaries / "python").chmod(0o755)
    session = Installed(tmp_path, binaries)
    assert session.python("x = 1\nprint('first')\n") == "first\n" and session.python("print(x + 1)\n") == "2\n"
    with pytest.raises(AssertionError, match="status 3"):
        session.shell("exit 3")
