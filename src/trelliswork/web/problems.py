"""Problems of requests as in RFC 9457: application/problem+json with one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

PROBLEM_JSON = "application/problem+json"


class Problem(Exception):  # noqa: N818  # RFC 9457 calls it that
    """A status and a sentence; `headers` go with the answer."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    def body(self) -> bytes:
        """Return the problem as JSON.

        >>> Problem(404, "there is no model 'x'").body()
        b'{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "there is no model \\'x\\'"}'
        """
        return problem_json(self.status, self.detail)


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def problem_json(status: int, detail: str) -> bytes:
    """Return a status and a sentence as JSON."""
    title = HTTPStatus(status).phrase
    return json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()
