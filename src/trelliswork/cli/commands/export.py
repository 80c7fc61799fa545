"""`trelliswork export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.options import ModelFolder
from trelliswork.errors import TrellisworkError
from trelliswork.models import load_tagger
from trelliswork.models.taggers.networks.onnx_export import check_export, export_onnx


def export(
    model: ModelFolder,
    out: Annotated[
        str | None,
        typer.Argument(metavar="OUT", help="Folder to write; DIR/onnx when left out.", show_default=False),
    ] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write an ONNX graph; needs the extra [onnx].")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
) -> None:
    """Write a network for programs without Trelliswork.

    The graph takes the indices of tokens and gives the best tags and
    their score. Beside it are the vocabularies and labels, and a
    Python file that tags text with numpy and onnxruntime alone.

    \b
    Example:
      trelliswork export ner --onnx
      python ner/onnx/onnx_tagger.py "Ann lives in Paris ."
    """
    if not onnx:
        raise TrellisworkError("expected a format to export to, got none; say --onnx")
    folder = Path(model) / "onnx" if out is None else Path(out)
    check_export(folder, force=force)
    export_onnx(load_tagger(model), folder, force=force)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))} ({size:.1f} MB)")
