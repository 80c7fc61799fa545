"""The programs of this folder use every public name, and mypy reads them as under --strict (`make lint`)."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
FAMILIES = "data distributions draw errors fst metrics models nn semirings terms text training web"
MODULES = ("", *(f".{name}" for name in FAMILIES.split()))


def public_names(module: str) -> set[str]:
    """Those of `__all__`; of the errors all classes."""
    found = importlib.import_module(module)
    return set(getattr(found, "__all__", [name for name, each in vars(found).items() if isinstance(each, type)]))


def used_names(source: str) -> set[tuple[str, str]]:
    """(module, name) for each `module.name` and each `from module import name` of a program."""
    tree, modules, found = ast.parse(source), {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module, alias.name) for alias in node.names}
            modules.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            found.add((modules[node.value.id], node.attr))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_used(module: str) -> None:
    programs = [file for file in FOLDER.glob("*.py") if not file.name.startswith(("test_", "__"))]
    used = {each for file in programs for each in used_names(file.read_text(encoding="utf-8"))}
    homes = {f"trelliswork{module}", "trelliswork"}  # `tw.LinearChain` is `distributions.LinearChain`
    names = public_names(f"trelliswork{module}")
    assert names and names - {name for home, name in used if home in homes} == set()


def test_mypy_reads_them_strictly() -> None:
    """What --strict means to the installed mypy is switched on, for these programs or for all."""
    said = subprocess.run([sys.executable, "-m", "mypy", "--help"], capture_output=True, text=True, check=True).stdout
    flags = re.sub(r"\s+", "", said.partition("enables the following flags:")[2].partition("--disable-error-code")[0])
    strict = [flag.strip("-").replace("-", "_") for flag in flags.split(",")]
    assert len(strict) > 8 and "tests/typing" in MYPY["files"]
    settings = {name: each for each in MYPY["overrides"] for name in each["module"] if isinstance(each["module"], list)}
    settings |= {each["module"]: each for each in MYPY["overrides"] if isinstance(each["module"], str)}
    assert settings["trelliswork.*"]["implicit_reexport"] is False
    own = MYPY | settings["tests.typing.*"]
    assert [flag for flag in strict if own.get(flag) is not True] == ["no_implicit_reexport"]


def test_uses_are_seen() -> None:
    program = "import trelliswork as tw\nfrom trelliswork import data\nfrom trelliswork.web import Client\n"
    used = used_names(program + "tw.load; data.Sentence")
    assert used >= {("trelliswork", "load"), ("trelliswork", "data"), ("trelliswork.web", "Client")}
    assert ("trelliswork.data", "Sentence") in used
