"""Problems of requests: answers as in RFC 9457, application/problem+json with one sentence, and lines of the log."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

PROBLEM_JSON = "application/problem+json"


class Problem(Exception):  # noqa: N818  # RFC 9457 calls it that
    """A status and a sentence; `headers` go with the answer.

    Args:
        status: The status of HTTP.
        detail: One sentence: what was expected, what was found, how to fix it.
        headers: Headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    def body(self) -> bytes:
        """Return the problem as JSON.

        >>> Problem(404, "there is no model 'x'").body()
        b'{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "there is no model \\'x\\'"}'
        """
        return problem_json(self.status, self.detail)


def json_bytes(value: object) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def problem_json(status: int, detail: str) -> bytes:
    """Return a status and a sentence as JSON."""
    title = HTTPStatus(status).phrase
    return json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()


# Messages that many requests can cause are written once a minute for each kind, with how many were left out.

SECONDS = 60.0
MOST_KINDS = 100  # beyond, all further kinds count as one, so that no client decides how much is remembered
FLOODED = ("trelliswork", "uvicorn.error", "asyncio")  # loggers whose messages requests and connections can cause


class Throttle:
    """A decision which messages are written: of each kind, one a minute.

    >>> throttle = Throttle(clock=lambda: 0.0)
    >>> throttle.text("slow", "a client was too slow"), throttle.text("slow", "a client was too slow")
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


class ThrottleFilter(logging.Filter):
    """The same for loggers: a kind is the place that logs, and the exception."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = Throttle()

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else None
        kind = getattr(record, "fields", {}).get("kind") or f"{record.pathname}:{record.lineno} {error}"
        text = self._throttle.text(kind, record.getMessage())
        if text is not None:
            record.msg, record.args = text, ()
        return text is not None


def throttle_logs() -> None:
    """Limit the loggers of a process that serves."""
    limit = ThrottleFilter()
    for name in FLOODED:
        logging.getLogger(name).addFilter(limit)
