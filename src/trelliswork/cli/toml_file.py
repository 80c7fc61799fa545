"""A TOML file that a user wrote: its sections, and errors that name the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from trelliswork.data.files import open_text
from trelliswork.errors import DataError

_CHECKS = {
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "tuple[int, ...]": (
        "a list of whole numbers",
        lambda value: isinstance(value, list) and all(type(each) is int for each in value),
    ),
    "tuple[str, ...]": (
        "a list of texts",
        lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    ),
}
_TEXT = ("a text in quotes", lambda value: isinstance(value, str))


class TomlFile:
    """`sections` has what the file says; text that is no TOML is a `DataError`."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open_text(path) as lines:
            self.text = "".join(f"{line}\n" for line in lines)
        try:
            self.sections: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            problem, place = _split_place(str(error), n_lines=self.text.rstrip().count("\n") + 1)
            raise DataError(path, f"expected TOML, got something else ({problem}); mend it", **place) from error

    def error(self, problem: str, name: str) -> DataError:
        """What is wrong with a section or a key, with its line."""
        return DataError(self.path, problem, line=_line_of(name, self.text))

    def require_known(self, name: str, known: Mapping[str, Any], what: str, of: str = "") -> None:
        """Raise an error that names the nearest known name, if this is none; it is a part of `of`, if that is given."""
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise self.error(f"expected a {what}, got {name!r}; {fix}", of or name)

    def checked(self, key: str, value: Any, kind: str, of: str = "") -> Any:
        """The value of a key, of `of` if it is a part of that, which must be of its kind."""
        expected, fits = _CHECKS.get(kind, _TEXT)
        if not fits(value):
            what = f"{key} of {of}" if of else key
            raise self.error(f"expected {expected} for {what}, got {value!r}; change it", of or key)
        if key == "threads" and value < 1:
            raise self.error(f"expected at least 1 thread, got {value}; change it", key)
        return tuple(value) if isinstance(value, list) else value


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
