"""The frame system: a graph of frames built from left to right over an attention buffer."""  # [S4, SLING]

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Bool, Int
from trelliswork.structures.beam.frames.actions import Actions, Kind
from trelliswork.structures.beam.frames.graph import FrameGraph, Mention, Slot
from trelliswork.structures.beam.frames.oracle import actions_of
from trelliswork.structures.beam.system import check_whole
from trelliswork.structures.frontier_kernels import NOTHING

MAKES_FRAME = (Kind.EVOKE, Kind.EMBED, Kind.ELABORATE)
MAKES_MENTION = (Kind.EVOKE, Kind.REFER)
MAKES_SLOT = (Kind.CONNECT, Kind.ASSIGN, Kind.EMBED, Kind.ELABORATE)


class FrameState(NamedTuple):
    """The next token, the frames in the order of attention, their types, mentions and slots; -1 where there is none.

    `phrase` has the last token of the last phrase that mentioned each frame. A mention is (start, end, frame), a slot
    (source, role, target, value) with either a target or a value. The last row of mentions and of slots is not read.
    """

    position: Int[Tensor, "batch beam"]
    stopped: Bool[Tensor, "batch beam"]
    attention: Int[Tensor, "batch beam frames"]
    types: Int[Tensor, "batch beam frames"]
    phrase: Int[Tensor, "batch beam frames"]
    mentions: Int[Tensor, "batch beam mentions+1 3"]
    slots: Int[Tensor, "batch beam slots+1 4"]

    @property
    def n_frames(self) -> Int[Tensor, "batch beam"]:
        return (self.types >= 0).sum(-1)

    @property
    def n_mentions(self) -> Int[Tensor, "batch beam"]:
        return (self.mentions[..., 0] >= 0).sum(-1)

    @property
    def n_slots(self) -> Int[Tensor, "batch beam"]:
        return (self.slots[..., 0] >= 0).sum(-1)


class FrameSystem:
    """A frame graph over L tokens: L times SHIFT, the actions that make it, and STOP.

    The actions are those of `Actions`, by number. A mention or slot is made once; with at most `per_token` L frames and
    mentions and twice as many slots, a search ends. Many sequences build the same graph: `decisions_of` gives one.

    >>> from trelliswork.structures.beam.frames.graph import Mention, Slot
    >>> graph = FrameGraph(("Visit", "PER"), (Mention(0, 1, 1), Mention(1, 2, 0)), (Slot(0, "Agent", 1),))
    >>> system = FrameSystem(torch.tensor([2]), Actions(actions_of(graph, 2)[0]))
    >>> system.decisions_of([graph])
    tensor([[2, 0, 3, 4, 0, 1]])

    Ringgaard, Gupta and Pereira (2017), SLING: A framework for frame semantic parsing.

    Args:
        lengths: number of tokens of each row [batch].
        actions: the actions by number.
        per_token: limit of frames and of mentions, for each token.
    """  # [S4, SLING]

    def __init__(self, lengths: Int[Tensor, "batch"], actions: Actions, *, per_token: int = 2):
        check_whole("lengths", lengths, "[batch]")
        if lengths.dim() != 1 or bool((lengths < 1).any()):
            raise ScoreError(f"lengths must be whole numbers of at least 1, one a row; got {lengths.tolist()}")
        if per_token < 1:
            raise ScoreError(f"per_token must be at least 1; got {per_token}")
        self.lengths, self.actions, self.n_decisions = lengths, actions, len(actions)
        self.longest = max(lengths.tolist(), default=0)
        self.room = per_token * max(1, self.longest)
        self.table = type(actions.columns)(*(column.to(lengths.device) for column in actions.columns))
        self._marks = _Marks(actions)

    def initial(self) -> FrameState:
        none = self.lengths.new_full((len(self.lengths), 1, self.room), -1)
        position = torch.zeros_like(none[..., 0])
        mentions = none.new_full((len(none), 1, self.room + 1, 3), -1)
        slots = none.new_full((len(none), 1, 2 * self.room + 1, 4), -1)
        return FrameState(position, position.bool(), none, none, none, mentions, slots)

    def allowed(self, state: FrameState) -> Bool[Tensor, "batch beam a"]:
        table, n_frames = self.table, state.n_frames[..., None]
        left = (self.lengths[:, None] - state.position)[..., None]
        known = (table.source < n_frames) & (table.target < n_frames)
        room = (
            (~_is(table.kind, MAKES_FRAME) | (n_frames < self.room))
            & (~_is(table.kind, MAKES_MENTION) | (state.n_mentions[..., None] < self.room))
            & (~_is(table.kind, MAKES_SLOT) | (state.n_slots[..., None] < 2 * self.room))
        )
        made = self._marks.of(state)[..., self._marks.codes.to(table.kind.device)]
        inside = (left > 0) & (table.length <= left) & known & room & ~made
        return torch.where(table.kind == Kind.STOP, left == 0, inside)

    def step(self, state: FrameState, decisions: Int[Tensor, "batch beam"]) -> FrameState:
        kind, length, type_, source, role, target, value = (column[decisions] for column in self.table)
        makes, mentions, fills = (_is(kind, each) for each in (MAKES_FRAME, MAKES_MENTION, MAKES_SLOT))
        new = state.n_frames.clamp(max=self.room - 1)
        of_source, of_target = (taken(state.attention, place) for place in (source, target))
        front = torch.where(makes, new, torch.where(source >= 0, of_source, state.attention[..., 0]))
        place = torch.where(makes, new, source.clamp(min=0))
        end = state.position + length
        mention = torch.stack([state.position, end, front], -1)
        to = torch.where(kind == Kind.ELABORATE, new, torch.where(kind == Kind.ASSIGN, -1, of_target))
        slot = torch.stack([torch.where(kind == Kind.EMBED, new, of_source), role, to, value], -1)
        return FrameState(
            state.position + (kind == Kind.SHIFT),
            state.stopped | (kind == Kind.STOP),
            _to_front(state.attention, front, place),
            _put(state.types, new, type_, makes),
            _put(state.phrase, front.clamp(min=0), end - 1, mentions),
            _appended(state.mentions, state.n_mentions, mention, mentions),
            _appended(state.slots, state.n_slots, slot, fills),
        )

    def finished(self, state: FrameState) -> Bool[Tensor, "batch beam"]:
        return state.stopped

    def decisions_of(self, graphs: Sequence[FrameGraph]) -> Int[Tensor, "batch steps"]:
        """Decisions that build these graphs, as `actions_of` finds them; -1 behind a shorter row's."""
        if len(graphs) != len(self.lengths):
            raise ScoreError(f"expected a graph for each of {len(self.lengths)} rows; got {len(graphs)}")
        rows = [
            torch.tensor([self.actions.number(action) for action in actions_of(graph, n)[0]])
            for graph, n in zip(graphs, self.lengths.tolist(), strict=True)
        ]
        found = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=NOTHING)
        return found.to(self.lengths.device)

    def graph(self, state: FrameState, row: int, hypothesis: int = 0) -> FrameGraph:
        """The graph of a state, its frames in the order in which they were made.

        Args:
            state: states of a batch.
            row: row of the batch.
            hypothesis: place in the beam.

        Returns:
            The frames with their slots.
        """
        types, mentions, slots = (
            each[row, hypothesis][: int(n[row, hypothesis])].tolist()
            for each, n in (
                (state.types, state.n_frames), (state.mentions, state.n_mentions), (state.slots, state.n_slots),
            )
        )  # fmt: skip
        names, roles, values = self.actions.types, self.actions.roles, self.actions.values
        found = FrameGraph(
            tuple(names[type_] for type_ in types),
            tuple(Mention(*mention) for mention in mentions),
            tuple(Slot(s, roles[r], values[value] if value >= 0 else t) for s, r, t, value in slots),
        )
        return found.renumbered(range(len(types)))


class _Marks:
    """Parts that exist already, in places of attention: roles, constants, and mentions that begin at the next token.

    All of it is one row of truths; `codes` says where in it an action looks whether what it makes is there. The last
    one is never true.
    """

    def __init__(self, actions: Actions):
        self.k, self.actions = max(actions.reach, 1), actions
        k, n_roles, n_values = self.k, len(actions.roles), len(actions.values)
        lengths = actions.longest + 1
        sizes = [k * n_roles * k, k * n_roles * n_values, lengths * k, lengths * len(actions.types)]
        self.first = [sum(sizes[:i]) for i in range(5)]
        self.size = self.first[4] + 1
        kind, length, type_, source, role, target, value = actions.columns
        codes = torch.full_like(kind, self.size - 1)
        for i, (of, code) in enumerate((
            (Kind.CONNECT, (source * n_roles + role) * k + target),
            (Kind.ASSIGN, (source * n_roles + role) * n_values + value),
            (Kind.REFER, length * k + source),
            (Kind.EVOKE, length * len(actions.types) + type_),
        )):  # fmt: skip
            codes = torch.where(kind == of, self.first[i] + code, codes)
        self.codes = codes

    def of(self, state: FrameState) -> Bool[Tensor, "batch beam codes"]:
        places, value, end = places_of(state), state.slots[..., 3], self.size - 1
        n_roles, n_values, n_types = len(self.actions.roles), len(self.actions.values), len(self.actions.types)
        source, role, target = near_slots(state, self.k)
        connected, assigned = (source >= 0) & (target >= 0), (source >= 0) & (value >= 0)
        start, stop, frame = state.mentions.unbind(-1)
        length = stop - start
        here = (start == state.position[..., None]) & (length <= self.actions.longest) & (start >= 0)
        of_frame, type_ = taken(places, frame), taken(state.types, frame)
        codes = torch.cat([
            torch.where(connected, (source * n_roles + role) * self.k + target, end),
            torch.where(assigned, self.first[1] + (source * n_roles + role) * n_values + value, end),
            torch.where(here & (of_frame < self.k), self.first[2] + length * self.k + of_frame, end),
            torch.where(here, self.first[3] + length * n_types + type_, end),
        ], -1)  # fmt: skip
        marks = codes.new_zeros(*codes.shape[:2], self.size, dtype=torch.bool).scatter(2, codes, True)
        marks[..., -1] = False
        return marks


def places_of(state: FrameState) -> Int[Tensor, "batch beam frames"]:
    """The place of each frame in the attention buffer; behind all for a frame that is not there."""
    n = state.attention.shape[-1]
    order = torch.arange(n, device=state.attention.device).expand_as(state.attention)
    there = state.attention >= 0
    places = torch.full_like(state.attention, n)
    index = torch.where(there, state.attention, 0)
    return places.scatter_reduce(2, index, torch.where(there, order, n), "amin")


def near_slots(state: FrameState, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Source, role and target of all slots, frames by their place among the first k of attention; -1 for others."""
    places = places_of(state)
    source, role, target, _ = state.slots.unbind(-1)

    def near(frame: Tensor) -> Tensor:
        place = taken(places, frame)
        return torch.where((frame >= 0) & (place < k), place, -1)

    return near(source), role, near(target)


def _is(kind: Tensor, kinds: tuple[Kind, ...]) -> Bool[Tensor, "..."]:
    return torch.isin(kind, torch.tensor(kinds, device=kind.device))


def taken(row: Int[Tensor, "batch beam m"], index: Tensor) -> Tensor:
    """row[index] for one index or several; the first where the index is -1."""
    flat = index.clamp(0, row.shape[-1] - 1)
    return row.gather(2, flat) if index.dim() == 3 else row.gather(2, flat[..., None]).squeeze(2)


def _to_front(attention: Tensor, front: Tensor, place: Tensor) -> Tensor:
    """`front` before all others; those that were before `place` move back by one."""
    order = torch.arange(attention.shape[-1], device=attention.device)
    moved = torch.where(order <= place[..., None], attention.roll(1, -1), attention)
    return torch.where(order == 0, front[..., None], moved)


def _put(row: Tensor, place: Tensor, value: Tensor, where: Tensor) -> Tensor:
    index = place[..., None]
    return row.scatter(2, index, torch.where(where, value, taken(row, place))[..., None])


def _appended(rows: Tensor, n: Tensor, row: Tensor, where: Tensor) -> Tensor:
    """With one more row where it is wanted; elsewhere the last, which nobody reads, is written again."""
    place = torch.where(where, n, rows.shape[2] - 1).clamp(max=rows.shape[2] - 1)
    wide = place[..., None, None].expand(-1, -1, 1, rows.shape[-1])
    row = torch.where(where[..., None], row, -1)
    return rows.scatter(2, wide, row[..., None, :])
