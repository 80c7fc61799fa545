"""What follows from a record alone, for every structure of the registry: its example has few values, so k best are all.

The contract of a structure compares with enumeration; here its queries are compared with one another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import extremes
from tests.contract.base import BACKENDS, close
from trelliswork.distributions.registry import OF_STRUCTURE, STRUCTURES
from trelliswork.errors import ScoreError
from trelliswork.structures.record import Structure

INF = float("inf")
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=lambda each: each.name)
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def example(structure: Structure, backend: str) -> Any:
    generator = torch.Generator().manual_seed(3)
    arguments = structure.example(lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64))
    return OF_STRUCTURE[structure.name](**arguments, backend=backend)


def every_score(dist: Any) -> Tensor:
    """The score of every value [values, rows], -inf behind a row's last."""
    return dist.top_k(int(dist.count.max()) + 1)[1].reshape(-1, dist.batch_shape.numel())


@every_structure
@every_backend
def test_the_k_best_of_all_values_are_the_distribution(structure: Structure, backend: str) -> None:
    dist = example(structure, backend)
    scores = every_score(dist)
    assert (scores > -INF).sum(0).tolist() == dist.count.reshape(-1).tolist()
    assert (scores[:-1] >= scores[1:]).all()
    log_z = scores.logsumexp(0)
    close(dist.log_partition, log_z)
    log_probs = scores - log_z
    close(dist.entropy(), -(log_probs.exp() * log_probs.clamp(min=-1e9)).sum(0))
    close(dist.score(dist.argmax), scores[0])
    close(dist.log_prob(dist.sample(generator=torch.Generator().manual_seed(1))).exp() > 0, torch.ones(len(log_z)))


@every_structure
@every_backend
def test_half_the_scores_are_those_at_temperature_two(structure: Structure, backend: str) -> None:
    dist = example(structure, backend)
    close(dist.tempered(1.0).log_partition, dist.log_partition)
    if structure.name != "ctc strings":  # a string has many paths
        close(dist.tempered(2.0).log_partition, (every_score(dist) / 2).logsumexp(0))


@every_structure
def test_both_solvers_agree(structure: Structure) -> None:
    fast, plain = (example(structure, backend) for backend in BACKENDS)
    close(fast.log_partition, plain.log_partition)
    close(fast.marginals, plain.marginals)
    close(fast.top_k(3)[1], plain.top_k(3)[1])


@every_structure
@pytest.mark.parametrize("other", [lambda part: part.numpy(), lambda part: part.tolist()], ids=["array", "list"])
def test_scores_that_are_no_tensors_are_read_or_named(structure: Structure, other: Callable[[Tensor], Any]) -> None:
    arguments = structure.example(lambda *shape: torch.zeros(shape, dtype=torch.float64))
    wanted = OF_STRUCTURE[structure.name](**arguments).log_partition
    for name in [name for name, part in arguments.items() if isinstance(part, Tensor)]:
        given = {**arguments, name: other(arguments[name])}
        if name in ("lengths", "target_lengths", "weights"):
            close(OF_STRUCTURE[structure.name](**given).log_partition, wanted)
        else:
            with pytest.raises(ScoreError, match=f"{name} must be a tensor"):
                OF_STRUCTURE[structure.name](**given)


def test_extreme_scores_are_tried_on_every_structure() -> None:
    built = [build(extremes.normal, backend="torch", validate_args=False) for build in extremes.BUILDERS.values()]
    assert {dist._structure.name for dist in built} == {structure.name for structure in STRUCTURES}
