"""Messages of the library: all go to the logger `trelliswork`, each with the fields of the event it tells of.

Imported into a program, the library says nothing until the program configures logging:

    >>> logging.basicConfig(level=logging.INFO)                           # doctest: +SKIP

A record has what happened as a dict in `record.fields`: of an epoch its number, loss and score. The command line shows
messages on standard error, as text or as JSON (`trelliswork.cli.messages`).
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("trelliswork")
LOGGER.addHandler(logging.NullHandler())


def tell(text: str, *, level: int = logging.INFO, shown: bool = False, **fields: object) -> None:
    """Log a message with the fields of its event; `shown` says that a progress bar has shown it on the terminal.

    Args:
        text: The message.
        level: The level of `logging`.
        shown: Whether a progress bar has shown it on the terminal.
        fields: What happened, as values.
    """
    LOGGER.log(level, "%s", text, extra={"fields": fields, "shown": shown})


def count(n: int, noun: str) -> str:
    """Return a number with its noun, for messages.

    >>> count(1, "sentence"), count(1200, "token")
    ('1 sentence', '1,200 tokens')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
