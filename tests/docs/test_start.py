"""The first steps: commands that run, and a table of calls that the real signatures agree with."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.docs.tutorials import DOCS
from trelliswork import nn
from trelliswork.cli.main import run
from trelliswork.data.corpus import builtin_corpus, write_corpus

SWITCHING = (DOCS / "start" / "switching.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def section(title: str) -> list[tuple[str, str]]:
    """The rows of the table below a heading: (old call, new call), an empty old call where there was none."""
    text = SWITCHING[SWITCHING.index(f"## {title}") :].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^`]+`|–) \| `([^`]+)` \|$", text, re.M)
    assert rows, title
    return [(old.strip("`–"), new) for old, new in rows]


def agrees(call: str, classes: dict[str, Any]) -> None:
    """The call is one that the class takes: `CRF(...)` or `CRF.method(...)`."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    path = ast.unparse(node.func).split(".")
    found, bound = classes[path[0]], []
    if len(path) == 2:
        function = inspect.getattr_static(found, path[1])
        found = getattr(found, path[1])
        bound = [] if isinstance(function, classmethod | staticmethod) else [None]
    inspect.signature(found).bind(*bound, *(None for _ in node.args), **{each.arg: None for each in node.keywords})


def test_calls_of_pytorch_crf() -> None:
    torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")
    for old, new in section("From pytorch-crf"):
        if old:
            agrees(old, {"CRF": torchcrf.CRF})
        else:
            assert not hasattr(torchcrf.CRF, new.partition("(")[0].partition(".")[2]), f"{new} exists there too"
        agrees(new, {"CRF": nn.CRF})


def test_calls_of_sklearn_crfsuite() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from tests.test_sklearn_crfsuite import ARGUMENTS
    from trelliswork.sklearn import CRF

    for old, new in section("From sklearn-crfsuite"):
        if old.startswith("CRF("):
            given = [each.arg for each in ast.parse(old, mode="eval").body.keywords]  # type: ignore[attr-defined]
            assert set(given) <= set(ARGUMENTS)
        agrees(new, {"CRF": CRF})


def test_calls_of_python_crfsuite() -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from trelliswork.sklearn import CRF

    for old, new in section("From CRFsuite's Python binding"):
        kind, method = old.partition("(")[0].split(".")
        assert callable(getattr(getattr(pycrfsuite, kind), method)), old
        agrees(new, {"CRF": CRF})


def test_the_check_of_calls_sees_wrong_ones() -> None:
    with pytest.raises(TypeError):
        agrees("CRF.decode(emissions, masks=mask)", {"CRF": nn.CRF})
    with pytest.raises(AttributeError):
        agrees("CRF.decod(emissions)", {"CRF": nn.CRF})


def test_the_commands_of_the_practitioner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command as it is printed, in a folder with the files of the demo; lines that are shown are printed."""
    monkeypatch.chdir(tmp_path)
    write_corpus(builtin_corpus(sizes=(150, 30, 30)), tmp_path)
    Path("story.txt").write_text("Dr Jordan visited Lincoln on Monday.", encoding="utf-8")
    blocks = CONSOLE.findall((DOCS / "start" / "practitioner.md").read_text(encoding="utf-8"))
    assert len(blocks) == 6
    for block in blocks:
        lines = block.splitlines()
        for line in (line for line in lines if line.startswith("$ ")):
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "trelliswork" and run(arguments) == 0, line
        printed = capsys.readouterr()
        for shown in (line.rstrip(".") for line in lines if not line.startswith("$ ") and line != "..."):
            assert shown in printed.out + printed.err, f"{shown!r} is not printed by {lines[0]}"
    assert {"report.html", "tagged.conll", "story.jsonl", "votes.html"} <= {each.name for each in tmp_path.iterdir()}
