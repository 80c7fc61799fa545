"""`warmup --all`: every structure's kernels."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli import compiling
from trelliswork.distributions.registry import KINDS, OF_STRUCTURE
from trelliswork.structures import registry


def test_warmup_of_every_structure(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "STRUCTURES", (registry.PROJECTIVE, registry.SPANNING))
    answer = cli("warmup", "--all")
    ready = [line.split(": ready after ")[0] for line in answer.out.splitlines()]
    assert ready[-2:] == ["projective", "spanning"]  # before them, what taggers call, unless it is compiled already
    assert cli("warmup", "--all", "--quiet").out == ""


def test_every_structure_has_a_distribution_and_an_example() -> None:
    assert set(OF_STRUCTURE) == {structure.name for structure in registry.STRUCTURES}
    assert len(OF_STRUCTURE) == len(KINDS)
