"""The index of a feature CRF as arrays on disk, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trelliswork.data.attributes import HashedIndex, KeyIndex
from trelliswork.models.feature_crf.model import FeatureCRF

Array = np.ndarray[Any, Any]


def index_arrays(crf: FeatureCRF) -> dict[str, Array]:
    """The table of the attributes and where their weights begin; if they are hashed, how many weights each has."""
    if isinstance(crf.index, HashedIndex):
        return {"n_weights": np.diff(crf.parameters.offsets).astype(np.uint8 if len(crf.labels) < 256 else np.int32)}
    table, numbers = crf.index.table.view(np.int64), crf.index.numbers
    return {"keys": table, "numbers": numbers, "offsets": crf.parameters.offsets}


def index_of(
    arrays: Mapping[str, Array], n_attributes: int, hash_bits: int | None
) -> tuple[KeyIndex | HashedIndex, Array]:
    """The inverse: the index, and where the weights of each attribute begin."""
    if hash_bits is not None:
        return HashedIndex(hash_bits), np.concatenate([[0], np.cumsum(arrays["n_weights"], dtype=np.int64)])
    index = KeyIndex(arrays["keys"].view(np.uint64), arrays["numbers"], n_attributes)
    index.check()
    return index, arrays["offsets"]
