"""docs/commands.md, made from the commands themselves: `python -m tests.docs.commands_page` writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from trelliswork.cli.commands import COMMANDS, function_of
from trelliswork.cli.model_help import ModelCommand

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = """# Commands

Every command of `trelliswork` with its arguments and options, as `trelliswork COMMAND --help` has them. For `train` and
`tune` these are the common ones: `trelliswork train --model NAME --help` has those of a model, `--help-all` all, and
the pages of [settings](settings.md) describe them with their keys.
Exit status: 0; 1 from `check --strict` if a tag or tree is invalid; 2 for bad input, with one sentence; 130 after
Ctrl-C. This page is written by `python -m tests.docs.commands_page`; a test keeps it so.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(name) for name in COMMANDS if COMMANDS[name].file == name)])


def section(name: str) -> str:
    """A command: what it is for, its arguments and its options by panel."""
    app = typer.Typer(add_completion=False)
    function = function_of(name)
    app.command(name, cls=getattr(function, "command_class", None))(function)
    command: Any = typer.main.get_command(app)
    if isinstance(command, ModelCommand):
        command.show_common()
    parts = [f"## `{name}`\n", COMMANDS[name].help + "\n", f"```sh\n{usage(name, command)}\n```\n"]
    if about := paragraphs((command.help or "").replace(COMMANDS[name].help, "", 1)):
        parts.append(about + "\n")
    for title, parameters in panels(command).items():
        parts += [f"**{title}**\n", "| | default | |", "|---|---|---|", *map(row, parameters), ""]
    return "\n".join(parts)


def usage(name: str, command: Any) -> str:
    names = [argument(each) for each in command.params if each.param_type_name == "argument"]
    return " ".join(["trelliswork", name, *names, "[options]"])


def argument(parameter: Any) -> str:
    shown = (parameter.metavar or parameter.name.upper()).strip("[]") + ("..." if parameter.nargs == -1 else "")
    return shown if parameter.required else f"[{shown}]"


def paragraphs(text: str) -> str:
    """The help of a command; blocks that keep their lines are code."""
    found = []
    for part in re.split(r"\n\s*\n", text.strip()):
        if part.lstrip().startswith("\b"):
            found.append("```text\n" + part.lstrip().removeprefix("\b").strip("\n") + "\n```")
        else:
            found.append(" ".join(part.split()))
    return cleaned("\n\n".join(found))


def panels(command: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in command.params:
        if getattr(each, "hidden", False) or each.name == "help":
            continue
        kind = "Arguments" if each.param_type_name == "argument" else "Options"
        found.setdefault(getattr(each, "rich_help_panel", None) or kind, []).append(each)
    return found


def row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{argument(parameter)}`"
    else:
        name = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
    cells = [name, default(parameter), cleaned(" ".join((parameter.help or "").split()))]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def default(parameter: Any) -> str:
    given = getattr(parameter, "show_default", None)
    if isinstance(given, str):
        return given
    value = parameter.default
    if callable(value) or value is None or value == "" or value == () or str(value).startswith("Sentinel"):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def cleaned(text: str) -> str:
    """Without the marks of rich; what is in angle brackets is code."""
    return re.sub(r"(?<!`)(<\w+>)", r"`\1`", re.sub(r"\[/?(?:bold|dim|cyan|green|yellow|italic)\]", "", text))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
