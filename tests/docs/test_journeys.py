"""The modules that a call passes are those that ARCHITECTURE.md names, in that order.

Two lists are kept for each call. A module *carries* a call if at least a quarter of the modules that the call enters
are entered beneath it, that is while one of its functions runs: no list of helpers is needed to tell it from them.
The others named are where the work is done at the end of the way.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest
import torch

from tests.docs.documents import ROOT
from trelliswork.cli.main import run
from trelliswork.distributions import LinearChain

MODULES = r"(`[a-z_.]+`(?:, `[a-z_.]+`)*)"
ROWS = re.findall(
    rf"^\| (.*?) \| ([\d,]+) \| {MODULES} \| {MODULES} \|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.M
)
SHARE = 0.25  # a module carries a call if this share of all modules entered is entered beneath it
MARGIN = 0.05  # modules whose share is as near to that may be listed or not: a merge of modules elsewhere moves it
MOST = {"predict": 12, "train": 14}  # modules that carry a call, so that it can be followed
RECIPE = "models.networks.recipe:NetworkRecipe"
FEWEST = 40  # modules that a call enters for shares of them to mean something
SLACK = 8  # modules by which the number that is printed may be off


class Journey(NamedTuple):
    """The modules that a call enters, each where it does so first, with those beneath each; and its functions."""

    beneath: dict[str, set[str]]
    functions: Counter[str]

    def carrying(self, share: float = SHARE) -> list[str]:
        return [module for module, others in self.beneath.items() if len(others) >= share * len(self.beneath)]


def journey(call: Callable[[], object]) -> Journey:
    """Follow the package's functions that a call enters, and which modules are on the stack then."""
    passed = Journey({}, Counter())

    def module_of(frame: FrameType) -> str:
        if frame.f_code.co_name == "<module>":
            return ""
        name = str(frame.f_globals.get("__name__", ""))
        return name.removeprefix("trelliswork.") if name.startswith("trelliswork.") else ""

    def enter(frame: FrameType, event: str, _: object) -> None:
        module = module_of(frame)
        if event != "call" or not module:
            return
        passed.beneath.setdefault(module, set())
        passed.functions[f"{module}:{frame.f_code.co_qualname}"] += 1
        above = frame.f_back
        while above is not None:
            if (caller := module_of(above)) not in ("", module):
                passed.beneath.setdefault(caller, set()).add(module)
            above = above.f_back

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before)
    return passed


def compare(call: str, passed: Journey) -> None:
    """Compare a journey with the row of the table whose call contains these words."""
    _, n_entered, carrying, working = next(row for row in ROWS if call in row[0])
    named = re.findall(r"`(.*?)`", carrying)
    if len(passed.beneath) >= FEWEST:
        assert set(passed.carrying(SHARE + MARGIN)) <= set(named) <= set(passed.carrying(SHARE - MARGIN))
    for listed in (named, re.findall(r"`(.*?)`", working)):
        assert [module for module in passed.beneath if module in listed] == listed
    assert abs(len(passed.beneath) - int(n_entered)) <= SLACK, f"it enters {len(passed.beneath)} modules"


def require_once(passed: Journey, *functions: str) -> None:
    """Require that a call goes forward: it comes to none of these functions again."""
    assert {name: passed.functions[name] for name in functions} == dict.fromkeys(functions, 1)


def command(*arguments: str) -> Callable[[], None]:
    def call() -> None:
        assert run(arguments) == 0

    return call


def test_every_journey_is_listed() -> None:
    assert len(ROWS) == 3


def test_the_sum_over_all_values() -> None:
    emissions, transitions = torch.randn(2, 5, 3), torch.randn(3, 3)
    LinearChain(emissions, transitions).log_partition  # noqa: B018, the kernels are compiled
    compare("log_partition", journey(lambda: LinearChain(emissions, transitions).log_partition))


def test_training_and_predicting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.conll").write_text("Ann B-X\nsings O\n\nBob B-X\nruns O\n\n" * 5, encoding="utf-8")
    train = ("train", "t.conll", "--model", "bilstm-crf", "--out", "m", "--force", "--quiet", "--epochs", "1")
    predict = ("predict", "m", "t.conll", "--out", "x.conll")
    command(*train)()  # so that everything is imported
    command(*predict)()
    training = journey(command(*train))
    compare("train --model bilstm-crf", training)
    assert len(training.carrying()) <= MOST["train"]
    require_once(training, "data.readers:file_kind", "models.recipe:Recipe.prepare", f"{RECIPE}.learn")
    predicting = journey(command(*predict))
    compare("predict", predicting)
    assert len(predicting.carrying()) <= MOST["predict"]
    require_once(predicting, "cli.inputs:kind_of", "data.readers:file_kind", "models.base:Model.sentences_of")
