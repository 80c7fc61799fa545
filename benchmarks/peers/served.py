"""What the scripts of peers share: do a job again and again, when asked, and say how long it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def served(job: Callable[[], object]) -> None:
    """Once to warm up, then once for each line of standard input; a line with the processor seconds of each."""
    job()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        job()
        print(time.process_time() - began, flush=True)


def commands(train: Callable[[str, str], None], parser: Callable[[str, str, str], Callable[[], object]]) -> None:
    """`train TRAIN MODEL`, or `parse MODEL IN OUT`."""
    what, *paths = sys.argv[1:]
    if what == "train":
        train(*paths)
    else:
        served(parser(*paths))
