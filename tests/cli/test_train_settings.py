"""Every setting of training and of networks is in reach of the command line, through a file of settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

WORDS = ["--model", "window", "--feature-columns", "none"]
SMALL = "hidden = 8\nword_dim = 8\naffix_dim = 4\n"
FILES = {
    "fine-tuning": """encoder = "lstm"\ncharacters = "lstm"\nword_dropout = 0.1\nembedding_dropout = 0.1
[training]\nlayer_decay = 2.6\nunfreeze = true\ndecay = "triangular"\naverage = "ema"\naccumulate = 2\nclip = 1.0\n""",
    "fan-in": """templates = ["default"]\nngrams = [3]\nngram_buckets = 9\nscorer = "tensor"\ninitialization = "normal"
[training]\noptimizer = "sgd"\ndecay = "inverse"\nbatch_tokens = 200\n""",
    "half precision": """encoder = "dilated"\nlayers = 2\ncausal = true\nscorer = "hidden-units"\nhidden_units = 5
[training]\nprecision = "bf16"\naverage = "swa"\nwarmup = 0.1\ndecay = "cosine"\nmax_sentence_length = 20\n""",
}


@pytest.mark.parametrize("name", FILES)
def test_settings_in_a_file_are_those_of_the_model(cli: Cli, data: Path, tmp_path: Path, name: str) -> None:
    path, out = tmp_path / "c.toml", tmp_path / "m"
    path.write_text(f"[model]\n{SMALL}{FILES[name]}epochs = 2\n")
    answer = cli("train", data / "dev.conll", "--config", path, "--out", out, "--quiet", *WORDS)
    assert answer.status == 0, answer.err
    stored = json.loads((out / "config.json").read_text())["settings"]
    stored |= json.loads((out / "metrics.json").read_text())["training"]["settings"]
    for line in path.read_text().splitlines():
        key, equals, value = line.partition(" = ")
        assert not equals or stored[key] == json.loads(value), line
    assert cli("tag", out, data / "test.conll", "--confidence").status == 0


SCRIPTS = ("我\tO\n北\tB-LOC\n京\tI-LOC\n", "ذهب\tO\nمحمد\tB-PER\n", "กรุงเทพฯ\tB-LOC\n", "e\u0301\tB-X\n\u0301\tI-X\n",
           "👩\u200d👧\tO\nİstanbul\tB-LOC\n𝔘\tO\nß\tO\n")  # fmt: skip


@pytest.mark.parametrize("model", ["bilstm-crf", "bilstm-grsemicrf"])
def test_any_script_is_trained_and_tagged(cli: Cli, tmp_path: Path, model: str) -> None:
    path, out = tmp_path / "scripts.conll", tmp_path / "m"
    path.write_text("\n".join(SCRIPTS * 8) + "\n", encoding="utf-8")
    options = ["--hidden", 16, "--word-dim", 8, "--epochs", 12, "--patience", 12, "--lr", 0.02, "--batch-tokens", 20]
    trained = cli("train", path, "--dev", path, "--model", model, "--out", out, "--quiet", *options)
    assert trained.status == 0, trained.err
    tagged = cli("tag", out, path)
    assert tagged.out.rstrip("\n") == path.read_text(encoding="utf-8").rstrip("\n")
