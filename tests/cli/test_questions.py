"""Questions and their meanings on the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.conftest import RECORDER
from tests.models.semantic.test_seq2tree import PAIRS
from trelliswork.models.transducers.semantic.forms import FORMS


def test_it_trains_and_predicts(tmp_path: Path, cli: Cli) -> None:
    file, model = tmp_path / "train.tsv", tmp_path / "model"
    file.write_text("".join(f"{' '.join(p.words)}\t{' '.join(p.target or ())}\t{{}}\n" for p in PAIRS), "utf-8")
    small = ["--word-dim", 8, "--hidden", 8, "--epochs", 2]
    with RECORDER.needs("train seq2tree"):
        status, out, err = cli("train", file, "--dev", file, "--model", "seq2tree", "--out", model, *small)
    assert status == 0, err
    assert "targets: Prolog terms, compared up to names of variables and order of conjuncts (--form)" in out + err
    with RECORDER.needs("predict seq2tree"):
        status, out, err = cli("predict", model, file)
    assert status == 0, err
    source, target, *_ = out.splitlines()[0].split("\t")
    assert source == "show the river in var0"
    FORMS["prolog"].read(target.split())  # what comes out always reads
    status, out, err = cli("evaluate", model, file)
    assert status == 0, err
    assert "exact match" in out


def test_brackets_that_do_not_close_are_said_with_their_line(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "train.tsv"
    file.write_text("a b\tf ( x , y )\nb a\tf ( x , y\n", "utf-8")
    status, _, err = cli("train", file, "--model", "seq2tree", "--form", "prolog", "--out", tmp_path / "m")
    assert status == 2
    assert "train.tsv:2: expected every bracket to be closed; got 1 open" in err
