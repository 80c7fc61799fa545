"""Transition systems, scorers, and the movement of states in a batch of beams."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int

State = TypeVar("State", bound=tuple[Tensor, ...])
Read = TypeVar("Read", bound=tuple[Tensor, ...], contravariant=True)


class TransitionSystem(Protocol[State]):
    """States of a batch of inputs x, a start, the decisions allowed in a state, and a step.

    A system belongs to one batch of inputs. Its states are a NamedTuple of tensors [batch, beam, ...], one state for
    each hypothesis; all fields keep their trailing shape from step to step.
    """  # [S4, transition system]

    @property
    def n_decisions(self) -> int:
        """Return the number of all decisions, a."""

    def initial(self) -> State:
        """The start state of each row, [batch, 1, ...]."""

    def allowed(self, state: State) -> Bool[Tensor, "batch beam a"]:
        """A(s, x): True at the decisions that may be taken; what it says of a finished state is not read.

        Where all decisions of a state are alike, [batch, beam, 1] is enough.
        """

    def step(self, state: State, decisions: Int[Tensor, "batch beam"]) -> State:
        """t(s, d, x). What it makes of a decision that is not allowed is not read, so it need only not fail."""

    def finished(self, state: State) -> Bool[Tensor, "batch beam"]:
        """True where nothing is left to decide."""


class Scorer(Protocol[Read]):
    """ρ(s, d; θ), the score of each decision in a state: any callable, a network's last layer for example."""

    # [S4.290]

    def __call__(self, state: Read) -> Float[Tensor, "batch beam a"]: ...


def pick(state: State, slots: Int[Tensor, "batch beam"]) -> State:
    """The states in these places of each row's beam; a place may be taken more than once."""
    rows = torch.arange(len(slots), device=slots.device)[:, None]
    return _rebuild(state, [field[rows, slots] for field in state])


def advance(
    system: TransitionSystem[State],
    state: State,
    decisions: Int[Tensor, "batch beam"],
    moving: Bool[Tensor, "batch beam"] | None,
) -> State:
    """Return s' = t(s, d) where a hypothesis moves; the others stay as they are.

    Args:
        system: the system whose transitions these are.
        state: states [batch, beam, ...].
        decisions: decision of each hypothesis.
        moving: True for hypotheses that move; None for all.

    Returns:
        The next states.
    """  # [S4.279]
    if moving is None:
        return system.step(state, decisions)
    stepped = system.step(state, torch.where(moving, decisions, 0))
    return _rebuild(state, [_where(moving, new, old) for new, old in zip(stepped, state, strict=True)])


def decision_scores(
    system: TransitionSystem[State],
    scorer: Scorer[State],
    state: State,
    done: Bool[Tensor, "batch beam"] | None,
    step: int | None = None,
) -> Float[Tensor, "batch beam a"]:
    """Return the answer of a scorer, checked: -inf where a decision is not allowed or the hypothesis has finished.

    Args:
        system: what is allowed in a state.
        scorer: scores of the decisions in a state.
        state: states [batch, beam, ...].
        done: True for hypotheses that have finished; None if none has.
        step: number of the step, for the sentence of an error; None for none.

    Returns:
        Scores of all decisions.
    """
    scores, allowed = scorer(state), system.allowed(state)
    if not isinstance(scores, Tensor):
        raise ScoreError(f"the scorer must give a tensor of scores{_at(step)}; got {type(scores).__name__}")
    expected = (*allowed.shape[:2], max(allowed.shape[2], system.n_decisions))
    if scores.shape != expected:
        raise ScoreError(
            f"the scorer must give {expected} scores [batch, beam, decisions]{_at(step)}; got {tuple(scores.shape)}"
        )
    if not scores.dtype.is_floating_point:
        raise ScoreError(f"scores must be floating point; the scorer gave {scores.dtype}; call .float() on them")
    allowed = allowed if done is None else allowed & ~done[:, :, None]
    scores = scores if bool(allowed.all()) else torch.where(allowed, scores, -INF)
    if not bool(scores.detach().amax() < INF):  # the highest is NaN if any is
        row, hypothesis, decision = (~(scores.detach() < INF)).nonzero()[0].tolist()
        raise ScoreError(
            f"scores must be finite numbers or -inf; the scorer gave {scores[row, hypothesis, decision].item()} for "
            f"decision {decision} of row {row}{_at(step)}; look for an overflow or a division by zero in it"
        )
    return scores


def exact(scores: Tensor) -> Tensor:
    """In float64, where sums over many decisions keep their differences; a device without it computes as it can."""
    return scores if scores.device.type == "mps" else scores.double()


def check_whole(name: str, numbers: Any, form: str) -> None:
    """Refuse what is not a tensor of whole numbers.

    Args:
        name: what the numbers are called.
        numbers: what was given.
        form: the shape that it should have, in words.
    """
    if not isinstance(numbers, Tensor):
        raise ScoreError(f"{name} must be a tensor of whole numbers; got {type(numbers).__name__}; call torch.tensor()")
    if numbers.dtype.is_floating_point or numbers.dtype == torch.bool:
        raise ScoreError(f"{name} must be whole numbers {form}; got {numbers.dtype} {tuple(numbers.shape)}")


def check_limit(name: str, value: int | None) -> None:
    if value is not None and not isinstance(value, int):
        raise ScoreError(f"{name} must be a whole number; got {value}")
    if value is not None and value < 1:
        raise ScoreError(f"{name} must be at least 1; got {value}")


def _at(step: int | None) -> str:
    return "" if step is None else f" at step {step}"


def _where(moving: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(moving.reshape(*moving.shape, *[1] * (new.dim() - 2)), new, old)


def _rebuild(state: State, fields: list[Tensor]) -> State:
    """The same kind of tuple with other fields."""
    kind: Any = type(state)
    return kind._make(fields) if hasattr(kind, "_make") else kind(fields)
