"""The settings of models as options: a panel of --help for each dataclass of settings.

A command takes whole panels with `@with_options(...)` and finds what was given in `ctx.params`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass
from typing import Annotated, Any, get_args

import typer

from trelliswork.data.choices import Detail
from trelliswork.data.settings import About, Settings, kinds_of, setting, settings_in

Panel = dict[str, tuple[Any, Any]]  # the name of each option, with its type (and what typer knows of it) and default
Command = Callable[..., None]
BY_MODEL = "by the model"  # a default that models do not share
_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool}  # others are text


def with_options(*panels: Panel) -> Callable[[Command], Command]:
    """Give a command the options of panels in the place of its `**options`."""

    def extended(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for panel in panels
            for name, (kind, default) in panel.items()
        ]
        command.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        return command

    return extended


def panel_of(config: type[Settings], names: Collection[str] | None = None, by_model: Collection[str] = ()) -> Panel:
    """Return the options of a dataclass of settings, or some; defaults of `by_model` are those of models."""
    options = {
        about.option: _option(config, each, about, by_model=config.BY_MODEL or about.option in by_model)
        for each, about in settings_in(config)
        if about.option and (names is None or about.option in names)
    }
    return options if names is None else {name: options[name] for name in names}


def _option(config: type[Settings], each: Field[Any], about: About, *, by_model: bool) -> tuple[Any, Any]:
    kind = _TYPES.get(kinds_of(config)[each.name], str)
    default = each.default if about.option_default is None else about.option_default
    more: dict[str, Any] = {"metavar": about.metavar} if about.metavar else {}
    if by_model and about.option_default is None:
        default, kind, more["show_default"] = None, kind | None, BY_MODEL
    elif default is None:
        kind, more["show_default"] = kind | None, about.default_text or False
    on, off = str(about.option).replace("_", "-"), about.off.replace("_", "-")
    flag = [f"--{on}"] if default is False else []
    flag = [f"--{on}/--{off}", f" /--no-{on}"] if off else flag
    return Annotated[kind, typer.Option(*flag, help=about.text, rich_help_panel=config.PANEL, **more)], default


@dataclass(frozen=True)
class Columns(Settings):
    """The layout of files with columns."""

    PANEL = "Data columns (inferred by default)"

    delimiter: str | None = setting(None, "Column separator: tab, space or any string.", option=True)
    word_column: int | str | None = setting(
        None, "Column with the words: a number, counted from 1, or a name such as FORM.", option=True, metavar="COLUMN"
    )
    tag_column: int | str | None = setting(
        None, "Column with the tags: a number, counted from 1, or a name such as UPOS or a CSV header.", option=True,
        metavar="COLUMN",
    )  # fmt: skip
    feature_columns: tuple[int | str, ...] | None = setting(
        None, "Additional columns used as input, such as 2 or 2,3, or none to use words only.", option=True,
        metavar="COLUMN,...", default_text="all informative columns; none for CoNLL-U",
    )  # fmt: skip
    predict_columns: bool = setting(
        False, "Also train a tagger for each additional column, so that new text does not need these columns.",
        option=True,
    )  # fmt: skip
    tag_columns: tuple[int | str, ...] | None = setting(
        None, "Columns with the tags of each task (multi-task). Defaults to all columns except the words.", option=True,
        metavar="COLUMN,...",
    )  # fmt: skip
    tasks: str | None = setting(None, "Names of the tasks (multi-task).", option=True, metavar="NAME,NAME,...")
    min_tag_count: int = setting(
        1, "Drop training sentences that contain a tag seen fewer times than this.", option=True,
        at_least=1, metavar="N",
    )  # fmt: skip
    detail: Detail | None = setting(
        None, "How much of bracketed trees to read; each level includes the previous ones", option=True,
        choices=get_args(Detail), default_text="labels",
    )  # fmt: skip
    scheme: str | None = setting(None, "Tag scheme: IOB1, IOB2, IOBES or plain.", option=True)


FIELDS: Panel = {
    "field": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME=MEMBER",
                help="Names of the members of JSON records: tokens=words, tags=labels, text=..., spans=...; "
                "names=O,B-PER,... maps numeric tags to names.",
                rich_help_panel=Columns.PANEL,
            ),
        ],
        None,
    )
}
COLUMNS = panel_of(Columns) | FIELDS
TO_READ = panel_of(Columns, ("delimiter", "word_column", "tag_column", "feature_columns")) | FIELDS
TO_COMPARE = panel_of(Columns, ("delimiter", "word_column", "tag_column", "feature_columns", "scheme")) | FIELDS
SEEDS: Panel = {
    "seeds": (
        Annotated[
            int,
            typer.Option(
                help="Number of runs with consecutive seeds, starting from --seed; the mean score is printed.",
                min=1,
                rich_help_panel="Learning",
            ),
        ],
        1,
    )
}
