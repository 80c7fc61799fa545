"""Every public name is in the reference, with an example that runs."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import trelliswork
from tests.docs.commands_page import PAGE as COMMANDS_PAGE
from tests.docs.commands_page import page as commands_page
from tests.docs.tutorials import DOCS, other_pages, steps_of

pytest.importorskip("sphinx", reason="the extra docs is not installed")
pytest.importorskip("sklearn", reason="an extra of the package is not installed")
sys.path.insert(0, str(DOCS))

from _site import reference

PAGES = [page for page in other_pages() if page.parent.name == "reference"]
NAMES = sorted(
    {(reference.shortest(module, name), name) for module in reference.MODULES for name in reference.public(module)}
)


def shown_modules() -> set[str]:
    texts = [page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")]
    return {module for text in texts for module in re.findall(r"^```\{names\} (\S+)$", text, re.M)}


def test_every_public_module_is_shown() -> None:
    assert shown_modules() == set(reference.MODULES)


def test_every_module_of_the_top_level_is_public() -> None:
    modules = {
        getattr(trelliswork, name).__name__
        for name in trelliswork.__all__
        if inspect.ismodule(getattr(trelliswork, name))
    }
    assert modules <= set(reference.MODULES)


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_name_is_described(module: str) -> None:
    for name in reference.public(module):
        home = reference.shortest(module, name)
        text = reference.described(home, name)
        assert isinstance(getattr(import_module(home), name), ModuleType) or f"{home}.{name}" in text


def test_every_name_has_an_example_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctest of its docstring, or a block of a page of the reference, which `test_tutorials.py` runs."""
    monkeypatch.chdir(tmp_path)
    used = {
        name for page in PAGES for step in steps_of(page.read_text(encoding="utf-8")) for name in used_in(step.code)
    }
    without = [f"{home}.{name}" for home, name in NAMES if name not in used and not doctest_runs(home, name)]
    assert not without, f"write an example: {without}"


def used_in(code: str) -> set[str]:
    """What a block takes from a module: by attribute, or by import."""
    nodes = list(ast.walk(ast.parse(code)))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def doctest_runs(home: str, name: str) -> bool:
    module = import_module(home)
    found: Any = getattr(module, name)
    doc = inspect.getdoc(found) or ""
    if ">>>" not in doc:
        return False
    own = vars(sys.modules.get(getattr(found, "__module__", ""), module))
    scope = {**vars(trelliswork), **vars(module), **own, "torch": torch, "trelliswork": trelliswork}
    test = doctest.DocTestParser().get_doctest(doc, scope, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert not runner.failures, f"{home}.{name}: {''.join(said)}"
    return True


def test_a_docstring_becomes_markdown() -> None:
    found = reference.markdown("Sum of <all>.\n\n>>> 1 + 1\n2\n\nMore.")
    assert found == "Sum of &lt;all>.\n\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."


def test_sections_of_arguments_become_lists() -> None:
    doc = (
        "Sum.\n\nArgs:\n    x: A <b>,\n        more.\n    kind: One of\n\n        - `1`;\n\nReturns:\n    It.\n\n"
        "    >>> 1 + 1\n    2"
    )
    expected = (
        "Sum.\n\n__Arguments__\n\n- `x`: A &lt;b>,\n  more.\n- `kind`: One of\n\n  - `1`;\n\n"
        "__Returns__\n\nIt.\n\n\n```pycon\n>>> 1 + 1\n2\n```"
    )
    assert reference.markdown(doc) == expected


def test_the_page_of_commands_is_made_from_the_commands() -> None:
    assert COMMANDS_PAGE.read_text(encoding="utf-8") == commands_page(), "run python -m tests.docs.commands_page"
