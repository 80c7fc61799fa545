"""Files of weights: every type and shape comes back, whatever the length of the header."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from tests.contract.base import case
from trelliswork.data.weight_files import pack_weights, read_arrays
from trelliswork.errors import ModelError

KINDS = (
    "bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64",
)  # fmt: skip


def test_every_type_and_shape_comes_back(tmp_path: Path) -> None:
    path, random = tmp_path / "weights", np.random.default_rng(0)
    shapes = [(), (0,), (3,), (0, 2), (2, 1, 5)]
    written = {f"{kind} {shape}": random.integers(0, 2, shape).astype(kind) for kind in KINDS for shape in shapes}
    path.write_bytes(pack_weights(written))
    arrays, _ = read_arrays(path)
    assert arrays.keys() == written.keys()
    for name, array in arrays.items():
        with case(array=name):
            assert array.dtype == written[name].dtype and array.shape == written[name].shape
            assert (array == written[name]).all()
            assert array.flags.aligned and array.flags.writeable and array.flags.c_contiguous


def with_header(content: bytes, n_blanks: int = 0, **types: str) -> bytes:
    """Return a file with another header: more blanks at its end, other types of arrays."""
    start = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:start])
    for name, kind in types.items():
        entries[name]["dtype"] = kind
    header = json.dumps(entries).encode() + b" " * n_blanks
    return len(header).to_bytes(8, "little") + header + content[start:]


def test_arrays_are_aligned_whatever_the_length_of_the_header(tmp_path: Path) -> None:
    path, written = tmp_path / "weights", {"a": np.arange(3.0), "b": np.arange(5, dtype=np.int32)}
    for n_blanks in range(8):
        path.write_bytes(with_header(safetensors.numpy.save(written), n_blanks))
        arrays, _ = read_arrays(path)
        for name, array in arrays.items():
            assert array.flags.aligned and (array == written[name]).all(), n_blanks


def test_types_that_numpy_lacks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(with_header(safetensors.numpy.save({"a": np.zeros(2, np.int16)}), a="BF16"))
    with pytest.raises(ModelError, match="not safetensors"):
        read_arrays(path)
