"""Write CRFsuite's binary model file, which its own library, python-crfsuite and `read_crfsuite_model` read.

Labels and attributes are kept in constant databases: records (number, name), 256 hash tables over them, and where each
number is. The hash is Bob Jenkins' lookup3 ("hashlittle", 2006, public domain).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trelliswork.data.crfsuite_models import MAGIC, STATE, TRANSITION, CRFsuiteModel
from trelliswork.errors import ModelError
from trelliswork.runtime.arrays import Array
from trelliswork.writing import atomic_write

VERSION, N_TABLES, BYTE_ORDER, MASK = 100, 256, 0x62445371, 0xFFFFFFFF
_HEADER = struct.Struct("<4sI4sIIIIIIIII")
_NAMES = struct.Struct("<4sIIIII")
_WEIGHT = np.dtype([("type", "<u4"), ("first", "<u4"), ("label", "<u4"), ("weight", "<f8")])
LARGEST = 1 << 32  # bytes: places are numbers of 32 bits


def write_crfsuite_model(path: str | Path, model: CRFsuiteModel) -> None:
    """Write a model as one file, whole or not at all."""
    with atomic_write(path, "wb") as file:
        file.write(crfsuite_bytes(model))


def crfsuite_bytes(model: CRFsuiteModel) -> bytes:
    """Return the file: a header, the weights, the names of labels and attributes, and which weights each of these
    has.
    """
    states, arcs = sorted(model.states), sorted(model.transitions)
    weights = np.zeros(len(states) + len(arcs), _WEIGHT)
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
