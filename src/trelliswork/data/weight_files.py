"""Files of weights (safetensors) that notice when they have been damaged.

The header of a file holds the SHA-256 of its tensors, under "sha256": names, types, shapes, every byte, and whatever
else the header says. It is in the file itself, so that a file replaced in one step is consistent at any moment. Files
written before there was a checksum have none and are read as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy

from trelliswork.data.folder_files import check_regular
from trelliswork.errors import ModelError
from trelliswork.runtime.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

Weights: TypeAlias = "Array | Tensor"
LARGEST = 1e8  # size of a weight; the product of four is still a float32
CHECKSUM = "sha256"


def checksum(tensors: Mapping[str, Weights], header: Mapping[str, str]) -> str:
    """Return the SHA-256 of torch tensors or numpy arrays, and of the other texts in the header of their file."""
    digest = hashlib.sha256()
    for name, text in sorted(header.items()):
        digest.update(f"{name}\0{text}\0".encode())
    for name, tensor in sorted(tensors.items()):
        kind = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name}\0{kind}\0{tuple(tensor.shape)}\0".encode())
        digest.update(_bytes_of(tensor).data)
    return digest.hexdigest()


def with_checksum(tensors: Mapping[str, Weights], header: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a header for a file of these tensors."""
    header = header or {}
    return {**header, CHECKSUM: checksum(tensors, header)}


def pack_weights(weights: Mapping[str, Weights]) -> bytes:
    """Return the content of a file of weights, with its checksum."""
    arrays = {name: _array(each) for name, each in weights.items()}
    return safetensors.numpy.save(arrays, with_checksum(arrays))


def read_arrays(path: Path, known: tuple[str, ...] = ()) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays of a file and the texts of its header, those with a `known` name; damage is a `ModelError`."""
    check_regular(path)
    try:
        with safetensors.safe_open(path, framework="np") as file:
            header = dict(file.metadata() or {})
        arrays = _parts_of(np.fromfile(path, np.uint8))
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path}: truncated or not safetensors; copy the model again or train again") from error
    stored = header.pop(CHECKSUM, None)
    if (stored is not None and stored != checksum(arrays, header)) or not header.keys() <= set(known):
        raise ModelError(
            f"{path}: expected the weights that were saved, found different ones: the checksum does not match; "
            "copy the model again or train again"
        )
    return arrays, header


def _parts_of(content: Array) -> dict[str, Array]:
    """Return the arrays of a file that `safe_open` accepts, as parts of its content (`load_file` copies each)."""
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            kind, shape = _type_named(entry["dtype"]), entry["shape"]
            arrays[name] = np.require(content[start + first : start + end].view(kind).reshape(shape), requirements="A")
    return arrays


def _type_named(name: str) -> str:
    """Return NumPy's name of a type of safetensors.

    >>> _type_named("F32"), _type_named("BOOL")
    ('<f4', '?')
    """
    return "?" if name == "BOOL" else f"<{name[0].lower()}{int(name[1:]) // 8}"


def check_finite(arrays: Mapping[str, Array], path: Path) -> None:
    """Refuse weights that are NaN, infinite, or so large that products of them are: no answer would come of them."""
    for name, array in arrays.items():
        most = min(LARGEST, _largest(array)) if array.dtype.kind == "f" else 0.0
        if most and array.size and not (-most <= array.min() and array.max() <= most):  # also if one is NaN
            expected = "finite weights"
            got = "NaN" if bool(np.isnan(array).any()) else "infinite"
            if bool(np.isfinite(array).all()):
                expected, got = f"weights of at most {LARGEST:g}", "larger"
            problem = f"expected {expected}, got {got} values in {name!r}"
            raise ModelError(f"{path}: {problem}; copy the model again or train again")


def _largest(array: Array) -> float:
    """Return the largest finite value of a type; `LARGEST` itself is none of half precision."""
    return float(np.finfo(array.dtype).max)


def _array(weights: Weights) -> Array:
    """Return an array, or torch's tensor as one, in the order of C; a scalar keeps its shape."""
    return np.asarray(weights if isinstance(weights, np.ndarray) else weights.detach().cpu(), order="C")


def _bytes_of(weights: Weights) -> Array:
    flat: Array = _array(weights).reshape(-1).view(np.uint8)
    return flat
