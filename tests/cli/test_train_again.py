"""Training goes on: a finished run to more epochs, a network on new data and labels; and batches for small data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import WINDOW, Cli
from trelliswork.models import Tagger, load

ONE = ["--feature-columns", "none", "--epochs", "1", *WINDOW]


@pytest.fixture
def first(cli: Cli, data: Path, tmp_path: Path) -> Path:
    """A run of one epoch."""
    out = tmp_path / "first"
    assert cli("train", data / "dev.conll", "--dev", data / "test.conll", "--out", out, "--quiet", *ONE).status == 0
    return out


def test_a_finished_run_goes_on_to_more_epochs(cli: Cli, first: Path, data: Path) -> None:
    command = ["train", data / "dev.conll", "--dev", data / "test.conll", "--resume", "--out", first, *ONE]
    refused = cli(*command)
    assert refused.status == 2
    assert "is finished after 1 epochs, there is nothing to resume; add --epochs 2 to go on" in refused.err
    before = [json.loads(line) for line in (first / "history.jsonl").read_text().splitlines()]
    longer = cli(*command, "--epochs", "3")
    assert longer.status == 0, longer.err
    assert "finished after 1 epochs: going on to 3 from its best model" in longer.err
    after = [json.loads(line) for line in (first / "history.jsonl").read_text().splitlines()]
    assert [each["epoch"] for each in after] == [1, 2, 3] and after[0] == before[0]
    assert after[2]["loss"] < after[0]["loss"], "it goes on from what it knew"
    assert load(first).metrics["training"]["epochs"] == 3
    other = cli(*command, "--epochs", "4", "--lr", "0.5")
    assert other.status == 2 and "lr was 0.002 and is 0.5" in other.err


def test_other_data_do_not_go_on(cli: Cli, first: Path, data: Path) -> None:
    answer = cli("train", data / "test.conll", "--resume", "--out", first, *ONE, "--epochs", "2")
    assert answer.status == 2 and "got words or tags of other data" in answer.err
    assert load(first).metrics["training"]["epochs"] == 1


def test_a_network_begins_with_another_on_new_words_and_labels(
    cli: Cli, first: Path, data: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.conll"
    text = (data / "dev.conll").read_text(encoding="utf-8")
    first_line, _, rest = text.replace("-PER", "-WHO").partition("\n")
    new.write_text("\t".join(["Zyxgard", *first_line.split("\t")[1:]]) + f"\n{rest}", encoding="utf-8")
    out = tmp_path / "second"
    answer = cli("train", new, "--dev", new, "--init", first, "--feature-columns", "none", "--epochs", "1", "--lr",
                 "1e-9", "--out", out)  # fmt: skip
    assert answer.status == 0, answer.err
    assert " taken over, 1 new\n" in answer.err, answer.err
    assert "new (B-WHO, I-WHO, E-WHO, S-WHO)" in answer.err and "not in the new data (B-PER, I-PER" in answer.err
    old, found = Tagger.load(first), Tagger.load(out)
    assert found.config == old.config, "the settings are those of the first"
    close = {"atol": 1e-5, "rtol": 1e-5}
    names = old.label_names
    shared = [name for name in found.label_names if name in names]
    rows = [found.label_names.index(name) for name in shared], [names.index(name) for name in shared]
    torch.testing.assert_close(found.scorer.linear.weight[rows[0]], old.scorer.linear.weight[rows[1]], **close)
    assert len(shared) < len(names)
    transitions = [m.crf.transitions[r][:, r] for m, r in ((found, rows[0]), (old, rows[1]))]
    torch.testing.assert_close(*transitions, **close)
    for word in ("the", "in"):
        vectors = [m.inputs.lookup.tables[0].weight[m.features.vocabularies["word"].index(word)] for m in (found, old)]
        torch.testing.assert_close(*vectors, **close)
    assert "zyxgard" in found.features.vocabularies["word"]


def test_what_cannot_be_begun_with_or_used_is_named(cli: Cli, first: Path, data: Path, tmp_path: Path) -> None:
    def refusal(*options: str) -> str:
        answer = cli("train", data / "dev.conll", "--out", tmp_path / "m", *options)
        assert answer.status == 2 and not (tmp_path / "m").exists()
        return answer.err

    assert "choose --model window" in refusal("--init", str(first), "--model", "bilstm-crf")
    assert "--init is not used by --model crf; leave it out, or choose one of window, " in refusal(
        "--init", str(first), "--model", "crf"
    )
    assert "neural-hucrf\n" in refusal("--init", str(first), "--model", "multi-task"), "and no multi-task"
    if not torch.cuda.is_available():
        assert "--device cuda: torch" in refusal("--device", "cuda", "--model", "window")
    assert "--max-length is not used by --model bilstm-crf; leave it out, or choose one of grsemicrf, " in refusal(
        "--model", "bilstm-crf", "--max-length", "3"
    )
    assert "--window is not used by --model window with --encoder lstm; leave it out" in refusal(
        "--model", "window", "--encoder", "lstm", "--window", "7"
    )
    assert "--template is not used by --model window" in refusal("--model", "window", "--template", "nosuchfile")
    assert "--tune-vectors needs vectors" in refusal("--tune-vectors", "--model", "window")


def test_few_sentences_have_small_batches(cli: Cli, data: Path, first: Path, tmp_path: Path) -> None:
    assert load(first).metrics["training"]["settings"]["batch_tokens"] < 1000
    command = ["train", data / "dev.conll", "--out", tmp_path / "m", *ONE]
    answer = cli(*command)
    assert answer.status == 0 and "batches of 100 tokens, as there are only " in answer.err
    given = cli(*command, "--force", "--batch-tokens", "700")
    assert given.status == 0 and "batches of" not in given.err
    assert load(tmp_path / "m").metrics["training"]["settings"]["batch_tokens"] == 700
