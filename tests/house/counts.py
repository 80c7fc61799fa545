"""Figures of the source code: how many files and how large, who imports whom, and words that say little.

`python -m tests.house.counts` prints them next to their limits.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_layers import FILES, PACKAGE, module_of, needed_by

SMALL, LEAST, MOST = 60, 25, 450  # lines of a file
DEMANDED = ("__init__.py", "__main__.py")  # files that Python itself looks for, however short
ANCESTORS = 4  # of ours, of a public class
PARAMETERS = 2  # of a public function whose signature and summary may say it all
FOUND = re.compile(r"^\s*found\b(: [^=]+)? = ")
STRUCTURES = PACKAGE / "structures"
SECTION = re.compile(r"\n\n(?:Args|Arrays):")
ALIASES = re.compile(r"^(Array|INF|NEG_INF)\b(: \w+)? = ")
# Each figure may fall; `test_counts.py` fails if one rises, and asks to lower a limit that a change has left behind.
LIMITS = {
    "files": 661,
    "small modules with one importer": 5,
    "files of more than 450 lines": 0,
    "files of fewer than 25 lines": 0,
    "most ancestors of a public class": 4,
    "public classes with more than 4 ancestors": 0,
    "lines with Any": 467,
    "assignments to found": 9,
    "definitions of Array, INF and NEG_INF": 4,
    "docstrings that begin with What, How or Whether": 0,
    "functions of more than two parameters without Args": 0,
    "kernels of structures": 362,
    "lines of kernel files of structures, sections of Args left out": 7350,  # 61 are n-grams in beams of CTC
}


def counts() -> dict[str, int]:
    """Return every figure by its name in `LIMITS`."""
    lines = [line for file in FILES for line in text_of(file).splitlines()]
    ancestors = {name: len(found) for name, found in ancestors_of_public_classes().items()}
    figures = (
        len(FILES),
        len(small_modules()),
        sum(length(file) > MOST for file in FILES),
        sum(length(file) < LEAST for file in FILES if file.name not in DEMANDED),
        max(ancestors.values()),
        sum(n > ANCESTORS for n in ancestors.values()),
        sum(bool(re.search(r"\bAny\b", line)) for line in lines),
        sum(bool(FOUND.match(line)) for line in lines),
        sum(bool(ALIASES.match(line)) for line in lines),
        sum(text.startswith(("What ", "How ", "Whether ")) for text in docstrings()),
        len(without_args()),
        sum(text_of(file).count("\n@kernel(") for file in FILES if STRUCTURES in file.parents),
        sum(map(_lines_but_args, FILES)),
    )
    return dict(zip(LIMITS, figures, strict=True))


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(text_of(file))


def length(file: Path) -> int:
    """Return the number of lines of a file."""
    return text_of(file).count("\n")


def _lines_but_args(file: Path) -> int:
    """Return the lines of a file of kernels of a structure, less those that describe the arguments of functions."""
    if STRUCTURES not in file.parents or "kernels" not in file.name:
        return 0
    nodes = [node for node in ast.walk(tree_of(file)) if isinstance(node, ast.Module | ast.FunctionDef)]
    described = 0
    for text in (ast.get_docstring(node) or "" for node in nodes):
        rest, *section = SECTION.split(text, maxsplit=1)
        described += sum(2 + each.count("\n") + ("\n" not in rest) for each in section)
    return length(file) - described


def small_modules() -> list[str]:
    """Return the modules that belong into the one that imports them.

    Kernel files, the solver of a structure (each folder has one), modules that a package re-exports and modules that
    are named by a string stay where they are.
    """
    modules = {module_of(file): file for file in FILES}
    needs = {module: needed_by(module, file, set(modules)) for module, file in modules.items()}
    by_string = set(re.findall(r'"(trelliswork[\w.]+)', "\n".join(map(text_of, FILES))))
    small = []
    for module, file in modules.items():
        importers = [other for other, needed in needs.items() if module in needed]
        stays = file.name in ("__init__.py", "solver.py") or "@kernel" in text_of(file) or module in by_string
        if length(file) < SMALL and len(importers) == 1 and not stays:
            small += [module] if modules[importers[0]].name != "__init__.py" else []
    return small


def ancestors_of_public_classes() -> dict[str, set[str]]:
    """Return the classes of this package that each class in an `__all__` inherits from, at any distance."""
    bases: dict[str, list[str]] = {}
    public: set[str] = set()
    for file in FILES:
        module, tree = module_of(file), tree_of(file)
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
        for node in ast.walk(tree_of(file)):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield text


Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_args() -> list[str]:
    """Return the public functions, classes and entry kernels with more than two parameters that do not describe them.

    A method may leave it to the method that it overrides, a command to the help of its options, and a kernel to a
    section `Arrays:` of its module, which describes what many kernels share. Setters and overloads do not count.
    """
    kernels = _entry_kernels()
    classes: dict[str, ast.ClassDef] = {}
    bases: dict[str, list[str]] = {}
    missing: list[str] = []
    for file in FILES:
        module, tree = module_of(file), tree_of(file)
        origin, arrays = dict(_names_in(tree, module)), _arrays_of(tree)
        for node in tree.body:
            name = f"{module}.{getattr(node, 'name', '')}"
            if isinstance(node, ast.ClassDef):
                classes[name], bases[name] = node, [origin.get(base, base) for base in map(_class_of, node.bases)]
            elif isinstance(node, Function) and _leaves_out(node, is_kernel=name in kernels):
                is_elsewhere = arrays.issuperset(_parameters(node)) or _is_command(module, node)
                missing += [] if is_elsewhere else [name]
    for name, of_class in classes.items():
        above = [classes[other] for other in _above(name, bases)]
        missing += [] if of_class.name.startswith("_") else _undescribed_methods(name, of_class, above)
    return sorted(missing)


def _undescribed_methods(name: str, of_class: ast.ClassDef, above: list[ast.ClassDef]) -> Iterator[str]:
    """Yield the methods, and the class itself for its constructor, that neither it nor a class above describes."""
    for method, node in _methods(of_class).items():
        if method == "__init__":
            if len(_own_parameters(node)) > PARAMETERS and not any(map(_has_args, (node, of_class, *above))):
                yield name
        elif _leaves_out(node) and not any(_has_args(each) for one in above if (each := _methods(one).get(method))):
            yield f"{name}.{method}"


def _methods(of_class: ast.ClassDef) -> dict[str, Function]:
    return {each.name: each for each in of_class.body if isinstance(each, Function)}


def _entry_kernels() -> set[str]:
    """Return the full names of the kernels that Python calls."""
    return {name.replace(":", ".") for name in json.loads((PACKAGE / "runtime" / "entries.json").read_text())}


def _arrays_of(tree: ast.Module) -> set[str]:
    """Return the names in the section `Arrays:` of a module."""
    _, _, section = (ast.get_docstring(tree) or "").partition("\nArrays:\n")
    return {name for names in re.findall(r"^    (\w[\w, ]*): ", section, re.MULTILINE) for name in names.split(", ")}


def _is_command(module: str, node: Function) -> bool:
    return module == f"{PACKAGE.name}.cli.commands.{node.name}"


def _class_of(base: ast.expr) -> str:
    return ast.unparse(base).partition("[")[0]


def _leaves_out(node: Function, is_kernel: bool = False) -> bool:
    """Return whether a function needs `Args:` and has none."""
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    is_private = node.name.startswith("_") and not is_kernel
    if is_private or "overload" in decorators or ".setter" in decorators:
        return False
    return (is_kernel or len(_own_parameters(node)) > PARAMETERS) and not _has_args(node)


def _own_parameters(node: Function) -> list[str]:
    return [each for each in _parameters(node) if each not in ("self", "cls")]


def _parameters(node: Function) -> list[str]:
    signature = node.args
    return [each.arg for each in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)]


def _has_args(node: Function | ast.ClassDef) -> bool:
    return "Args:" in (ast.get_docstring(node) or "")


def table() -> str:
    """Return the figures next to their limits, one a line."""
    return "\n".join(f"{name:<50}{n:>6} of {LIMITS[name]}" for name, n in counts().items())


if __name__ == "__main__":
    print(f"{PACKAGE}\n{table()}")
