"""Model folders that were tampered with: edits of their JSON and their weights, as data, so that a case can be kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import safetensors.numpy

from tests.fuzz.harness import Target
from tests.fuzz.models import MAKERS, asked
from tests.fuzz.mutations import DROPPED, odd_value, paths_in, put
from trelliswork.models import load

WEIGHTS = "weights.safetensors"


def _largest(each: Any) -> Any:
    """The largest number of an array's kind everywhere."""
    if each.dtype.kind == "b":
        return np.ones_like(each)
    return np.full_like(each, (np.finfo if each.dtype.kind == "f" else np.iinfo)(each.dtype).max)


WRONG: dict[str, Callable[[Any], Any]] = {
    "nan": lambda each: np.full_like(each, np.nan) if each.dtype.kind == "f" else each,
    "inf": lambda each: np.full_like(each, np.inf) if each.dtype.kind == "f" else each,
    "flat": lambda each: each.reshape(-1),
    "longer": lambda each: np.concatenate([each, each]) if each.ndim else each,
    "shorter": lambda each: each[:-1] if each.ndim else each,
    "empty": lambda each: np.zeros((0, *each.shape[1:]), each.dtype),
    "turned": lambda each: np.ascontiguousarray(each.T),
    "scalar": lambda each: np.zeros((), each.dtype),
    "integers": lambda each: each.astype(np.int64),
    "halves": lambda each: each.astype(np.float16),
    "doubles": lambda each: each.astype(np.float64),
    "bytes": lambda each: each.astype(np.uint8),
    "huge": _largest,
    "negative": lambda each: ~each if each.dtype.kind == "b" else -np.abs(each) - 1,
    "zero": lambda each: np.zeros_like(each),
}


def files_of(folder: Path) -> list[Path]:
    """The files that matter, by name."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")


def drawn(folder: Path, source: Random) -> list[dict[str, Any]]:
    """One to three edits of a folder."""
    edits = []
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        path = source.choice(files_of(folder))
        edit: dict[str, Any] = {"file": str(path.relative_to(folder))}
        if path.suffix == ".json":
            edit |= _json_edit(path, source)
        elif path.suffix == ".safetensors" and source.random() < 0.8 and (names := _tensors(path)):
            edit |= {"tensor": source.choice(names), "wrong": source.choice([*WRONG, "dropped", "renamed"])}
        else:
            size = path.stat().st_size
            edit |= {"at": source.randrange(size + 1), "bytes": source.randbytes(source.choice([0, 1, 8])).hex()}
        edits.append(edit)
    return edits


def _tensors(path: Path) -> list[str]:
    return sorted(safetensors.numpy.load_file(path))


def _json_edit(path: Path, source: Random) -> dict[str, Any]:
    value = json.loads(path.read_text("utf-8"))
    place = source.choice(paths_in(value)[1:] or [()])
    old = value
    for key in place:
        old = old[key]
    new = odd_value(old, value, source) if place else {}
    return {"path": list(place), "dropped": True} if new is DROPPED else {"path": list(place), "value": new}


def applied(folder: Path, edits: Sequence[dict[str, Any]]) -> None:
    """Make the edits; those of places that an earlier edit took away are left out."""
    for edit in edits:
        path = folder / edit["file"]
        if "path" in edit:
            value, new = json.loads(path.read_text("utf-8")), DROPPED if "dropped" in edit else edit["value"]
            try:
                value = put(value, edit["path"], new)
            except (KeyError, IndexError, TypeError):
                continue
            path.write_text(json.dumps(value), "utf-8")
        elif "tensor" in edit:
            _tensor_changed(path, edit)
        else:
            content = path.read_bytes()
            path.write_bytes(content[: edit["at"]] + bytes.fromhex(edit["bytes"]))


def _tensor_changed(path: Path, edit: dict[str, Any]) -> None:
    try:
        arrays = safetensors.numpy.load_file(path)
        array = arrays.pop(edit["tensor"])
    except Exception:  # an earlier edit broke the file
        return
    if edit["wrong"] == "renamed":
        arrays["../" + edit["tensor"]] = array
    elif edit["wrong"] != "dropped":
        with np.errstate(all="ignore"):
            arrays[edit["tensor"]] = np.ascontiguousarray(WRONG[edit["wrong"]](array))
    safetensors.numpy.save_file(arrays, path)


def made(kind: str, folder: Path) -> Path:
    """The folder of a small model of a kind."""
    place = folder / kind.replace(", ", "-").replace(" ", "-")
    if not place.exists():
        (folder / "made").mkdir(exist_ok=True)
        MAKERS[kind](folder / "made").save(place)
    return place


def folder_target(kind: str, folder: Path) -> Target:
    """The model of a kind, loaded from a changed folder and asked."""
    whole, copy = made(kind, folder), folder / "changed"

    def ask(content: bytes) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        applied(copy, json.loads(content))
        asked(kind, load(copy))

    def change(content: bytes, source: Random, others: Sequence[bytes]) -> bytes:
        return json.dumps(drawn(whole, source)).encode()

    return Target(f"model-{whole.name}", (b"[]",), ask, change)


def folder_targets(folder: Path) -> list[Target]:
    return [folder_target(kind, folder) for kind in MAKERS]
