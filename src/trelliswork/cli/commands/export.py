"""`trelliswork export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.options import ModelFolder
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models import load_tagger

FEATURES = "trelliswork.models.taggers.features.export"
NETWORKS = "trelliswork.models.taggers.networks.onnx_export"
ARPA = "trelliswork.models.transducers.pair_ngram.arpa"
FILES = {"crfsuite": "model.crfsuite", "arpa": "model.arpa"}  # what is written as one file


def export(
    model: ModelFolder,
    out: Annotated[
        str | None,
        typer.Argument(
            metavar="OUT",
            help="Folder to write (with --crfsuite and --arpa a file); DIR/onnx, DIR/python, DIR/model.crfsuite or "
            "DIR/model.arpa when left out.",
            show_default=False,
        ),
    ] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="A network as an ONNX graph; needs the extra \\[onnx].")] = False,
    crfsuite: Annotated[bool, typer.Option("--crfsuite", help="A CRF over features as CRFsuite's model file.")] = False,
    python: Annotated[
        bool, typer.Option("--python", help="A CRF over features as JSON, and a Python file that needs nothing else.")
    ] = False,
    arpa: Annotated[bool, typer.Option("--arpa", help="The n-grams of a pair n-gram as an ARPA file.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
) -> None:
    """Write a model for programs without Trelliswork.

    The ONNX graph takes the indices of tokens and gives the best tags
    and their score. Beside it are the vocabularies and labels, and a
    Python file that tags text with numpy and onnxruntime alone, with
    the probability of each tag and span if asked. The models of several
    seeds become a graph each, in folders of their names: the mean of
    their probabilities is that of all together.

    The words of an ARPA file are chunk pairs, such as p|h}F, x}K|S and
    e}_ (which writes nothing).

    \b
    Examples:
      trelliswork export ner --onnx
      python ner/onnx/onnx_tagger.py "Ann lives in Paris ."
      trelliswork export chunker --python
      python chunker/python/crf_tagger.py < tokens.txt
      trelliswork export chunker chunker.crfsuite --crfsuite
      trelliswork export pronounce pronounce.arpa --arpa
    """
    formats = {"onnx": onnx, "crfsuite": crfsuite, "python": python, "arpa": arpa}
    wanted = [name for name, given in formats.items() if given]
    if len(wanted) != 1:
        got = " and ".join(f"--{name}" for name in wanted) or "none"
        raise TrellisworkError(
            f"expected one format to export to, got {got}; say --onnx, --crfsuite, --python or --arpa"
        )
    target = Path(out) if out is not None else Path(model) / FILES.get(wanted[0], wanted[0])
    if wanted[0] in FILES:
        write_file = named(f"{FEATURES}:export_crfsuite" if crfsuite else f"{ARPA}:export_arpa")
        for note in write_file(load_tagger(model), target, force=force) or ():
            print(note)
        print(f"{target} ({target.stat().st_size / 1e6:.1f} MB)")
        return
    check = named(f"{NETWORKS}:check_export" if onnx else f"{FEATURES}:check_python")
    write = named(f"{NETWORKS}:export_onnx" if onnx else f"{FEATURES}:export_python")
    folders = {target / name: each for name, each in load_tagger(model).exported.items()}
    for place in folders:
        check(place, force=force)
    for place, each in folders.items():
        write(each, place, force=force)
        size = sum(path.stat().st_size for path in place.iterdir()) / 1e6
        print(f"{place}: {', '.join(sorted(path.name for path in place.iterdir()))} ({size:.1f} MB)")
