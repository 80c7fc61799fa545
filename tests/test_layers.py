"""The layers of the package: each may import only those below it, and the top imports nothing heavy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trelliswork

PACKAGE = Path(trelliswork.__file__).parent
LAYERS = (
    {"ctrl_c", "errors", "lazy", "logs", "plugins", "reading", "writing"},
    {"runtime"},
    {"draw", "semirings", "tags", "terms"},
    {"structures"},
    {"distributions"},
    {"fst", "nn"},
    {"data", "metrics"},
    {"text"},
    {"training"},
    {"models"},
    {"cli", "compat", "scale", "sklearn", "web"},
)
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
# Modules beside the layers: the public names may come from anywhere, adapters to other libraries sit on top.
TOP = len(LAYERS)
FILES = sorted(PACKAGE.rglob("*.py"))
LARGE = 12  # files of a folder whose `__init__.py` says where is what
AT_MOST = 10  # imports inside functions: of optional packages, and what keeps feature models free of torch


def test_a_large_folder_has_a_map() -> None:
    folders = {file.parent for file in FILES if len(list(file.parent.glob("*.py"))) > LARGE}
    assert len(folders) > 10
    maps = {folder: ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "" for folder in folders}
    without = {folder.relative_to(PACKAGE).as_posix() for folder, text in maps.items() if text.count("\n") < 4}
    assert not without


def height_of(module: str) -> int:
    """The layer that `trelliswork.<layer>...` belongs to; the package itself and adapters are on top."""
    parts = module.split(".")
    return HEIGHT.get(parts[1], TOP) if len(parts) > 1 else TOP


def module_of(file: Path, root: Path = PACKAGE) -> str:
    parts = (root.name, *file.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str, file: Path) -> list[str]:
    """What a relative import of one dot is relative to."""
    return module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]


def under_type_checking(tree: ast.Module) -> set[ast.AST]:
    """What type checkers alone import."""
    guarded = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    return {inner for node in guarded for statement in node.body for inner in ast.walk(statement)}


def imports_of(source: str, module: str, file: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, at its top or inside a function, with the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = package_of(module, file)
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield origin, node.lineno
            # `from trelliswork import nn` names the layer only among the imported names.
            yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names if origin == "trelliswork")


def climbs(source: str, module: str, file: Path) -> list[str]:
    """The imports of a file that lead to a layer above its own."""
    return [
        f"{file.name}:{line}: {module} imports {target}"
        for target, line in imports_of(source, module, file)
        if target.startswith("trelliswork.") and target.count(".") and height_of(target) > height_of(module)
        # a plain name of the package, such as __version__, is not a layer
        if target.split(".")[1] in HEIGHT or (PACKAGE / target.split(".")[1]).with_suffix(".py").exists()
    ]


def test_no_layer_imports_one_above_it() -> None:
    assert [each for file in FILES for each in climbs(file.read_text(encoding="utf-8"), module_of(file), file)] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from trelliswork.nn import CRF", 1),
        ("import trelliswork.cli.main", 1),
        ("def late():\n    from trelliswork.distributions import LinearChain", 1),
        ("from trelliswork import distributions", 1),
        ("from ..distributions import base", 1),
        ("from trelliswork.semirings import Log", 0),
        ("from trelliswork.structures.chain import kernels", 0),
        ("from . import masks", 0),
        ("from trelliswork import __version__", 0),
        ("import torch", 0),
    ],
)
def test_the_check_sees_every_form_of_import(line: str, found: int) -> None:
    module = "trelliswork.structures.masks"
    assert len(climbs(line, module, PACKAGE / "structures" / "masks.py")) == found


def needed_by(module: str, file: Path, known: set[str]) -> set[str]:
    """The modules of the package that a module imports when it runs, at its top or inside a function."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped, found = under_type_checking(tree), set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = package_of(module, file)
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names = {f"{origin}.{alias.name}" for alias in node.names}
            found |= {name if name in known else origin for name in names}
    return found & known


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {module_of(file): file for file in FILES}
    needs = {module: needed_by(module, file, set(modules)) for module, file in modules.items()}
    while free := [module for module, of_it in needs.items() if not of_it & needs.keys()]:
        for module in free:
            del needs[module]
    while above := [module for module in needs if not any(module in of_it for of_it in needs.values())]:
        for module in above:  # it needs a circle and is none of it
            del needs[module]
    in_circles = {module: sorted(of_it & needs.keys()) for module, of_it in needs.items()}
    assert in_circles == {}, "each of these needs another that cannot be imported before it"


def inside_functions(file: Path) -> list[str]:
    """The imports of a file that wait for a call."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, functions)]
    found = {inner for body in bodies for inner in ast.walk(body) if isinstance(inner, ast.Import | ast.ImportFrom)}
    return [f"{file.relative_to(PACKAGE)}:{node.lineno}" for node in found]


def test_imports_are_at_the_top() -> None:
    found = sorted(place for file in FILES for place in inside_functions(file))
    assert len(found) <= AT_MOST, f"move one to the top of its file: {', '.join(found)}"


def test_every_folder_is_a_known_layer() -> None:
    folders = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(HEIGHT), "a new folder needs its place among the layers"


def test_importing_the_package_loads_neither_torch_nor_numba() -> None:
    code = "import sys, trelliswork; print([m for m in ('torch', 'numba', 'scipy', 'numpy') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


# The storeys of ARCHITECTURE.md: engine, models, doors. Pictures are drawn from plain data, for every storey.
ENGINE = set().union(*LAYERS[:6])
OF_THE_ENGINE = """
import sys, torch
import trelliswork as tw
from trelliswork import distributions, nn
for package in (tw.fst, tw.semirings, distributions, nn):
    for name in package.__all__:
        getattr(package, name)
crf = nn.CRF(3, batch_first=True)
crf(torch.randn(1, 4, 3), torch.zeros(1, 4, dtype=torch.long)).backward()
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("trelliswork.")}))
"""


def test_the_engine_loads_nothing_of_the_storeys_above() -> None:
    done = subprocess.run([sys.executable, "-c", OF_THE_ENGINE], capture_output=True, text=True, check=True)
    assert "nn" in done.stdout and set(done.stdout.split()) <= ENGINE


def test_every_test_belongs_to_a_storey() -> None:
    """`make test-engine`, `make test-models` and `make test-doors` run everything that `make test` runs."""
    makefile = (PACKAGE.parents[1] / "Makefile").read_text(encoding="utf-8")
    listed = {
        name
        for line in re.findall(r"^(?:ENGINE|MODELS|DOORS) := ((?:.*\\\n)*.*)", makefile, re.M)
        for name in line.split()
    }
    tests = Path(__file__).parent
    there = {f"tests/{path.parent.relative_to(tests).parts[0]}" for path in tests.glob("*/**/test_*.py")}
    there |= {f"tests/{path.name}" for path in tests.glob("test_*.py")}
    assert there - listed == set()
