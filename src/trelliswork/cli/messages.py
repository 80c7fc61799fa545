"""Messages of commands on standard error, apart from their results: text for people, or one JSON object a line.

Everything comes through the logger `trelliswork`; this is the only place that shows it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any

import typer

from trelliswork.logs import LOGGER, tell

NOTE = "note: "
_PREFIXES = {logging.WARNING: NOTE, logging.ERROR: "error: "}
_PANEL = "Messages"


class LogFormat(StrEnum):
    """Format of messages."""

    text = "text"
    json = "json"


# The options that every command has.
LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        help="Messages on standard error: text, or one JSON object per line with time, level, message and the fields "
        "of the event.",
        rich_help_panel=_PANEL,
    ),
]
ProgressOption = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress within an epoch or job.",
        show_default="if standard error is a terminal",
        rich_help_panel=_PANEL,
    ),
]


class ProgressDisplay(StrEnum):
    """Display of progress: a moving bar, lines now and then, or only what is done."""

    bar = "bar"
    lines = "lines"
    nothing = "nothing"


_progress: ContextVar[ProgressDisplay] = ContextVar("progress", default=ProgressDisplay.nothing)


@contextlib.contextmanager
def show_messages() -> Iterator[None]:
    """Inside, messages of the library are shown on standard error; as text, until `choose_messages` says otherwise."""
    handler, level, asked = _StandardError(), LOGGER.level, _progress.set(ProgressDisplay.nothing)
    handler.setFormatter(_Text())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False  # other libraries may have made handlers for everybody's messages
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        LOGGER.propagate = True
        _progress.reset(asked)


def choose_messages(format: LogFormat, progress: bool | None) -> None:
    """Show messages as the options of a command say."""
    for handler in LOGGER.handlers:
        if isinstance(handler, _StandardError):
            handler.setFormatter(_Lines() if format is LogFormat.json else _Text())
    _progress.set(_how(format, progress))


def _how(format: LogFormat, progress: bool | None) -> ProgressDisplay:
    if progress is not False and sys.stderr.isatty() and format is LogFormat.text:
        return ProgressDisplay.bar
    return ProgressDisplay.lines if progress else ProgressDisplay.nothing


def progress_display() -> ProgressDisplay:
    """Return the display of progress that the command uses."""
    return _progress.get()


def say(text: str, *, quiet: bool = False, **fields: Any) -> None:
    """Report what is being done, apart from the result; a message that begins with "note: " is a warning."""
    if not quiet:
        level = logging.WARNING if text.startswith(NOTE) else logging.INFO
        tell(text.removeprefix(NOTE), level=level, **fields)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a question that names the nearest of the known names; empty if none is near.

    >>> did_you_mean("bilstm-crff", ["crf", "bilstm-crf"]), did_you_mean("x", ["crf"])
    ('did you mean bilstm-crf?', '')

    Args:
        name: What was given.
        known: Names that there are.
        cutoff: How near a name must be, 0 to 1.

    Returns:
        The question, or an empty text.
    """
    near = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else ""


class _StandardError(logging.Handler):
    """Writes to what standard error is now: a progress bar takes it over while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        if line := self.format(record):
            print(line, file=sys.stderr, flush=True)


class _Text(logging.Formatter):
    """The message, unless a progress bar has shown it."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"{_PREFIXES.get(record.levelno, '')}{record.getMessage()}"
        return "" if getattr(record, "shown", False) else visible(text)


class _Lines(logging.Formatter):
    """A JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        members = {"time": when, "level": record.levelname.lower(), "message": record.getMessage()}
        fields = {name: _in_json(value) for name, value in getattr(record, "fields", {}).items()}
        return json.dumps(members | {**fields, **members}, ensure_ascii=False, default=str)


def _in_json(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Text of others on a terminal: control characters are shown, not obeyed.

# C0 without tab and line end, DEL, C1, marks that turn the direction of what follows, and halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return the text with every character that could steer a terminal written as an escape.

    >>> print(visible("\x1b[2Jred"))
    \x1b[2Jred
    """
    return _CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
