"""The first steps for those who switch: a table of calls that the real signatures agree with."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

from tests.docs.tutorials import DOCS
from trelliswork import nn

SWITCHING = (DOCS / "start" / "switching.md").read_text(encoding="utf-8")


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
