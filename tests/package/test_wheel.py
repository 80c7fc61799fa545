"""The wheel, made from the source distribution as a release makes it: all files of the package, and no others."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import trelliswork

ROOT = Path(__file__).parents[2]
BUILD = "from setuptools import build_meta; build_meta.build_{kind}({out!r})"
NOT_SOURCE = shutil.ignore_patterns("__pycache__", "*.egg-info", "shipped")


def build(kind: str, tree: Path, out: Path) -> Path:
    """What `python -m build` does in an environment of its own, here with the setuptools of this one."""
    code = BUILD.format(kind=kind, out=str(out))
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return max(out.iterdir(), key=lambda file: file.stat().st_mtime)


def copy_to(tree: Path) -> None:
    """Copy what a wheel is made of, without compiled kernels."""
    shutil.copytree(ROOT / "src", tree / "src", ignore=NOT_SOURCE)
    for folder in ("tests", "benchmarks", "examples"):
        (tree / folder).mkdir()
        shutil.copy(ROOT / folder / "__init__.py", tree / folder)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    copy_to(tree)
    with tarfile.open(build("sdist", tree, out)) as sources:
        sources.extractall(out, filter="data")
    return zipfile.ZipFile(build("wheel", out / f"trelliswork-{trelliswork.__version__}", tree))


def test_it_has_every_file_of_the_package_and_no_other(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "src" / "trelliswork"
    files = {file for file in package.rglob("*") if file.is_file()}
    files = {file for file in files if not {"__pycache__", "shipped"} & set(file.parts)}
    there = {file.relative_to(package.parent).as_posix() for file in files}
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == there, "add the suffix to package-data in pyproject.toml"
    needed = ("py.typed", "web/static/index.html", "structures/chain/math.md", "data/corpus/grammar.py")
    assert {f"trelliswork/{name}" for name in needed} <= held


def test_it_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    folder = f"trelliswork-{trelliswork.__version__}.dist-info"
    told = HeaderParser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert (told["Name"], told["Version"]) == ("trelliswork", trelliswork.__version__)
    assert told["License-Expression"] == "Apache-2.0" and told["Description-Content-Type"] == "text/markdown"
    assert told["Requires-Python"] == ">=3.11"
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
    assert b"trelliswork = trelliswork.cli.entry:main" in wheel.read(f"{folder}/entry_points.txt")
    assert "py3-none-any" in str(wheel.filename), "one wheel for every platform"


def test_a_wheel_with_kernels_is_for_one_python_and_one_platform(tmp_path: Path) -> None:
    tree, out = tmp_path / "tree", tmp_path / "dist"
    tree.mkdir()
    out.mkdir()
    copy_to(tree)
    kernel = Path("trelliswork", "runtime", "shipped", "level", "a.kernel.xz")
    (tree / "src" / kernel).parent.mkdir(parents=True)
    (tree / "src" / kernel).touch()
    made = build("wheel", tree, out)
    python, _, platform = made.stem.split("-")[2:]
    assert python == f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert platform == sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert kernel.as_posix() in zipfile.ZipFile(made).namelist()
