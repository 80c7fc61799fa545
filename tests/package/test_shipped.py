"""A wheel that carries kernels: installed on a new machine, the first hour compiles nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.newcomers.corpora import write_words
from tests.package.test_wheel import build, copy_to
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data.corpus.trees import write_treebank
from trelliswork.runtime.build import pack
from trelliswork.runtime.compile_all import compile_all
from trelliswork.runtime.entries import read_entries
from trelliswork.runtime.shipped import FOLDER, supported_levels

FIRST_HOUR = """
import json, sys
from numba.core import event
from trelliswork.runtime import light
from trelliswork.runtime.kernel_cache import KernelCache

class Compiled(event.Listener):
    def on_start(self, event): names.append(str(event.data["dispatcher"].py_func.__qualname__))
    def on_end(self, event): pass

names, loaded, load = [], [], KernelCache.load_overload
KernelCache.load_overload = lambda cache, *given: loaded.append(cache.kernel) or load(cache, *given)
without_numba = light.load
light.load = lambda cache, *given: loaded.append(cache.kernel) or without_numba(cache, *given)
event.register("numba:compile", Compiled())

import torch
import trelliswork as tw
from trelliswork.cli.main import run

crf = tw.nn.CRF(5, batch_first=True)
emissions = torch.randn(2, 4, 5, requires_grad=True)
crf(emissions, torch.zeros(2, 4, dtype=torch.long)).backward()
crf.decode(emissions)
small = "--epochs 1 --hidden 8 --word-dim 8".split()
trees = "--arc-dim 4 --label-dim 4".split()
for line, more in (
    ("train train.conll --dev dev.conll --model crf --feature-columns none --max-iterations 3 --out crf", []),
    ("predict crf test.conll --confidence --out crf.conll", []),
    ("predict crf story.txt --text --top-k 2 --out crf.jsonl", []),
    ("evaluate crf test.conll", []),
    ("train train.conll --dev dev.conll --model bilstm-crf --feature-columns none --out net", small),
    ("predict net test.conll --confidence --out net.conll", []),
    ("evaluate net test.conll", []),
    ("train train.conllu --dev dev.conllu --model biaffine --out parser", [*small, *trees]),
    ("predict parser story.txt --text --confidence --out story.conllu", []),
    ("evaluate parser test.conllu", []),
    ("train words.tsv --model pair-ngram --out pronounce", []),
    ("predict pronounce list.txt --top-k 3 --out three.tsv", []),
):
    assert run([*line.split(), *more]) == 0, line
json.dump([names, len(loaded), tw.__file__], open("counted.json", "w"))
"""


MODELS = ("crf", "bilstm-crf", "biaffine", "pair-ngram")
CALLS = ("chain", "train tokeniser", *(f"{command} {model}" for command in ("train", "predict") for model in MODELS))


def with_kernels_of_this_machine(tree: Path) -> None:
    """Let a wheel carry kernels from the cache of the tests: code for this processor under the name of a level."""
    place = tree / "src/trelliswork/runtime/shipped" / supported_levels()[0].name
    place.mkdir(parents=True)
    entries = read_entries(*CALLS)
    if FOLDER.is_dir():
        shutil.copytree(FOLDER, place.parent, dirs_exist_ok=True)
        entries = [entry for entry in entries if entry.state != "shipped"]
    pack(compile_all(entries), place, preset=0)


def with_kernels_of_a_level(tree: Path) -> None:
    """Let a wheel carry what a release has."""
    subprocess.run([sys.executable, "-m", "trelliswork.runtime.build", "--levels", "best"], check=True)
    shutil.copytree(FOLDER, tree / "src/trelliswork/runtime/shipped")


@pytest.fixture(
    scope="module",
    params=[with_kernels_of_this_machine, pytest.param(with_kernels_of_a_level, marks=pytest.mark.thorough)],
)
def environment(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A new environment with the wheel of this tree, kernels included; other packages are those of this one."""
    if not supported_levels():
        pytest.skip("this processor has none of the levels that kernels are built for")
    folder, out, tree = (tmp_path_factory.mktemp(name) for name in ("environment", "dist", "tree"))
    copy_to(tree)
    request.param(tree)
    wheel = build("wheel", tree, out)
    venv.create(folder, with_pip=False)
    (place,) = folder.glob("lib/python*/site-packages")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(place)], check=True)
    (place / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_the_first_hour_compiles_nothing(environment: Path, tmp_path: Path) -> None:
    corpus = builtin_corpus(sizes=(60, 15, 15))
    write_corpus(corpus, tmp_path)
    write_treebank(corpus, tmp_path)
    write_words(tmp_path)
    (tmp_path / "story.txt").write_text("Dr Jordan visited Lincoln on Monday.\n", encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    settings = {**inherited, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [environment / "bin" / "python", "-c", FIRST_HOUR], cwd=tmp_path, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    compiled, n_loaded, package = json.loads((tmp_path / "counted.json").read_text())
    assert Path(package).is_relative_to(environment)
    assert not compiled, ", ".join(compiled)
    assert n_loaded > 30
    assert not list(tmp_path.rglob("*.kernel")), "nothing was written to a cache"
