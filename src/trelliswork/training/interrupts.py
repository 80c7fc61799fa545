"""Ctrl-C between steps of training, never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from trelliswork import ctrl_c


class Interrupts:
    """Inside `with`, Ctrl-C waits for the end of what is `undivided`, and works at once elsewhere.

    With `wait`, it never works by itself: who uses this asks whether one is `pending`.
    Only where Ctrl-C would raise `KeyboardInterrupt` anyway: in the main thread, with no handler but Python's or ours.
    """

    def __init__(self, *, wait: bool = False) -> None:
        self._wait = wait
        self._busy = self._pending = self._installed = False

    @property
    def pending(self) -> bool:
        """Whether Ctrl-C was pressed and has not worked yet."""
        return self._pending

    def __enter__(self) -> Interrupts:
        own = threading.current_thread() is threading.main_thread()
        if own and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, ctrl_c.interrupt):
            self._before = signal.signal(signal.SIGINT, self._interrupt)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """What is done inside is done to its end; a second Ctrl-C does not wait."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._wait or (self._busy and not self._pending):
            self._pending = True
        else:
            raise KeyboardInterrupt
