"""Every complete decision sequence of a row."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.structures.beam.system import Scorer, State, TransitionSystem


def sequences(
    system: TransitionSystem[State], scorer: Scorer[State], row: int, *, local: bool = False
) -> dict[tuple[int, ...], Tensor]:
    """All decision sequences of a row with their scores; `local`: their log-probabilities under the local model."""
    found: dict[tuple[int, ...], Tensor] = {}

    def follow(state: State, taken: tuple[int, ...], score: Tensor) -> None:
        if bool(system.finished(state)[row, 0]):
            found[taken] = score
            return
        scores, allowed = scorer(state)[row, 0], system.allowed(state)[row, 0].nonzero().flatten().tolist()
        norm = torch.stack([scores[each] for each in allowed]).exp().sum().log() if local and allowed else 0.0
        for decision in allowed:
            everywhere = torch.full(system.finished(state).shape, decision)
            follow(system.step(state, everywhere), (*taken, decision), score + scores[decision] - norm)

    follow(system.initial(), (), torch.zeros((), dtype=torch.float64))
    return found
