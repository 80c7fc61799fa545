"""A model as a folder that needs no Trelliswork: one ONNX graph from the indices of tokens to the best tags.

model.onnx       the network and the search for the best tags
model.json       vocabularies, labels, how words are read, the SHA-256 of the graph
onnx_tagger.py   tags text with the two; needs numpy and onnxruntime
README.md        the same in words
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from trelliswork import __version__
from trelliswork.errors import ModelError, OutputError
from trelliswork.lazy import optional
from trelliswork.models.base import Model
from trelliswork.models.export_folder import check_folder, whole_folder
from trelliswork.models.networks.stored_network import StoredNetwork
from trelliswork.models.storage import StoredConfig
from trelliswork.models.taggers.networks.onnx_export import onnx_tagger
from trelliswork.models.taggers.networks.onnx_export.graphs import GRAPHS, N_OUTPUTS, Graph

OPSET = 17
GRAPH, DESCRIPTION, README, SCRIPT = "model.onnx", "model.json", "README.md", "onnx_tagger.py"
FILES = {GRAPH, DESCRIPTION, README, SCRIPT}


def export_onnx(model: Model, directory: str | Path, *, force: bool = False) -> Path:
    """Write the graph of a segmenter or a tagger (of tokens, vectors, several tasks) into a new folder; returns that.

    An earlier export is replaced with `force` only. The folder appears whole or not at all.

    Args:
        model: a network that tags.
        directory: the folder to write.
        force: whether an earlier export may be replaced.

    Returns:
        The folder.
    """
    target = Path(directory)
    check_export(target, force=force)
    if model.graph not in GRAPHS or not isinstance(model, StoredNetwork):
        problem = f"expected a network that tags, whose graph can be written, got a {type(model).__name__}"
        raise ModelError(f"{problem}; train one, say --model window")
    if getattr(model.config, "pretrained", ""):
        problem = "its graph would lack the sub-words of words and the windows of long sentences"
        raise ModelError(
            f"a model with a pretrained encoder cannot be exported ({problem}); train one without --pretrained"
        )
    with whole_folder(target) as made:
        _write_files(model, made)
    return target


def check_export(directory: str | Path, *, force: bool = False) -> None:
    """Refuse to begin where an export could not or should not be written, or without the package for it."""
    optional("onnx", "export to ONNX", "onnx")
    target = Path(directory)
    if target.suffix == ".onnx":
        raise OutputError(f"{target}: expected a folder for the graph and its vocabularies, got a file; name a folder")
    check_folder(target, FILES, force=force)


def _write_files(model: StoredNetwork, folder: Path) -> None:
    was_training = model.training
    model.eval()
    try:
        decoder = GRAPHS[model.graph](model).eval()
        _record(decoder, tuple(decoder.example([3, 2]).values()), folder / GRAPH)
        _try(decoder, folder / GRAPH)
    finally:
        model.train(was_training)
    digest = hashlib.sha256((folder / GRAPH).read_bytes()).hexdigest()
    description = {**describe(decoder), "sha256": digest}
    (folder / DESCRIPTION).write_text(json.dumps(description, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / README).write_text(readme(description), encoding="utf-8")
    shutil.copyfile(onnx_tagger.__file__, folder / SCRIPT)


def _record(decoder: Graph, inputs: tuple[Tensor, ...], file: Path) -> None:
    names = [*decoder.inputs, *decoder.outputs]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the tracer, about checks of shapes that hold for any batch
        torch.onnx.export(
            decoder,
            inputs,
            str(file),
            input_names=list(decoder.inputs),
            output_names=decoder.outputs,
            dynamic_axes={name: dict(enumerate(axes_of(name))) for name in names},
            opset_version=OPSET,
            dynamo=False,
        )
    _annotate(decoder, file)


def _try(decoder: Graph, file: Path) -> None:
    """Refuse a graph that is good for the recorded shapes only, where there is a runtime to find out."""
    if find_spec("onnxruntime") is None:
        return
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # what it has to say is said below
    session = onnxruntime.InferenceSession(str(file), options)
    for lengths in ([5, 1, 4], [1], [60]):
        inputs = decoder.example(lengths)
        with torch.no_grad():
            own = decoder(*inputs.values())
        try:
            outputs = session.run(None, {name: each.numpy() for name, each in inputs.items()})
        except Exception as error:
            raise ModelError(f"the graph of this model does not run ({error}); train another model") from error
        for score, other in zip(own[1::N_OUTPUTS], outputs[1::N_OUTPUTS], strict=True):
            if not torch.allclose(score, torch.from_numpy(other), atol=1e-2, rtol=1e-3):
                raise ModelError("the graph of this model gives other scores than the model; train another model")


def _annotate(decoder: Graph, file: Path) -> None:
    """Say in the graph what it is and what goes in and out."""
    onnx = optional("onnx", "export to ONNX", "onnx")
    graph = onnx.load(str(file))
    graph.producer_name, graph.producer_version = "trelliswork", __version__
    graph.doc_string = f"{type(decoder.model).__name__} of Trelliswork with its search; see {DESCRIPTION}"
    for value in (*graph.graph.input, *graph.graph.output):
        value.doc_string = meaning_of(value.name)
    onnx.helper.set_model_props(
        graph,
        {
            "library": "trelliswork",
            "library_version": __version__,
            "kind": type(decoder.model).__name__,
            "inputs": ",".join(decoder.inputs),
            "outputs": ",".join(decoder.outputs),
            "description": DESCRIPTION,
        },
    )
    onnx.checker.check_model(graph)
    onnx.save(graph, str(file))


# What somebody without the library must know to use a graph: vocabularies, labels, how words are read.

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


def describe(decoder: Graph) -> dict[str, object]:
    """Return the content of model.json."""
    return {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "kind": type(decoder.model).__name__,
        "inputs": list(decoder.inputs),
        "tasks": [task._asdict() for task in decoder.tasks],
        **decoder.reading(),
    }


def axes_of(name: str) -> tuple[str, ...]:
    """Return names of the axes that are free."""
    return AXES.get(name if name in MEANING else name.partition("_")[0], OF_TOKENS)


def meaning_of(name: str) -> str:
    """Return an input or output in words."""
    return MEANING.get(name) or OUTPUTS[name.partition("_")[0]]


# The README of an exported folder.

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


def readme(description: StoredConfig) -> str:
    """Return a text about what the folder holds, and how to use it."""
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


def _normal(description: StoredConfig) -> str:
    steps = {"lowercase": "in small letters", "digits_to_zero": "with every digit as 0"}
    return " and ".join(text for name, text in steps.items() if description[name]) or "as they are"
