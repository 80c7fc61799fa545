"""Options that are taken as they are have the values, or the errors, that typer's checks give."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pytest
import typer

from trelliswork.cli.light_typer import PlainCommand, take_plain_values


class Colour(StrEnum):
    red = "red"
    dark_blue = "dark-blue"


def even(text: str) -> int:
    if int(text) % 2:
        raise typer.BadParameter("expected an even number")
    return int(text)


def command(
    files: Annotated[list[str], typer.Argument()],
    number: Annotated[int, typer.Option(min=1, max=20)] = 3,
    whole: Annotated[int | None, typer.Option()] = None,
    share: Annotated[float, typer.Option(min=0.0)] = 0.5,
    text: Annotated[str | None, typer.Option()] = None,
    colour: Annotated[Colour, typer.Option()] = Colour.red,
    several: Annotated[list[str] | None, typer.Option()] = None,
    numbers: Annotated[list[int] | None, typer.Option()] = None,
    parsed: Annotated[int | None, typer.Option(parser=even)] = None,
    flag: Annotated[bool | None, typer.Option("--flag/--no-flag")] = None,
) -> dict[str, Any]:
    return dict(locals())


def answer(arguments: list[str], *, plain: bool) -> Any:
    app = typer.Typer(add_completion=False)
    app.command(cls=PlainCommand if plain else None)(command)
    made = typer.main.get_command(app)
    if plain:
        take_plain_values(made, command)
    try:
        found = made(arguments, standalone_mode=False)
    except Exception as error:
        return type(error), str(error.format_message())
    return found, {name: type(value) for name, value in found.items()}


LINES = [
    "a", "a b", "", "a --number 1", "a --number 20", "a --number 0", "a --number 21", "a --number 007", "a --number -4",
    "a --number 2.0", "a --number 2.5", "a --number x", "a --whole 12345678901234567890", "a --whole ٣", "a --share 1",
    "a --share 1e-3", "a --share -1", "a --share nan", "a --text 3", "a --text=", "a --colour dark-blue",
    "a --colour dark_blue", "a --colour RED", "a --several x --several 2", "a --numbers 3 --numbers 4", "a --numbers x",
    "a --parsed 4", "a --parsed 3", "a --parsed x", "a --flag", "a --no-flag", "a --unknown", "a --number",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_values_and_errors_are_those_of_typer(line: str) -> None:
    found, wanted = (answer(line.split(), plain=plain) for plain in (True, False))
    assert repr(found) == repr(wanted)
