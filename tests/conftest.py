"""Settings of the whole suite: one thread, and property tests that draw the same examples every time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.contract.base")  # so that its failures show both sides
torch.set_num_threads(1)

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")
