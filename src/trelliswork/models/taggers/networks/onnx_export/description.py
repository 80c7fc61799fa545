"""What somebody without the library must know to use a graph: vocabularies, labels, how words are read."""

from __future__ import annotations

from typing import Any

from trelliswork import __version__
from trelliswork.models.taggers.networks.onnx_export.graphs import Graph

FORMAT_VERSION = 1

MEANING = {
    "features": "indices of each token into the vocabularies of model.json, in the order of its list 'features'",
    "mask": "true where there is a token; the tokens of a sentence come first",
    "forms": "the row of 'spellings' and 'ngrams' that spells the token out",
    "spellings": "indices of the characters of each different word; 0 fills up",
    "ngrams": "rows of the hashed character n-grams of each different word; 0 fills up",
    "vectors": "the values of each place",
    "attributes": "indices of the attributes that the templates make of a token; 0 for one that is not known",
}
AXES = {"spellings": ("words", "characters"), "ngrams": ("words", "ngrams")}
OF_TOKENS = ("batch", "n")


def describe(decoder: Graph) -> dict[str, Any]:
    """The content of model.json."""
    return {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "kind": type(decoder.model).__name__,
        "inputs": list(decoder.inputs),
        "tasks": [task._asdict() for task in decoder.tasks],
        **decoder.reading(),
    }


def axes_of(name: str) -> tuple[str, ...]:
    """Names of the axes that are free."""
    return AXES.get(name, ("batch",) if name.startswith("score") else OF_TOKENS)


def meaning_of(name: str) -> str:
    """An input or output in words."""
    if name in MEANING:
        return MEANING[name]
    return "the score of the best tags" if name.startswith("score") else "the best tags, as indices into the labels"
