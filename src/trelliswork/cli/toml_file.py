"""A TOML file that a user wrote: its sections, and errors that name the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from trelliswork.cli.messages import did_you_mean
from trelliswork.cli.options import MOST_THREADS
from trelliswork.data.files import open_text
from trelliswork.data.settings import misfit
from trelliswork.errors import DataError


class TomlFile:
    """`sections` has what the file says; text that is no TOML is a `DataError`."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open_text(path) as lines:
            self.text = "".join(f"{line}\n" for line in lines)
        self.sections = _parsed(self.text, path)

    def error(self, problem: str, name: str) -> DataError:
        """What is wrong with a section or a key, with its line."""
        return DataError(self.path, problem, line=_line_of(name, self.text))

    def require_known(self, name: str, known: Mapping[str, Any], what: str, of: str = "") -> None:
        """Raise an error that names the nearest known name, if this is none; it is a part of `of`, if that is given."""
        if name not in known:
            fix = did_you_mean(name, known, cutoff=0.5) or f"known are {', '.join(known)}"
            raise self.error(f"expected a {what}, got {name!r}; {fix}", of or name)

    def checked(self, key: str, value: Any, kind: str, of: str = "") -> Any:
        """The value of a key, of `of` if it is a part of that, which must be of its kind."""
        if problem := misfit(f"{key} of {of}" if of else key, value, kind):
            raise self.error(f"{problem}; change it", of or key)
        if key == "threads" and not 1 <= value <= MOST_THREADS:
            raise self.error(f"expected 1 to {MOST_THREADS} threads, got {value}; change it", key)
        return tuple(value) if isinstance(value, list) else value


def _parsed(text: str, path: str) -> dict[str, Any]:
    place: dict[str, int] = {}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, place = _split_place(str(error), n_lines=text.rstrip().count("\n") + 1)
        cause: Exception = error
    except RecursionError as error:
        problem, cause = "nested too deeply", error
    except ValueError as error:  # Python's limit on the digits of a number, an impossible date
        problem, cause = "a number of thousands of digits, or no date", error
    raise DataError(path, f"expected TOML, got something else ({problem}); fix it", **place) from cause


def _split_place(message: str, n_lines: int) -> tuple[str, dict[str, int]]:
    """What is wrong, and where, of a message of tomllib about a text of so many lines.

    >>> _split_place("Invalid value (at line 4, column 8)", 7), _split_place("Expected '=' (at end of document)", 7)
    (('invalid value', {'line': 4, 'column': 8}), ("expected '='", {'line': 7}))
    """
    problem = message[:1].lower() + message[1:].partition(" (at ")[0]
    place = {name: int(number) for name, number in re.findall(r"(line|column) (\d+)", message)}
    return problem, place or {"line": n_lines}


def _line_of(name: str, text: str) -> int | None:
    """The line where a section or a key of that name begins."""
    start = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[]=.]""")
    return next((number for number, line in enumerate(text.split("\n"), 1) if start.match(line)), None)
