"""The command `trelliswork`: its subcommands, and the one place where errors become sentences.

Nothing heavy is imported here, so that help answers at once; the file of a command is imported when it is called.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from trelliswork import __version__, ctrl_c
from trelliswork.cli.commands import COMMANDS, function_of
from trelliswork.cli.light_typer import PlainCommand, PlainHelp, take_plain_values
from trelliswork.cli.messages import (
    LogFormat,
    LogFormatOption,
    ProgressOption,
    choose_messages,
    did_you_mean,
    show_messages,
    visible,
)
from trelliswork.errors import TrellisworkError, TrellisworkWarning, is_out_of_memory
from trelliswork.logs import tell

BAD_INPUT, BROKEN_PIPE = 2, 141
LONGEST = 2000  # characters of an error
TRACEBACK = "--traceback"


class Commands(PlainHelp, TyperGroup):  # type: ignore[misc]
    """A group whose commands are imported one by one, each when it is called."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, name: str) -> Any:  # type: ignore[override]
        """Return a command as it is listed: by its name and its help line."""
        return TyperCommand(name, help=COMMANDS[name].help) if name in COMMANDS else None

    def resolve_command(self, ctx: typer.Context, arguments: list[str]) -> Any:  # type: ignore[override]
        if arguments and arguments[0] not in COMMANDS:
            near = did_you_mean(arguments[0], COMMANDS)
            raise TrellisworkError(f"no such command {arguments[0]!r}; {near and near + ' '}see trelliswork --help")
        name, _, rest = super().resolve_command(ctx, arguments)
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        function = function_of(str(name))
        guarded = _guard(function)
        alone.command(name, cls=getattr(function, "command_class", PlainCommand))(guarded)
        command = typer.main.get_command(alone)
        take_plain_values(command, guarded)
        return name, command, rest


app = typer.Typer(
    name="trelliswork",
    cls=Commands,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"trelliswork {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
    traceback: Annotated[
        bool, typer.Option(TRACEBACK, help="Show the traceback of an error (same as TRELLISWORK_DEBUG=1).")
    ] = False,
) -> None:
    """Structured prediction: train, evaluate, use and explain taggers,
    parsers and transducers, with exact probabilities.

    \b
    First steps:
      trelliswork demo
    With your own data:
      trelliswork check train.conll dev.conll
      trelliswork train train.conll --feature-columns none --out model
      trelliswork evaluate model test.conll
      trelliswork predict model new.txt --text --confidence
    """


def _guard(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of all; signals and a closed pipe end it quietly, whatever it does."""

    @functools.wraps(command)
    def guarded(*arguments: Any, log_format: LogFormat, progress: bool | None, **options: Any) -> None:
        choose_messages(log_format, progress)
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing to say when Python closes it
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            _complain(ctrl_c.sentence())
            raise typer.Exit(ctrl_c.status()) from None

    own = inspect.signature(command, eval_str=True)
    given = {"log_format": (LogFormatOption, LogFormat.text), "progress": (ProgressOption, None)}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in given.items()
    ]
    guarded.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]
    return guarded


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status: 0, 2 for bad input or usage, 130 for Ctrl-C, 143 for SIGTERM.

    >>> run(["--version"])
    trelliswork 0.1.0
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = TRACEBACK in given or os.environ.get("TRELLISWORK_DEBUG", "") not in ("", "0")
    given = [argument for argument in given if argument != TRACEBACK] or ["--help"]
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # what is written matches what is read
    with show_messages():
        return _status(given, debug)


def _status(given: list[str], debug: bool) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note(warnings.showwarning)
            status = app(given, prog_name="trelliswork", standalone_mode=False)
    except typer.Abort:  # Ctrl-C outside of a command
        _complain(ctrl_c.sentence())
        return ctrl_c.status()
    except Exception as error:
        if debug or not _sentence_of(error):
            raise
        _complain(_sentence_of(error))
        return BAD_INPUT
    return status if isinstance(status, int) else 0


def _note(show: Callable[..., None]) -> Callable[..., None]:
    """Show warnings of ours as a line for people, others as before."""

    def note(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
        if issubclass(category, TrellisworkWarning):
            tell(str(message), level=logging.WARNING)
        else:
            show(message, category, *where, **more)

    return note


def _sentence_of(error: Exception) -> str:
    """Return the one line that explains an expected error; empty for one that is a mistake of ours."""
    if isinstance(error, TrellisworkError):
        return str(error)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}; check the path, the permissions and the space on the disk"
    if is_out_of_memory(error):
        return (
            "expected the model and its data to fit into memory, they do not; make the network or its vectors smaller"
        )
    if hasattr(error, "format_message"):  # wrong usage, as typer reports it
        return _usage(error)
    return ""


_PLAIN = (  # the wording of pydantic, which checks the values of options
    (re.compile(r": Value error, "), ": "),
    (re.compile(r": Input should be a valid (\w+)(, unable to .*)?$"), r": expected a valid \1"),
    (re.compile(r": Input should be "), ": expected a value "),
)


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "trelliswork"
    near = getattr(error, "possibilities", None)  # of an option that there is not
    message = str(error.message if near else error.format_message()).strip().rstrip(".")
    for wording, plain in _PLAIN:
        message = wording.sub(plain, message)
    fix = f"did you mean {near[0]}? " if near else ""
    return f"{message[:1].lower()}{message[1:]}; {fix}see {path} --help"


def _complain(sentence: str) -> None:
    line = " ".join(visible(sentence).split())
    if len(line) > LONGEST:  # what is quoted from a file may be of any length
        line = f"{line[: LONGEST - 305]} ... {line[-300:]}"
    tell(line, level=logging.ERROR)
