"""`trelliswork demo`: train, score, decode and explain on the built-in corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.options import Threads
from trelliswork.errors import OutputError
from trelliswork.lazy import named
from trelliswork.models.storage import check_output
from trelliswork.runtime.threads import use_threads


def demo(
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Directory for the model, the data and the report.")
    ] = "demo-output",
    seed: Annotated[int, typer.Option(help="Random seed for training.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Number of epochs.")] = 12,
    sentences: Annotated[int, typer.Option(min=40, help="Number of training sentences.")] = 2000,
    threads: Threads = 1,
) -> None:
    """Train, evaluate and explain a tagger on the built-in corpus.

    Trains a named-entity tagger, compares it with a baseline, shows how
    confident it is on an ambiguous sentence, and writes an HTML report.
    Takes about half a minute.

    \b
    Example:
      trelliswork demo --out demo-output
    """
    folder = Path(out)
    check_output(folder / "model")
    _make_folder(folder / "data")
    use_threads(threads)
    named("trelliswork.cli.story:tell_story")(folder, sentences=sentences, seed=seed, epochs=epochs)  # imports torch


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{folder}: expected a folder, got a file; choose another --out") from error
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}; choose another --out") from error
