"""The public surface: every name is there, comes lazily, and the version is said once."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import trelliswork
from trelliswork import models


@pytest.mark.parametrize("name", trelliswork.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(trelliswork, name) is not None
    assert name in dir(trelliswork)


def test_the_top_level_is_small_and_each_name_comes_from_one_place() -> None:
    assert len(trelliswork.__all__) == len(set(trelliswork.__all__)) <= 32
    tree = ast.parse(Path(trelliswork.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    assert {alias.name: node.module for node in imports for alias in node.names} == trelliswork._HOME
    assert set(trelliswork.__all__) == {"TrellisworkError", *trelliswork._HOME}
    assert set(models.__all__) == set(models._HOME)


def test_only_public_names_are_listed() -> None:
    code = "import trelliswork as tw; tw.LinearChain; tw.load; print(*dir(tw))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted([*trelliswork.__all__, "__version__"])


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Trellis'"):
        trelliswork.Trellis  # noqa: B018


def test_importing_the_package_loads_neither_torch_nor_numba() -> None:
    code = "import sys, trelliswork; print(sorted({'torch', 'numba', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "trelliswork.__version__"}
