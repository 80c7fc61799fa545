"""Figures of the source code do not rise: fewer files, shorter lists of ancestors, words that say more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import counts
from tests.house.counts import ALIASES, FOUND, LIMITS


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    return counts.counts()


@pytest.mark.parametrize("name", LIMITS)
def test_a_figure_does_not_rise(figures: dict[str, int], name: str) -> None:
    more = f"{name}: at most {LIMITS[name]}, got {figures[name]}; python -m tests.house.counts shows all"
    assert figures[name] <= LIMITS[name], more


def test_lines_are_told_apart() -> None:
    assert FOUND.match("    found = 1") and FOUND.match("found: dict[str, int] = {}")
    assert not FOUND.match("    if found == 1:") and not FOUND.match("    found_all = 1")
    assert ALIASES.match("Array = np.ndarray[Any, Any]") and ALIASES.match('INF = float("inf")')
    assert not ALIASES.match("    Array = 1") and not ALIASES.match("INFO = 1")


def test_small_modules_and_ancestors_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of four modules: a small one with one importer, one that is exported, one that a string names."""
    package = tmp_path / "trelliswork"
    package.mkdir()
    texts = {
        "__init__": 'from trelliswork.home import Child\n__all__ = ["Child"]\n',
        "home": "from trelliswork.base import Base\nHOME = 'x'\n\n\nclass Child(Base[int]):\n    pass\n",
        "base": "class Root:\n    pass\n\n\nclass Base(Root):\n    pass\n",
        "named": 'HOME = "trelliswork.late:LATE"\n',
        "late": "LATE = 1\n",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(counts, "FILES", sorted(package.glob("*.py")))
    monkeypatch.setattr(counts, "module_of", lambda file: _module(file))
    assert counts.small_modules() == ["trelliswork.base"]
    assert counts.ancestors_of_public_classes() == {
        "trelliswork.home.Child": {"trelliswork.base.Base", "trelliswork.base.Root"}
    }


ARGUMENTS = '''
"""A module.

Arrays:
    a, b: [n].
    c: [m].
"""
def of_the_module(a, b, c): ...
def few(x, y): ...
def _private(x, y, z): ...
def left_out(x, y, z): ...
def described(x, y, z):
    """Args:"""
class Base:
    def __init__(self, x, y, z): ...
    def overridden(self, x, y, z):
        """Args:"""
    def left_out(self, x, y, z): ...
class Child(Base):
    def overridden(self, x, y, z): ...
'''


def test_functions_that_leave_their_arguments_out_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "home.py"
    file.write_text(ARGUMENTS)
    monkeypatch.setattr(counts, "FILES", [file])
    monkeypatch.setattr(counts, "module_of", _module)
    assert counts.without_args() == [f"trelliswork.home.{name}" for name in ("Base", "Base.left_out", "left_out")]


def _module(file: Path) -> str:
    return "trelliswork" if file.stem == "__init__" else f"trelliswork.{file.stem}"
