"""`trelliswork export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.options import ModelFolder
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models import load_tagger
from trelliswork.models.loading import known_kind

FEATURES = "trelliswork.models.taggers.features.export"
NETWORKS = "trelliswork.models.taggers.networks.onnx_export"
ARPA = "trelliswork.models.transducers.pair_ngram.arpa"
WORD_VECTORS = "trelliswork.models.language.vectors:export_vectors"
FILES = {"crfsuite": "model.crfsuite", "arpa": "model.arpa", "vectors": "vectors.txt"}  # what is written as one file


def export(
    model: ModelFolder,
    out: Annotated[
        str | None,
        typer.Argument(
            metavar="OUT",
            help="Output directory, or file with --crfsuite, --arpa and --vectors. Defaults to DIR/onnx, DIR/python, "
            "DIR/model.crfsuite, DIR/model.arpa or DIR/vectors.txt.",
            show_default=False,
        ),
    ] = None,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Export a network as an ONNX graph. Requires the extra \\[onnx].")
    ] = False,
    crfsuite: Annotated[
        bool, typer.Option("--crfsuite", help="Export a feature-based CRF as a CRFsuite model file.")
    ] = False,
    python: Annotated[
        bool, typer.Option("--python", help="Export a feature-based CRF as JSON plus a stand-alone Python file.")
    ] = False,
    arpa: Annotated[
        bool,
        typer.Option("--arpa", help="Export an n-gram language model or a pair n-gram model as an ARPA file."),
    ] = False,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Export word vectors as text, as word2vec and fastText write them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier export.")] = False,
) -> None:
    """Export a model for use without Trelliswork.

    The ONNX graph maps token indices to the best tags and their score.
    The vocabularies, the labels and a Python file that needs only numpy
    and onnxruntime are written next to it; it also computes the
    probability of each tag and span. An ensemble of seeds is exported as
    one graph per model; average their probabilities to combine them.

    The words of the ARPA file of a pair n-gram model are chunk pairs, such
    as p|h}F, x}K|S and e}_ (which writes nothing).

    \b
    Examples:
      trelliswork export ner --onnx
      python ner/onnx/onnx_tagger.py "Ann lives in Paris ."
      trelliswork export chunker --python
      python chunker/python/crf_tagger.py < tokens.txt
      trelliswork export chunker chunker.crfsuite --crfsuite
      trelliswork export pronounce pronounce.arpa --arpa
      trelliswork export lm lm.arpa --arpa
      trelliswork export vectors vectors.txt.gz --vectors
    """
    formats = {"onnx": onnx, "crfsuite": crfsuite, "python": python, "arpa": arpa, "vectors": vectors}
    wanted = [name for name, given in formats.items() if given]
    if len(wanted) != 1:
        got = " and ".join(f"--{name}" for name in wanted) or "none"
        raise TrellisworkError(
            f"expected one format to export to, got {got}; say --onnx, --crfsuite, --python, --arpa or --vectors"
        )
    target = Path(out) if out is not None else Path(model) / FILES.get(wanted[0], wanted[0])
    known_kind(model)
    if wanted[0] in FILES:
        writers = {"crfsuite": f"{FEATURES}:export_crfsuite", "arpa": f"{ARPA}:export_arpa", "vectors": WORD_VECTORS}
        write_file = named(writers[wanted[0]])
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
