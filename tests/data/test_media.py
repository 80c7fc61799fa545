"""Sound, images and arrays in files: every format that is read, and a sentence for every one that is not."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from trelliswork.data.media import is_recording, read_media
from trelliswork.errors import DataError

WAVE = np.array([0, 0.5, -0.5, 0.25, -1, 0.75])


def wav(
    code: int, bits: int, data: bytes, *, channels: int = 1, size: int | None = None, extensible: bool = False
) -> bytes:
    """A WAV file; `size` is what its header says of the data."""
    block = channels * bits // 8
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else code, channels, 8000, 8000 * block, block, bits)
    if extensible:
        form += struct.pack("<HHIH14s", 22, bits, 4, code, b"\0" * 14)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    chunks += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def pcm(bits: int) -> bytes:
    whole = (WAVE * 2 ** (bits - 1)).astype(np.int64)
    if bits == 8:
        return (whole + 128).astype(np.uint8).tobytes()
    return b"".join(int(each).to_bytes(bits // 8, "little", signed=True) for each in whole)


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_every_kind_of_samples(tmp_path: Path) -> None:
    files = {f"{bits}.wav": wav(1, bits, pcm(bits)) for bits in (8, 16, 24, 32)}
    files |= {f"f{bits}.wav": wav(3, bits, WAVE.astype(f"<f{bits // 8}").tobytes()) for bits in (32, 64)}
    files["extensible.wav"] = wav(1, 24, pcm(24), extensible=True)
    files["endless.wav"] = wav(1, 16, pcm(16), size=0xFFFFFFFF)
    for name, content in files.items():
        media = read_media(written(tmp_path, name, content))
        assert (media.kind, media.rate, media.channels, media.dim) == ("sound", 8000, 1, 0)
        assert media.values == pytest.approx(WAVE, abs=1e-6), name
    both = np.stack([WAVE, np.zeros(6)], 1).astype("<f4")
    media = read_media(written(tmp_path, "stereo.wav", wav(3, 32, both.tobytes(), channels=2)))
    assert media.channels == 2 and media.values == pytest.approx(WAVE / 2)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (wav(1, 16, b""), "expected samples, got none: its length is 0"),
        (wav(1, 16, pcm(16), size=100), "expected 100 bytes of samples, got 12: the file is cut"),
        (wav(7, 8, b"abc"), "got format 7 of 8 bits in 1 channels"),
        (wav(1, 16, pcm(16))[:30], "expected the chunks fmt and data"),
        (b"RIFFtoo short", "expected sound in WAV, got another format"),
        (b"", "expected sound in WAV, got 0 bytes"),
        (wav(3, 32, np.array([0, np.nan], "<f4").tobytes()), "expected finite numbers, got nan in sample 2"),
    ],
)
def test_sound_that_cannot_be_read(tmp_path: Path, content: bytes, told: str) -> None:
    with pytest.raises(DataError, match=told.replace("(", r"\(")):
        read_media(written(tmp_path, "a.wav", content))


# Images. `GREY` has rows of grey values in 0..1, as sixteenths so that a palette and 4 bits can have them.

GREY = np.array([[0, 5, 10, 15, 3], [15, 0, 2, 9, 9], [1, 2, 4, 8, 15]]) / 15


def test_grey_maps_of_bytes_and_of_words(tmp_path: Path) -> None:
    words = " ".join(str(round(15 * each)) for each in GREY.ravel())
    files = [
        f"P2\n# made by hand\n5 3\n15\n{words}\n".encode(),
        b"P5 5 3 15\n" + (15 * GREY).round().astype(np.uint8).tobytes(),
        b"P5\n5 3\n#\n65535\n" + (65535 * GREY).round().astype(">u2").tobytes(),
    ]
    for content in files:
        media = read_media(written(tmp_path, "a.pgm", content))
        assert media.kind == "image" and media.values == pytest.approx(1 - GREY.T, abs=1e-4)  # ink by columns


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(
    rows: list[bytes], width: int, depth: int, colour: int, *, step: int, interlaced: int = 0, palette: bytes = b""
) -> bytes:
    """A PNG whose rows are stored by the five filters in turn."""
    before, stored = bytes(len(rows[0])), b""
    for i, row in enumerate(rows):
        kind = i % 5
        left, corner = bytes(step) + row[:-step], bytes(step) + before[:-step]
        other = [bytes(len(row)), left, before, bytes((a + b) // 2 for a, b in zip(left, before, strict=True)),
                 bytes(map(paeth, left, before, corner))][kind]  # fmt: skip
        stored += bytes([kind]) + bytes((a - b) & 255 for a, b in zip(row, other, strict=True))
        before = row
    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, interlaced)
    packed = zlib.compress(stored)
    parts = chunk(b"IHDR", header) + (chunk(b"PLTE", palette) if palette else b"")
    return b"\x89PNG\r\n\x1a\n" + parts + chunk(b"IDAT", packed[:5]) + chunk(b"IDAT", packed[5:]) + chunk(b"IEND", b"")


def paeth(a: int, b: int, c: int) -> int:
    return min((a, b, c), key=lambda each: abs(a + b - c - each))


def test_every_depth_colour_and_filter_of_png(tmp_path: Path) -> None:
    grey = np.tile(GREY, (4, 1))  # twelve rows: each filter has several
    four, eight = (15 * grey).round().astype(np.uint8), (255 * grey).round().astype(np.uint8)
    nibbles = np.pad(four, ((0, 0), (0, 1)))
    packed = (nibbles[:, ::2] << 4 | nibbles[:, 1::2]).astype(np.uint8)
    black = np.packbits((grey > 0.5).astype(np.uint8), axis=1)
    opaque = np.stack([eight, np.full_like(eight, 255)], -1).reshape(12, -1)
    rgb = np.repeat(eight, 3, axis=1)
    palette = bytes(value for i in range(16) for value in (17 * i,) * 3)
    files = {
        "4": (png([*map(bytes, packed)], 5, 4, 0, step=1), grey),
        "8": (png([*map(bytes, eight)], 5, 8, 0, step=1), grey),
        "16": (png([(65535 * row).round().astype(">u2").tobytes() for row in grey], 5, 16, 0, step=2), grey),
        "1": (png([*map(bytes, black)], 5, 1, 0, step=1), (grey > 0.5).astype(float)),
        "rgb": (png([*map(bytes, rgb)], 5, 8, 2, step=3), grey),
        "alpha": (png([*map(bytes, opaque)], 5, 8, 4, step=2), grey),
        "palette": (png([*map(bytes, packed)], 5, 4, 3, step=1, palette=palette), grey),
    }
    for name, (content, wanted) in files.items():
        media = read_media(written(tmp_path, f"{name}.png", content))
        assert media.values == pytest.approx(1 - wanted.T, abs=2e-3), name
    clear = np.stack([np.zeros_like(eight), np.zeros_like(eight)], -1).reshape(12, -1)
    media = read_media(written(tmp_path, "clear.png", png([*map(bytes, clear)], 5, 8, 4, step=2)))
    assert media.values.max() == 0, "what is transparent is white"


def test_images_that_cannot_be_read(tmp_path: Path) -> None:
    whole = png([bytes(5)] * 3, 5, 8, 0, step=1)
    cases = {
        "P5 5 0 255\n": "expected an image with columns and rows, got 5 x 0",
        "P5 5 3 255\nabc": "expected 15 pixels, got 3: the file is cut",
        "P5 5 3 0\nabc": "expected a largest grey value in 1..65535, got 0",
        "P2 1 1 255\nx": "expected grey values as numbers",
        "P6 1 1 255\n": "expected a grey image in PGM",
        "P5 99999 99999 255\n": "expected at most 268,435,456 pixels",
    }
    for content, told in cases.items():
        with pytest.raises(DataError, match=told.replace("(", r"\(")):
            read_media(written(tmp_path, "a.pgm", content.encode()))
    for content, told in [
        (b"no", "expected an image in PNG"),
        (whole[:60], "the file is cut"),
        (png([bytes(5)] * 3, 5, 8, 0, step=1, interlaced=1), "not interlaced"),
        (png([bytes([9])] * 1, 1, 8, 3, step=1, palette=bytes(6)), "a palette of 2"),
        (png([bytes(5)] * 3, 6, 8, 0, step=1), "expected 3 rows of pixels, got 2"),
    ]:
        with pytest.raises(DataError, match=told):
            read_media(written(tmp_path, "a.png", content))


# Arrays.


def test_arrays_alone_and_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    np.savez(tmp_path / "one.npz", x=np.ones((2, 4)))
    np.savez(tmp_path / "two.npz", x=np.ones((2, 4)), y=np.zeros((5, 4), np.float16))
    np.save(tmp_path / "with#sign.npy", np.ones((1, 1)))
    assert read_media(tmp_path / "a.npy").values.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert read_media(tmp_path / "one.npz").dim == 4
    assert read_media(f"{tmp_path}/two.npz#y").values.shape == (5, 4)
    assert read_media(tmp_path / "with#sign.npy").values.shape == (1, 1)
    np.savez(tmp_path / "two.npz", x=np.ones((2, 4)), y=np.zeros((6, 4)))
    assert read_media(f"{tmp_path}/two.npz#y").values.shape == (6, 4), "the file has changed"
    assert is_recording("A.NPZ#y") and not is_recording("a.txt")


def test_arrays_that_cannot_be_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", x=np.ones((2, 4)), y=np.ones((5, 4)))
    arrays = {
        "flat": (np.ones(3), "expected numbers \\[frames, dim\\], got float64 \\(3,\\)"),
        "text": (np.array([["a"]]), "expected numbers"),
        "empty": (np.ones((0, 3)), "expected at least one frame"),
        "nan": (np.array([[1, 2], [3, np.nan]]), "got nan in frame 2, number 2"),
        "huge": (np.array([[1e300]]), "expected finite numbers, got inf in frame 1, number 1"),
        "object": (np.array([[None]]), "expected an array of numbers as numpy saves it"),
    }
    for name, (array, told) in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises(DataError, match=told):
            read_media(tmp_path / f"{name}.npy")
    for path, told in [
        (f"{tmp_path}/two.npz", "expected the name of one of its 2 arrays behind #, got none; choose one of x, y"),
        (f"{tmp_path}/two.npz#z", "got z"),
        (f"{tmp_path}/none.npy", "no such file"),
        (f"{tmp_path}/flat.npy#x", "expected a name behind # for a file .npz"),
        (written(tmp_path, "cut.npz", b"PK"), "as numpy saves it"),
        (written(tmp_path, "cut.npy", b"\x93NUM"), "as numpy saves it"),
        (
            written(tmp_path, "a.mp3", b"x"),
            "expected a recording that ends with .npy, .npz, .png, .pgm, .wav, got .mp3",
        ),
        (tmp_path, "got a folder"),
    ]:
        with pytest.raises(DataError, match=told):
            read_media(path)
