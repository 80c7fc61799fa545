"""Options that several commands share, and small parsers of what users type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from trelliswork.data import Choices, JsonFields
from trelliswork.data.choices import Column, Detail
from trelliswork.data.settings import About, Settings, kinds_of, setting, settings_in
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named

if TYPE_CHECKING:
    from trelliswork.models.recipe import Options

ModelFolder = Annotated[str, typer.Argument(metavar="DIR", help="Directory of a trained model.", show_default=False)]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Python feature function, if the model was trained with one.",
        show_default=False,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="Report all non-overlapping spans with probability P or more instead of the best tags. Half the F1 is a "
        "good choice.",
        show_default=False,
    ),
]
MOST_THREADS = 1024  # the libraries below break at numbers that no machine has
# One by default: a second thread gains at most a fifth on small networks, and on a busy machine the two wait for
# each other at every operation, which made training more than 50 times slower in one measurement.
Threads = Annotated[
    int,
    typer.Option(
        help="Number of CPU threads. More than one helps large networks on an idle machine.", min=1, max=MOST_THREADS
    ),
]


class DeviceName(StrEnum):
    """Device that networks compute on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


Device = Annotated[
    DeviceName, typer.Option(help="Device that networks compute on; auto is the first CUDA GPU, or the CPU.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and the result.")]

_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ","}


def parse_delimiter(text: str | None) -> str | None:
    """Return the delimiter that a user means.

    >>> parse_delimiter("tab"), parse_delimiter("|")
    ('\\t', '|')
    """
    if text == "":
        raise TrellisworkError("--delimiter must not be empty; name it, as in --delimiter tab")
    return text if text is None else _DELIMITERS.get(text, text)


def parse_column(given: Column | None, option: str) -> Column | None:
    """Return a column as the user says it: a number from 1, or a name.

    >>> parse_column("3", "--tag-column"), parse_column("UPOS", "--tag-column")
    (3, 'UPOS')
    """
    if given is None or (isinstance(given, str) and not given.strip().lstrip("+-").isdigit()):
        name = given if given is None else given.strip()
        if name == "":
            raise TrellisworkError(f"{option} must be a number from 1 or the name of a column; got an empty text")
        return name
    if int(given) < 1:
        raise TrellisworkError(f"{option} must be a number from 1 or the name of a column; got {given}")
    return int(given)


def parse_columns(text: str | None, option: str = "--feature-columns") -> tuple[Column, ...] | None:
    """Return columns from "2,3" or "UPOS,XPOS"; "none" is no column at all, None leaves it open.

    >>> parse_columns("2,3"), parse_columns("none"), parse_columns(None)
    ((2, 3), (), None)
    """
    if text is None:
        return None
    if text.strip().lower() in ("", "none"):
        return ()
    if not all(part.strip() for part in text.split(",")):
        raise TrellisworkError(f"{option} must be columns such as 2,3 or the word none; got {text!r}")
    return tuple(each for part in text.split(",") if (each := parse_column(part, option)) is not None)


def _detail(given: str) -> Detail:
    known: tuple[Detail, ...] = get_args(Detail)
    if given not in known:
        raise TrellisworkError(f"--detail must be one of {', '.join(known)}; got {given!r}")
    return known[known.index(given)]


def layout_in(options: Options) -> Choices:
    """Return the layout of a file as far as the options of columns and fields say it."""
    features = options.get("feature_columns")
    return Choices(
        parse_delimiter(options.get("delimiter")),
        parse_column(options.get("word_column"), "--word-column"),
        parse_column(options.get("tag_column"), "--tag-column"),
        features if isinstance(features, tuple) else parse_columns(features),
        options.get("scheme"),
        JsonFields.parse(options.get("field") or ()),
        detail=_detail(options.get("detail") or "labels"),
        tokeniser=named("trelliswork.text:RuleTokeniser")(),
    )


# The settings of models as options: a panel of --help for each dataclass of settings.

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
    """Return the options of a dataclass of settings, or some; defaults of `by_model` are those of models.

    Args:
        config: The dataclass.
        names: Settings to show; None for all.
        by_model: Settings whose defaults depend on the model.

    Returns:
        The options by name.
    """
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
