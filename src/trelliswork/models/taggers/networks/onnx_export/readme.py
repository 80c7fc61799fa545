"""The README of an exported folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.models.taggers.networks.onnx_export.description import MEANING, axes_of, meaning_of

_TEXT = """# A {kind} as an ONNX graph

Written by Trelliswork {library_version}; using it needs numpy and onnxruntime only.

{use}

Other languages read `model.json` and feed `model.onnx`:

| | | |
|---|---|---|
{rows}

Indices are int64, the mask is boolean, vectors are float32. `tasks` in `model.json` lists the labels that tags are
indices of; spans are spelled in `scheme`, and were in `data_scheme` in the training data. Of several best answers the
one with the lowest indices, read from the end, is given. {reading}`onnx_tagger.py` has every step in plain Python.
"""

_USE = """    pip install numpy onnxruntime
    python onnx_tagger.py {example}

or in Python:

    from onnx_tagger import OnnxTagger
    OnnxTagger(".").tag(["Ann", "sings"]{columns})
    OnnxTagger(".").confidences(["Ann", "sings"]{columns})    # with the probability of each tag and of each span"""

_USE_OF_VECTORS = """    from onnx_tagger import OnnxTagger
    OnnxTagger(".").tag(vectors)    # an array [n, {dim}]"""

_READING = """In every vocabulary row 0 fills up and row 1 is for what is not in it; words are looked up {normal}.
"""


def readme(description: Mapping[str, Any]) -> str:
    """What the folder holds, and how to use it."""
    names = ("tags", "score", "potentials", "transitions")
    outputs = [task[name] for task in description["tasks"] for name in names]
    rows = [("input", name) for name in description["inputs"]] + [("output", name) for name in outputs]
    of_vectors = "vectors" in description["inputs"]
    return _TEXT.format(
        kind=description["kind"],
        library_version=description["library_version"],
        use=_USE_OF_VECTORS.format(dim=description["dim"]) if of_vectors else _use(description["n_columns"]),
        rows="\n".join(f"| {way} | `{name}` {_shape(name)} | {meaning_of(name)} |" for way, name in rows),
        reading="" if of_vectors else _READING.format(normal=_normal(description)),
    )


def _use(n_columns: int) -> str:
    if not n_columns:
        return _USE.format(example='"Ann lives in Paris ."', columns="")
    columns = ", ".join(['["...", "..."]'] * n_columns)
    return _USE.format(example="< tokens.txt    # a token a line, columns behind it", columns=f", columns=[{columns}]")


def _shape(name: str) -> str:
    of_labels = {"potentials": ["labels"], "transitions": ["labels", "labels"], "pairs": ["labels", "labels"]}
    last = {"features": ["features"], "attributes": ["templates"], "vectors": ["values"], **of_labels}.get(
        name if name in MEANING else name.partition("_")[0], []
    )
    return f"[{', '.join([*axes_of(name), *last])}]"


def _normal(description: Mapping[str, Any]) -> str:
    steps = {"lowercase": "in small letters", "digits_to_zero": "with every digit as 0"}
    return " and ".join(text for name, text in steps.items() if description[name]) or "as they are"
