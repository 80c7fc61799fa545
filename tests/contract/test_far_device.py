"""Scores on a device that is not the CPU: the kernels answer on a copy, and the answers are where the scores are.

No card is here: the device is simulated (`far_device.py`), in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trelliswork.distributions.registry import STRUCTURES

ROOT = Path(__file__).parents[2]
KEPT_ON_THE_CPU = ("automata",)  # machines


@pytest.fixture(scope="module")
def problems() -> dict[str, dict[str, str]]:
    """What was wrong with each query of each structure; nothing, if all is well."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.contract.far_cases"]
    program = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    by_structure: dict[str, dict[str, str]] = {}
    for line in program.stdout.splitlines():
        structure, query, problem = json.loads(line)
        by_structure.setdefault(structure, {})[query] = problem
    return by_structure


@pytest.mark.parametrize("name", [each.name for each in STRUCTURES if each.name not in KEPT_ON_THE_CPU])
def test_every_query_is_answered_there_as_here(problems: dict[str, dict[str, str]], name: str) -> None:
    """Dtypes and devices, values, first and second gradients, and the number of transfers."""
    cases = problems[name]
    assert len(cases) > 30
    assert not {query: problem for query, problem in cases.items() if problem}


def test_what_is_said_and_refused_names_the_device(problems: dict[str, dict[str, str]]) -> None:
    cases = problems["messages"]
    assert len(cases) >= 5
    assert not {query: problem for query, problem in cases.items() if problem}


def test_layers(problems: dict[str, dict[str, str]]) -> None:
    assert problems["layers"] == {"loss of nn.CRF": "", "loss of nn.CTC": ""}
