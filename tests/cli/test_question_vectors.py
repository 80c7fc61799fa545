"""`train --vectors` with networks from questions to meanings."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli


def test_the_command_reads_vectors(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("which river\tf ( a )\nwhich city\ta\n" * 5)
    (tmp_path / "vectors.txt").write_text("river 1 0\nbrook 1 0.1\n")
    train = ("train", tmp_path / "pairs.tsv", "--model", "seq2tree", "--epochs", 1, "--source-units", "blanks")
    answer = cli(*train, "--vectors", tmp_path / "vectors.txt", "--out", tmp_path / "m")
    assert answer.status == 0 and "2 vectors of 2 numbers, for 27.8% of the training tokens" in answer.err
    (tmp_path / "other.txt").write_text("fluss 1 0\n")
    answer = cli(*train, "--vectors", tmp_path / "other.txt", "--out", tmp_path / "n")
    assert answer.status == 2 and "give vectors of its language" in answer.err
    answer = cli(*train, "--tune-vectors", "--out", tmp_path / "n")
    assert answer.status == 2 and "--tune-vectors needs vectors" in answer.err
