"""A client of the server, over one connection that is kept; it tries again what may succeed later.

    >>> with Client("http://127.0.0.1:8000") as client:                              # doctest: +SKIP
    ...     client.predict(text="Ann lives in Paris.")["results"][0]["sentences"][0]["value"]
    ['B-PER', 'O', 'O', 'B-LOC', 'O']

It needs the standard library alone. A client is for one thread; make one for each.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from trelliswork.errors import TrellisworkError

AGAIN = (429, 503)  # statuses after which the same request may succeed
LONGEST_PAUSE = 5.0
JsonObject = dict[str, Any]


class ServerError(TrellisworkError):
    """An error that the server answered with: a sentence, and the status of HTTP (0 without an answer)."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Client:
    """Questions to a server. `retries` is how often a request is repeated after 429, 503 or a lost connection.

    Questions are repeated safely, since answers change nothing, and so are decisions of a teacher: the same decision
    about the same sentence is written once.

    Args:
        address: The address of the server, such as http://127.0.0.1:8000.
        token: The token that the server was started with, if any.
        timeout: Seconds to wait for an answer.
        retries: How often a request is repeated after 429, 503 or a lost connection.
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8000", *, token: str | None = None, timeout: float = 60, retries: int = 5
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TrellisworkError(f"expected an address such as http://127.0.0.1:8000, got {address!r}")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._base, self._retries, self.address = parts.path.rstrip("/"), retries, address
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()

    def models(self) -> list[JsonObject]:
        """Return the models that are served, with the abilities of each."""
        models: list[JsonObject] = self.get("/v1/models")["models"]
        return models

    def predict(self, **members: object) -> JsonObject:
        """Return the answer of /v1/predict: one of `text`, `texts`, `tokens`, and `model`, `top_k`, `pins`,
        `choices`, ...
        """
        return self.post("/v1/predict", members)

    def draw(self, **members: object) -> JsonObject:
        """Return pictures as SVG."""
        return self.post("/v1/draw", members)

    def explain(self, **members: object) -> JsonObject:
        """Return explanations of the answers."""
        return self.post("/v1/explain", members)

    def get(self, path: str, **query: object) -> JsonObject:
        """Return the answer of a path, such as get("/v1/teach/next", by="margin")."""
        return self._request("GET", path + (f"?{urlencode(query)}" if query else ""), None)

    def post(self, path: str, body: Mapping[str, object]) -> JsonObject:
        """Return the answer to a body."""
        return self._request("POST", path, json.dumps(body).encode())

    def _request(self, method: str, path: str, body: bytes | None) -> JsonObject:
        pause = 0.05
        for attempt in range(self._retries + 1):
            status, answer, wait = self._try_once(method, path, body)
            if status == 200:
                return answer
            if attempt == self._retries or (status and status not in AGAIN):
                break
            time.sleep(min(max(pause, wait), LONGEST_PAUSE))
            pause *= 2
        raise ServerError(status, str(answer.get("detail", answer)))

    def _try_once(self, method: str, path: str, body: bytes | None) -> tuple[int, JsonObject, float]:
        """Return status, answer, and how long to wait before the next attempt; status 0 if there was no answer."""
        try:
            self._connection.request(method, self._base + quote(path, safe="/?&=%+"), body, self._headers)
            response = self._connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            problem = f"{self.address}: no answer ({type(error).__name__}: {error}); is the server running?"
            return 0, {"detail": problem}, 0.0
        try:
            answer = json.loads(raw)
        except ValueError:
            answer = {"detail": f"expected JSON from {self.address}, got something else"}
        return response.status, answer if isinstance(answer, dict) else {"detail": str(answer)}, _seconds(response)


def _seconds(response: http.client.HTTPResponse) -> float:
    pause = response.getheader("Retry-After", "")
    return float(pause) if pause.isdigit() else 0.0
