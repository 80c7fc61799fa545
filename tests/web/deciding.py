"""Decides about one sentence after another and prints each that was acknowledged, until it is killed.

python -m tests.web.deciding FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from trelliswork.web.teaching.lesson import Lesson

N = 5000
WORDS = [f"word{i}" for i in range(40)]


def main() -> None:
    folder = Path(sys.argv[1])
    lesson = Lesson.begin(folder, "ner", [{"tokens": [*WORDS, str(i)]} for i in range(N)])
    print("ready", flush=True)
    while (number := lesson.next("order")) is not None:
        if number % 7 == 3 and number - 1 in lesson.decided:
            undone = lesson.undo()  # and decided again, so that the file also shrinks now and then
            lesson.decide(undone["id"], undone["tags"])
        lesson.decide(number, [f"T{number}", *[None] * len(WORDS)])
        print(number, flush=True)


if __name__ == "__main__":
    main()
