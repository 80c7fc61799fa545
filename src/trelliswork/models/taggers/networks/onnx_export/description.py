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
OUTPUTS = {
    "tags": "the best tags, as indices into the labels",
    "score": "the score of the best tags",
    "potentials": "scores of labels, start and end included; of a segmenter, of the segments of 1, 2, ... tokens",
    "transitions": "scores of pairs of labels, [from, to]",
    "pairs": "scores of pairs of labels at each step, [from, to]",
}
AXES = {
    "spellings": ("words", "characters"), "ngrams": ("words", "ngrams"), "score": ("batch",), "transitions": ("batch",),
    "pairs": ("batch", "steps"),
}  # fmt: skip
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
    return AXES.get(name if name in MEANING else name.partition("_")[0], OF_TOKENS)


def meaning_of(name: str) -> str:
    """An input or output in words."""
    return MEANING.get(name) or OUTPUTS[name.partition("_")[0]]
