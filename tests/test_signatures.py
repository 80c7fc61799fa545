"""Signatures: hints that resolve without development packages, and no more parameters than a reader can hold."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork
from trelliswork import distributions, fst

PACKAGE = Path(trelliswork.__file__).parent
MOST, MOST_OF_A_KERNEL = 7, 10
COMMANDS = PACKAGE / "cli" / "commands"  # an option of the command line is a parameter
CONSTRUCTORS = ("__init__", "__new__", "factored")


def public_functions() -> Iterator[tuple[str, Any]]:
    for module in (distributions, fst):
        for name in module.__all__:
            found = getattr(module, name)
            if not inspect.isclass(found):
                yield name, found
                continue
            for attribute, member in inspect.getmembers(found):
                function = member.fget if isinstance(member, property) else member
                if inspect.isfunction(function) and (not attribute.startswith("_") or attribute == "__init__"):
                    yield f"{name}.{attribute}", function


def test_hints_of_distributions_resolve() -> None:
    functions = {name: each for name, each in public_functions() if inspect.isfunction(each)}
    assert len(functions) > 300
    for name, each in functions.items():
        try:
            typing.get_type_hints(each)
        except Exception as error:
            pytest.fail(f"hints of {name}: {error}")


def test_shapes_are_tensors_to_a_type_checker() -> None:
    hints = typing.get_type_hints(distributions.LinearChain.marginals.fget)
    assert hints["return"] == torch.Tensor
    assert typing.get_type_hints(distributions.LinearChain.__init__)["start"] == torch.Tensor | None


def test_hints_need_no_package_of_shapes() -> None:
    """A type checker of a user sees tensors whatever is installed: shapes are those of `runtime.arrays`."""
    assert [file.name for file in PACKAGE.rglob("*.py") if "jaxtyping" in file.read_text(encoding="utf-8")] == []


def too_many(file: Path) -> list[str]:
    """Functions with more parameters than are allowed; constructors may have more, `self` and `cls` do not count."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef) or node.name in CONSTRUCTORS:
            continue
        given = node.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        names = [each.arg for each in every if each]
        names = names[1:] if names and names[0] in ("self", "cls") else names
        is_kernel = any("kernel(" in ast.unparse(each) for each in node.decorator_list)
        if len(names) > (MOST_OF_A_KERNEL if is_kernel else MOST):
            found.append(f"{file.relative_to(PACKAGE).as_posix()}: {node.name}")
    return found


def test_a_function_has_few_parameters() -> None:
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if file.parent != COMMANDS]
    assert [each for file in files for each in too_many(file)] == []
