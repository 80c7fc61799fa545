"""Scores that are not numbers, that overflow or that forbid everything: every query answers or says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit

from tests.contract.base import BACKENDS
from tests.contract.extremes import BUILDERS, FILLS, QUERIES, filled
from trelliswork.errors import ScoreError
from trelliswork.runtime import kernel_random
from trelliswork.runtime.kernel_math import pick_from_sums, sum_up

INF, NAN = float("inf"), float("nan")
ROOT = Path(__file__).parents[2]


@njit
def _picked(weights: Any, uniform: float) -> Any:
    sums = weights.copy()
    sum_up(sums)
    return pick_from_sums(sums.reshape(1, -1), 0, len(sums), uniform)


@pytest.mark.thorough
def test_no_query_crashes_or_hangs() -> None:
    """All structures share a process: it takes longer to start than to ask one of them."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.contract.extremes", *BUILDERS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"crashed in: {lines[-1:]} {done.stderr[-2000:]}"
    assert len(lines) == len(BUILDERS) * len(FILLS) * 2 * len(QUERIES)
    assert [line for line in lines if "failed:" in line] == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("structure", [name for name in BUILDERS if not name.startswith("acceptor")])
def test_samples_of_sums_that_overflow_are_refused_with_a_sentence(structure: str, backend: str) -> None:
    dist = BUILDERS[structure](filled(1e308), backend=backend, validate_args=False)
    with pytest.raises(ScoreError, match=r"must have a finite total; got .*; scale them down"):
        dist.sample()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("structure", [name for name in BUILDERS if not name.startswith("acceptor")])
def test_scores_whose_sums_would_overflow_are_refused_when_they_are_given(structure: str, backend: str) -> None:
    with pytest.raises(ScoreError, match=r"must be at most 1e\+300, so that sums are finite; got 1e\+308 at"):
        BUILDERS[structure](filled(1e308), backend=backend, validate_args=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("structure", [name for name in BUILDERS if "cycle" not in name])
def test_the_total_of_the_largest_scores_is_finite(structure: str, backend: str) -> None:
    dist = BUILDERS[structure](filled(1e300), backend=backend, validate_args=True)
    assert bool(torch.as_tensor(dist.log_partition).isfinite().all())


@pytest.mark.parametrize(
    "weights", [[NAN] * 3, [INF] * 3, [-INF] * 3, [0.0, NAN, 1.0], [0.0, INF, -INF], [-INF, 0.0, NAN]]
)
def test_a_draw_is_always_an_index(weights: list[float]) -> None:
    log_weights, state = np.array(weights), np.array([7], np.uint64)
    for uniform in (0.0, 0.5, 1.0 - 1e-16):
        assert 0 <= _picked(np.exp(log_weights), uniform) < 3
        assert 0 <= kernel_random.draw(log_weights, 3, state) < 3


def test_a_draw_never_takes_what_is_forbidden() -> None:
    log_weights, state = np.array([-INF, -INF, 0.0, -INF]), np.array([7], np.uint64)
    assert {kernel_random.draw(log_weights, 4, state) for _ in range(50)} == {2}
    assert {_picked(np.exp(log_weights), u) for u in (0.0, 1.0 - 2.0**-53, *torch.rand(50).tolist())} == {2}


def test_a_pick_follows_the_weights() -> None:
    """Weight i takes the numbers from the sum of those before it, whatever the sizes."""
    weights = np.array([0.0, 1e-200, 0.25, 0.0, 0.5, 0.25, 0.0])
    assert [_picked(weights, u) for u in (0.0, 1e-201, 0.1, 0.24, 0.25, 0.74, 0.75, 1.0 - 2.0**-53)] == [
        1, 1, 2, 2, 4, 4, 5, 5,
    ]  # fmt: skip
    assert _picked(np.array([0.0, 3e300, 0.0]), 1.0 - 2.0**-53) == 1
