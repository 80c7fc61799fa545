"""The README of an exported folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.models.onnx_export.description import axes_of, meaning_of

_TEXT = """# A {kind} as an ONNX graph

Written by Trelliswork {library_version}; using it needs numpy and onnxruntime only.

    pip install numpy onnxruntime
    python onnx_tagger.py {example}

or in Python:

    from onnx_tagger import OnnxTagger
    OnnxTagger(".").tag({words}{columns})

Other languages read `model.json` and feed `model.onnx`:

| | | |
|---|---|---|
{rows}

All indices are int64, the mask is boolean. In every vocabulary of `model.json` row 0 fills up and row 1 is for what is
not in it. Words are looked up {normal}. `tasks` in `model.json` lists the labels that tags are indices of; spans are
spelled in `scheme`, and were in `data_scheme` in the training data. Of several best answers the one with the lowest
indices, read from the end, is given. `onnx_tagger.py` has every step in plain Python.
"""


def readme(description: Mapping[str, Any]) -> str:
    """What the folder holds, and how to use it."""
    n_columns = description["n_columns"]
    outputs = [name for task in description["tasks"] for name in (task["tags"], task["score"])]
    rows = [("input", name) for name in description["inputs"]] + [("output", name) for name in outputs]
    return _TEXT.format(
        **description,
        example='"Ann lives in Paris ."' if not n_columns else "< tokens.txt    # a token a line, columns behind it",
        words='["Ann", "sings"]',
        columns="".join([", columns=[", ", ".join(['["...", "..."]'] * n_columns), "]"]) if n_columns else "",
        rows="\n".join(f"| {way} | `{name}` {_shape(name)} | {meaning_of(name)} |" for way, name in rows),
        normal=_normal(description),
    )


def _shape(name: str) -> str:
    last = {"features": ["features"], "attributes": ["templates"]}.get(name, [])
    return f"[{', '.join([*axes_of(name), *last])}]"


def _normal(description: Mapping[str, Any]) -> str:
    steps = {"lowercase": "in small letters", "digits_to_zero": "with every digit as 0"}
    return " and ".join(text for name, text in steps.items() if description[name]) or "as they are"
