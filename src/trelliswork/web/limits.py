"""Limits of a server: sizes, times and numbers of requests."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of requests; beyond them the answer is 408, 413, 429 or 504, or the connection is closed."""

    body: int = 2 * MEGABYTE  # bytes of a request
    characters: int = 100_000  # of a text
    texts: int = 1024  # of a request
    all_characters: int = 500_000  # of all its texts, whose words are found in one go
    tokens: int = 20_000  # of a sentence that is given as tokens
    pins: int = 1000
    top_k: int = 100
    shown: int = 100  # choices of a part
    at_once: int = 256  # requests that are answered or wait
    held: int = 64 * MEGABYTE  # bytes of large bodies that are received or wait, of all requests
    seconds: float = 30.0  # of a request, waiting included
    header_seconds: float = 10.0  # in which the head of a request must have come
    body_seconds: float = 10.0  # in which a body must have come
    idle_seconds: float = 30.0  # that a connection is kept between two requests
    send_seconds: float = 10.0  # in which a client must have read a part of its answer
    connections: int = 1000  # open at a time; fewer if the system allows fewer files
    taught: int = 10 * MEGABYTE  # bytes of a file of sentences to teach

    @property
    def work(self) -> float:
        """Seconds that a request may take by the estimate of its model, if it had a worker for itself."""
        return self.seconds / 2

    @property
    def sentence_work(self) -> float:
        """The same of one sentence, which cannot be divided and for which everybody else may have to wait."""
        return self.seconds / 10
