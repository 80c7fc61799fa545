"""Text of others on a terminal: control characters are shown, not obeyed."""

from __future__ import annotations

import re

# C0 without tab and line end, DEL, C1, marks that turn the direction of what follows, and halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The text with every character that could steer a terminal written as an escape.

    >>> print(visible("\x1b[2Jred"))
    \x1b[2Jred
    """
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
