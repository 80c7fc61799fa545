"""What is imported when it is first used, so that what does without torch never loads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def named(home: str) -> Any:
    """The object that "package.module:name" names, imported now."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `homes` names the module below the package that each name comes from."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
