"""Calls that wait for a worker, taken in batches: all that came for the same model while the workers were busy."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from trelliswork.web.frames import Reply
from trelliswork.web.problems import problem_json

MOST_CALLS, MOST_CHARACTERS = 64, 20_000  # of a batch, so that none waits long for the others of its batch
TOO_LONG = "the answer took longer than {:g} s and was given up; send less at once, or allow more with --timeout"


@dataclass(eq=False)
class Call:
    """A question to a model; `size` is about how many characters it has, `deadline` a time of the event loop."""

    op: str
    model: str
    body: Any
    size: int
    deadline: float
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
    """First come, first served, except that calls for the same model go together."""

    def __init__(self, window: float = 0.0) -> None:
        self._waiting: deque[Call] = deque()
        self._more = asyncio.Event()
        self._window = window  # seconds to wait for more calls once there is one

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, call: Call, *, first: bool = False) -> None:
        """Let a call wait, at the end or at the head."""
        self._waiting.appendleft(call) if first else self._waiting.append(call)
        self._more.set()

    async def take(self) -> list[Call]:
        """The next batch; a call that has failed before goes alone, so that it can spoil no others."""
        while True:
            await self._more.wait()
            if self._window:
                await asyncio.sleep(self._window)
            batch = self._batch()
            if not self._waiting:
                self._more.clear()
            if batch:
                return batch

    def _batch(self) -> list[Call]:
        batch: list[Call] = []
        size, kept = 0, deque[Call]()
        while self._waiting and len(batch) < MOST_CALLS:
            call = self._waiting.popleft()
            if call.future.done():
                continue
            fits = not batch or (call.model == batch[0].model and size + call.size <= MOST_CHARACTERS)
            if not fits or (batch and call.attempts):
                kept.append(call)
                continue
            batch.append(call)
            size += call.size
            if call.attempts:
                break
        self._waiting.extendleft(reversed(kept))
        return batch
