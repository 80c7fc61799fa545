"""The neural edit transducer on the command line."""

from __future__ import annotations

from tests.models.test_edit_transducer import pairs


def test_the_commands(tmp_path, cli):
    lines = [f"{''.join(pair.words)}\t{''.join(pair.target)}\n" for pair in pairs(60, 0)]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    sizes = "--symbol-dim", 8, "--hidden", 8, "--cell-dim", 8
    out = tmp_path / "model"
    cli("train", tmp_path / "pairs.tsv", "--model", "edit", *sizes, "--epochs", 2, "--out", out)
    (tmp_path / "words.txt").write_text("bad\n", encoding="utf-8")
    answer = cli("predict", out, tmp_path / "words.txt", "--top-k", 2)
    rows = [line.split("\t") for line in answer.out.splitlines()]
    assert [row[0] for row in rows] == ["bad", "bad"]
    assert float(rows[0][2]) >= float(rows[1][2]) > 0
