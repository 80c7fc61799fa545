"""The subcommands of `trelliswork`, one file each.

`--help` shows the lines of this table; the file of a command is imported when the command is run or its own help is
asked for. So it may import what it needs at its top.

Models are made by `train`, `tune`, `convert` and `demo`, used by `predict`, `serve` and `export`, and looked at by
`evaluate`, `explain` and `info`; `check` is about files, and `warmup` about kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Listed(NamedTuple):
    """A command as the table of commands knows it: its file, which has a function of that name, and its help line."""

    file: str
    help: str


COMMANDS = {
    "train": Listed("train", "Train a model on a file of examples and write it to a folder."),
    "tune": Listed("tune", "Search for the settings that do best on the dev sentences."),
    "evaluate": Listed("evaluate", "Score a model on a file of known answers."),
    "predict": Listed("predict", "Predict tags, trees or strings, with confidences and alternatives if wanted."),
    "tag": Listed("predict", "The same as predict."),
    "explain": Listed(
        "explain",
        "Show which features voted for which tag, which other heads words may have, or how strings are aligned.",
    ),
    "check": Listed("check", "Look at files before training on them."),
    "info": Listed("info", "Show what a model is."),
    "serve": Listed("serve", "Serve models to a page and to programs."),
    "convert": Listed("convert", "Turn a CRFsuite model into a Trelliswork model."),
    "export": Listed("export", "Write a model for programs without Trelliswork."),
    "demo": Listed("demo", "See it all in half a minute, on text that comes with the package."),
    "warmup": Listed("warmup", "Compile the kernels now, so that no later command has to."),
}


def function_of(name: str) -> Callable[..., Any]:
    """The function of a command, imported now."""
    file = COMMANDS[name].file
    found: Callable[..., Any] = getattr(import_module(f"{__name__}.{file}"), file)
    return found
