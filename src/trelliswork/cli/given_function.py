"""The feature function of --features, the only code that a command takes from the current folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

from trelliswork.errors import ModelError
from trelliswork.lazy import named

if TYPE_CHECKING:
    from trelliswork.data.attributes import FeatureFunction


def given_function(path: str | None) -> FeatureFunction | None:
    """The function MODULE:FUNCTION that the command line names; an installed module goes before one of this folder."""
    if path is None:
        return None
    top = path.partition(":")[0].partition(".")[0]
    with _found_here(top):
        try:
            found: FeatureFunction = named("trelliswork.data.attributes:FeatureFunction").of(path)  # needs numba
            return found
        except ModelError as error:
            if not _is_beside(missing := _missing_module(error)):
                raise
            problem = f"imports {missing!r}, and only {top!r} is taken from the current folder"
            fix = "put both into one package (a folder), or set PYTHONPATH=."
            raise ModelError(f"the feature function {path} {problem}; {fix}") from error


def _missing_module(error: ModelError) -> str:
    cause = error.__cause__
    return (cause.name or "") if isinstance(cause, ModuleNotFoundError) else ""


def _is_beside(module: str) -> bool:
    """Whether the current folder has a module of that name."""
    return bool(module) and PathFinder.find_spec(module, [os.getcwd()]) is not None


@contextmanager
def _found_here(name: str) -> Iterator[None]:
    """Inside, the module or package of this name is found in the current folder, and nothing else there is.

    With the folder on `sys.path`, every library that looks for an optional module would run a file of that name.
    """
    finder = _Finder(name)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds one top-level name in the current folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [os.getcwd()]) if name == self.name else None
