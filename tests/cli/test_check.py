"""`check`: what is worth knowing about files before training."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.findings import oddity_of


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    path = tmp_path / "messy.conll"
    ordinary = "".join(f"word{i}\tO\nsings\tO\n\n" for i in range(30))
    path.write_text(
        "Ann\tB-PER\nsings\tO\n\n"
        "Ann\tO\nsings\tO\n\n"  # the same words, other tags
        "old\tO\nRome\tI-LOC\n\n"  # breaks IOB2
        "zero\u200bwidth\tO\n\n" + ordinary + "long\tO\n" * 80 + "\n",
        encoding="utf-8",
    )
    return path


def test_check_counts_and_compares(cli: Cli, data: Path) -> None:
    answer = cli("check", data / "train.conll", data / "dev.conll")
    assert answer.status == 0 and answer.err == ""
    assert "word = 1, tag = 4 (IOB2)" in answer.out
    for told in ("sentences  150,", "tags that break IOB2: none", "sentences in both  0 of 30", "unseen words"):
        assert told in answer.out


def test_check_finds_what_is_wrong(cli: Cli, messy: Path) -> None:
    answer = cli("check", messy)
    assert answer.status == 0
    assert f"{messy}:8: I-LOC after O: a span starts with B-LOC in IOB2" in answer.out
    assert f"{messy}:4: the same words, other tags than line 1" in answer.out
    assert f"{messy}:10: 'zero\\u200bwidth': holds U+200B ZERO WIDTH SPACE" in answer.out
    assert "80 tokens, half of the sentences have 2 or fewer" in answer.out
    assert "longest 80 (line 102)" in answer.out
    assert "tags seen once: B-PER, I-LOC" in answer.out


def test_strict_tells_by_its_status(cli: Cli, messy: Path, data: Path) -> None:
    assert cli("check", "--strict", messy).status == 1
    assert cli("check", "--strict", data / "dev.conll").status == 0


def test_many_findings_are_counted(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "broken.conll"
    path.write_text("Ann\tB-PER\n\n" + "Rome\tO\nRome\tI-LOC\n\n" * 12 + "Oslo\tB-LOC\n\n" * 30)
    answer = cli("check", path, "--scheme", "BIO")
    assert "tags that break IOB2: 12" in answer.out and "... and 2 more" in answer.out


def test_overlap_counts_shared_sentences(cli: Cli, data: Path) -> None:
    answer = cli("check", data / "dev.conll", data / "dev.conll")
    assert "sentences in both  30 of 30" in answer.out and "0.0% of tokens" in answer.out


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("fine", ""),
        ("naïve", ""),
        ("a\u00a0b", "holds U+00A0 NO-BREAK SPACE"),
        ("x" * 61, "61 characters long"),
        ("می\u200cرود", ""),
        ("\U0001f469\u200d\U0001f467", ""),
        ("a\u200db", "holds U+200D ZERO WIDTH JOINER"),
        ("\u200d", "holds U+200D ZERO WIDTH JOINER"),
        ("می\u200bرود", "holds U+200B ZERO WIDTH SPACE"),
    ],
)
def test_odd_words(word: str, reason: str) -> None:
    assert oddity_of(word) == reason
