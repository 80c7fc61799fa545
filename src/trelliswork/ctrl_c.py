"""Ctrl-C on the command line: one quiet line and exit status 130, also while libraries are being imported.

This module imports next to nothing, so that it is in place before anything else is imported.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

STATUS = 130
SENTENCE = "interrupted; no file is left half-written"
_IMPORT = "<frozen importlib._bootstrap>"
_to_undo: list[Callable[[], object]] = []


def install() -> None:
    """Handle Ctrl-C by `interrupt`, where it would raise `KeyboardInterrupt` anyway."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`; inside an import, end the process on the spot.

    Libraries in C turn an exception within their import into another one, print it or drop it, and a long import would
    not be worth waiting for.
    """
    if not _is_importing(frame):
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for undo in reversed(_to_undo):
        try:
            undo()
        except Exception:
            continue
    say_interrupted()
    os._exit(STATUS)


class Undone:
    """Inside `with`, what is to be undone if the process is ended on the spot; a normal end does it by itself."""

    def __init__(self, undo: Callable[[], object]) -> None:
        self.undo = undo

    def __enter__(self) -> None:
        _to_undo.append(self.undo)

    def __exit__(self, *_: object) -> None:
        _to_undo.remove(self.undo)


def say_interrupted() -> None:
    """The only line about it."""
    print(f"error: {SENTENCE}", file=sys.stderr, flush=True)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False
