"""CRFsuite's models: the binary file, and the text that `crfsuite dump` makes of it.

The binary file has the weights as they are, the text rounds them to six places. Both say which attribute and which
label, or which two labels, a weight belongs to.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from trelliswork.errors import ModelError
from trelliswork.reading import name_of, read_bytes

MAGIC = b"lCRF"
STATE, TRANSITION = 0, 1  # types of weights
START = 4096  # bytes that tell what a file is

_HEADER = struct.Struct("<4sI4sIIIIIIIII")  # magic, size, type, version, three counts, five offsets
_WEIGHT = struct.Struct("<IIId")  # type, from, to, weight
_NAMES = struct.Struct("<4sIIIII")  # magic, size, flag, byte order, number and offset of the references
_SECTION = re.compile(r"(FILEHEADER|LABELS|ATTRIBUTES|TRANSITIONS|STATE_FEATURES) = \{")
_NAMED = re.compile(r" *(\d+): (.*)", re.S)
_NUMBER = re.compile(r"(.*): ([-+]?\d+\.\d+|[-+]?inf|[-+]?nan)", re.S)
_ARROW = " --> "


@dataclass(frozen=True)
class CRFsuiteModel:
    """Labels and attributes by number; weights of (attribute, label) and of (label, label)."""

    labels: list[str]
    attributes: list[str]
    states: dict[tuple[int, int], float]
    transitions: dict[tuple[int, int], float]


def is_crfsuite_model(path: str | Path) -> bool:
    """Return whether a file begins as CRFsuite's binary models do."""
    return Path(path).is_file() and read_bytes(path, len(MAGIC)) == MAGIC


def read_crfsuite_model(path: str | Path) -> CRFsuiteModel:
    """Return a model of CRFsuite from its binary file or from its dump; anything else is a `ModelError`."""
    content, name = _content_of(path), name_of(path)
    try:
        model = _from_binary(content) if content[:4] == MAGIC else _from_dump(content.decode("utf-8"))
    except (struct.error, IndexError) as error:
        raise ModelError(f"{name}: expected a whole CRFsuite model, got a truncated one; copy it again") from error
    except UnicodeDecodeError as error:
        problem = "expected a CRFsuite model or the UTF-8 text of its dump, got other bytes; check the path"
        raise ModelError(f"{name}: {problem}") from error
    except ValueError as error:
        raise ModelError(f"{name}: {error}; copy or dump the model again") from error
    if not model.labels:
        raise ModelError(f"{name}: expected a CRFsuite model with labels, got none; check the path")
    return model


def _content_of(path: str | Path) -> bytes:
    """Read as much of a file as a model can have: what its header says, or a dump if it begins as one."""
    start = read_bytes(path, START)
    if start[:4] == MAGIC and len(start) >= 8:
        return read_bytes(path, int.from_bytes(start[4:8], "little"))
    return read_bytes(path) if b" = {" in start else start


# The binary file


def _from_binary(content: bytes) -> CRFsuiteModel:
    _, size, kind, version, _, n_labels, n_attributes, weights_at, labels_at, attributes_at, *_ = _HEADER.unpack_from(
        content
    )
    if kind != b"FOMC" or version != 100:
        raise ValueError(f"expected a linear chain (FOMC, version 100), got {kind!r}, version {version}")
    if size > len(content):
        raise IndexError("the file ends too early")
    labels = _names(content, labels_at, n_labels, "labels")
    attributes = _names(content, attributes_at, n_attributes, "attributes")
    states: dict[tuple[int, int], float] = {}
    transitions: dict[tuple[int, int], float] = {}
    magic, _, n_weights = struct.unpack_from("<4sII", content, weights_at)
    if magic != b"FEAT":
        raise ValueError("the weights of the model are not where they should be")
    if weights_at + 12 + n_weights * _WEIGHT.size > len(content):
        raise IndexError("the file ends too early")
    for i in range(n_weights):
        of, first, label, weight = _WEIGHT.unpack_from(content, weights_at + 12 + i * _WEIGHT.size)
        n_first, target = (n_attributes, states) if of == STATE else (n_labels, transitions)
        if of not in (STATE, TRANSITION) or first >= n_first or label >= n_labels or not math.isfinite(weight):
            raise ValueError(f"weight {i} of {n_weights} is of no known attribute or label")
        target[first, label] = weight
    return CRFsuiteModel(labels, attributes, states, transitions)


def _names(content: bytes, start: int, wanted: int, what: str) -> list[str]:
    """Return the names in a constant database, by number."""
    magic, _, _, _, n_names, references = _NAMES.unpack_from(content, start)
    if magic != b"CQDB" or n_names != wanted:
        raise ValueError(f"expected {wanted} {what}, got {n_names if magic == b'CQDB' else 'no table of them'}")
    if start + references + 4 * n_names > len(content):
        raise IndexError("the file ends too early")
    names = []
    for offset in struct.unpack_from(f"<{n_names}I", content, start + references):
        _, length = struct.unpack_from("<II", content, start + offset)
        name = content[start + offset + 8 : start + offset + 8 + length]
        if len(name) != length or not name.endswith(b"\0"):
            raise ValueError(f"a name of the {what} does not end where it should")
        names.append(name[:-1].decode("utf-8", "surrogateescape"))
    if len(set(names)) != len(names):
        raise ValueError(f"expected {what} that all differ, got some twice")
    return names


# The dump


def _from_dump(text: str) -> CRFsuiteModel:
    named: dict[str, list[str]] = {"LABELS": [], "ATTRIBUTES": []}
    weights: dict[str, dict[tuple[int, int], float]] = {"TRANSITIONS": {}, "STATE_FEATURES": {}}
    known: dict[str, dict[str, int]] = {}
    section, ended = None, False
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        begins = _SECTION.fullmatch(line)
        if begins or line == "}":
            section, ended = begins[1] if begins else None, begins is None
        elif section in named and (entry := _NAMED.fullmatch(line)):
            named[section].append(entry[2])
            if int(entry[1]) != len(named[section]) - 1:
                raise ValueError(f"line {number}: expected number {len(named[section]) - 1}, got {entry[1]}")
        elif section in weights:
            known = known or {key: {name: i for i, name in enumerate(names)} for key, names in named.items()}
            first = known["LABELS" if section == "TRANSITIONS" else "ATTRIBUTES"]
            key, weight = _weight(line, number, first, known["LABELS"])
            weights[section][key] = weight
        elif line.strip() and section != "FILEHEADER":
            raise ValueError(f"line {number}: expected the dump of a CRFsuite model, got {line[:40]!r}")
    if not ended or section is not None:
        raise ValueError("expected a whole dump that ends with }, got one that is cut off")
    return CRFsuiteModel(named["LABELS"], named["ATTRIBUTES"], weights["STATE_FEATURES"], weights["TRANSITIONS"])


def _weight(line: str, number: int, first: dict[str, int], labels: dict[str, int]) -> tuple[tuple[int, int], float]:
    """Parse a line such as "  (0) w=the --> B-NP: 0.25"; names may have arrows in them."""
    _, opened, rest = line.partition(") ")
    match = _NUMBER.fullmatch(rest)
    if not opened or match is None or not math.isfinite(float(match[2])):
        raise ValueError(f"line {number}: expected (type) name --> label: weight, got {line[:60]!r}")
    at = match[1].find(_ARROW)
    while at >= 0:
        name, label = match[1][:at], match[1][at + len(_ARROW) :]
        if name in first and label in labels:
            return (first[name], labels[label]), float(match[2])
        at = match[1].find(_ARROW, at + 1)
    raise ValueError(f"line {number}: expected a known attribute and label, got {line[:60]!r}")
