"""What depends on a word alone, worked out once for each."""

from __future__ import annotations

from collections.abc import Callable

LIMIT = 200_000  # words


class Remembered(dict[str, list[int]]):
    """Numbers of each word, made when it is first asked for; most words come more than once.

    >>> numbers = Remembered(lambda word: [len(word), word.count("e")])
    >>> numbers["sees"], len(numbers)
    ([4, 2], 1)
    """

    def __init__(self, make: Callable[[str], list[int]], limit: int = LIMIT) -> None:
        super().__init__()
        self._make, self._limit = make, limit

    def __reduce__(self) -> tuple[type[Remembered], tuple[Callable[[str], list[int]], int]]:
        return Remembered, (self._make, self._limit)  # a copy works its numbers out again

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= self._limit:
            self.clear()
        found = self[word] = self._make(word)
        return found
