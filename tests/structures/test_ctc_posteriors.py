"""Posteriors of labels given all others, against the probabilities of every string that differs in one place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trelliswork.distributions import CTC
from trelliswork.structures.ctc.strings import label_posteriors

NEVER = -np.inf


def by_enumeration(ctc: CTC, labels: list[int], c: int, blank: int) -> list[float]:
    """p(ℓ) over the sum of p of all strings with another label, or none, in a place."""
    shares = []
    for u in range(len(labels)):
        others = [labels[:u] + [x] * (x != blank) + labels[u + 1 :] for x in range(c)]
        weights = [float(ctc.log_prob(other).exp()) for other in others]
        shares.append(float(ctc.log_prob(labels).exp()) / sum(weights))
    return shares


@pytest.mark.parametrize("blank", [0, 2])
def test_a_posterior_is_the_share_of_a_string_among_those_that_differ_in_its_place(blank: int) -> None:
    generator = torch.Generator().manual_seed(blank)
    c = 4
    a, b, d = (x for x in range(c) if x != blank)
    for t, labels in [(1, [a]), (2, [a, b]), (3, [a, a]), (5, [a, b, a]), (6, [b, b, d]), (6, [a, d, d, a]), (4, [])]:
        scores = (2 * torch.randn(t, c, generator=generator, dtype=torch.float64)).log_softmax(-1)
        shares = label_posteriors(scores.numpy(), labels, blank)
        assert shares == pytest.approx(by_enumeration(CTC(scores, blank=blank), labels, c, blank))


def test_forbidden_symbols_and_impossible_strings() -> None:
    scores = np.log(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]]).clip(1e-300))
    scores[scores < -600] = NEVER
    with np.errstate(divide="ignore"):
        assert label_posteriors(scores, [1, 2], 0) == pytest.approx(
            by_enumeration(CTC(torch.from_numpy(scores)), [1, 2], 3, 0)
        )
    assert np.isnan(label_posteriors(scores, [2, 1], 0)).any() or label_posteriors(scores, [2, 1], 0).max() == 0
