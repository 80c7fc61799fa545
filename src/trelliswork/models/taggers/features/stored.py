"""A feature CRF as arrays on disk, with the names of its attributes, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np

from trelliswork.data.attributes import Conjunctions, HashedIndex, KeyIndex
from trelliswork.data.folder_files import read_regular
from trelliswork.errors import ModelError
from trelliswork.models.taggers.features import crf as parts
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.legality import copied
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import PairWeights, Parameters
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters, HiddenUnitCRF
from trelliswork.models.taggers.features.kernels.records import Legal
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.runtime.arrays import Array

FEW_STATES = 1000  # as many are taken on trust: their pairs fit into memory


def crf_arrays(crf: FeatureCRF) -> dict[str, Array]:
    """Return all numbers of a model, by name."""
    parameters, samples = crf.parameters, getattr(crf, "samples", None)
    arrays = {
        **_index_arrays(crf), "conjunctions": crf.conjunctions.pairs, "labels": parameters.labels,
        "arcs": parameters.arcs, "weights": crf.weights.astype(np.float32),
    }  # fmt: skip
    if parameters.pairs is not None:
        arrays |= {"pair_offsets": parameters.pairs.offsets, "pair_arcs": parameters.pairs.arcs}
    if samples is not None:
        arrays["samples"] = samples.astype(np.float32)
    return arrays


def crf_of_arrays(
    arrays: Mapping[str, Array],
    labels: tuple[str, ...],
    n_attributes: int,
    config: LearningConfig,
    legal: Legal | None = None,
) -> FeatureCRF:
    """Return the inverse; `ValueError` or `KeyError` if the arrays do not fit one another.

    Args:
        arrays: the numbers of the model by name, as `crf_arrays` gives them.
        labels: the labels by number.
        n_attributes: number of attributes.
        config: the settings that it was learned with.
        legal: what its scheme allows; None for plain tags.

    Returns:
        The model.
    """
    index, offsets = _index_of(arrays, n_attributes, config.hash_bits)
    conjunctions = Conjunctions(len(index), arrays.get("conjunctions", np.empty((0, 2), np.int32)))
    conjunctions.check()
    if config.hidden_units:
        return _with_units(arrays, labels, index, config.hidden_units, legal)
    pairs = PairWeights(arrays["pair_offsets"], arrays["pair_arcs"]) if "pair_arcs" in arrays else None
    n_states = len(labels) * config.latent
    if n_states > max(FEW_STATES, len(arrays["weights"])):
        raise ValueError(f"{n_states:,} states are more than there are weights")
    legal = None if legal is None else copied(legal, config.latent)
    parameters = Parameters(n_states, offsets, arrays["labels"], arrays["arcs"], pairs, config.latent, legal)
    parameters.check(conjunctions.n_attributes)
    weights = _finite(arrays["weights"], (len(parameters),))
    crf = FeatureCRF(labels, index, parameters, weights, kind_of(config.model).normalised, conjunctions)
    if "samples" not in arrays:
        return crf
    samples = _finite(arrays["samples"], (len(arrays["samples"]), len(parameters)))
    return parts.averaged_crf(crf, samples, voting=config.algorithm == "herding")


def _with_units(
    arrays: Mapping[str, Array],
    labels: tuple[str, ...],
    index: KeyIndex | HashedIndex,
    n_units: int,
    legal: Legal | None,
) -> FeatureCRF:
    parameters = replace(HiddenParameters.dense(len(index), len(labels), n_units), legal=legal)
    weights = _finite(arrays["weights"], (len(parameters),)).astype(np.float32)
    return HiddenUnitCRF(labels, index, parameters, weights, conjunctions=Conjunctions.none(len(index)))


def _finite(array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"expected finite weights {shape}, got different ones")
    return array.astype(np.float64)


def _index_arrays(crf: FeatureCRF) -> dict[str, Array]:
    """Return the table of the attributes and where their weights begin (the number of weights, if they are hashed)."""
    if isinstance(crf.index, HashedIndex):
        return {"n_weights": np.diff(crf.parameters.offsets).astype(np.uint8 if len(crf.labels) < 256 else np.int32)}
    table, numbers = crf.index.table.view(np.int64), crf.index.numbers
    return {"keys": table, "numbers": numbers, "offsets": crf.parameters.offsets}


def _index_of(
    arrays: Mapping[str, Array], n_attributes: int, hash_bits: int | None
) -> tuple[KeyIndex | HashedIndex, Array]:
    """Return the inverse: the index, and where the weights of each attribute begin."""
    if hash_bits is not None:
        return HashedIndex(hash_bits), np.concatenate([[0], np.cumsum(arrays["n_weights"], dtype=np.int64)])
    index = KeyIndex(arrays["keys"].view(np.uint64), arrays["numbers"], n_attributes)
    index.check()
    return index, arrays["offsets"]


# The names of the attributes of a model in a file: one a line, read when somebody asks for them.


NAMES = "attributes.txt"


def names_text(names: Sequence[str]) -> str:
    """Return names as the lines of a file."""
    return "".join(f"{_one_line(name)}\n" for name in names)


def _one_line(name: str) -> str:
    """Return a name as one line of a file; halves of surrogate pairs, which UTF-8 lacks, are spelled out."""
    return name.replace("\r", "\\r").replace("\n", "\\n").encode("utf-8", "backslashreplace").decode()


def read_names(folder: str | Path, n_attributes: int) -> Sequence[str]:
    """Return the names of the attributes, one a line; counted now, taken apart when one is asked for."""
    path = Path(folder) / NAMES
    text = read_regular(path)
    n_names = np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n"))  # a quarter of the time of `text.count`
    if n_names != n_attributes or (text and not text.endswith(b"\n")):
        raise ModelError(f"{path}: expected {n_attributes} names, got {n_names}; copy the model again")
    return NamesInLines(text, n_attributes)


class NamesInLines(Sequence[str]):
    """Names in UTF-8, one a line: the list is made when it is first needed, since tagging never does."""

    def __init__(self, text: bytes, n: int) -> None:
        self._text, self._n = text, n

    @cached_property
    def _names(self) -> list[str]:
        return self._text.decode("utf-8", errors="replace").split("\n")[:-1]

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        return self._names[i]

    def __len__(self) -> int:
        return self._n
