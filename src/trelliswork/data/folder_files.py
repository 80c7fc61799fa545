"""Files that a model folder must hold: whole, regular files, read safely; anything else is a `ModelError`."""

from __future__ import annotations

from pathlib import Path

from trelliswork.data.json_values import BadJSONError, JsonObject, parse_json
from trelliswork.errors import ModelError


def check_regular(path: Path) -> None:
    """Refuse what is missing, or would never end or block when read: a folder, a device, a pipe."""
    if not path.exists():
        raise ModelError(f"{path}: missing; copy the whole model folder or train again")
    if not path.is_file():
        got = "a folder" if path.is_dir() else "a pipe or device"
        raise ModelError(f"{path}: expected a regular file, got {got}; copy the model again")


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file."""
    try:
        check_regular(path)
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}; check the permissions") from error


def read_object(path: Path) -> JsonObject:
    """Return the JSON object in a regular file."""
    try:
        value = parse_json(read_regular(path).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: truncated or not JSON (not UTF-8); copy the model again or train again") from error
    except BadJSONError as error:
        raise ModelError(
            f"{path}: truncated or not JSON{_place(error)}; copy the model again or train again"
        ) from error
    if not isinstance(value, dict):
        raise ModelError(f"{path}: expected a JSON object, got {type(value).__name__}; copy the model again")
    return value


def _place(error: BadJSONError) -> str:
    where = "" if error.line is None else f" at line {error.line}, column {error.column}"
    return f" ({error.problem}{where})"
