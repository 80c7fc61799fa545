"""Training on what was taught, in a process of its own, and the better model in the place of the one that is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trelliswork.errors import TrellisworkError
from trelliswork.web.problems import Problem
from trelliswork.web.teaching.lesson import Lesson
from trelliswork.web.teaching.material import prepared

LINES = 200  # of the log that are kept


class Training:
    """One training at a time; `data` may name the files `train` and `dev`."""

    def __init__(self, pool: Any, data: dict[str, str | None]) -> None:
        self._pool, self._data = pool, data
        self._log: deque[str] = deque(maxlen=LINES)
        self._state: dict[str, Any] = {"state": "idle"}
        self._task: asyncio.Task[None] | None = None

    def state(self) -> dict[str, Any]:
        """What GET /v1/teach/training answers."""
        empty = {"before": None, "after": None, "swapped": None, "problem": None}
        return {**empty, **self._state, "log": list(self._log)}

    async def begin(self, lesson: Lesson, *, swapped: Callable[[], None]) -> None:
        """Start in the background."""
        if self._state["state"] == "running":
            raise Problem(409, "a training is running already; wait for its end")
        self._log.clear()
        self._state = {"state": "running", "model": lesson.model}
        self._task = asyncio.create_task(self._run(lesson, swapped))

    async def stop(self) -> None:
        """End a training that runs."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, lesson: Lesson, swapped: Callable[[], None]) -> None:
        try:
            await self._train(lesson, swapped)
            self._state["state"] = "done"
        except (TrellisworkError, OSError) as error:
            self._state |= {"state": "failed", "problem": str(error)}

    async def _train(self, lesson: Lesson, swapped: Callable[[], None]) -> None:
        """Train, score both models on the dev sentences, and keep the better one."""
        served = self._pool.folders[lesson.model]
        material = await asyncio.to_thread(prepared, lesson, served, self._data)
        self._log.extend(material.notes)
        out = _new_folder(lesson.folder)
        await self._command("trelliswork", "train", str(material.config), "--out", str(out))
        before, after = [await self._score(folder, material.dev) for folder in (served, str(out))]
        self._state |= {"before": before, "after": after, "swapped": after > before}
        if after > before:
            await self._pool.replace(lesson.model, str(out))
            swapped()
        what = "the new model is served now" if after > before else "the old model stays"
        self._log.append(f"dev score {100 * before:.2f} before, {100 * after:.2f} after: {what}")

    async def _score(self, folder: str, dev: Path) -> float:
        """The score of a model on the dev sentences, found in a process of its own."""
        last = await self._command("trelliswork.web.teaching.scoring", folder, str(dev), quiet=True)
        return float(json.loads(last)["score"])

    async def _command(self, module: str, *arguments: str, quiet: bool = False) -> str:
        """Run a module of ours; its lines go to the log, unless it is quiet. The last line that it printed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trelliswork.runtime.parents", str(os.getpid()), module, *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        last = ""
        try:
            while line := await process.stdout.readline():
                last = line.decode(errors="replace").rstrip()[:500] or last
                if not quiet and line.strip():
                    self._log.append(last)
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if status:
            told = last.removeprefix("error: ") or f"status {status}"
            raise TrellisworkError(f"{module} {arguments[0]} failed: {told}")
        return last


def _new_folder(folder: Path) -> Path:
    number = 1
    while (folder / f"model-{number}").exists():
        number += 1
    return folder / f"model-{number}"
