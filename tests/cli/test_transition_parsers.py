"""`--model transition` on the command line, from a treebank to trees."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.treebanks import conllu, patterns
from trelliswork.data import read_treebank
from trelliswork.models import load
from trelliswork.models.parsers.dependency.transition import TransitionParser

SMALL = ("--hidden", "16", "--word-dim", "10", "--state-dim", "16", "--layers", "1", "--lr", "0.02", "--epochs", "12")


def test_a_parser_is_trained_used_and_scored(cli: Cli, tmp_path: Path) -> None:
    every, out = list(patterns()), tmp_path / "parser"
    bank, dev = tmp_path / "train.conllu", tmp_path / "dev.conllu"
    bank.write_text(conllu(every[:40]), encoding="utf-8")
    dev.write_text(conllu(every[40:]), encoding="utf-8")
    trained = cli(
        "train", bank, "--dev", dev, "--model", "transition", "--beam", "3", "--global-epochs", "2", "--out", out,
        "--tokeniser", "rules", *SMALL,
    )  # fmt: skip
    assert trained.status == 0, trained.err
    assert "arc-hybrid transitions with a dynamic oracle; 0 of 40 sentences have crossing arcs" in trained.err
    assert isinstance(load(out), TransitionParser)
    predicted = cli("predict", out, dev, "--out", tmp_path / "found.conllu")
    assert predicted.status == 0, predicted.err
    found, gold = (read_treebank(each)[1] for each in (tmp_path / "found.conllu", dev))
    assert [each.words for each in found] == [each.words for each in gold]
    right = sum(
        a == b for one, other in zip(found, gold, strict=True) for a, b in zip(one.heads, other.heads, strict=True)
    )
    assert right > 0.9 * sum(map(len, gold))
    scored = cli("evaluate", out, dev)
    assert scored.status == 0 and "LAS" in scored.out
    unfit = ["--model", "transition", "--oracle", "dynamic", "--system", "swap"]
    refused = cli("train", bank, *unfit, "--out", tmp_path / "m")
    assert refused.status != 0 and 'oracle="dynamic" needs system="arc-hybrid"' in refused.err
