"""`train --model crf` with edge observations, unknown tags, hidden states and second order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.models import FeatureTagger, load_tagger


@pytest.mark.parametrize("options", [["--latent", 2], ["--order", 2]])
def test_every_command_takes_hidden_states_and_second_order(
    cli: Cli, data: Path, tmp_path: Path, options: list[object]
) -> None:
    out, columns = tmp_path / "model", ["--tag-column", 3, "--feature-columns", 2]
    answer = cli(
        "train", data / "train.conll", "--model", "crf", "--max-iterations", 15, "--out", out, *columns, *options
    )
    assert answer.status == 0 and "overall" in answer.out
    tagged = cli("tag", out, data / "test.conll", "--confidence", "--top-k", 2)
    assert tagged.status == 0 and "# analysis 2 of 2" in tagged.out
    assert "strongest features" in cli("info", out, "--top-features", 3).out
    assert json.loads(cli("info", out, "--json").out)
    assert "previous tag" in cli("explain", out, data / "test.conll", "--limit", 2).out


def test_templates_that_look_at_two_tags(cli: Cli, data: Path, tmp_path: Path) -> None:
    template, out = tmp_path / "template", tmp_path / "model"
    template.write_text("U1:%x[0,0]\nU2:%x[-1,1]\nB\nB01:%x[0,1]\n")
    columns = ["--tag-column", 3, "--feature-columns", 2, "--max-iterations", 20]
    answer = cli("train", data / "train.conll", "--model", "crf", "--template", template, "--out", out, *columns)
    assert answer.status == 0
    tagger = load_tagger(out)
    assert isinstance(tagger, FeatureTagger) and tagger.crf.parameters.n_pairs > 50
    assert "column 2 = '.' after tag O" in cli("explain", out, data / "test.conll", "--limit", 2).out
    assert " -> " in cli("info", out, "--top-features", 50).out


def test_tags_that_are_not_known(cli: Cli, tmp_path: Path) -> None:
    train, dev, out = tmp_path / "train.conll", tmp_path / "dev.conll", tmp_path / "model"
    train.write_text("a B-X\nb I-X|O\nc ?\n\na ?\nb I-X\nc O\n\n" * 4)
    dev.write_text("a B-X\nb I-X\nc O\n\na B-X\nb ?\nc O\n")
    answer = cli("train", train, "--dev", dev, "--model", "crf", "--partial", "--out", out)
    assert answer.status == 0 and "1 dev sentence with unknown tags left out" in answer.err
    assert load_tagger(out).labels.data_scheme == "IOB2"
    assert cli("evaluate", out, dev).status == 2
    dev.write_text("a B-X\nb I-X\nc O\n")
    assert "token accuracy          100.00" in cli("evaluate", out, dev).out
    refused = cli("train", train, "--model", "crf", "--partial", "--out", tmp_path / "none")
    assert refused.status == 2 and "expected dev sentences whose tags are all known" in refused.err
    assert not (tmp_path / "none").exists()
    plain = cli("train", train, "--dev", dev, "--model", "crf", "--out", tmp_path / "plain")
    assert plain.status == 0 and "?" in load_tagger(tmp_path / "plain").labels.vocabulary.to_list()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--latent", "0"], "latent must be at least 1"),
        (["--order", "3"], "order must be 1 or 2; got 3"),
        (["--order", "2", "--algorithm", "pa"], "order 2 cannot be combined with algorithm pa"),
    ],
)
def test_bad_settings(cli: Cli, data: Path, tmp_path: Path, options: list[str], message: str) -> None:
    answer = cli("train", data / "train.conll", "--model", "crf", "--out", tmp_path / "out", *options)
    assert answer.status == 2 and message in answer.err
    assert not (tmp_path / "out").exists()
