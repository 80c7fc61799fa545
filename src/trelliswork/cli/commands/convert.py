"""`trelliswork convert`: a model of CRFsuite as one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.train_data import reserved
from trelliswork.models import AttributeTagger
from trelliswork.models.base import count


def convert(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="CRFsuite's model file, or the text of crfsuite dump.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the model.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is already in DIR.")] = False,
) -> None:
    """Turn a CRFsuite model into a Trelliswork model.

    Reads the binary file that CRFsuite (python-crfsuite, sklearn-crfsuite)
    writes, with the weights as they are, or its dump, where they are
    rounded to six places. Tags and probabilities are then CRFsuite's.

    Such a model has no templates: it tags files that bring the attributes,
    CRFsuite's own (label, tab, attributes) or JSON lines with "attributes".
    In Python: trelliswork.sklearn.CRF.from_crfsuite(MODEL).

    \b
    Examples:
      trelliswork convert ner.crfsuite --out ner
      trelliswork predict ner new.crfsuite --confidence
      trelliswork info ner --top-features 30
    """
    with reserved(Path(out), force):
        tagger = AttributeTagger.from_crfsuite(model)
        tagger.save(out)
    labels, weights = count(len(tagger.crf.labels), "label"), count(tagger.n_parameters, "weight")
    print(f"{model}: {labels}, {count(len(tagger.crf.index), 'attribute')}, {weights}")
    print(f"\nmodel: {out}\nnext:  trelliswork predict {out} FILE.crfsuite --confidence")
