"""Checks of the arguments of an `HMM`, each with a sentence that explains the error."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trelliswork.distributions.checks import check_tensor, is_whole
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Int

MISSING = -100
SLACK = {torch.float64: 1e-6, torch.float32: 1e-3}  # of a sum of probabilities; half precision gets more


def check_log_probs(initial: Tensor, transitions: Tensor, emissions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return initial [c], transitions [c, c] and emissions [c, v] in one dtype, each row summing to one.

    Args:
        initial: log p(y_1) [c].
        transitions: log p(y_t | y_{t-1}) [c, c], indexed [from, to].
        emissions: log p(x_t | y_t) [c, v].

    Returns:
        The three of them in their common dtype.
    """
    for name, part in (("initial", initial), ("transitions", transitions), ("emissions", emissions)):
        check_tensor(name, part)
    if emissions.dim() != 2 or 0 in emissions.shape:
        raise ScoreError(f"emissions must be [states, symbols]; got {tuple(emissions.shape)}")
    c = len(emissions)
    for name, part, shape in (("initial", initial, (c,)), ("transitions", transitions, (c, c))):
        if part.shape != shape:
            raise ScoreError(f"{name} must be {shape} for emissions {tuple(emissions.shape)}; got {tuple(part.shape)}")
    dtype = torch.promote_types(torch.promote_types(initial.dtype, transitions.dtype), emissions.dtype)
    if not dtype.is_floating_point:
        raise ScoreError(f"log-probabilities must be floating point; got {dtype}; call .float() on them")
    parts = initial.to(dtype), transitions.to(dtype), emissions.to(dtype)
    for name, part in zip(("initial", "transitions", "emissions"), parts, strict=True):
        _check_sums(name, part.detach().reshape(-1, part.shape[-1]))
    return parts


def _check_sums(name: str, rows: Tensor) -> None:
    sums = rows.double().exp().sum(-1)
    wrong = ~((sums - 1).abs() <= SLACK.get(rows.dtype, 0.05))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ScoreError(
            f"each row of {name} must be log-probabilities that sum to one; got a sum of {float(sums[row]):.6g} "
            f"at row {row}; normalise them, or give any scores to HMM.from_scores"
        )


def check_observations(observations: Tensor, lengths: Tensor | None, n_symbols: int) -> None:
    """Check observations: whole numbers [batch, n] below `n_symbols`.

    What stands behind the length of a row is not read.

    Args:
        observations: symbols [batch, n].
        lengths: how many symbols of each row are read [batch]; None for all.
        n_symbols: the number of symbols.
    """
    check_tensor("observations", observations)
    if observations.dim() != 2 or not is_whole(observations):
        raise ScoreError(
            f"observations must be whole numbers [batch, n]; got {observations.dtype} {tuple(observations.shape)}"
        )
    wrong = observations >= n_symbols
    if lengths is not None:
        check_tensor("lengths", lengths)
        if lengths.shape != observations.shape[:1]:
            raise ScoreError(f"lengths must be one a row, {tuple(observations.shape[:1])}; got {tuple(lengths.shape)}")
        wrong &= torch.arange(observations.shape[1], device=wrong.device) < lengths[:, None]
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"observations must lie in 0..{n_symbols - 1}, or be {MISSING} for missing; "
            f"got {int(observations[row, position])} at row {row}, position {position}"
        )


def check_states(states: Int[Tensor, "batch n"], valid: Bool[Tensor, "batch n"], n_states: int) -> None:
    """Check that every valid position holds a state; otherwise say which does not.

    Args:
        states: whole numbers [batch, n].
        valid: True at positions that are read [batch, n].
        n_states: the number of states.
    """
    wrong = valid & ((states < 0) | (states >= n_states))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"states must lie in 0..{n_states - 1}; got {int(states[row, position])} at row {row}, position {position}"
        )


def check_same_lengths(of_states: Int[Tensor, "batch"], of_observations: Int[Tensor, "batch"]) -> None:
    """Check that each sequence of states belongs to one of observations, as long as it."""
    if len(of_states) != len(of_observations):
        raise ScoreError(
            f"states and observations must be as many sequences; got {len(of_states)} and {len(of_observations)}"
        )
    if not torch.equal(of_states, of_observations):
        row = int((of_states != of_observations).nonzero()[0])
        raise ScoreError(
            "states and observations must be equally long; "
            f"got {int(of_states[row])} and {int(of_observations[row])} at row {row}"
        )


def check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing < INF:
        raise ScoreError(f"smoothing must be a number of at least 0; got {smoothing}")


def pad(sequences: Sequence[Sequence[int] | Tensor]) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch"]]:
    """Return sequences of whole numbers as one tensor, 0 behind each, and their lengths."""
    try:
        rows = [torch.as_tensor(each) for each in sequences]
    except (TypeError, ValueError, RuntimeError) as error:
        raise ScoreError(f"each sequence must be one or more whole numbers; {error}; map symbols to numbers") from error
    if not rows:
        raise ScoreError("sequences must hold at least one; got none")
    for row, each in enumerate(rows):
        if each.dim() != 1 or len(each) == 0 or each.dtype.is_floating_point:
            raise ScoreError(
                f"each sequence must be one or more whole numbers; got {each.dtype} {tuple(each.shape)} at row {row}"
            )
    padded = torch.nn.utils.rnn.pad_sequence([each.long() for each in rows], batch_first=True)
    return padded, torch.tensor([len(each) for each in rows])
