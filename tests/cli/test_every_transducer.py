"""Every model of pairs is trained by its name, loaded, asked, scored and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trelliswork as tw
from tests.cli.conftest import Cli
from tests.cli.test_every_model import TRANSDUCERS
from tests.conftest import RECORDER
from trelliswork.models.catalogue import entry_of

PAIRS = [("ab", "A B"), ("ba", "B A"), ("bb", "B B"), ("aab", "A A B"), ("b", "B"), ("abab", "A B A B")] * 4
OTHERS = ("seq2tree", "seq2sql")  # of questions and their meanings: tests/cli/test_questions.py, tests/models/semantic


@pytest.mark.parametrize("name", [name for name in TRANSDUCERS if name not in OTHERS])
def test_a_transducer_is_trained_loaded_asked_scored_and_shown(cli: Cli, tmp_path: Path, name: str) -> None:
    train, out = tmp_path / "train.tsv", tmp_path / "model"
    train.write_text("".join(f"{x}\t{y}\n" for x, y in PAIRS), encoding="utf-8")
    small = ["--epochs", "1", "--hidden", "8"] if entry_of(name).is_network else []
    with RECORDER.needs(f"train {name}"):
        trained = cli("train", train, "--model", name, "--out", out, "--quiet", *small)
    assert trained.status == 0, trained.err
    assert f'name = "{name}"' in (out / "config.toml").read_text()
    with RECORDER.needs(f"predict {name}"):
        asked = cli("predict", out, train, "--top-k", "2")
    assert asked.status == 0, asked.err
    rows = [line.split("\t") for line in asked.out.splitlines()]
    assert list(dict.fromkeys(row[0] for row in rows)) == list(dict(PAIRS))
    assert all(0 <= float(row[2]) <= 1 for row in rows)
    assert "word error rate" in cli("evaluate", out, train).out
    parameters = json.loads(cli("info", out, "--json").out)["parameters"]
    assert parameters == tw.load(out).n_parameters > 0
