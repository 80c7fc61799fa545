"""The public surface: every name is there, comes lazily, and the version is said once."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import trelliswork


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


def lazy_packages() -> list[str]:
    root = Path(trelliswork.__file__).parent
    files = [file for file in root.rglob("__init__.py") if "= lazy_names(" in file.read_text(encoding="utf-8")]
    return sorted(".".join(file.parent.relative_to(root.parent).parts) for file in files)


@pytest.mark.parametrize("package", lazy_packages())
def test_lazy_names_are_those_that_type_checkers_see(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = {alias.name: node.module for node in block.body for alias in node.names}
    assert len(imports) > 1 and imports.keys() <= set(module.__all__) <= set(dir(module))
    for name, home in imports.items():
        assert name not in vars(module)
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


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
