"""`warmup --all`: every structure's kernels."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli import exercises
from trelliswork.structures import STRUCTURES


def test_warmup_of_every_structure(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: exercises.EVERY_STRUCTURE[name] for name in ("projective", "spanning")}
    monkeypatch.setattr(exercises, "EVERY_STRUCTURE", some)
    answer = cli("warmup", "--all")
    assert [line.split(": ready after ")[0] for line in answer.out.splitlines()] == ["projective", "spanning"]
    assert cli("warmup", "--all", "--quiet").out == ""


def test_every_structure_with_kernels_is_exercised() -> None:
    assert set(exercises.EVERY_STRUCTURE) == set(STRUCTURES) - {"beam"}  # which has none
