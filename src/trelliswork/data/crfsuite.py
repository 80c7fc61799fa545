"""CRFsuite's files: data, with the attributes of each token, and models, in the binary format and as text.

A line of a data file is a token with its label and its attributes, tabs between them:

    B-NP\tw[0]=He\tpos=PRP\tlength:2.0
    B-VP\tw[0]=sings\tpos=VBZ

An attribute is a name or name:value; a colon or backslash in a name is written \\: or \\\\. A blank line ends a
sentence.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, ModelError
from trelliswork.lazy import lazy_module
from trelliswork.reading import name_of, numbered_lines, read_bytes
from trelliswork.writing import atomic_write

if TYPE_CHECKING:
    import numpy as np

    from trelliswork.runtime.arrays import Array
else:
    np = lazy_module("numpy")  # which only those who write a model need

ATTRIBUTES = "attributes"  # the key of `Sentence.extra` with a dict (or list of names) for each token
NAMELESS = "_"

_SUFFIXES = (".crfsuite", ".crfsuite.gz")
_FIELD = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?", re.S)
_ESCAPED = re.compile(r"\\(.)", re.S)

NumberedFields = tuple[int, list[str]]


def is_crfsuite(path: str | Path) -> bool:
    """Return whether a name ends as those of CRFsuite's data files do."""
    return str(path).lower().endswith(_SUFFIXES)


def read_crfsuite(path: str | Path, *, with_tags: bool = True) -> Iterator[Sentence]:
    """Yield the sentences of a CRFsuite data file, one by one; `.gz` and "-" (standard input) are accepted.

    The attributes are dicts under `extra["attributes"]`; a token goes by the name of its first attribute. The column of
    labels is there also with `with_tags=False`, as CRFsuite has it, but may be empty and is not read.
    """
    file = name_of(path)
    block: list[NumberedFields] = []
    n_sentences = 0
    for number, line in numbered_lines(path):
        if line.strip():
            block.append((number, line.split("\t")))
        elif block:
            n_sentences += 1
            yield _sentence(block, file, with_tags)
            block = []
    if block:
        yield _sentence(block, file, with_tags)
    elif n_sentences == 0:
        raise DataError(file, "expected at least one sentence, got none; the file is empty")


def _sentence(block: list[NumberedFields], file: str, with_tags: bool) -> Sentence:
    attributes = [_attributes(fields, file, number) for number, fields in block]
    tags = tuple(_label(fields[0], file, number) for number, fields in block) if with_tags else None
    words = tuple(next(iter(each), NAMELESS) or NAMELESS for each in attributes)
    return Sentence(words, tags, line=block[0][0], file=file, extra={ATTRIBUTES: attributes})


def _label(field: str, file: str, number: int) -> str:
    if field.startswith("@"):
        problem = f"expected a label, got the declaration {field!r}; weights of sentences are not read, delete the line"
        raise DataError(file, problem, line=number, column=1)
    name, value = _split(field, file, number, 1)
    if not name or value is not None:
        got = "nothing" if not field else repr(field)
        raise DataError(file, f"expected a label in front of the first tab, got {got}", line=number, column=1)
    return name


def _attributes(fields: list[str], file: str, number: int) -> dict[str, float]:
    """Return values by name; a name that comes twice has the sum, which scores the same."""
    values: dict[str, float] = {}
    for column, field in enumerate(fields[1:], 2):
        if not field:
            continue  # a tab at the end of the line
        name, text = _split(field, file, number, column)
        value = 1.0 if text is None else _number(text, name, file, number, column)
        values[name] = values.get(name, 0.0) + value
    return values


def _split(field: str, file: str, number: int, column: int) -> tuple[str, str | None]:
    """Return name and value of a field, the name without its escapes."""
    if "\\" not in field and ":" not in field:
        return field, None
    match = _FIELD.fullmatch(field)
    if match is None:
        problem = f"expected \\\\ or \\: where a backslash is, got {field!r}, which ends in one"
        raise DataError(file, problem, line=number, column=column)
    return _ESCAPED.sub(r"\1", match[1]), match[2]


def _number(text: str, name: str, file: str, number: int, column: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problem = f"expected a finite number after {name!r} and a colon, got {text!r}; write \\: for a colon in a name"
        raise DataError(file, problem, line=number, column=column)
    return value


# Models: the binary file, which has the weights as they are, and the text of `crfsuite dump`, which has weights
# of six places. Both say which attribute and which label, or which two labels, a weight belongs to.

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


# Writing the binary file, which CRFsuite's own library, python-crfsuite and `read_crfsuite_model` read. Labels and
# attributes are kept in constant databases: records (number, name), 256 hash tables over them, and each number's place.
# The hash is Bob Jenkins' lookup3 ("hashlittle", 2006, public domain).

VERSION, N_TABLES, BYTE_ORDER, MASK = 100, 256, 0x62445371, 0xFFFFFFFF
LARGEST = 1 << 32  # bytes: places are numbers of 32 bits


def write_crfsuite_model(path: str | Path, model: CRFsuiteModel) -> None:
    """Write a model as one file, whole or not at all."""
    with atomic_write(path, "wb") as file:
        file.write(crfsuite_bytes(model))


def crfsuite_bytes(model: CRFsuiteModel) -> bytes:
    """Return the file: a header, the weights, and the names of labels and attributes with the weights of each."""
    states, arcs = sorted(model.states), sorted(model.transitions)
    weights = np.zeros(
        len(states) + len(arcs), [("type", "<u4"), ("first", "<u4"), ("label", "<u4"), ("weight", "<f8")]
    )
    weights["type"] = np.repeat([STATE, TRANSITION], [len(states), len(arcs)])
    owners, labels = np.array(states + arcs, np.int64).reshape(-1, 2).T
    weights["first"], weights["label"] = owners, labels
    weights["weight"] = [*(model.states[each] for each in states), *(model.transitions[each] for each in arcs)]
    parts = [b"FEAT" + struct.pack("<II", 12 + weights.nbytes, len(weights)) + weights.tobytes()]
    parts += [_database(model.labels), _database(model.attributes)]
    places = [_HEADER.size]
    for part in parts:
        places.append(places[-1] + len(part))
    by_label = np.bincount(owners[len(states) :], minlength=len(model.labels) + 2)  # and the two ends, which have none
    parts.append(_references(b"LFRF", by_label, len(states), places[-1]))
    places.append(places[-1] + len(parts[-1]))
    by_attribute = np.bincount(owners[: len(states)], minlength=len(model.attributes))
    parts.append(_references(b"AFRF", by_attribute, 0, places[-1]))
    size = places[-1] + len(parts[-1])
    if size >= LARGEST:
        raise ModelError(
            f"a CRFsuite file has less than 4 GB; this model needs {size / 1e9:.1f}; train with --min-freq 2"
        )
    counts = (0, len(model.labels), len(model.attributes))
    return _HEADER.pack(MAGIC, size, b"FOMC", VERSION, *counts, *places) + b"".join(parts)


def _references(magic: bytes, counts: Array, first: int, place: int) -> bytes:
    """Return for each owner how many weights it has, and their numbers from `first` on; `place` is where it lies."""
    ends = np.cumsum(counts)
    numbers = np.empty(len(counts) + int(counts.sum()), "<u4")
    heads = np.arange(len(counts)) + ends - counts
    is_head = np.zeros(len(numbers), np.bool_)
    is_head[heads] = True
    numbers[is_head], numbers[~is_head] = counts, first + np.arange(int(counts.sum()))
    begin = place + 12 + 4 * len(counts)
    offsets = (begin + 4 * heads).astype("<u4")
    return (
        magic + struct.pack("<II", begin - place + numbers.nbytes, len(counts)) + offsets.tobytes() + numbers.tobytes()
    )


def _database(names: Sequence[str]) -> bytes:
    """Return names by number and numbers by name; padded to four bytes."""
    place = _NAMES.size + 8 * N_TABLES
    records, places, tables = bytearray(), [], [[] for _ in range(N_TABLES)]  # type: tuple[bytearray, list[int], list[list[tuple[int, int]]]]
    for number, name in enumerate(names):
        key = name.encode("utf-8", "surrogateescape") + b"\0"
        places.append(place + len(records))
        tables[(hashed := lookup3(key)) % N_TABLES].append((hashed, places[-1]))
        records += struct.pack("<II", number, len(key)) + key
    place += len(records)
    heads, buckets = bytearray(), bytearray()
    for entries in tables:
        heads += struct.pack("<II", place + len(buckets) if entries else 0, 2 * len(entries))
        buckets += _table(entries)
    backward = place + len(buckets)
    content = bytes(heads + records + buckets) + struct.pack(f"<{len(places)}I", *places)
    size = _NAMES.size + len(content)
    head = _NAMES.pack(b"CQDB", size, 0, BYTE_ORDER, len(names), backward)
    return head + content + b"\0" * (-size % 4)


def _table(entries: Sequence[tuple[int, int]]) -> bytes:
    """Fill a hash table of twice as many buckets (hash, place) as entries, by linear probing."""
    buckets = [(0, 0)] * (2 * len(entries))
    for hashed, place in entries:
        at = (hashed >> 8) % len(buckets)
        while buckets[at][1]:
            at = (at + 1) % len(buckets)
        buckets[at] = hashed, place
    return b"".join(struct.pack("<II", *bucket) for bucket in buckets)


def _rotated(x: int, bits: int) -> int:
    return (x << bits | x >> 32 - bits) & MASK


def lookup3(key: bytes) -> int:
    """Return the hash of a key.

    >>> hex(lookup3(b"")), hex(lookup3(b"Four score and seven years ago"))
    ('0xdeadbeef', '0x17770551')
    """
    a = b = c = (0xDEADBEEF + len(key)) & MASK
    if not key:
        return c
    whole = (len(key) - 1) // 12 * 12
    for x, y, z in struct.iter_unpack("<III", key[:whole]):
        a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
        for bits in (4, 6, 8, 16, 19, 4):
            a = (a - c & MASK) ^ _rotated(c, bits)
            c = c + b & MASK
            a, b, c = b, c, a
    x, y, z = struct.unpack("<III", key[whole:].ljust(12, b"\0"))
    a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, bits)) & MASK
        a, b, c = b, c, a
    return b
