"""Calls that wait for a worker, taken in batches: those for the same model that came while the workers were busy.

A call is due when it would be answered if it had a worker for itself: at the time when it came plus its estimated cost.
What is due first is served first: small calls overtake large ones, but a large one only for as long as it takes itself.
The pieces of a large call are due one after the other. Estimates may be too low, so a piece and whole calls take turns
if both wait.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from dataclasses import dataclass, field

from trelliswork.web.frames import Reply
from trelliswork.web.problems import problem_json

MOST_CALLS, MOST_SECONDS = 64, 0.25  # of a batch by estimate, so that none waits long for the others of its batch
PER_BYTE = 2e-6  # seconds that the cost of a request is taken for until a worker has estimated it
TOO_LONG = "the answer took longer than {:g} s and was given up; send less at once, or allow more with --timeout"


@dataclass(eq=False)
class Call:
    """A question to a model, as JSON; `due` and `deadline` are times of the event loop, `cost` is in seconds."""

    model: str
    payload: bytes
    cost: float
    due: float
    deadline: float
    is_piece: bool = False  # of a large request
    future: asyncio.Future[Reply] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    attempts: int = 0

    def settle(self, reply: Reply) -> None:
        """Give the answer, if somebody still waits for it."""
        if not self.future.done():
            self.future.set_result(reply)

    def give_up(self, seconds: float) -> None:
        """Answer that it took too long."""
        self.settle(Reply(504, problem_json(504, TOO_LONG.format(seconds))))


class CallQueue:
    """What is due first comes first, except that calls for the same model go together."""

    def __init__(self) -> None:
        self._waiting: list[Call] = []
        self._more = asyncio.Event()
        self._turn = False  # whether it is the turn of whole requests, if there are any

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, call: Call) -> None:
        """Let a call wait."""
        insort(self._waiting, call, key=lambda each: each.due)
        self._more.set()

    async def take(self) -> list[Call]:
        """The next batch; a call that has failed before goes alone, so that it can spoil no others."""
        while True:
            await self._more.wait()
            batch = self._batch()
            if not self._waiting:
                self._more.clear()
            if batch:
                return batch

    def _batch(self) -> list[Call]:
        batch: list[Call] = []
        cost, kept = 0.0, list[Call]()
        waiting = [call for call in self._waiting if not call.future.done()]
        if self._turn and (whole := [call for call in waiting if not call.is_piece]):
            waiting = [*whole, *(call for call in waiting if call.is_piece)]
        for i, call in enumerate(waiting):
            if len(batch) == MOST_CALLS or (batch and batch[0].attempts):
                kept += waiting[i:]
                break
            fits = not call.attempts and call.model == batch[0].model if batch else True
            if fits and (not batch or cost + call.cost <= MOST_SECONDS):
                batch.append(call)
                cost += call.cost
            else:
                kept.append(call)
        self._waiting = sorted(kept, key=lambda each: each.due)
        self._turn = bool(batch) and batch[0].is_piece
        return batch
