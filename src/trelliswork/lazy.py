"""Imports at first use, so that what does without torch never loads it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from trelliswork.errors import MissingExtraError


def named(home: str) -> Any:
    """Return the object that "package.module:name" names, imported now."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


class Later:
    """An object that is made by a call when one of its attributes is first asked for.

    >>> Later(import_module, "json").loads("[1]")
    [1]
    """

    def __init__(self, make: Callable[..., Any], *arguments: Any) -> None:
        self._make, self._arguments = make, arguments

    def __getattr__(self, name: str) -> Any:
        if name == "_made":
            self._made = self._make(*self._arguments)
            return self._made
        return getattr(self._made, name)


def lazy_module(module: str) -> Any:
    """Return a module that is imported when one of its names is first asked for."""
    return Later(import_module, module)


def optional(module: str, use: str, extra: str) -> Any:
    """Return a module of an optional package, imported now; without it, an error with the line to type.

    Args:
        module: The module to import.
        use: What needs it, for the message.
        extra: The extra that installs it.

    Returns:
        The module.

    >>> optional("json", "reading JSON", "json").loads("[1]")
    [1]
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(use, extra, error) from error


def require(module: str, use: str, extra: str) -> None:
    """Refuse to go on without a module of an optional package, which is not imported.

    Args:
        module: The module to look for.
        use: What needs it, for the message.
        extra: The extra that installs it.

    >>> require("json", "reading JSON", "json")
    """
    if module not in sys.modules and find_spec(module) is None:
        raise MissingExtraError(use, extra, f"No module named {module!r}")


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` has the names that come from each module below the package."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        if name in homes:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    names = vars(sys.modules[package])
    names["__dir__"] = lambda: sorted({*names, *home})
    return find
