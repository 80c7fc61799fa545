"""The example of the factorial CRF runs on a small piece of the corpus and learns from the ties."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CORPORA = [ROOT / "data" / "conll2000", ROOT.parent / "shared" / "data" / "conll2000"]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_it_runs_on_a_piece_of_the_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    folder = next((each for each in CORPORA if (each / "train.txt").is_file()), None)
    if folder is None:
        pytest.skip(f"CoNLL-2000 is not there: put train.txt and test.txt into {CORPORA[0]}")
    results = load("factorial_chain").main(folder, n_train=96, n_test=64, epochs=4)
    assert results["tied chains"]["nats a word"] < results["two chains"]["nats a word"]
    assert results["tied chains"]["POS"] > 80
    assert "come with a proof" in capsys.readouterr().out
