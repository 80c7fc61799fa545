"""Figures of the source code: how many files and how large, who imports whom, and words that say little.

`python -m tests.house.counts` prints them beside their limits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_layers import FILES, PACKAGE, module_of, needed_by

SMALL, LEAST, MOST = 60, 25, 450  # lines of a file
ANCESTORS = 4  # of ours, of a public class
FOUND = re.compile(r"^\s*found\b(: [^=]+)? = ")
ALIASES = re.compile(r"^(Array|INF|NEG_INF)\b(: \w+)? = ")
# Each figure may fall; `test_counts.py` fails if one rises, and asks to lower a limit that a change has left behind.
LIMITS = {
    "files": 653,
    "small modules with one importer": 5,
    "files of more than 450 lines": 0,
    "files of fewer than 25 lines": 6,
    "most ancestors of a public class": 4,
    "public classes with more than 4 ancestors": 0,
    "lines with Any": 471,
    "assignments to found": 9,
    "definitions of Array, INF and NEG_INF": 4,
    "docstrings that begin with What, How or Whether": 0,
}


def counts() -> dict[str, int]:
    """Return every figure by its name in `LIMITS`."""
    lines = [line for file in FILES for line in text_of(file).splitlines()]
    ancestors = {name: len(found) for name, found in ancestors_of_public_classes().items()}
    figures = (
        len(FILES),
        len(small_modules()),
        sum(length(file) > MOST for file in FILES),
        sum(length(file) < LEAST for file in FILES if file.name != "__init__.py"),
        max(ancestors.values()),
        sum(n > ANCESTORS for n in ancestors.values()),
        sum(bool(re.search(r"\bAny\b", line)) for line in lines),
        sum(bool(FOUND.match(line)) for line in lines),
        sum(bool(ALIASES.match(line)) for line in lines),
        sum(text.startswith(("What ", "How ", "Whether ")) for text in docstrings()),
    )
    return dict(zip(LIMITS, figures, strict=True))


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def length(file: Path) -> int:
    """Return the number of lines of a file."""
    return text_of(file).count("\n")


def small_modules() -> list[str]:
    """Return the modules that belong into the one that imports them.

    Kernel files, modules that a package re-exports and modules that are named by a string stay where they are.
    """
    modules = {module_of(file): file for file in FILES}
    needs = {module: needed_by(module, file, set(modules)) for module, file in modules.items()}
    by_string = set(re.findall(r'"(trelliswork[\w.]+)', "\n".join(map(text_of, FILES))))
    small = []
    for module, file in modules.items():
        importers = [other for other, needed in needs.items() if module in needed]
        stays = file.name == "__init__.py" or "@kernel" in text_of(file) or module in by_string
        if length(file) < SMALL and len(importers) == 1 and not stays:
            small += [module] if modules[importers[0]].name != "__init__.py" else []
    return small


def ancestors_of_public_classes() -> dict[str, set[str]]:
    """Return the classes of this package that each class in an `__all__` inherits from, at any distance."""
    bases: dict[str, list[str]] = {}
    public: set[str] = set()
    for file in FILES:
        module, tree = module_of(file), ast.parse(text_of(file))
        origin = dict(_names_in(tree, module))
        public |= {f"{origin[name]}" for name in _exported(tree) if name in origin}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).partition("[")[0] for base in node.bases]
                bases[f"{module}.{node.name}"] = [origin.get(name, name) for name in names]
    return {name: set(_above(name, bases)) for name in public if name in bases}


def _names_in(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    """Yield the classes that a module defines or imports, with the full name of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, f"{module}.{node.name}"
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _exported(tree: ast.Module) -> list[str]:
    """Return the names in the `__all__` of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]  # type: ignore[misc]
    return []


def _above(name: str, bases: dict[str, list[str]]) -> Iterator[str]:
    for base in bases.get(name, []):
        if base in bases:
            yield base
            yield from _above(base, bases)


def docstrings() -> Iterator[str]:
    """Yield the docstrings of modules, classes and functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for file in FILES:
        for node in ast.walk(ast.parse(text_of(file))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield text


def table() -> str:
    """Return the figures beside their limits, one a line."""
    return "\n".join(f"{name:<50}{n:>6} of {LIMITS[name]}" for name, n in counts().items())


if __name__ == "__main__":
    print(f"{PACKAGE}\n{table()}")
