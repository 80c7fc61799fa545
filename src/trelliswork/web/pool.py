"""The workers and their calls: each worker takes a batch, answers it, and is replaced if it is lost or too slow.

A call is due when it would be answered if it had a worker for itself: at the time when it came plus its estimated cost.
What is due first is served first: small calls overtake large ones, but a large one only for as long as it takes itself.
The pieces of a large call are due one after the other. Estimates may be too low, so a piece and whole calls take turns
if both wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
import time
from bisect import insort
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.logs import tell
from trelliswork.web.frames import (
    PIECES,
    Reply,
    pack_call,
    pack_calls,
    pack_json,
    read_frame,
    unpack_pieces,
    unpack_replies,
)
from trelliswork.web.measures import Measures
from trelliswork.web.problems import problem_json
from trelliswork.web.requests import Limits

ATTEMPTS = 2  # of a call whose worker was lost
AGAIN = 1.0  # seconds before a worker that could not be started is tried again
ALLOWANCE, SLOWER = 2.0, 4.0  # seconds that a batch has in any case, and how far an estimate may be off
LOST = "the worker that answered this was lost; try again"


@dataclass
class Worker:
    """A process with models, and the way to speak to it."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    models: list[JsonObject]
    generation: int

    async def ask(self, batch: list[Call]) -> list[Reply]:
        """Return the replies to a batch about one model."""
        self.writer.write(pack_calls(batch[0].model, [call.payload for call in batch]))
        await self.writer.drain()
        return unpack_replies(await read_frame(self.reader))

    async def end(self) -> None:
        """Kill it, whatever it is doing."""
        if self.process.returncode is None:
            self.process.kill()
        self.writer.close()
        await self.process.wait()


class Pool:
    """Some workers over the same models. `ask` is all that others need.

    Args:
        models: The folder of each model by its name.
        measures: The metrics of the server.
        workers: The number of processes that answer.
        threads: The number of threads of each.
        device: The device that models are put on.
        limits: The limits of the server.
    """

    def __init__(
        self,
        models: Mapping[str, str],
        measures: Measures,
        *,
        workers: int = 1,
        threads: int = 1,
        device: str = "auto",
        limits: Limits | None = None,
    ) -> None:
        self.folders, self.measures = dict(models), measures
        self.n_workers, self.threads, self.device, self.limits = workers, threads, device, limits or Limits()
        self.models: list[JsonObject] = []  # what the list of models says
        self.ready = 0  # workers that can answer
        self._generation = self._current = 0  # of workers that are started, and the least that may answer
        self._spares: list[Worker] = []  # workers with replaced models that wait for their turn
        self._queue = CallQueue()
        self._alone = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all workers and wait until they have their models; one that cannot is an error."""
        first = await self._start_worker()
        self.models = first.models
        self._tasks = [asyncio.create_task(self._work(first))]
        self._tasks += [asyncio.create_task(self._work(None)) for _ in range(self.n_workers - 1)]

    async def stop(self) -> None:
        """End all workers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(each.end() for each in self._spares))

    async def ask(self, op: str, model: str, body: Json, size: int) -> Reply:
        """Return the reply to a question of about `size` bytes.

        Args:
            op: What is asked.
            model: Name of the model.
            body: What is asked about.
            size: About how many bytes the body has.

        Returns:
            Status and body.
        """
        return await self.ask_packed(model, await off_loop(size, pack_call, op, model, body))

    async def ask_packed(self, model: str, payload: bytes) -> Reply:
        """Return the reply to a question that is packed already, or 504 at its deadline."""
        now, cost = asyncio.get_running_loop().time(), PER_BYTE * len(payload)
        deadline = now + self.limits.seconds
        (reply,) = await self._replies([Call(model, payload, cost, now + cost, deadline)])
        if reply.status != PIECES:
            return reply
        calls = []
        for cost, payload in unpack_pieces(reply.body):
            now += cost
            calls.append(Call(model, payload, cost, now, deadline, is_piece=True))
        replies = await self._replies(calls)
        bad = next((each for each in replies if each.status != 200), None)
        return bad or Reply(200, b"".join(each.body for each in replies))

    async def ask_alone(self, op: str, model: str, body: Json, size: int) -> Reply:
        """Return the reply of a worker that is started for this question, which keeps none of the others busy.

        Args:
            op: What is asked.
            model: Name of the model.
            body: What is asked about.
            size: About how many bytes the body has.

        Returns:
            Status and body.
        """
        payload = await off_loop(size, pack_call, op, model, body)
        async with self._alone:
            worker, deadline = await self._start_worker(), asyncio.get_running_loop().time() + self.limits.seconds
            call = Call(model, payload, 0.0, 0.0, deadline)
            try:
                (reply,) = await asyncio.wait_for(worker.ask([call]), self.limits.seconds)
                return reply
            except TimeoutError:
                return Reply(504, problem_json(504, TOO_LONG.format(self.limits.seconds)))
            except (OSError, EOFError):
                return Reply(503, problem_json(503, LOST))
            finally:
                await worker.end()

    async def _replies(self, calls: list[Call]) -> list[Reply]:
        """Return the replies to some calls of one question; one that is not an answer ends the others."""
        loop = asyncio.get_running_loop()
        timer = loop.call_at(calls[0].deadline, _give_up, calls, self.limits.seconds)
        replies = []
        try:
            for call in calls:
                self._queue.put(call)
            for call in calls:
                replies.append(await call.future)
                if replies[-1].status not in (200, PIECES):
                    return replies
            return replies
        finally:
            timer.cancel()
            for call in calls:
                call.future.cancel()

    @property
    def waiting(self) -> int:
        """Calls that no worker has taken."""
        return len(self._queue)

    async def replace(self, name: str, folder: str) -> None:
        """Serve a model from another folder, without a moment in which nobody answers."""
        before, self.folders[name] = self.folders[name], folder
        self._generation += 1
        try:
            spares = [await self._start_worker() for _ in range(self.n_workers)]
        except TrellisworkError:
            self.folders[name] = before
            raise
        self._spares += spares
        self._current = self._generation
        self.models = spares[0].models

    # Workers

    async def _work(self, worker: Worker | None) -> None:
        """Answer batches for ever, with one worker after another."""
        try:
            while True:
                worker = worker or await self._next_worker()
                self.ready += 1
                try:
                    await self._answer(worker)
                finally:
                    self.ready -= 1
                    await worker.end()
                worker = None
                self.measures.add("worker_starts")
        finally:
            if worker is not None:
                await worker.end()

    async def _next_worker(self) -> Worker:
        while True:
            if self._spares:
                return self._spares.pop()
            try:
                return await self._start_worker()
            except (TrellisworkError, OSError) as error:
                tell(f"a worker could not be started: {error}", level=logging.ERROR)
                await asyncio.sleep(AGAIN)

    async def _answer(self, worker: Worker) -> None:
        """Answer until the worker is lost, too slow, or has models that were replaced."""
        while True:
            batch = await self._queue.take()
            if worker.generation < self._current:
                for call in batch:
                    self._queue.put(call)
                return
            began = time.perf_counter()
            try:
                replies = await asyncio.wait_for(worker.ask(batch), _patience(batch))
            except TimeoutError:
                self.measures.add("timeouts")
                self._requeue(batch)
                return
            except (OSError, EOFError, asyncio.IncompleteReadError):
                self.measures.add("workers_lost")
                self._requeue(batch)
                return
            except asyncio.CancelledError:
                self._requeue(batch)
                raise
            self.measures.batch(batch[0].model, len(batch), time.perf_counter() - began)
            for call, reply in zip(batch, replies, strict=True):
                call.settle(reply)

    def _requeue(self, batch: list[Call]) -> None:
        """Let the calls of a worker that is gone wait again, each alone; what has failed twice is answered."""
        now = asyncio.get_running_loop().time()
        for call in batch:
            call.attempts += 1
            if call.deadline <= now + 0.01:
                call.give_up(self.limits.seconds)
            elif call.attempts >= ATTEMPTS:
                call.settle(Reply(503, problem_json(503, LOST)))
            else:
                self._queue.put(call)

    async def _start_worker(self) -> Worker:
        """Return a new worker that has its models; if it cannot load them, a `ModelError` that says why."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "trelliswork.web.worker",
                str(theirs.fileno()),
                str(os.getpid()),
                pass_fds=(theirs.fileno(),),
            )
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        worker = Worker(process, reader, writer, [], self._generation)
        try:
            settings = {"threads": self.threads, "device": self.device, "seconds": self.limits.seconds}
            writer.write(pack_json({"models": self.folders, **settings}))
            hello = json.loads(await read_frame(reader))
        except (OSError, asyncio.IncompleteReadError) as error:
            await worker.end()
            raise ModelError("a worker ended before it had loaded its models; is there enough memory?") from error
        except BaseException:
            await worker.end()
            raise
        if "error" in hello:
            await worker.end()
            raise ModelError(hello["error"])
        worker.models = hello["models"]
        return worker


def _give_up(calls: list[Call], seconds: float) -> None:
    for call in calls:
        call.give_up(seconds)


def _patience(batch: list[Call]) -> float:
    """Return seconds until a worker is given up: until the first deadline of its batch, if that leaves it time to work.

    A call that has waited almost until its deadline does not cost the others their worker.
    """
    left = min(call.deadline for call in batch) - asyncio.get_running_loop().time()
    return max(left, ALLOWANCE + SLOWER * sum(call.cost for call in batch))


# Work that grows with a request is done outside of the event loop, so that everybody else is answered meanwhile.

INLINE = 4096  # bytes that are handled at once: a thread would take longer
_THREADS = ThreadPoolExecutor(2, "trelliswork-web")
Result = TypeVar("Result")


async def off_loop(n_bytes: int, function: Callable[..., Result], *arguments: object) -> Result:
    """Return the result of a function that reads about `n_bytes` bytes, called in a thread unless they are few."""
    if n_bytes <= INLINE:
        return function(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function, *arguments)


# Calls that wait for a worker, taken in batches: those for the same model that came while the workers were busy.

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
    """Calls in the order in which they are due, except that those for the same model go together."""

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
        """Return the next batch; a call that has failed before goes alone, so that it can spoil no others."""
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
