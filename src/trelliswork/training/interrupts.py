"""Ctrl-C and SIGTERM between steps of training, never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from trelliswork import ctrl_c


class Interrupts:
    """Inside `with`, Ctrl-C and SIGTERM wait for the end of what is `undivided`, and work at once elsewhere.

    With `wait`, they never work by themselves: who uses this asks whether one is `pending`.
    Only where they would raise `KeyboardInterrupt` anyway: in the main thread, with no handler but Python's or ours.
    """

    def __init__(self, *, wait: bool = False) -> None:
        self._wait = wait
        self._busy = self._pending = False
        self._before: dict[int, signal.Handlers | Callable[[int, FrameType | None], object] | int | None] = {}

    @property
    def pending(self) -> bool:
        """True if the process was asked to end and has not ended yet."""
        return self._pending

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) in (signal.default_int_handler, ctrl_c.interrupt):
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """Finish what is done inside before Ctrl-C has an effect; a second Ctrl-C does not wait."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        ctrl_c.remember(number)
        if self._wait or (self._busy and not self._pending):
            self._pending = True
        else:
            raise KeyboardInterrupt
