"""Reading `docs/equations.md`, `docs/errata.md`, and the citations and tests that they name.

A citation is `[S4.92]`, `[S4.88-92, 109]`, `[S3, Max Layer]`, several of these with `;`, or `[S3]` for a whole text. An
equation is written out as "S4.92" or "S3, Max Layer".
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import trelliswork

PACKAGE = Path(trelliswork.__file__).parent
ROOT = Path(__file__).parents[2]
EQUATIONS, ERRATA = ROOT / "docs" / "equations.md", ROOT / "docs" / "errata.md"

CITATION = re.compile(r"\[(S\d[^\[\]]*)\]")
NUMBERED = re.compile(r"(S\d)\.(\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")
NAMED = re.compile(r"S\d, [A-Za-z][\w -]*")
WHOLE = re.compile(r"S\d")


def equations_of(citation: str) -> set[str]:
    """The equations of what stands between the brackets; ValueError if it follows another syntax.

    >>> sorted(equations_of("S4.98, 106-107; S3, Max Layer"))
    ['S3, Max Layer', 'S4.106', 'S4.107', 'S4.98']
    """
    found: set[str] = set()
    for part in citation.split("; "):
        part = " ".join(part.split())  # a docstring may break the line
        if numbered := NUMBERED.fullmatch(part):
            source, numbers = numbered.groups()
            for each in numbers.split(", "):
                first, _, last = each.partition("-")
                if last and int(last) <= int(first):
                    raise ValueError(f"the range {each} of [{citation}] does not rise")
                found |= {f"{source}.{number}" for number in range(int(first), int(last or first) + 1)}
        elif NAMED.fullmatch(part):
            found.add(part)
        elif not WHOLE.fullmatch(part):
            raise ValueError(
                f"[{citation}] is no citation: write [S4.92], [S4.88-92, 109], [S3, Max Layer], [S4.63; S3.9] or [S3]"
            )
    return found


def cited(text: str) -> set[str]:
    """All equations cited in a text."""
    return {equation for citation in CITATION.findall(text) for equation in equations_of(citation)}


# --- docs/equations.md ---------------------------------------------------------------------------------------


class Row(NamedTuple):
    line: int
    equations: frozenset[str]
    functions: tuple[str, ...]
    tests: tuple[str, ...]
    errata: frozenset[int]


@cache
def rows() -> tuple[Row, ...]:
    return tuple(rows_of(EQUATIONS.read_text(encoding="utf-8")))


def rows_of(text: str) -> list[Row]:
    """The rows of all tables: equation, meaning, functions, tests."""
    found = []
    for line, content in enumerate(text.splitlines(), 1):
        if content.startswith("| ["):
            equation, meaning, functions, tests = re.split(r"(?<!\\)\|", content.strip("|"))
            found.append(
                Row(
                    line,
                    frozenset(cited(equation)),
                    names_in(functions),
                    names_in(tests),
                    frozenset(map(int, re.findall(r"errata\.md#erratum-(\d+)", meaning))),
                )
            )
    return found


def names_in(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", text))


# --- functions -----------------------------------------------------------------------------------------------


def function(name: str) -> Any:
    """The object behind `structures/chain/structure.py:forward` or `tests/hand_gradients/grconv.py:below_gradient`."""
    path, _, attributes = name.partition(":")
    parts = Path(path).with_suffix("").parts
    module = ".".join(parts if parts[0] == "tests" else ("trelliswork", *parts))
    found: Any = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found


def source(name: str) -> str:
    """The source text of a function: under a compiled kernel or a property as well, or of a whole class."""
    found = function(name)
    found = getattr(found, "py_func", found)
    found = found.fget if isinstance(found, property) else found
    return inspect.getsource(inspect.unwrap(found))


# --- tests ---------------------------------------------------------------------------------------------------


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def find_test(name: str) -> ast.FunctionDef | None:
    """The definition of `tests/x/test_y.py::test_z` or `...::TestClass::test_z`, inherited ones too; None if absent."""
    path, *scopes, test = name.split("::")
    if not (ROOT / path).is_file() or not test.startswith("test_") or len(scopes) > 1:
        return None
    tree = _tree(ROOT / path)
    return _method(tree, scopes[0], test) if scopes else _function(tree.body, test)


def _function(body: list[ast.stmt], name: str) -> ast.FunctionDef | None:
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _method(tree: ast.Module, class_name: str, name: str) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            found = _function(node.body, name)
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            return found or next(filter(None, (_method(tree, base, name) for base in bases)), None)
        if isinstance(node, ast.ImportFrom) and any(alias.name == class_name for alias in node.names):
            return _method(_tree(ROOT / f"{(node.module or '').replace('.', '/')}.py"), class_name, name)
    return None
