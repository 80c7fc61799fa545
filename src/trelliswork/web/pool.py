"""The workers and their calls: each worker takes a batch, answers it, and is replaced if it is lost or too slow."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.logs import tell
from trelliswork.web.frames import Reply, packed_json, read_frame, unpacked_replies
from trelliswork.web.measures import Measures
from trelliswork.web.problems import problem_json
from trelliswork.web.queue import Call, CallQueue

ATTEMPTS = 2  # of a call whose worker was lost
AGAIN = 1.0  # seconds before a worker that could not be started is tried again
LOST = "the worker that answered this was lost; try again"


@dataclass
class Worker:
    """A process with models, and the way to speak to it."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    models: list[dict[str, Any]]
    generation: int

    async def ask(self, batch: list[Call]) -> list[Reply]:
        """The replies to a batch about one model."""
        calls = [{"op": call.op, "body": call.body} for call in batch]
        self.writer.write(packed_json({"model": batch[0].model, "calls": calls}))
        await self.writer.drain()
        return unpacked_replies(await read_frame(self.reader))

    async def end(self) -> None:
        """Kill it, whatever it is doing."""
        if self.process.returncode is None:
            self.process.kill()
        self.writer.close()
        await self.process.wait()


class Pool:
    """Some workers over the same models. `ask` is all that others need."""

    def __init__(
        self,
        models: Mapping[str, str],
        measures: Measures,
        *,
        workers: int = 1,
        threads: int = 1,
        device: str = "auto",
        seconds: float = 30.0,
    ) -> None:
        self.folders, self.measures = dict(models), measures
        self.n_workers, self.threads, self.device, self.seconds = workers, threads, device, seconds
        self.models: list[dict[str, Any]] = []  # what the list of models says
        self.ready = 0  # workers that can answer
        self._generation = self._current = 0  # of workers that are started, and the least that may answer
        self._spares: list[Worker] = []  # workers with replaced models that wait for their turn
        self._queue = CallQueue()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all workers and wait until they have their models; one that cannot is an error."""
        first = await self._started()
        self.models = first.models
        self._tasks = [asyncio.create_task(self._work(first))]
        self._tasks += [asyncio.create_task(self._work(None)) for _ in range(self.n_workers - 1)]

    async def stop(self) -> None:
        """End all workers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(each.end() for each in self._spares))

    async def ask(self, op: str, model: str, body: Any, size: int) -> Reply:
        """The reply to a call, or 504 at its deadline."""
        loop = asyncio.get_running_loop()
        call = Call(op, model, body, size, loop.time() + self.seconds)
        timer = loop.call_at(call.deadline, call.give_up, self.seconds)
        try:
            self._queue.put(call)
            return await call.future
        finally:
            timer.cancel()
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
            spares = [await self._started() for _ in range(self.n_workers)]
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
                worker = worker or await self._again()
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

    async def _again(self) -> Worker:
        while True:
            if self._spares:
                return self._spares.pop()
            try:
                return await self._started()
            except (TrellisworkError, OSError) as error:
                tell(f"a worker could not be started: {error}", level=logging.ERROR)
                await asyncio.sleep(AGAIN)

    async def _answer(self, worker: Worker) -> None:
        """Answer until the worker is lost, too slow, or has models that were replaced."""
        while True:
            batch = await self._queue.take()
            if worker.generation < self._current:
                for call in reversed(batch):
                    self._queue.put(call, first=True)
                return
            began = time.perf_counter()
            left = min(call.deadline for call in batch) - asyncio.get_running_loop().time()
            try:
                replies = await asyncio.wait_for(worker.ask(batch), max(left, 0.01))
            except TimeoutError:
                self.measures.add("timeouts")
                self._again_later(batch)
                return
            except (OSError, EOFError, asyncio.IncompleteReadError):
                self.measures.add("workers_lost")
                self._again_later(batch)
                return
            except asyncio.CancelledError:
                self._again_later(batch)
                raise
            self.measures.batch(batch[0].model, len(batch), time.perf_counter() - began)
            for call, reply in zip(batch, replies, strict=True):
                call.settle(reply)

    def _again_later(self, batch: list[Call]) -> None:
        """Let the calls of a worker that is gone wait again, each alone; what has failed twice is answered."""
        now = asyncio.get_running_loop().time()
        for call in reversed(batch):
            call.attempts += 1
            if call.deadline <= now + 0.01:
                call.give_up(self.seconds)
            elif call.attempts >= ATTEMPTS:
                call.settle(Reply(503, problem_json(503, LOST)))
            else:
                self._queue.put(call, first=True)

    async def _started(self) -> Worker:
        """A new worker that has its models; if it cannot load them, a `ModelError` that says why."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "trelliswork.web.worker", str(theirs.fileno()), pass_fds=(theirs.fileno(),)
            )
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        worker = Worker(process, reader, writer, [], self._generation)
        try:
            writer.write(packed_json({"models": self.folders, "threads": self.threads, "device": self.device}))
            told = json.loads(await read_frame(reader))
        except (OSError, asyncio.IncompleteReadError) as error:
            await worker.end()
            raise ModelError("a worker ended before it had loaded its models; is there enough memory?") from error
        except BaseException:
            await worker.end()
            raise
        if "error" in told:
            await worker.end()
            raise ModelError(told["error"])
        worker.models = told["models"]
        return worker
