"""A teacher whose server is killed: what was said to be kept is kept, and nothing that nobody decided."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from random import Random
from typing import Any

from trelliswork.web.teaching.lesson import Lesson

SENTENCES = [{"tokens": ["Ann", str(i)], "tags": None} for i in range(400)]


def killed_lessons(folder: Path, kills: int, source: Random) -> dict[str, int]:
    """Decide sentence after sentence, be killed at a random one, take up the lesson again."""
    found = {"kill -9 while deciding": 0, "decisions kept": 0}
    folder.mkdir(parents=True)
    lesson = Lesson.begin(folder / "set", "m", SENTENCES)
    lesson.close()
    n_known = 0
    for _ in range(kills):
        if n_known > len(SENTENCES) - 20:
            folder = folder / "more"
            Lesson.begin(folder / "set", "m", SENTENCES).close()
            n_known = 0
        told = _killed(folder / "set", source.randrange(1, 4), n_known)
        lesson = Lesson(folder / "set")
        kept = sorted(lesson.decided)
        lesson.close()
        assert kept == list(range(len(kept))), "decisions that nobody took"
        assert told <= len(kept) <= told + 1, f"{told} were said to be kept, {len(kept)} are"
        n_known = len(kept)
        found["kill -9 while deciding"] += 1
        found["decisions kept"] += len(kept)
    return found


def _killed(folder: Path, n: int, first: int) -> int:
    """Decide in another process, which is killed after n or in the middle of the next; the number of all it told."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            lesson: Any = Lesson(folder)
            for number in range(first, len(SENTENCES)):
                lesson.decide(number, ["O", "O"])
                os.write(write, b".")
        finally:
            os._exit(0)
    os.close(write)
    told = 0
    while told < n and os.read(read, 1):
        told += 1
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while more := os.read(read, 4096):
        told += len(more)
    os.close(read)
    return first + told
