"""Screenshots as PNG files of at most 256 colours, a third of their size and the same to the eye."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
START, MOST, CHANNELS = b"\x89PNG\r\n\x1a\n", 256, 3


def make_small(path: Path) -> None:
    """Write the picture again with few colours."""
    pixels = read(path.read_bytes())
    height, width, _ = pixels.shape
    codes = pixels.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    colours, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = colours[_chosen(_channels(colours), counts)]
    nearest = _nearest(_channels(colours), _channels(kept))
    rows = nearest[places.reshape(height, width)].astype(np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", _channels(kept).astype(np.uint8).tobytes()), (b"IDAT", zlib.compress(raw, 9)))
    path.write_bytes(START + b"".join(_chunk(*each) for each in (*parts, (b"IEND", b""))))


def _chosen(colours: Array, counts: Array) -> Array:
    """The colours to keep: the commonest, then one by one those that would be missed most."""
    kept = list(np.argsort(-counts, kind="stable")[: MOST // 4])
    distances = np.min([((colours - colours[i]) ** 2).sum(-1) for i in kept], 0)
    while len(kept) < min(MOST, len(colours)):
        kept.append(np.argmax(counts * distances))
        distances = np.minimum(distances, ((colours - colours[kept[-1]]) ** 2).sum(-1))
    return np.array(kept)


def _channels(codes: Array) -> Array:
    found: Array = np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], -1).astype(np.int32)
    return found


def _nearest(colours: Array, kept: Array) -> Array:
    """The index of the kept colour that is nearest to each colour."""
    return np.array([np.argmin(((kept - each) ** 2).sum(-1)) for each in colours])


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def read(data: bytes) -> Array:
    """The pixels [height, width, 3] of a picture as browsers write it: 8 bits of red, green and blue."""
    chunks = list(_chunks(data))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", dict(chunks)[b"IHDR"])
    assert (depth, kind, interlaced) == (8, 2, 0), "expected 8 bits of red, green and blue"
    raw = zlib.decompress(b"".join(content for name, content in chunks if name == b"IDAT"))
    lines = np.frombuffer(raw, np.uint8).reshape(height, 1 + CHANNELS * width)
    above, rows = np.zeros(CHANNELS * width, np.uint8), []
    for line in lines:
        above = _unfiltered(int(line[0]), line[1:], above)
        rows.append(above)
    return np.stack(rows).reshape(height, width, CHANNELS)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(START)
    while at < len(data):
        (n,) = struct.unpack(">I", data[at : at + 4])
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + n]
        at += 12 + n


def _unfiltered(kind: int, line: Array, above: Array) -> Array:
    """A row of bytes from how it differs from its neighbours (PNG specification, filters 0 to 4)."""
    if kind == 0:
        return line
    if kind == 2:
        return line + above
    found, up = bytearray(line.tobytes()), above.tobytes()
    for i in range(len(found)):
        left = found[i - CHANNELS] if i >= CHANNELS else 0
        corner = up[i - CHANNELS] if i >= CHANNELS else 0
        found[i] = (found[i] + (left, 0, (left + up[i]) // 2, _paeth(left, up[i], corner))[kind - 1]) & 255
    return np.frombuffer(bytes(found), np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
