"""The same answers, whatever is compiled first.

A check of scores is in danger where a kernel that assumes there is no NaN calls it: compiled inside that kernel first,
it must not take over the assumption. Each of those kernels is compiled first here, in an empty cache. Everywhere else a
check is called from Python before any kernel of its structure, as all other tests do, in the cache that they share.
"""

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
from tests.runtime.test_compilation import dispatchers

CHECKS = {"first_not_a_score", "right_padded", "labels_are_scores", "read_arcs"}
KERNELS = {  # with arithmetic that assumes there is no NaN; what compiles them, and the structure that checks before
    "trelliswork.structures.chain.likelihood_kernels.forward_rows": ("chain loss", "chain"),
    "trelliswork.structures.segments.likelihood_kernels.forward_rows": ("segment loss", "segments"),
}


def start(order: list[str], cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "tests.runtime.orders", *order]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def answers_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    printed, _ = process.communicate()
    assert process.returncode == 0
    answers: dict[str, Any] = json.loads(printed)
    return answers


def in_this_process(order: list[str]) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(json.dumps(orders.answers(order)))
    return answers


@pytest.mark.thorough
@pytest.mark.parametrize(("loss", "structure"), KERNELS.values())
def test_answers_do_not_depend_on_what_is_compiled_first(loss: str, structure: str, tmp_path: Path) -> None:
    assert answers_of(start([loss, structure], tmp_path)) == in_this_process([structure, loss])


def test_no_check_is_in_danger_in_a_kernel_that_assumes_there_is_no_nan() -> None:
    found = dispatchers()
    assert {name.rpartition(".")[2] for name in found} >= CHECKS
    calling = {name: each for name, each in found.items() if CHECKS & {*each.py_func.__code__.co_names}}
    assert not {name for name, each in calling.items() if "nnan" in (each.targetoptions["fastmath"] or ())}
    assert {*KERNELS} <= {*found}


@pytest.mark.thorough
def test_two_processes_fill_one_cache_at_once(tmp_path: Path) -> None:
    one, other = map(answers_of, [start(["chain"], tmp_path) for _ in range(2)])
    assert one == other == in_this_process(["chain"])
    assert answers_of(start(["chain"], tmp_path)) == one


def test_every_check_finds_its_score() -> None:
    said = orders.checks()
    assert len(said) == 2 * len(orders.BY_NAME)
    assert [name for name, sentence in said.items() if sentence == "nothing"] == []
