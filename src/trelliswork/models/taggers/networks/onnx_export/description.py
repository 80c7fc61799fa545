"""What somebody without the library must know to use a graph: vocabularies, labels, how words are read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trelliswork import __version__
from trelliswork.models.taggers.networks.features import LONGEST_SPELLING
from trelliswork.models.taggers.networks.onnx_export.graphs import Decoder, Exportable
from trelliswork.models.taggers.networks.template_features import parse_templates
from trelliswork.models.taggers.networks.vector_tagger import VectorTagger
from trelliswork.models.taggers.networks.word_ngrams import LONGEST

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


def describe(decoder: Decoder) -> dict[str, Any]:
    """The content of model.json."""
    return {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "kind": type(decoder.model).__name__,
        "inputs": list(decoder.inputs),
        "tasks": [task._asdict() for task in decoder.tasks],
        **_reading(decoder.model),
    }


def _reading(model: Exportable) -> dict[str, Any]:
    """How the inputs come about."""
    if isinstance(model, VectorTagger):
        return {"dim": model.dim, "settings": asdict(model.config), "templates": [], "vocabularies": {}}
    config, features = model.config, model.features
    templates = parse_templates(config.templates, 1 + features.n_columns).templates if config.templates else ()
    return {
        "features": features.names,
        "n_columns": features.n_columns,
        "lowercase": config.lowercase,
        "digits_to_zero": config.digits_to_zero,
        "longest_spelling": LONGEST_SPELLING,
        "ngrams": {"lengths": config.ngrams, "buckets": config.ngram_buckets, "longest": LONGEST},
        "templates": [template.text for template in templates],
        "settings": config.to_dict(),
        "vocabularies": {name: each.to_list() for name, each in features.vocabularies.items()},
    }


def axes_of(name: str) -> tuple[str, ...]:
    """Names of the axes that are free."""
    return AXES.get(name, ("batch",) if name.startswith("score") else OF_TOKENS)


def meaning_of(name: str) -> str:
    """An input or output in words."""
    if name in MEANING:
        return MEANING[name]
    return "the score of the best tags" if name.startswith("score") else "the best tags, as indices into the labels"
