"""`top_k` of far more structures than there are costs what those cost that there are."""

from __future__ import annotations

import time

import pytest
import torch

from tests.contract.extremes import BUILDERS, normal

INF = float("inf")
FINITE = [name for name in BUILDERS if "cycle" not in name and "many tags" not in name]  # at most 1,024 structures
K = 100_000


@pytest.mark.parametrize(
    ("structure", "backend"),
    [(name, "kernel") for name in FINITE] + [("sparse grammar", "torch"), ("projective trees", "torch")],
)
def test_the_best_of_all_are_padded(structure: str, backend: str) -> None:
    dist = BUILDERS[structure](normal, backend=backend, validate_args=True)
    _, few = dist.top_k(20)  # compiles
    begun = time.process_time()
    values, scores = dist.top_k(K)
    assert time.process_time() - begun < 20
    assert len(values) == len(scores) == K
    assert torch.equal(scores[: len(few)], few)
    found = (scores > -INF).sum(0)
    assert (found <= 1024).all() and (scores[1024:] == -INF).all()
    if structure != "ctc":
        assert torch.equal(found.double(), dist.count)
    again, best = (each if isinstance(each, list) else each.tolist() for each in (values[-1:], values[:1]))
    assert again == best
