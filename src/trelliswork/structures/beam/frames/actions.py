"""The decisions of the frame system, and the table of those that a parser chooses from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

import torch

from trelliswork.errors import ConstraintError


class Kind(IntEnum):
    """Effect of an action."""

    SHIFT = 0
    STOP = 1
    EVOKE = 2
    REFER = 3
    CONNECT = 4
    ASSIGN = 5
    EMBED = 6
    ELABORATE = 7


class Action(NamedTuple):
    """An action with what it needs: `source` and `target` are places in the attention buffer, 0 being its front.

    EVOKE(type, length)               a new frame, which the next `length` tokens mention
    REFER(source, length)             the next `length` tokens mention a frame that is known
    CONNECT(source, role, target)     a role of a frame is another frame
    ASSIGN(source, role, value)       a role of a frame is a constant
    EMBED(target, role, type)         a new frame, a role of which is a known frame
    ELABORATE(source, role, type)     a new frame, which is a role of a known frame

    >>> str(Action(Kind.CONNECT, source=1, role="Agent", target=0)), str(Action(Kind.SHIFT))
    ('CONNECT(1, Agent, 0)', 'SHIFT')
    """

    kind: Kind
    length: int = 0
    type: str = ""
    source: int = -1
    role: str = ""
    target: int = -1
    value: str = ""

    def __str__(self) -> str:
        given = ", ".join(str(getattr(self, name)) for name in ARGUMENTS[self.kind])
        return f"{self.kind.name}({given})" if given else self.kind.name


ARGUMENTS: dict[Kind, tuple[str, ...]] = {
    Kind.SHIFT: (),
    Kind.STOP: (),
    Kind.EVOKE: ("type", "length"),
    Kind.REFER: ("source", "length"),
    Kind.CONNECT: ("source", "role", "target"),
    Kind.ASSIGN: ("source", "role", "value"),
    Kind.EMBED: ("target", "role", "type"),
    Kind.ELABORATE: ("source", "role", "type"),
}
SHIFT, STOP = Action(Kind.SHIFT), Action(Kind.STOP)


class Actions:
    """The actions that a parser chooses from, each by its number; SHIFT is 0 and STOP is 1.

    Ringgaard, Gupta and Pereira (2017), SLING: A framework for frame semantic parsing, take those that the training
    data need.
    """

    def __init__(self, actions: Iterable[Action]):
        others = (each for each in actions if each.kind not in (Kind.SHIFT, Kind.STOP))
        self.items = list(dict.fromkeys([SHIFT, STOP, *others]))
        self.numbers = {action: i for i, action in enumerate(self.items)}
        self.types = sorted({each.type for each in self.items if each.type})
        self.roles = sorted({each.role for each in self.items if each.role})
        self.values = sorted({each.value for each in self.items if each.value})
        self.reach = 1 + max((max(each.source, each.target) for each in self.items), default=-1)
        self.longest = max(each.length for each in self.items)
        self.columns = Columns(*(torch.tensor(column) for column in zip(*map(self._row, self.items), strict=True)))

    def _row(self, action: Action) -> tuple[int, ...]:
        type_, role, value = (
            names.index(name) if name else -1
            for names, name in ((self.types, action.type), (self.roles, action.role), (self.values, action.value))
        )
        return (action.kind, action.length, type_, action.source, role, action.target, value)

    def __len__(self) -> int:
        return len(self.items)

    def number(self, action: Action) -> int:
        """The number of an action; one that is not in the table is an error."""
        if action not in self.numbers:
            problem = f"expected an action of the table of {len(self)}, got {action}"
            raise ConstraintError(f"{problem}; make the table from all graphs that it is used for")
        return self.numbers[action]

    def to_list(self) -> list[list[int | str]]:
        """As plain values, for a file."""
        return [[int(each) if isinstance(each, int) else each for each in action] for action in self.items]

    @classmethod
    def from_list(cls, rows: Sequence[Sequence[int | str]]) -> Actions:
        """The inverse of `to_list`; `ValueError` for an action without the role or the places that its kind needs."""
        found = [Action(Kind(kind), *rest) for kind, *rest in rows]  # type: ignore[arg-type]
        for action in found:
            for name in {"source", "role", "target"} & {*ARGUMENTS[action.kind]}:
                if getattr(action, name) == Action._field_defaults[name]:
                    raise ValueError(f"expected a {name} of the action {action}, got none")
        return cls(found)


class Columns(NamedTuple):
    """The actions as numbers, -1 for what an action does not have."""

    kind: torch.Tensor
    length: torch.Tensor
    type: torch.Tensor
    source: torch.Tensor
    role: torch.Tensor
    target: torch.Tensor
    value: torch.Tensor
