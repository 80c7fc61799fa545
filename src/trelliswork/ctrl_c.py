"""Ctrl-C on the command line: one quiet line and exit status 130, also while libraries are being imported.

This module imports nothing heavy, so that it is in place before anything heavy is imported.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from types import FrameType

STATUS = 130
RETRY_SECONDS = 0.05
_IMPORT = "<frozen importlib._bootstrap>"


class _State:
    """Of the one Ctrl-C that waits for the end of an import."""

    waiting = False
    retried = False  # by the timer, not by the user


def install() -> None:
    """Handle Ctrl-C by `interrupt`, where it would raise `KeyboardInterrupt` anyway."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, but not inside an import; a second Ctrl-C there ends the process at once.

    Libraries in C turn an exception within their import into another one, print it or drop it.
    """
    retried, _State.retried = _State.retried, False
    if not _is_importing(frame):
        _State.waiting = False
        raise KeyboardInterrupt
    if _State.waiting and not retried:
        say_interrupted()
        os._exit(STATUS)
    _State.waiting = True
    timer = threading.Timer(RETRY_SECONDS, _try_again)
    timer.daemon = True
    timer.start()


def _try_again() -> None:
    if _State.waiting:
        _State.retried = True
        _thread.interrupt_main()


def say_interrupted() -> None:
    """The only line about it."""
    print("error: interrupted; no file is left half-written", file=sys.stderr, flush=True)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False
