"""Messages that many requests can cause are written once a minute for each kind, with how many were left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SECONDS = 60.0
MOST_KINDS = 100  # beyond, all further kinds count as one, so that no client decides how much is remembered
FLOODED = ("trelliswork", "uvicorn.error", "asyncio")  # loggers whose messages requests and connections can cause


class Seldom:
    """Decides which messages are written.

    >>> seldom = Seldom(clock=lambda: 0.0)
    >>> seldom.text("slow", "a client was too slow"), seldom.text("slow", "a client was too slow")
    ('a client was too slow', None)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}  # when it was last written, and how many were not since

    def text(self, kind: str, text: str) -> str | None:
        """Return the text to write, or None if there was one of its kind within the last minute."""
        kind = kind if kind in self._kinds or len(self._kinds) < MOST_KINDS else ""
        now, (last, n_left_out) = self._clock(), self._kinds.get(kind, (-SECONDS, 0))
        if now < last + SECONDS:
            self._kinds[kind] = last, n_left_out + 1
            return None
        self._kinds[kind] = now, 0
        return text + (f" (and {n_left_out:,} more like it since the last such line)" if n_left_out else "")


def place_of(error: BaseException) -> str:
    """Return the file and line that an error comes from, by which messages about it are counted."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return type(error).__name__ if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"


class SeldomFilter(logging.Filter):
    """The same for loggers: a kind is the place that logs, and the exception."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else None
        kind = getattr(record, "fields", {}).get("kind") or f"{record.pathname}:{record.lineno} {error}"
        text = self._seldom.text(kind, record.getMessage())
        if text is not None:
            record.msg, record.args = text, ()
        return text is not None


def write_seldom() -> None:
    """Limit the loggers of a process that serves."""
    limit = SeldomFilter()
    for name in FLOODED:
        logging.getLogger(name).addFilter(limit)
