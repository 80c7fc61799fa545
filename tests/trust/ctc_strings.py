"""The contract of structures for `CTC`, as far as label strings keep it: a string has many paths, a path one string."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain, StructureContract
from tests.contract.test_ctc import frames
from tests.oracles.ctc import strings
from trelliswork.distributions import CTC


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """The log of the summed weights of the paths of each string."""
    scores = instance.scores["log_probs"]
    return dict(strings(scores[row, : _lengths(instance)[row]], int(instance.options["blank"])))


def _lengths(instance: Instance) -> list[int]:
    return instance.options["lengths"].tolist()


class CTCStrings(StructureContract):
    gradient_of = "log_probs"
    unasked = (  # speak of parts of a value; a string has none
        "test_covariance",
        "test_tempered_divides_every_score",
        "test_log_prob_of_a_set",
        "test_constrain_keeps_exactly_what_agrees",
        "test_a_common_shift_moves_log_partition_and_nothing_else",
        "test_kl_divergence_is_infinite_where_the_other_forbids",
        "test_kl_divergence_is_infinite_however_improbable_what_is_forbidden_is",
    )

    def instances(self) -> dict[str, Instance]:
        shapes = {"three symbols": (5, 3, 0), "four symbols": (4, 4, 0), "blank 2": (4, 3, 2), "one label": (5, 2, 1)}
        return {
            name: Instance(
                {"log_probs": frames(seed, t, c)},
                {"lengths": torch.tensor([t, 1, t - 1]), "blank": torch.tensor(blank)},
            )
            for seed, (name, (t, c, blank)) in enumerate(shapes.items())
        }

    def build(self, instance: Instance, backend: str) -> CTC:
        lengths, blank = instance.options["lengths"], int(instance.options["blank"])
        return CTC(instance.scores["log_probs"], lengths=lengths, blank=blank, backend=backend)  # type: ignore[arg-type]

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return support(instance, row)

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        return instance.mapped(lambda part: part + by), [by * n for n in _lengths(instance)]

    def exact_log_probabilities(self, instance: Instance, row: int) -> dict[Plain, float]:
        """A string's weight is a sum over paths: of frames near 0, as all paths have one symbol of each."""
        near = instance.mapped(lambda part: part - part.nan_to_num(neginf=-1e9).amax(-1, keepdim=True))
        return super().exact_log_probabilities(near, row)

    def n_rows(self, instance: Instance) -> int:
        return len(instance.scores["log_probs"])

    def to_plain(self, instance: Instance, value: Any) -> list[Plain]:
        return [tuple(string) for string in value]

    def to_value(self, instance: Instance, plain: list[Any]) -> list[list[int]]:
        return [list(string) for string in plain]

    def enumerated_marginals(self, instance: Instance) -> Tensor:
        """Frames are independent: the probability of a symbol is its share of the frame."""
        scores, found = instance.scores["log_probs"].double(), []
        for row, n in zip(scores, _lengths(instance), strict=True):
            found.append(torch.cat([row[:n].softmax(-1), torch.zeros_like(row[n:])]))
        return torch.stack(found)

    def one_row(self, instance: Instance, row: int) -> Instance:
        n = _lengths(instance)[row]
        scores = instance.scores["log_probs"][row : row + 1, :n]
        return Instance({"log_probs": scores}, {**instance.options, "lengths": torch.tensor([n])})

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        scores = instance.scores["log_probs"].clone()
        for row, n in enumerate(_lengths(instance)):
            scores[row, n:] = garbage if garbage > -INF else 0.0  # a frame needs a symbol
        return instance.with_scores(log_probs=scores)
