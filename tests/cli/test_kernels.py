"""The kernels that a model calls are those that are compiled for it, announced, before it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Cli
from trelliswork.cli import kernels
from trelliswork.data import Sentence
from trelliswork.models import Segmenter, Tagger, TaggerConfig

SENTENCES = [Sentence(("Ann", "Lee", "sings"), ("B-X", "I-X", "O"))]
FRESH = """
from tests.cli.test_kernels import some_models
from trelliswork.cli import kernels
from trelliswork.cli.compiling import compile_kernels

compile_kernels()
assert all(kernel.signatures for kernel in kernels._entry_kernels())
for tagger in some_models():
    tagger.rehearse()
    found = tagger.own_kernels()
    print(*found)
    assert all(kernel.signatures for own in found.values() for kernel in own), found
"""


def some_models() -> list[Tagger | Segmenter]:
    """A model for each set of kernels."""
    return [
        Segmenter.from_data(SENTENCES, TaggerConfig(segments="endpoints")),
        Segmenter.from_data(SENTENCES, TaggerConfig(encoder="gru")),
        Tagger.from_data(SENTENCES, TaggerConfig(encoder="deep", scorer="hidden-units", transitions="network")),
        Tagger.from_data(SENTENCES, TaggerConfig()),
    ]


def test_what_is_looked_for_is_what_is_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["segments", "segments pyramids", "hidden units", ""]


def test_the_kernels_of_a_model_are_announced(
    cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = kernels._is_cached
    lacking = {some_models()[1].own_kernels()["pyramids"][0]}
    monkeypatch.setattr(kernels, "_is_cached", lambda kernel: kernel not in lacking and cached(kernel))
    out, command = tmp_path / "m", ["--model", "grsemicrf", "--epochs", "1", *SMALL]
    trained = cli("train", data / "dev.conll", "--out", out, *command)
    assert "compiling kernels of pyramids for this machine, once (about 10 s) ...\n" in trained.err
    assert "kernels of pyramids compiled in " in trained.err
    assert "kernels of pyramids compiled in " in cli("tag", out, data / "test.conll").err
    assert cli("evaluate", out, data / "test.conll", "--quiet").err == ""
    lacking.clear()
    assert cli("tag", out, data / "test.conll").err == ""
