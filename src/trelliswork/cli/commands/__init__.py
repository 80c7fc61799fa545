"""The subcommands of `trelliswork`, one file each.

`--help` shows the lines of this table; the file of a command is imported when the command is run or its own help is
asked for. So it may import what it needs at its top.

train, tune                        from labelled data to a model
predict, serve, explain            from a model to answers
evaluate, check, info              how good a model is, and what files and models are
convert, export                    to and from other programs
demo, warmup                       the first minute
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
    "train": Listed("train", "Train a model on labelled data and write it to a directory."),
    "tune": Listed("tune", "Search for the settings with the best validation score."),
    "evaluate": Listed("evaluate", "Evaluate a model on files with gold answers."),
    "predict": Listed("predict", "Predict tags, trees or strings, optionally with confidences and alternatives."),
    "tag": Listed("predict", "Same as predict."),
    "explain": Listed(
        "explain",
        "Explain predictions: which features or words decided, alternatives.",
    ),
    "check": Listed("check", "Check data files before training."),
    "info": Listed("info", "Describe a model, or list the extensions that are installed."),
    "serve": Listed("serve", "Serve models to a web page and to programs."),
    "convert": Listed("convert", "Convert a CRFsuite model or an ARPA file to a Trelliswork model."),
    "export": Listed("export", "Export a model for use without Trelliswork."),
    "demo": Listed("demo", "Train, evaluate and explain a tagger on the built-in corpus."),
    "warmup": Listed("warmup", "Compile kernels ahead of time, in parallel."),
}


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of a command, imported now."""
    file = COMMANDS[name].file
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{file}"), file)
    return function
