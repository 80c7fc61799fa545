"""Recordings in files: sequences of vectors (.npy, .npz), grey images (.png, .pgm) and sound (.wav).

Every reader returns finite numbers, or raises a sentence that says what is wrong with the file. An .npz file with
several arrays is followed by # and the name of one of them: `words.npz#w17`.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import struct
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from trelliswork.errors import DataError
from trelliswork.lazy import lazy_module
from trelliswork.reading import read_bytes, require_file

if TYPE_CHECKING:
    import numpy as np

    from trelliswork.runtime.arrays import Array
else:
    np = lazy_module("numpy")  # the first checks of a command ask for suffixes alone

MediaKind = Literal["vectors", "image", "sound"]
SHOWN: dict[str, str] = {"vectors": "vectors", "image": "an image", "sound": "sound"}
SUFFIXES: dict[str, MediaKind] = {
    ".npy": "vectors", ".npz": "vectors", ".png": "image", ".pgm": "image", ".wav": "sound",
}  # fmt: skip
MOST_PIXELS = 1 << 28
COPY = "copy the file again"


class Media(NamedTuple):
    """The content of a file: vectors [frames, dim], ink of an image [columns, rows] in 0..1, or samples of sound."""

    kind: MediaKind
    values: Array
    rate: int = 0  # samples of sound in a second
    channels: int = 1  # of sound, whose mean `values` are

    @property
    def dim(self) -> int:
        """Width of the vectors; 0 of an image or of sound, which are brought to one size."""
        return self.values.shape[1] if self.kind == "vectors" else 0


def is_recording(path: str | Path) -> bool:
    """Return whether a file is a recording by its suffix.

    >>> is_recording("a.WAV"), is_recording("words.npz#w1"), is_recording("list.tsv")
    (True, True, False)
    """
    return _suffix(path) in SUFFIXES


def _suffix(path: str | Path) -> str:
    name = str(path) if os.path.exists(path) else str(path).partition("#")[0]
    return Path(name).suffix.lower()


def read_media(path: str | Path) -> Media:
    """Return the content of a file, by its suffix; what is wrong with it is a `DataError` about the file."""
    kind = SUFFIXES.get(suffix := _suffix(path))
    if kind is None:
        problem = f"expected a recording that ends with {', '.join(SUFFIXES)}, got {suffix or 'no suffix'}"
        require_file(path)
        raise DataError(path, f"{problem}; convert it")
    if kind == "vectors":
        media = Media(kind, _vectors(_array(path), path))
    elif kind == "image":
        content = read_bytes(path)
        grey = _png(content, path) if suffix == ".png" else _pgm(content, path)
        media = Media(kind, np.ascontiguousarray(1 - grey.T, dtype=np.float32))
    else:
        media = _wave(read_bytes(path), path)
    if not np.isfinite(media.values).all():
        place = tuple(int(each) for each in np.argwhere(~np.isfinite(media.values))[0])
        where = f"frame {place[0] + 1}, number {place[1] + 1}" if len(place) > 1 else f"sample {place[0] + 1}"
        value = media.values[place]
        raise DataError(path, f"expected finite numbers, got {value} in {where}; correct or leave out the file")
    return media


# Arrays.


def _array(path: str | Path) -> Array:
    name, _, part = (str(path), "", "") if os.path.exists(path) else str(path).partition("#")
    require_file(name)
    try:
        if Path(name).suffix.lower() == ".npz":
            return _member(name, part)
        if part:
            raise DataError(path, f"expected a name behind # for a file .npz, got {name}; leave out #{part}")
        return np.load(name, allow_pickle=False)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(path, f"expected an array of numbers as numpy saves it, got none ({error}); {COPY}") from error


def _member(name: str, part: str) -> Array:
    status = os.stat(name)
    arrays = _opened(name, status.st_mtime_ns, status.st_size)
    if not part and len(arrays.files) == 1:
        return arrays[arrays.files[0]]
    if part not in arrays.files:
        some = ", ".join(arrays.files[:3]) + (", ..." if len(arrays.files) > 3 else "")
        problem = f"expected the name of one of its {len(arrays.files)} arrays behind #, got {part or 'none'}"
        raise DataError(name, f"{problem}; choose one of {some or 'another file'}")
    return arrays[part]


@lru_cache(maxsize=1)
def _opened(name: str, *version: int) -> np.lib.npyio.NpzFile:
    """Open a file of arrays once for all its members, of which it may have thousands."""
    return np.load(io.BytesIO(Path(name).read_bytes()), allow_pickle=False)


def _vectors(values: Array, path: str | Path) -> Array:
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        shape = f"{values.dtype} {tuple(values.shape)}"
        raise DataError(path, f"expected numbers [frames, dim], got {shape}; save one row for each frame")
    if 0 in values.shape:
        raise DataError(path, f"expected at least one frame and one number in it, got {values.shape}; leave it out")
    with np.errstate(over="ignore"):  # infinities are reported
        return np.ascontiguousarray(values, dtype=np.float32)


# Images: rows of grey values in 0..1.


def _pgm(content: bytes, path: str | Path) -> Array:
    """Return the pixels of a portable grey map, of bytes (P5) or in words (P2)."""
    header = re.match(rb"(P[25])((?:\s+|#[^\n]*\n)+)(\d+)((?:\s+|#[^\n]*\n)+)(\d+)((?:\s+|#[^\n]*\n)+)(\d+)\s", content)
    if header is None:
        raise DataError(path, "expected a grey image in PGM (P2 or P5), got another format; convert it")
    width, height, most = (int(header[i]) for i in (3, 5, 7))
    _check_size(width, height, path)
    if not 0 < most < 65536:
        raise DataError(path, f"expected a largest grey value in 1..65535, got {most}; convert the image again")
    if header[1] == b"P2":
        words = content[header.end() :].split(maxsplit=width * height)[: width * height]
        try:
            values = np.array(words, np.float32)
        except ValueError as error:
            raise DataError(path, f"expected grey values as numbers ({error}); {COPY}") from error
    else:
        kind = np.dtype(">u2" if most > 255 else "u1")
        n = min(width * height, (len(content) - header.end()) // kind.itemsize)
        values = np.frombuffer(content, kind, n, header.end()).astype(np.float32)
    if len(values) < width * height:
        raise DataError(path, f"expected {width * height:,} pixels, got {len(values):,}: the file is cut; {COPY}")
    return np.minimum(values / most, 1.0).reshape(height, width)


def _check_size(width: int, height: int, path: str | Path) -> None:
    if not width or not height:
        raise DataError(path, f"expected an image with columns and rows, got {width} x {height}; leave it out")
    if width * height > MOST_PIXELS:
        raise DataError(path, f"expected at most {MOST_PIXELS:,} pixels, got {width} x {height}; cut the image")


_PNG = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the type of colour
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_LUMINANCE = (0.299, 0.587, 0.114)


def _png(content: bytes, path: str | Path) -> Array:
    """Return the pixels of a PNG as grey values; what is transparent is white."""
    chunks = _png_chunks(content, path)
    width, height, depth, colour, *_, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    _check_size(width, height, path)
    if interlaced or depth not in _DEPTHS.get(colour, ()):
        raise DataError(path, "expected a PNG that is not interlaced, of 1 to 16 bits, got another; save it again")
    channels = _CHANNELS[colour]
    row = (width * channels * depth + 7) // 8
    unpack = zlib.decompressobj()
    try:
        raw = unpack.decompress(chunks.get(b"IDAT", b""), height * (row + 1))
    except zlib.error as error:
        raise DataError(path, f"expected packed pixels ({error}); {COPY}") from error
    if len(raw) < height * (row + 1):
        raise DataError(path, f"expected {height:,} rows of pixels, got {len(raw) // (row + 1):,}; {COPY}")
    rows = _unfiltered(np.frombuffer(raw, np.uint8).reshape(height, row + 1), max(1, channels * depth // 8))
    if depth == 16:
        values = rows.view(">u2").astype(np.float32)
    else:
        bits = np.unpackbits(rows, axis=1).reshape(height, -1, depth) if depth < 8 else rows[:, :, None]
        values = (bits @ (1 << np.arange(depth)[::-1]) if depth < 8 else bits[:, :, 0]).astype(np.float32)
    pixels = values[:, : width * channels].reshape(height, width, channels)
    return _grey(pixels, colour, depth, chunks, path)


def _grey(pixels: Array, colour: int, depth: int, chunks: dict[bytes, bytes], path: str | Path) -> Array:
    if colour == 3:
        palette = np.frombuffer(chunks.get(b"PLTE", b""), np.uint8).reshape(-1, 3)
        if pixels.max() >= len(palette):
            problem = f"expected colours of a palette of {len(palette)}, got a number above it"
            raise DataError(path, f"{problem}; save the image again")
        return (palette[pixels[:, :, 0].astype(np.int64)] / np.float32(255)) @ np.array(_LUMINANCE, np.float32)
    pixels = pixels / np.float32((1 << depth) - 1)
    grey = pixels[:, :, :3] @ np.array(_LUMINANCE, np.float32) if colour in (2, 6) else pixels[:, :, 0]
    return 1 - (1 - grey) * pixels[:, :, -1] if colour in (4, 6) else grey


def _png_chunks(content: bytes, path: str | Path) -> dict[bytes, bytes]:
    """Return the chunks by name; those of one name are joined."""
    if not content.startswith(_PNG):
        raise DataError(path, "expected an image in PNG, got another format; convert it")
    chunks: dict[bytes, bytes] = {}
    parts: dict[bytes, list[bytes]] = {}
    at = len(_PNG)
    while at + 8 <= len(content) and b"IEND" not in parts:
        size, name = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        if at + 12 + size > len(content):
            break
        parts.setdefault(name, []).append(content[at + 8 : at + 8 + size])
        at += 12 + size
    chunks = {name: b"".join(each) for name, each in parts.items()}
    if b"IEND" not in chunks or len(chunks.get(b"IHDR", b"")) != 13:
        raise DataError(path, f"expected a whole PNG, got {len(content):,} bytes of one: the file is cut; {COPY}")
    return chunks


def _unfiltered(rows: Array, step: int) -> Array:
    """Return the bytes of the rows, of which each is stored as differences from its neighbours."""
    done = np.zeros((len(rows) + 1, rows.shape[1] - 1), np.uint8)
    for i, row in enumerate(rows):
        above, kind, values = done[i], row[0], row[1:]
        if kind == 0:
            done[i + 1] = values
        elif kind == 1:
            done[i + 1] = _summed(values, step)
        elif kind == 2:
            done[i + 1] = values + above
        else:
            done[i + 1] = _from_left(values.tolist(), above.tolist(), step, paeth=kind == 4)
    return done[1:]


def _summed(values: Array, step: int) -> Array:
    padded = np.zeros(-(-len(values) // step) * step, np.uint8)
    padded[: len(values)] = values
    return padded.reshape(-1, step).cumsum(0, dtype=np.uint8).reshape(-1)[: len(values)]


def _from_left(values: list[int], above: list[int], step: int, *, paeth: bool) -> list[int]:
    row = [0] * step
    for i, value in enumerate(values):
        left, up, corner = row[i], above[i], above[i - step] if i >= step else 0
        row.append((value + (_nearest(left, up, corner) if paeth else (left + up) // 2)) & 255)
    return row[step:]


def _nearest(left: int, up: int, corner: int) -> int:
    """Return the neighbour that is nearest to left + up - corner, as PNG's filter of Paeth wants it."""
    a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    return left if a <= b and a <= c else up if b <= c else corner


# Sound.

_PCM, _FLOAT, _EXTENSIBLE, _ENDLESS = 1, 3, 0xFFFE, 0xFFFFFFFF


def _wave(content: bytes, path: str | Path) -> Media:
    """Return the samples of a WAV file in -1..1; of several channels, their mean."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        got = f"{len(content)} bytes" if len(content) < 12 else "another format"
        raise DataError(path, f"expected sound in WAV, got {got}; convert it")
    form, data = b"", None
    at = 12
    while at + 8 <= len(content) and data is None:
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        begin, at = at + 8, at + 8 + size + size % 2
        if name == b"fmt ":
            form = content[begin : begin + size]
        elif name == b"data":
            if size != _ENDLESS and begin + size > len(content):
                problem = f"expected {size:,} bytes of samples, got {len(content) - begin:,}: the file is cut"
                raise DataError(path, f"{problem}; {COPY}")
            data = content[begin:] if size == _ENDLESS else content[begin : begin + size]
    if len(form) < 16 or data is None:
        raise DataError(path, f"expected the chunks fmt and data of WAV, got a file without them; {COPY}")
    code, channels, rate, _, block, bits = struct.unpack("<HHIIHH", form[:16])
    if code == _EXTENSIBLE and len(form) >= 26:
        code = int.from_bytes(form[24:26], "little")
    if (code, bits) not in [*itertools.product((_PCM,), (8, 16, 24, 32)), (_FLOAT, 32), (_FLOAT, 64)] or not (
        channels and rate and block == channels * bits // 8
    ):
        problem = f"expected PCM of 8 to 32 bits or float samples, got format {code} of {bits} bits"
        raise DataError(path, f"{problem} in {channels} channels; convert it to PCM of 16 bits")
    samples = _samples(data[: len(data) // block * block], code, bits)
    if not len(samples):
        raise DataError(path, "expected samples, got none: its length is 0; leave it out")
    mean = samples.reshape(-1, channels).mean(1, dtype=np.float32) if channels > 1 else samples
    return Media("sound", mean, rate, channels)


def _samples(data: bytes, code: int, bits: int) -> Array:
    if code == _FLOAT:
        return np.frombuffer(data, f"<f{bits // 8}").astype(np.float32)
    if bits == 8:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if bits == 24:
        low = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return (low.astype(np.int32) << (8, 16, 24)).sum(1, dtype=np.int32).astype(np.float32) / np.float32(2**31)
    return np.frombuffer(data, f"<i{bits // 8}").astype(np.float32) / np.float32(2 ** (bits - 1))
