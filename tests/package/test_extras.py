"""Without extras: every optional package that is imported is known, and its absence told with the line to type."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trelliswork
from tests.test_layers import under_type_checking
from trelliswork.cli.main import run
from trelliswork.errors import MissingExtraError, TrellisworkError
from trelliswork.models.taggers.networks.onnx_export.export import check_export
from trelliswork.models.taggers.networks.onnx_export.onnx_tagger import OnnxTagger
from trelliswork.models.transducers.semantic.stems import stemming
from trelliswork.nn.encoders.pretrained import PretrainedEncoder
from trelliswork.nn.encoders.subwords import Subwords
from trelliswork.training.progress import Progress
from trelliswork.training.tensorboard import TensorBoardProgress

PACKAGE = Path(trelliswork.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = {re.split(r"[<>=\[]", each)[0] for each in PROJECT["dependencies"]} | {"llvmlite"}  # which numba is built on
PARQUET = "trelliswork.data.parquet"
RAY_ENGINE = "trelliswork.cli.bulk.ray_engine"
HIDDEN_AS = {"tensorboard": "torch.utils.tensorboard"}  # what is imported
LOADERS = ("optional", "import_module", "find_spec")
TRACE = re.compile(r"""(?:^\s*(?:import|from)\s+|\w\(["'])([\w.]+)""", re.M)


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that a file imports when it runs, at its top, inside a function, or by name."""
    skipped = under_type_checking(tree)
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOADERS:
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))


def optional_packages(source: str) -> set[str]:
    """Those that are neither of Python nor of the core; files without a trace of one are not parsed."""
    known = {*sys.stdlib_module_names, *CORE, "trelliswork"}
    if not {name.split(".")[0] for name in TRACE.findall(source)} - known and "tensorboard" not in source:
        return set()
    names = imported(ast.parse(source))
    return {"tensorboard" if name == HIDDEN_AS["tensorboard"] else name.split(".")[0] for name in names} - known


def tagged(folder: Path) -> str:
    """A small tagged file."""
    folder.with_name("train.conll").write_text("Ann B-PER\nsings O\n\n" * 4)
    return str(folder.with_name("train.conll"))


# What is asked of each optional package, in a process that does not have it. Modules that import it at their top are
# imported again.
NEEDS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "sklearn": ("sklearn", lambda _: importlib.import_module("trelliswork.sklearn")),
    "tensorboard": ("tensorboard", lambda folder: TensorBoardProgress(Progress(), folder)),
    "transformers": ("transformers", lambda folder: PretrainedEncoder.from_name(str(folder))),
    "tokenizers": ("transformers", lambda _: Subwords.tokenizer_from({"rules": "{}", "special": {}})),
    "onnx": ("onnx", lambda folder: check_export(folder / "graph")),
    "optuna": ("tune", lambda folder: run(["tune", tagged(folder), "--out", str(folder / "s")])),
    "starlette": ("web", lambda folder: run(["serve", str(folder)])),
    "uvicorn": ("web", lambda folder: run(["serve", str(folder)])),
    "prometheus_client": ("web", lambda folder: run(["serve", str(folder)])),
    "pyarrow": ("arrow", lambda _: importlib.import_module(PARQUET)),
    "ray": ("ray", lambda _: next(importlib.import_module(RAY_ENGINE).annotate_by_ray([], "", None, None, 1))),
    "snowballstemmer": ("stems", lambda _: stemming("english")),
    "onnxruntime": ("", lambda folder: OnnxTagger(folder)),
}  # fmt: skip
SKLEARN = ("", ".estimator", ".metrics", ".scorers")
ANEW = (*(f"trelliswork.sklearn{name}" for name in SKLEARN), "trelliswork.sklearn_metrics", PARQUET, RAY_ENGINE)


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package were not installed, also for what has been imported already."""
    for name in [each for each in sys.modules if each.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, HIDDEN_AS.get(package, package), None)
    for name in ANEW:
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_every_optional_package_is_in_the_table() -> None:
    found = {name for file in PACKAGE.rglob("*.py") for name in optional_packages(file.read_text(encoding="utf-8"))}
    assert found == set(NEEDS)
    assert {extra for extra, _ in NEEDS.values()} - {""} == set(PROJECT["optional-dependencies"]) - {
        "dev",
        "docs",
        "peers",
    }


@pytest.mark.parametrize("package", NEEDS)
def test_a_missing_package_is_told_with_the_line_to_type(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    extra, ask = NEEDS[package]
    hide(package, monkeypatch)
    try:
        assert ask(tmp_path) == 2, f"{package} is not needed"
        told = capsys.readouterr().err
    except (TrellisworkError, ImportError) as error:
        told = str(error)
    assert (f'pip install "trelliswork[{extra}]"' if extra else f"pip install {package}") in told
    assert list(tmp_path.iterdir()) == []


def test_scores_in_the_names_of_sklearn_crfsuite_need_sklearn(monkeypatch: pytest.MonkeyPatch) -> None:
    hide("sklearn", monkeypatch)
    with pytest.raises(MissingExtraError, match=r'pip install "trelliswork\[sklearn\]"'):
        importlib.import_module("trelliswork.sklearn_metrics")


def test_a_missing_extra_is_an_import_error_as_well() -> None:
    assert issubclass(MissingExtraError, ImportError) and issubclass(MissingExtraError, TrellisworkError)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import polars", {"polars"}),
        ("def late():\n    from polars.frames import Frame", {"polars"}),
        ("optional('polars', 'tables', 'tables')", {"polars"}),
        ("if TYPE_CHECKING:\n    import polars", set()),
        ("import json\nimport numpy.linalg, trelliswork.data\nfrom . import polars", set()),
    ],
)
def test_the_search_sees_every_form_of_import(source: str, found: set[str]) -> None:
    assert optional_packages(source) == found
