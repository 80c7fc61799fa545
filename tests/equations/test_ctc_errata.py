"""Misprints in the equations of CTC: the printed form fails, the corrected form is what we compute.

The truth is always enumeration: every path of every frame, collapsed one by one.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from tests.oracles.ctc import collapsed
from trelliswork.distributions import CTC
from trelliswork.semirings import Real
from trelliswork.structures.ctc import structure
from trelliswork.structures.ctc.structure import Labelling

T, C = 5, 3
STRING = (1, 2)


def frames(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, T, C, generator=generator, dtype=torch.float64).log_softmax(-1)


def alphas(log_probs: Tensor, string: tuple[int, ...]) -> list[list[float]]:
    """α_t(s) by the recursion, t and s from 0."""
    sizes = torch.tensor([log_probs.shape[1]]), torch.tensor([len(string)])
    parts = Labelling.of(log_probs, torch.tensor([string], dtype=torch.long).reshape(1, -1), *sizes, 0)
    return [alpha[0].tolist() for alpha in structure.forward(parts, Real())]


def weight(log_probs: Tensor, path: tuple[int, ...]) -> float:
    return math.exp(sum(log_probs[0, t, symbol].item() for t, symbol in enumerate(path)))


def prefix_weight(log_probs: Tensor, t: int, prefix: tuple[int, ...], whole_paths: bool) -> float:
    """Σ over paths of t frames, or as printed over paths of all frames, of which the first t collapse to the prefix."""
    paths = itertools.product(range(C), repeat=T if whole_paths else t)
    return math.fsum(weight(log_probs, path[:t]) for path in paths if collapsed(path[:t], 0) == prefix)


@pytest.mark.parametrize("whole_paths", [True, False])
def test_alpha_of_the_first_s_labels_is_not_what_the_recursion_computes(whole_paths: bool) -> None:
    """Erratum 36: with s counting labels of ℓ the definition gives other numbers than the recursion, at all frames."""
    log_probs = frames(0)
    found = alphas(log_probs, STRING)
    for t in range(2, T + 1):
        for s in (1, 2):
            printed = prefix_weight(log_probs, t, STRING[:s], whole_paths)
            assert abs(printed - found[t - 1][s - 1]) > 1e-3


def test_alpha_counts_states_of_the_augmented_string() -> None:
    """Erratum 36: states 2u and 2u+1 of ℓ' together hold the paths that collapse to the first u labels, each once."""
    for seed in range(5):
        log_probs = frames(seed)
        found = alphas(log_probs, STRING)
        for t in range(1, T + 1):
            for u in range(len(STRING) + 1):
                states = found[t - 1][2 * u] + (found[t - 1][2 * u - 1] if u else 0.0)
                assert states == pytest.approx(prefix_weight(log_probs, t, STRING[:u], False), abs=1e-12)


def test_an_empty_string_ends_in_its_only_state() -> None:
    """Erratum 36: α_T(|ℓ'| - 1) does not exist for an empty ℓ; an index that wraps round counts silence twice."""
    log_probs = frames(1)
    (last,) = alphas(log_probs, ())[-1]
    truth = weight(log_probs, (0,) * T)
    states = [last]
    assert states[1 - 1] + states[1 - 1 - 1] == pytest.approx(2 * truth)
    assert last == pytest.approx(truth)
    assert CTC(log_probs).log_prob([[]]).exp().item() == pytest.approx(truth)


@pytest.mark.parametrize("string", [(1,), (1, 2), (1, 2, 1), (1, 1), (1, 1, 2), (2, 1, 1)])
def test_the_number_of_alignments_with_and_without_repeats(string: tuple[int, ...]) -> None:
    """Erratum 36: C(T + U, T - U) holds without repeats only; a repeat takes one frame for the blank between."""
    repeats = sum(before == label for before, label in itertools.pairwise(string))
    truth = sum(collapsed(path, 0) == string for path in itertools.product(range(C), repeat=T))
    printed = math.comb(T + len(string), T - len(string))
    assert (printed == truth) == (repeats == 0)
    assert math.comb(T + len(string) - repeats, 2 * len(string)) == truth
    assert CTC(torch.zeros(1, T, C)).count_alignments([list(string)]).item() == truth
