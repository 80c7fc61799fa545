"""Options that several commands share, and small parsers of what users type."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from trelliswork.data import Choices, JsonFields
from trelliswork.data.choices import Column, Detail
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
