"""Light forms of typer's parameters: no pydantic for values that need no check, no Markdown or tracebacks of rich.

Each takes a tenth of the time of a small command.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from enum import EnumType
from importlib import import_module
from types import ModuleType, NoneType, UnionType
from typing import Any, get_args

import typer
from typer.core import TyperCommand

from trelliswork.lazy import named


class PlainHelp:
    """A command or a group whose option --help has a default: None would be checked for a bool."""

    def get_help_option(self, ctx: typer.Context) -> Any:
        """Return the option --help."""
        option: Any = super().get_help_option(ctx)  # type: ignore[misc]
        option.default = False
        return option

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:
        """Write the help."""
        _load_rich_utils()
        super().format_help(ctx, formatter)  # type: ignore[misc]


class _Standin(type):
    """A class in the place of another, which is imported when it is used."""

    home: str

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return named(cls.home)(*arguments, **options)

    def __getattr__(cls, name: str) -> Any:
        return getattr(named(cls.home), name)


def _load_rich_utils() -> None:
    """Import what typer shows help with, but for what our help has nothing of: Markdown and tracebacks."""
    unused = {f"rich.{name.lower()}": name for name in ("Markdown", "Traceback")}
    if "typer.rich_utils" in sys.modules or unused.keys() & sys.modules.keys():
        return
    for module, name in unused.items():
        standin = _Standin(name, (), {"home": f"{module}:{name}"})
        sys.modules[module] = ModuleType(module)
        setattr(sys.modules[module], name, standin)
    try:
        import_module("typer.rich_utils")
    finally:
        for module in unused:
            del sys.modules[module]


class PlainCommand(PlainHelp, TyperCommand):  # type: ignore[misc]
    """A command of which typer checks nothing that needs no check."""


def take_plain_values(command: Any, function: Callable[..., Any]) -> None:
    """Let the options of a command take defaults and texts as they are; all others are checked as before."""
    parameters = inspect.signature(function, eval_str=True).parameters
    for option in command.params:
        if option.name in parameters and option.callback is None:
            _take_plain_value(option, *get_args(parameters[option.name].annotation))


def _take_plain_value(option: Any, kind: Any = None, info: Any = None) -> None:
    """`kind` and `info` are what the annotation of the option says: `Annotated[kind, info]`."""
    kinds = [each for each in (get_args(kind) if isinstance(kind, UnionType) else [kind]) if each is not NoneType]
    if len(kinds) != 1 or info is None:
        return
    checked, several = option.process_value, option.multiple or option.nargs != 1
    plain = _plain_texts if several else _plain_value

    def taken(context: typer.Context, value: object) -> object:
        if value is None and not option.required:
            return () if several else None
        plain_value = plain(value, kinds[0], info) if info.parser is None else None
        return checked(context, value) if plain_value is None else plain_value

    option.process_value = taken


def _plain_value(value: object, kind: type, info: Any) -> object:
    """Return a value that fits its option beyond doubt, else None."""
    if type(value) is kind:
        return value
    if isinstance(kind, EnumType):
        members: list[Any] = list(kind)
        return next((each for each in members if each.value == value), None)
    if kind is int and type(value) is str and re.fullmatch("[0-9]{1,9}", value):
        low, high = (float(f"{sign}inf") if end is None else end for sign, end in (("-", info.min), ("", info.max)))
        return int(value) if low <= int(value) <= high else None
    return None


def _plain_texts(values: Any, kind: object, info: object) -> list[str] | None:
    """Return texts as the list that an option for several takes, else None."""
    fits = kind == list[str] and bool(values) and all(type(each) is str for each in values)
    return list(values) if fits else None
