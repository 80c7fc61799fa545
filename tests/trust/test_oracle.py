"""A short form of the oracle on random instances, and a wrong query that it finds."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from tests.contract import test_linear_chain
from tests.contract.base import Instance
from tests.trust.oracle import CONTRACTS, Findings, Measure, compare, queries_of, run, varied
from trelliswork.distributions.registry import KINDS

CASES = 500


def test_random_instances_of_every_structure() -> None:
    *_, findings = run(CASES, seed=7)
    assert findings.failures == []
    assert findings.cases.total() >= CASES and set(findings.by(0)) == set(CONTRACTS)
    assert set(findings.by(3)) == {"kernel", "torch"}


def test_every_distribution_has_a_contract() -> None:
    asked = {name.partition(" ")[0] for name in CONTRACTS}
    assert {kind.__name__ for kind in KINDS} - {"Acceptor"} <= asked  # acceptors are asked as transducers
    generic = {"log_partition", "marginals", "argmax", "top_k", "sample", "entropy", "kl_divergence", "count"}
    for contract in CONTRACTS.values():
        assert generic <= set(queries_of(contract).values())


class Wrong:
    """A distribution whose entropy is a millionth off."""

    def __init__(self, right: Any) -> None:
        self.right = right

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def entropy(self) -> Any:
        return self.right.entropy() * (1 + 1e-6)


class WrongEntropy(test_linear_chain.TestLinearChain):
    __test__ = False

    def build(self, instance: Instance, backend: str) -> Any:
        right = super().build(instance, backend)
        return Wrong(right) if backend == "kernel" else right


def test_a_wrong_query_is_found() -> None:
    findings, contract, source = Findings(), WrongEntropy(), Random(3)
    for n in range(1, 6):
        instance = varied(contract, source)
        while instance.dtype != torch.float64:
            instance = varied(contract, source)
        compare("wrong", contract, instance, n, findings)
    found = {(each["query"], each["backend"]) for each in findings.failures}
    assert ("entropy", "kernel") in found
    assert all(backend == "kernel" for _, backend in found)


def test_nan_is_a_difference() -> None:
    measure = Measure(1.0)
    measure(torch.tensor([1.0, float("-inf")]), [1.0, float("-inf")], torch.float64)
    for wrong in ([float("nan"), 0.0], [1.0, 5.0], [1.0 + 1e-9, float("-inf")]):
        try:
            measure(torch.tensor(wrong, dtype=torch.float64), [1.0, float("-inf")], torch.float64)
        except AssertionError:
            continue
        raise AssertionError(f"{wrong} was taken as right")
