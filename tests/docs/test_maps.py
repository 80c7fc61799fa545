"""The maps at the top of `structures/*/`: every module is named, and every module that is named is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.test_layers import PACKAGE

FOLDERS = sorted(each.parent for each in (PACKAGE / "structures").glob("*/__init__.py"))
NAMED = re.compile(r"^(?:\w+(?:\.py|/)(?:, )?)+", re.MULTILINE)  # at the beginning of a line
SUBSET = PACKAGE.parent.parent / "examples" / "plugin" / "trelliswork_example" / "subset.py"


def named_in(text: str) -> set[str]:
    """Return the modules and folders that the lines of a map begin with."""
    return {name for line in NAMED.findall(text) for name in re.findall(r"\w+(?:\.py|/)", line)}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_map_names_every_module(folder: Path) -> None:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = {each.name for each in folder.glob("*.py")} - {"__init__.py"}
    folders = {f"{each.parent.name}/" for each in folder.glob("*/__init__.py")}
    assert named_in(docstring) == modules | folders


def test_what_a_map_names_is_read() -> None:
    assert named_in("Title, see x.py.\n\na.py, b.py    both\nc/, d.py   e.py\n  f.py") == {"a.py", "b.py", "c/", "d.py"}


def test_a_structure_from_outside_is_short() -> None:
    assert len(SUBSET.read_text(encoding="utf-8").splitlines()) < 150
