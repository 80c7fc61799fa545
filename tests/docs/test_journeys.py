"""The modules that a call passes are those that ARCHITECTURE.md names, in that order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from tests.docs.documents import ROOT
from trelliswork.cli.main import run
from trelliswork.distributions import LinearChain

ROWS = re.findall(
    r"^\| (.*?) \| (`[a-z_.]+`(?:, `[a-z_.]+`)+) \|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.M
)
JOURNEYS = {call: re.findall(r"`(.*?)`", modules) for call, modules in ROWS}


def passed(call: Callable[[], Any]) -> list[str]:
    """The modules of the package that a call enters, each where it does so first."""
    seen: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("trelliswork.") and frame.f_code.co_name != "<module>":
            seen.setdefault(name.removeprefix("trelliswork."))

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(seen)


def compare(call: str, found: list[str]) -> None:
    listed = next(modules for name, modules in JOURNEYS.items() if call in name)
    assert [module for module in found if module in listed] == listed


def command(*arguments: str) -> Callable[[], None]:
    def call() -> None:
        assert run(arguments) == 0

    return call


def test_every_journey_is_listed() -> None:
    assert len(JOURNEYS) == 3


def test_the_sum_over_all_values() -> None:
    emissions, transitions = torch.randn(2, 5, 3), torch.randn(3, 3)
    LinearChain(emissions, transitions).log_partition  # noqa: B018, the kernels are compiled
    compare("log_partition", passed(lambda: LinearChain(emissions, transitions).log_partition))


def test_training_and_predicting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.conll").write_text("Ann B-X\nsings O\n\nBob B-X\nruns O\n\n" * 5, encoding="utf-8")
    train = ("train", "t.conll", "--model", "bilstm-crf", "--out", "m", "--force", "--quiet", "--epochs", "1")
    command(*train)()
    compare("train --model bilstm-crf", passed(command(*train)))
    compare("predict", passed(command("predict", "m", "t.conll", "--out", "x.conll")))
