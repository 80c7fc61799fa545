"""Processes that do not outlive the one that started them, even if that is killed.

`python -m trelliswork.runtime.parents PID MODULE ...` runs a module that ends with the process PID, its parent.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import threading
import time

LOOK = 0.5  # seconds between two looks at the parent
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """End this process at once when the thread of `parent` that has forked it is gone, however that ended.

    Only Linux can do that at once; elsewhere, and if the parent is gone already, `watch_parent` does it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    watch_parent(parent)


def watch_parent(parent: int) -> None:
    """End this process soon after it has lost its parent: a thread looks every half second."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    sys.argv[:] = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
