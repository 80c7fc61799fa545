"""Ctrl-C and SIGTERM on the command line: one quiet line and exit status 130 or 143, also while libraries are imported.

This module imports next to nothing, so that it is in place before anything else is imported.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_IMPORT = "<frozen importlib._bootstrap>"
_LATER = 0.01  # seconds, in which a destructor ends
_to_undo: list[Callable[[], object]] = []
_received = [signal.SIGINT]  # the last signal that asked this process to end


def install() -> None:
    """Handle Ctrl-C and SIGTERM by `interrupt`, unless they are handled or ignored already."""
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is default:
            signal.signal(number, interrupt)


def uninstall() -> None:
    """Let both end the process at once: nothing is left to be undone."""
    for number in _DEFAULTS:
        if signal.getsignal(number) is interrupt:
            signal.signal(number, signal.SIG_DFL)


def remember(number: int) -> None:
    """Note which signal asked this process to end, for `status` and `sentence`."""
    _received.append(signal.Signals(number))


def status() -> int:
    """Return the exit status of a process that was asked to end: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + _received[-1]


def sentence() -> str:
    """Return the only line about it."""
    what = "terminated" if _received[-1] == signal.SIGTERM else "interrupted"
    return f"{what}; no file is left half-written"


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`; inside an import, end the process on the spot.

    Libraries in C turn an exception within their import into another one, print it or drop it, and a long import would
    not be worth waiting for. Python prints and drops an exception within a destructor, so that one is raised later.
    """
    remember(number)
    if _is_inside(frame, "co_name", "__del__"):
        _thread.start_new_thread(_interrupt_later, (number, _thread.get_ident()))
        return
    if not _is_inside(frame, "co_filename", _IMPORT):
        raise KeyboardInterrupt
    for each in _DEFAULTS:
        signal.signal(each, signal.SIG_IGN)
    for undo in reversed(_to_undo):
        try:
            undo()
        except Exception:
            continue
    say_interrupted()
    os._exit(status())


class Undone:
    """Inside `with`, what is to be undone if the process is ended on the spot; a normal end does it by itself."""

    def __init__(self, undo: Callable[[], object]) -> None:
        self.undo = undo

    def __enter__(self) -> None:
        _to_undo.append(self.undo)

    def __exit__(self, *_: object) -> None:
        _to_undo.remove(self.undo)


def say_interrupted() -> None:
    """Print the only line about it."""
    print(f"error: {sentence()}", file=sys.stderr, flush=True)


def _interrupt_later(number: int, thread: int) -> None:
    """Send the signal to the thread again, which wakes it if it waits."""
    time.sleep(_LATER)
    if sys.platform == "win32":
        _thread.interrupt_main(signal.Signals(number))
    else:
        signal.pthread_kill(thread, number)


def _is_inside(frame: FrameType | None, attribute: str, value: str) -> bool:
    """Return whether a frame, or one that called it, runs code with this value of an attribute."""
    while frame is not None:
        if getattr(frame.f_code, attribute) == value:
            return True
        frame = frame.f_back
    return False
