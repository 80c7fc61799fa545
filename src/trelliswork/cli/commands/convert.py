"""`trelliswork convert`: a model of CRFsuite, or a language model in an ARPA file, as one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.early import reserved
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.reading import require_file


def convert(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="CRFsuite model, the output of `crfsuite dump`, or an ARPA file."),
    ],
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory to write the model to.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite a model that already exists in DIR.")] = False,
) -> None:
    """Convert a CRFsuite model or an ARPA file to a Trelliswork model.

    Reads the binary model file of CRFsuite (python-crfsuite,
    sklearn-crfsuite) with its exact weights, or its text dump, where they
    are rounded to six digits. Predictions and probabilities stay the same.

    The converted model has no templates. It reads files that contain the
    attributes: CRFsuite data (label, tab, attributes) or JSON lines with
    "attributes". In Python: trelliswork.sklearn.CRF.from_crfsuite(MODEL).

    ARPA files (.arpa, .arpa.gz) of KenLM, SRILM and others become language
    models, which read one sentence per line, words separated by white space.

    \b
    Examples:
      trelliswork convert ner.crfsuite --out ner
      trelliswork predict ner new.crfsuite --confidence
      trelliswork info ner --top-features 30
      trelliswork convert lm.arpa.gz --out lm
    """
    require_file(model)
    if model.endswith((".arpa", ".arpa.gz")):
        with reserved(Path(out), force):
            lm = named("trelliswork.models.language:NgramLanguageModel").from_arpa(model)
            lm.save(out)
        print(f"{model}: {lm.size}\n\nmodel: {out}\nnext:  trelliswork predict {out} FILE --score")
        return
    with reserved(Path(out), force):
        tagger = named("trelliswork.models:AttributeTagger").from_crfsuite(model)
        tagger.save(out)
    labels, weights = count(len(tagger.crf.labels), "label"), count(tagger.n_parameters, "weight")
    print(f"{model}: {labels}, {count(len(tagger.crf.index), 'attribute')}, {weights}")
    print(f"\nmodel: {out}\nnext:  trelliswork predict {out} FILE.crfsuite --confidence")
