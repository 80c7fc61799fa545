"""A chain over features as CRFsuite's file, or as JSON with a Python file that needs nothing else.

model.json      labels, templates, and the weights of attributes and of neighbouring labels
crf_tagger.py   tags with them; needs the standard library alone
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from trelliswork import __version__
from trelliswork.data.crfsuite import CRFsuiteModel, write_crfsuite_model
from trelliswork.errors import ModelError, OutputError
from trelliswork.models.base import Model
from trelliswork.models.export_folder import check_folder, whole_folder
from trelliswork.models.taggers.features import crf_tagger
from trelliswork.models.taggers.features.attribute_tagger import AttributeTagger
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters
from trelliswork.models.taggers.features.tagger import FeatureTagger

MODEL, SCRIPT = "model.json", "crf_tagger.py"
FILES = {MODEL, SCRIPT}
IMPOSSIBLE = -1000.0  # what CRFsuite has in the place of -inf


def export_crfsuite(model: Model, path: str | Path, *, force: bool = False) -> list[str]:
    """Write CRFsuite's model file; returns what it cannot say, if anything.

    Tokens need the attributes by the names that this model has for them (`tagger.names`): those of templates, such as
    U02:Paris, or as they came with the data.

    Args:
        model: a feature tagger without anything that CRFsuite lacks.
        path: the file to write.
        force: whether a file that is there may be replaced.

    Returns:
        Notes on what the format cannot say.
    """
    if Path(path).exists() and not force:
        raise OutputError(f"{path}: there is a file already; name another, or replace it with --force")
    tagger = _exportable(model, "CRFsuite's format")
    crf, parameters = tagger.crf, tagger.crf.parameters
    if parameters.n_pairs:
        raise ModelError("CRFsuite has no attributes of two tags; got templates such as B01:%x[0,1]; write B alone")
    owners, weights = parameters.owners().tolist(), crf.weights[: parameters.n_states].tolist()
    states = dict(zip(zip(owners, parameters.labels.tolist(), strict=True), weights, strict=True))
    arcs = {(i, j): IMPOSSIBLE if weight is None else weight for i, j, weight in _transitions(tagger)}
    write_crfsuite_model(path, CRFsuiteModel(list(crf.labels), list(tagger.names), states, arcs))
    legal = parameters.bounds
    edges = [crf.labels[j] for j in np.flatnonzero(legal.start + legal.end < 0)]
    if not edges:
        return []
    return [
        f"note: CRFsuite has no scores of first and last tags, so {', '.join(edges[:5])} may begin or end a sentence"
    ]


def check_python(directory: str | Path, *, force: bool = False) -> None:
    """Refuse to begin where an export could not or should not be written."""
    check_folder(directory, FILES, force=force)


def export_python(model: Model, directory: str | Path, *, force: bool = False) -> Path:
    """Write a folder with the model as JSON and a Python file that tags with the standard library alone.

    Args:
        model: a feature tagger.
        directory: the folder to write.
        force: whether an earlier export may be replaced.

    Returns:
        The folder.
    """
    target = Path(directory)
    check_python(target, force=force)
    content = described(_exportable(model, "a Python file"))
    with whole_folder(target) as made:
        text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        (made / MODEL).write_text(text + "\n", encoding="utf-8")
        shutil.copyfile(crf_tagger.__file__, made / SCRIPT)
    return target


def described(tagger: FeatureTagger) -> dict[str, object]:
    """Return the content of model.json; null is what the scheme forbids."""
    crf, parameters, names = tagger.crf, tagger.crf.parameters, tagger.names
    given = isinstance(tagger, AttributeTagger) or tagger.features is not None
    weights = list(map(_short, crf.weights.tolist()))
    states = {
        names[a]: [x for p in range(first, last) for x in (int(parameters.labels[p]), weights[p])]
        for a, (first, last) in enumerate(zip(parameters.offsets[:-1], parameters.offsets[1:], strict=True))
        if last > first
    }
    legal = parameters.bounds
    return {
        "library_version": __version__,
        "labels": list(crf.labels),
        "scheme": tagger.labels.data_scheme,
        "templates": None if given else [each.text for each in tagger.templates.templates if each.text != "B"],
        "skip_outside": tagger.templates.skip_outside,
        "n_columns": tagger.n_columns,
        "attributes": states,
        "pairs": _pairs(tagger, weights),
        "transitions": list(_transitions(tagger)),
        "start": [0.0 if each == 0 else None for each in legal.start],
        "end": [0.0 if each == 0 else None for each in legal.end],
    }


def _pairs(tagger: FeatureTagger, weights: list[float]) -> dict[str, list[float]]:
    """Return label before, label and weight, by the attribute that they depend on."""
    parameters, n = tagger.crf.parameters, tagger.crf.parameters.n_labels
    if parameters.pairs is None:
        return {}
    offsets, first = parameters.pairs.offsets, parameters.pair_weights.start
    return {
        tagger.names[a]: [
            x
            for p in range(offsets[a], offsets[a + 1])
            for x in (*divmod(int(parameters.pairs.arcs[p]), n), weights[first + p])
        ]
        for a in np.flatnonzero(np.diff(offsets)).tolist()
    }


def _transitions(tagger: FeatureTagger) -> Iterator[tuple[int, int, float | None]]:
    """Yield label before, label and weight of each pair that has one, and None for each that the scheme forbids."""
    crf, parameters = tagger.crf, tagger.crf.parameters
    for (i, j), weight in zip(parameters.arcs.tolist(), crf.weights[parameters.arc_weights].tolist(), strict=True):
        yield i, j, _short(weight)
    for i, j in np.argwhere(parameters.bounds.arcs < 0).tolist():
        yield i, j, None


def _short(weight: float) -> float:
    """Return a weight as many digits as float32 has."""
    return float(f"{weight:.9g}")


def _exportable(model: Model, target: str) -> FeatureTagger:
    """Refuse what is not one chain of labels whose attributes have names."""
    if not isinstance(model, FeatureTagger):
        raise ModelError(
            f"{target} is for models over features; got a {type(model).__name__}; "
            "networks that tag can be written with --onnx, parsers and models of events not at all"
        )
    crf, parameters = model.crf, model.crf.parameters
    problem = ""
    if isinstance(parameters, HiddenParameters):
        problem = "hidden units"
    elif parameters.order == 2 or parameters.latent > 1:
        problem = "latent states" if parameters.latent > 1 else "tags of second order"
    elif crf.normalised != "globally":
        problem = f"the model {model.config.model}"
    elif hasattr(crf, "samples"):
        problem = "an average over samples"
    elif model.hashed or len(crf.conjunctions):
        problem = "hashed attributes, which have no names" if model.hashed else "induced conjunctions"
    if problem:
        raise ModelError(f"{target} cannot express {problem}; train with --model crf or logistic without it")
    return model
