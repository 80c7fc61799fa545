"""`trelliswork export`: a model for other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from trelliswork.cli.options import ModelFolder


def export(
    model: ModelFolder,
    onnx: Annotated[str, typer.Option(metavar="FILE", help="Write an ONNX graph here.", show_default=False)],
) -> None:
    """Write a network under a CRF as one ONNX graph.

    Inputs are the indices of tokens (features, mask, and with characters
    forms and spellings), outputs the best tags and their score. What the
    indices mean stands in FILE.json beside it. Needs the extra [onnx].

    \b
    Example:
      trelliswork export ner --onnx ner.onnx
    """
    from trelliswork.models import load_tagger
    from trelliswork.models.onnx_export import export_onnx

    beside = export_onnx(load_tagger(model), onnx)
    print(f"graph: {onnx}\nvocabularies and labels: {beside}")
