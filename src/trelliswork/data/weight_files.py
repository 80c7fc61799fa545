"""Files of weights (safetensors) that notice when they have been damaged.

The header of a file holds the SHA-256 of its tensors, under "sha256": names, types, shapes, every byte, and whatever
else the header says. It is in the file itself, so that a file replaced in one step is consistent at any moment. Files
written before there was a checksum have none and are read as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trelliswork.data.folder_files import check_regular
from trelliswork.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

CHECKSUM = "sha256"


def checksum(tensors: Mapping[str, Any], header: Mapping[str, str]) -> str:
    """The SHA-256 of torch tensors or numpy arrays, and of the other texts in the header of their file."""
    digest = hashlib.sha256()
    for name, text in sorted(header.items()):
        digest.update(f"{name}\0{text}\0".encode())
    for name, tensor in sorted(tensors.items()):
        kind = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name}\0{kind}\0{tuple(tensor.shape)}\0".encode())
        digest.update(_bytes_of(tensor))
    return digest.hexdigest()


def with_checksum(tensors: Mapping[str, Any], header: Mapping[str, str] | None = None) -> dict[str, str]:
    """A header for a file of these tensors."""
    header = header or {}
    return {**header, CHECKSUM: checksum(tensors, header)}


def packed(weights: Mapping[str, Any]) -> bytes:
    """The content of a file of weights, with its checksum."""
    if all(isinstance(each, np.ndarray) for each in weights.values()):
        import safetensors.numpy

        arrays = {name: np.ascontiguousarray(array) for name, array in weights.items()}
        return safetensors.numpy.save(arrays, with_checksum(arrays))
    import safetensors.torch

    tensors = {name: each.detach().cpu().contiguous() for name, each in weights.items()}
    return safetensors.torch.save(tensors, with_checksum(tensors))


def read_tensors(path: Path, known: tuple[str, ...] = ()) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file and the texts of its header, those with a `known` name; damage is a `ModelError`."""
    import safetensors.torch

    check_regular(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = dict(file.metadata() or {})
        tensors = safetensors.torch.load_file(path)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path}: truncated or not safetensors; copy the model again or train again") from error
    stored = header.pop(CHECKSUM, None)
    if (stored is not None and stored != checksum(tensors, header)) or not header.keys() <= set(known):
        raise ModelError(
            f"{path}: expected the weights that were saved, got others: the checksum does not match; "
            "copy the model again or train again"
        )
    return tensors, header


def check_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse weights that are NaN or infinite: every answer would be wrong, if it came at all."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            found = "NaN" if bool(tensor.isnan().any()) else "infinite"
            raise ModelError(
                f"{path}: expected finite weights, got {found} values in {name!r}; copy the model again or train again"
            )


def _bytes_of(tensor: Any) -> Any:
    if isinstance(tensor, np.ndarray):
        return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
