"""How much the server takes, at a time and at once."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of requests; beyond them the answer is 413 (too much), 429 (too many) or 504 (too long)."""

    body: int = 2 * MEGABYTE  # bytes of a request
    characters: int = 100_000  # of a text
    texts: int = 1024  # of a request
    tokens: int = 20_000  # of a sentence that is given as tokens
    pins: int = 1000
    top_k: int = 100
    shown: int = 100  # choices of a part
    at_once: int = 256  # requests that are answered or wait
    seconds: float = 30.0  # of a request, waiting included
    body_seconds: float = 10.0  # in which a body must have come
    taught: int = 10 * MEGABYTE  # bytes of a file of sentences to teach
