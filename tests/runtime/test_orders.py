"""The same answers, whatever is compiled first, from an empty cache each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT
from tests.runtime import orders

ORDERS = [["training", "checks", "chain"], ["checks", "chain", "training"]]
ORDERS += [[name, "checks"] for name in orders.BY_NAME]


def start(order: list[str], cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "tests.runtime.orders", *order]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def answers_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    printed, _ = process.communicate()
    assert process.returncode == 0
    answers: dict[str, Any] = json.loads(printed)
    return answers


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: f"{order[0]} first")
def test_answers_do_not_depend_on_what_is_compiled_first(order: list[str], tmp_path: Path) -> None:
    assert answers_of(start(order, tmp_path)) == json.loads(json.dumps(orders.answers(order)))


def test_two_processes_fill_one_cache_at_once(tmp_path: Path) -> None:
    both = [start(order, tmp_path) for order in (["chain", "checks"], ["checks", "chain"])]
    one, other = map(answers_of, both)
    assert one == other == json.loads(json.dumps(orders.answers(["chain", "checks"])))
    assert answers_of(start(["chain", "checks"], tmp_path)) == one


def test_every_check_finds_its_score() -> None:
    said = orders.checks()
    assert len(said) == 2 * len(orders.BY_NAME)
    assert [name for name, sentence in said.items() if sentence == "nothing"] == []
